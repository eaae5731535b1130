"""Findings about probed rates: each appears when it should, and only then; and what its JSON says."""

from dataclasses import replace
from typing import Any

from tests.finding_cases import Case, finding_tests
from tests.probe.test_probe import SIZES, probed_tier
from tierscope.analysis.wording import Finding
from tierscope.probe.findings import findings_of
from tierscope.probe.measure import Series
from tierscope.probe.probe import Probed, ProbedTier
from tierscope.report.probe import probe_json

GFS = {"tier": "gfs"}
GREW = "throughput was still growing with 8 processes, the maximum tried"


def found(*tiers: ProbedTier, seconds: float = 1.0) -> list[Finding]:
    return findings_of(Probed(tiers or (probed_tier("gfs"),), 8, seconds, 600.0))


def changed(**changes: Any) -> list[Finding]:
    return found(probed_tier("gfs", **changes))


def slower(factor: float, alone: float = 1.0) -> ProbedTier:
    """The largest reads take so many times as long as the rates say; alone a process so many times as long again."""
    tier = probed_tier("gfs")
    last = tier.series[-1]
    points = tuple(
        replace(
            point,
            repetitions=tuple(
                replace(
                    each,
                    ops_per_second=each.ops_per_second / factor,
                    op_seconds=each.op_seconds * (alone if not place else 1.0),
                )
                for each in point.repetitions
            ),
        )
        for place, point in enumerate(last.points)
    )
    return replace(tier, series=(*tier.series[:-1], replace(last, points=points)))


def short() -> ProbedTier:
    """One level was measured twice only."""
    tier = probed_tier("gfs")
    first: Series = tier.series[0]
    few = replace(first.points[0], repetitions=first.points[0].repetitions[:2])
    return replace(tier, series=(replace(first, points=(few, *first.points[1:])), *tier.series[1:]))


def evidence_of(kind: str, findings: list[Finding]) -> dict[str, Any]:
    (finding,) = (finding for finding in findings if finding.kind == kind)
    return finding.evidence


LARGEST = SIZES[-1]
SATURATED = probed_tier("gfs")
SATURATED = replace(SATURATED, derived={key: replace(rate, at_least="") for key, rate in SATURATED.derived.items()})
CASES: dict[str, Case] = {
    "probe_warm_reads": Case(
        lambda: changed(cold=False, filesystem="tmpfs"), {**GFS, "filesystem": "tmpfs"}, lambda: changed(cold=None)
    ),
    "probe_unknown_pages": Case(lambda: changed(cold=None), GFS, lambda: changed(cold=False)),
    "probe_at_least": Case(
        found, {**GFS, "keys": ["read_ops"], "why": GREW, "advice": "processes"}, lambda: found(SATURATED)
    ),
    "probe_few_repetitions": Case(lambda: found(short()), {**GFS, "points": 1}, found),
    "probe_no_time": Case(
        lambda: changed(left_out={LARGEST: "time", 2 * LARGEST: "time"}),
        {**GFS, "sizes": [LARGEST, 2 * LARGEST]},
        lambda: changed(left_out={LARGEST: "room"}),
    ),
    "probe_no_room": Case(
        lambda: changed(left_out={LARGEST: "room"}),
        {**GFS, "sizes": [LARGEST]},
        lambda: changed(left_out={LARGEST: "time"}),
    ),
    "probe_one_size": Case(lambda: changed(files={4096: 9}), GFS, lambda: changed(files={4096: 9, 8192: 9})),
    "probe_misfit": Case(
        lambda: found(slower(2.0)),
        evidence_of("probe_misfit", found(slower(2.0))),
        lambda: found(slower(1.1)),
    ),
    "probe_slow_alone": Case(
        lambda: found(slower(1.0, alone=3.0)),
        evidence_of("probe_slow_alone", found(slower(1.0, alone=3.0))),
        lambda: found(slower(1.0, alone=1.3)),
    ),
    "probe_own_cost": Case(
        lambda: changed(own_seconds=0.0002),
        {**GFS, "own": 0.0002, "open": SATURATED.series[0].alone.op_seconds},
        lambda: changed(own_seconds=0.0001),
    ),
    "probe_over_budget": Case(
        lambda: found(seconds=1000.0), {"took": 1000.0, "wanted": 600.0}, lambda: found(seconds=900.0)
    ),
    "probe_same_device": Case(
        lambda: found(probed_tier("lfs"), probed_tier("gfs")),
        {"tier": "lfs", "other": "gfs"},
        lambda: found(probed_tier("lfs", device=7), probed_tier("gfs")),
    ),
    "probe_left_behind": Case(lambda: changed(left_behind="/data/x"), {**GFS, "file": "/data/x"}, found),
    "probe_warm_metadata": Case(found, {}, list),
}

(
    test_it_appears_when_it_should,
    test_it_does_not_appear_when_it_should_not,
    test_its_words_are_one_line_with_its_evidence,
) = finding_tests(CASES)


def test_what_was_slower_is_told_in_numbers() -> None:
    misfit = evidence_of("probe_misfit", found(slower(2.0)))
    assert (misfit["tier"], misfit["size"], misfit["more"]) == ("gfs", LARGEST, "more")
    assert 90 < misfit["percent"] < 130
    alone = evidence_of("probe_slow_alone", found(slower(1.0, alone=3.0)))
    assert alone["measured"] > 1.5 * alone["predicted"] > 0


def test_json_names_kinds_and_shows_evidence_as_it_always_did() -> None:
    probed = Probed((probed_tier("gfs", own_seconds=0.0002, left_out={LARGEST: "time"}),), 8, 1.0, 600.0)
    listed = {each["kind"]: each for each in probe_json(probed, findings_of(probed))["findings"]}
    assert list(listed) == ["at_least", "no_time", "own_cost", "warm_metadata"]
    assert listed["at_least"]["evidence"] == {
        **GFS,
        "keys": "read_ops",
        "why": GREW,
        "advice": "raise --ranks, or probe from several nodes at a time",
    }
    assert listed["no_time"]["evidence"] == {**GFS, "sizes": "16 MiB"}
    assert listed["no_time"]["text"] == "gfs: files of 16 MiB were skipped: not enough time to write them"
    assert listed["own_cost"]["evidence"] == {**GFS, "own": "200 µs", "open": "1.5 ms"}
    assert set(listed["own_cost"]) == {"kind", "evidence", "text", "suggestion"}
