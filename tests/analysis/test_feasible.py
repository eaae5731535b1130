"""What is said of points that do not fit, and of capacities that nobody gave."""

from dataclasses import replace

from tests.finding_cases import Case, finding_tests
from tests.traces import times_of
from tierscope.analysis.breakdown import Breakdown, break_down
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.feasible import about_feasibility, unconstrained_best
from tierscope.analysis.to_json import breakdown_json
from tierscope.analysis.wording import Finding
from tierscope.spec.feasibility import Feasibility, TierRoom

SECONDS = {0.0: 9.0, 0.5: 5.0, 1.0: 2.0}


def broken_down(capacity: int | None, per_node: bool = True) -> Breakdown:
    """A node holds 400 B where all is cached."""
    rows = [{"cache_rate": rate, "rank": 0, "class": "GFS-READ", "seconds": each} for rate, each in SECONDS.items()]
    rooms = {(rate,): TierRoom("lfs", round(400 * rate) if per_node else None, round(1600 * rate), capacity) for rate in SECONDS}  # fmt: skip
    fits = {key: Feasibility((room,)) for key, room in rooms.items()}
    return break_down(replace(times_of(rows, ["cache_rate"]), feasibility=fits))


def said(capacity: int | None, simulated: bool = True, per_node: bool = True) -> list[Finding]:
    return about_feasibility(broken_down(capacity, per_node), simulated)


def none_fits() -> list[Finding]:
    rows = [{"cache_rate": 0.5, "rank": 0, "class": "GFS-READ", "seconds": 1.0}]
    fits = {(0.5,): Feasibility((TierRoom("lfs", 400, 1600, 10),))}
    return about_feasibility(break_down(replace(times_of(rows, ["cache_rate"]), feasibility=fits)), simulated=True)


CASES = {
    "does_not_fit": Case(
        lambda: said(200),
        {"misfits": 1, "points": 3, "where": "cache_rate 100%", "why": "400 B per node do not fit on lfs, which holds 200 B"},
        lambda: said(400),
    ),
    "no_point_fits": Case(
        none_fits,
        {"points": 1, "where": "cache_rate 50%", "why": "400 B per node do not fit on lfs, which holds 10 B"},
        lambda: said(0),  # without any cached
    ),
    "capacity_unknown": Case(
        lambda: said(None, per_node=False),
        {"tier": "lfs", "bytes": 1600, "whose": "in all"},
        lambda: said(None, simulated=False),
    ),
}  # fmt: skip

(
    test_it_appears_when_it_should,
    test_it_does_not_appear_when_it_should_not,
    test_its_words_are_one_line_with_its_evidence,
) = finding_tests(CASES)


def test_the_best_is_the_shortest_that_fits() -> None:
    assert unconstrained_best(broken_down(200)).sweep == {"cache_rate": 1.0}
    for capacity, rate in ((None, 1.0), (400, 1.0), (399, 0.5), (200, 0.5), (199, 0.0)):
        assert broken_down(capacity).best.sweep == {"cache_rate": rate}


def test_json_has_no_best_where_nothing_fits() -> None:
    breakdown = broken_down(199)
    alone = replace(breakdown, groups=(replace(breakdown.groups[0], best=breakdown.summary[-1]),))
    assert breakdown_json(breakdown, [], Conditions())["best"]["sweep"] == {"cache_rate": 0.0}
    assert breakdown_json(alone, [], Conditions())["best"] is None


def test_where_nothing_fits_the_bytes_are_still_told() -> None:
    room = TierRoom("lfs", 100, 6400, 50, nodes_per_device=16)
    assert (room.fits, room.bytes_per_device, room.needed) == ("no", 1600, 100)
    assert replace(room, proven=True).fits == "yes"  # it was there
    assert Feasibility((room, TierRoom("gfs", None, 9, None))).fits == "no"
    assert Feasibility((TierRoom("lfs", 0, 0, None),)).fits == "yes"  # nothing needs no room
