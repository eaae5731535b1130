"""What is best, and is it worth it: with compute the epoch decides, and only points that read the same data are ranked."""

from dataclasses import replace

import pytest
from rich.console import Console

from tests.predict.clocked import Rank, clocked
from tierscope.analysis.breakdown import Breakdown, break_down
from tierscope.analysis.comparable import comparable_groups
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.to_json import breakdown_json
from tierscope.analysis.worth import worth_sentence
from tierscope.predict.whatif import estimate
from tierscope.report.tables import BreakdownView
from tierscope.spec.feasibility import Feasibility, TierRoom


def shown(breakdown: Breakdown, given: Conditions = Conditions()) -> str:  # noqa: B008  (frozen)
    console = Console(width=160, file=None, force_terminal=False, record=True, quiet=False, stderr=True)
    with console.capture() as caught:
        console.print(BreakdownView("test", breakdown, [], given))
    return caught.get()


def first_sentence(breakdown: Breakdown) -> str:
    return worth_sentence(breakdown, breakdown.groups[0])


def epochs(seconds: list[float], io: float, stall: float = 0.001, compute: float = 0.3) -> list[list[Rank]]:
    """A first epoch that does not count, and those that do."""
    return [[{"GFS-READ": io, "epoch": each, "stall": stall, "compute": compute}] for each in (1.0, *seconds)]


# The I/O is shortest where everything is cached; the epoch is not.
HIDDEN = clocked(
    [
        ({"cache_rate": 0.0}, epochs([0.370, 0.376, 0.380], 0.20)),
        ({"cache_rate": 0.5}, epochs([0.340, 0.343, 0.350], 0.12)),
        ({"cache_rate": 1.0}, epochs([0.372, 0.373, 0.375], 0.01)),
    ]
)


def test_with_compute_the_best_point_has_the_shortest_epoch() -> None:
    found = break_down(HIDDEN)
    assert found.ranked_by == "epoch"
    assert found.best.sweep == {"cache_rate": 0.5}
    assert found.best.epoch is not None
    assert (found.best.epoch.low, found.best.epoch.high, found.best.epoch.n) == (0.340, 0.350, 3)
    assert "Best: cache_rate 100%" not in shown(found)
    assert "Best: cache_rate 50% with an epoch of 0.343 s" in shown(found)


def test_the_first_sentence_says_what_caching_changes_at_all() -> None:
    assert first_sentence(break_down(HIDDEN)) == (
        "Caching shortens the epoch by 9 % (5–11 %, n = 3); at the best point compute hides the I/O."
    )
    lines = [line.strip() for line in shown(break_down(HIDDEN)).splitlines() if "shortens" in line or "Best" in line]
    assert lines[0].startswith("Caching shortens the epoch by 9 %")


def test_compute_hides_nothing_that_the_slowest_rank_waits_for() -> None:
    """An epoch ends with its last rank, whatever the others wait on average."""

    def ranks(slowest: float) -> list[Rank]:
        quick = {"GFS-READ": 0.1, "epoch": 0.75, "stall": 0.0, "compute": 0.75}
        return [*([quick] * 15), {"GFS-READ": 0.9, "epoch": slowest, "stall": slowest - 0.75, "compute": 0.75}]

    points = [({"cache_rate": rate}, [ranks(slowest)] * 3) for rate, slowest in ((0.0, 1.9), (1.0, 0.95))]
    found = break_down(clocked(points))
    assert found.best.stall_share == pytest.approx(0.2 / 0.95)
    assert first_sentence(found) == "Caching shortens the epoch by 50 % (n = 2)."


def test_what_caching_changes_is_not_told_where_nothing_cached_fits() -> None:
    """The only point that fits is best, and says nothing of caching."""
    breakdown = break_down(HIDDEN)
    (group,) = breakdown.groups
    no_room = Feasibility((TierRoom("lfs", bytes_per_node=2, bytes_in_all=2, capacity=1, nodes_per_device=1),))
    assert not no_room.is_possible
    points = tuple(
        replace(point, feasibility=no_room) if point.sweep["cache_rate"] else point for point in group.points
    )
    only = replace(group, points=points, best=points[0])
    assert worth_sentence(breakdown, only) == ""
    half = replace(group, points=(points[0], group.points[1], points[2]))
    assert worth_sentence(breakdown, half).startswith("Caching what fits shortens the epoch by 9 %")


def test_what_cannot_be_told_from_the_best_is_told_by_the_epoch() -> None:
    times = clocked(
        [
            ({"cache_rate": 0.0}, epochs([0.340, 0.376, 0.380], 0.20)),
            ({"cache_rate": 0.5}, epochs([0.330, 0.343, 0.350], 0.12)),
        ]
    )
    found = break_down(times)
    assert found.smallest_equal is not None
    assert found.smallest_equal.sweep == {"cache_rate": 0.0}
    assert "0–13 %, n = 3" in first_sentence(found)  # the intervals overlap: perhaps nothing at all


def test_of_equal_epochs_the_shorter_io_is_better_then_the_smaller_rate() -> None:
    points = [({"cache_rate": rate}, epochs([0.5, 0.5], io)) for rate, io in ((0.0, 0.2), (0.5, 0.1), (1.0, 0.1))]
    assert break_down(clocked(points)).best.sweep == {"cache_rate": 0.5}
    assert first_sentence(break_down(clocked(points))) == "Caching does not shorten the epoch: compute hides I/O."


def test_without_compute_the_io_decides_as_before() -> None:
    points = [({"cache_rate": rate}, epochs([0.5], io, compute=0.0)) for rate, io in ((0.0, 0.2), (1.0, 0.1))]
    found = break_down(clocked(points))
    assert (found.ranked_by, found.best.sweep) == ("io", {"cache_rate": 1.0})
    assert first_sentence(found) == ""
    assert "Best: cache_rate 100% with 0.100 s of I/O per epoch (n=1)." in shown(found)


def test_another_key_is_named() -> None:
    points = [({"read_threads": threads}, epochs([whole], 0.2, stall=0.1)) for threads, whole in ((1, 0.8), (4, 0.4))]
    assert first_sentence(break_down(clocked(points, ("read_threads",)))) == (
        "The epoch is 50 % shorter at read_threads 4 than at read_threads 1 (n = 1)."
    )


def sized(files: int, kib: int) -> list[list[Rank]]:
    amount = files * kib * 1024
    seconds = amount / 1e8
    return [[{"GFS-READ": seconds, "epoch": seconds + 0.1, "stall": seconds, "payload": amount}]]


SIZES = [
    ({"num_files_train": files, "record_length_bytes": kib << 10}, sized(files, kib))
    for files in (4, 400)
    for kib in (128, 1024)
]
SWEPT = ("num_files_train", "record_length_bytes")


def test_points_that_read_different_amounts_of_data_are_not_ranked() -> None:
    found = break_down(clocked(SIZES, SWEPT))
    assert len(found.groups) == 4
    assert found.groups[0].best.sweep == {"num_files_train": 400, "record_length_bytes": 1 << 20}  # the most data first
    text = shown(found)
    assert "Best:" not in text
    assert "◀ best" not in text
    assert "Each of these points reads a different amount of data" in text
    content = breakdown_json(found, [], Conditions())
    assert content["best"] is None
    assert [group["amount"] for group in content["groups"]] == [400 << 20, 400 << 17, 4 << 20, 4 << 17]


def test_the_same_bytes_in_more_files_are_comparable() -> None:
    points = [
        ({"num_files_train": files, "record_length_bytes": kib << 10}, sized(files, kib))
        for files, kib in ((4, 1024), (32, 128))
    ]
    found = break_down(clocked(points, SWEPT))
    assert len(found.groups) == 1
    assert found.best.sweep["num_files_train"] == 4


def test_caching_changes_no_amount() -> None:
    """Though less is read at one of the rates, as where a rank reads a file twice."""
    points = [
        ({"cache_rate": rate}, [[{"GFS-READ": 1.0, "epoch": 2.0, "payload": amount}]])
        for rate, amount in ((0.0, 1000), (1.0, 1500))
    ]
    assert len(break_down(clocked(points)).groups) == 1


@pytest.mark.parametrize(
    ("amounts", "groups"),
    [
        ([100.0, 100.0, 99.5], [(0, 1, 2)]),
        ([100.0, 98.0, 98.5], [(0,), (1, 2)]),
        ([1.0, None, 100.0], [(0, 1, 2)]),
        ([1.0, 100.0, 1.0], [(1,), (0, 2)]),
        ([0.0, 0.0], [(0, 1)]),
        ([], []),
    ],
)
def test_groups_of_amounts(amounts: list[float | None], groups: list[tuple[int, ...]]) -> None:
    assert comparable_groups(amounts) == groups


def test_of_several_amounts_each_has_its_best() -> None:
    rates = [
        ({"num_files_train": files, "cache_rate": rate}, sized(files, kib))
        for files in (4, 400)
        for rate, kib in ((0.0, 200), (1.0, 100))
    ]
    found = break_down(clocked(rates, ("num_files_train", "cache_rate")))
    text = shown(found)
    assert "Points that read 78.1 MiB per epoch (2): Best: num_files_train 400, cache_rate 100%" in text
    assert "Points that read 800 KiB per epoch (2): Best: num_files_train 4, cache_rate 100%" in text
    assert text.count("◀ best") == 2


def test_without_compute_the_epoch_decides_where_it_contradicts_the_io() -> None:
    """HDF5 chunks: the least I/O, but a library that works longest beside it. What the user waits for is the epoch."""
    times = [
        ({"chunk_size": 4096}, 0.30, 0.40),
        ({"chunk_size": 65536}, 0.20, 0.25),
        ({"chunk_size": 1048576}, 0.10, 0.90),
    ]
    points = [(sweep, epochs([whole, whole * 1.02], io, compute=0.0)) for sweep, io, whole in times]
    found = break_down(clocked(points, ["chunk_size"]))
    assert (found.ranked_by, found.best.sweep) == ("epoch", {"chunk_size": 65536})
    assert "Best: chunk_size 64 KiB with an epoch of 0.25" in shown(found)
    assert breakdown_json(found, [], Conditions())["ranked_by"] == "epoch"
    faster = estimate(clocked(points, ["chunk_size"]), found, {"GFS-READ": 100.0})
    assert (faster.after.ranked_by, faster.after.best.sweep) == ("epoch", {"chunk_size": 65536})


def test_epochs_that_overlap_do_not_contradict_the_io() -> None:
    points = [
        ({"chunk_size": size}, epochs(list(whole), io, compute=0.0))
        for size, io, whole in ((4096, 0.2, (0.25, 0.45)), (65536, 0.1, (0.3, 0.5)))
    ]
    assert break_down(clocked(points, ["chunk_size"])).ranked_by == "io"


# What was swept changes nothing


def transfers(*seconds: float) -> Breakdown:
    points = [
        ({"transfer_size": mib << 20}, epochs([each], each, compute=0.0))
        for mib, each in zip((1, 4), seconds, strict=True)
    ]
    return break_down(clocked(points, ("transfer_size",)))


def test_sizes_have_units_in_tables_and_sentences() -> None:
    text = shown(transfers(0.2, 0.1))
    assert "1048576" not in text
    assert "Best: transfer_size 4 MiB with" in text
    assert "Bottleneck: GFS-READ from 1 MiB to 4 MiB." in text


def test_points_that_take_the_same_time_have_no_best() -> None:
    text = shown(transfers(0.2, 0.2))
    assert "All 2 points take the same time, 200 ms of I/O per epoch: the sweep changes nothing." in text
    assert "Best" not in text
    assert "◀" not in text


def test_the_bottleneck_of_an_inert_sweep_is_not_placed_along_it() -> None:
    text = shown(transfers(0.2, 0.1), Conditions(inert={"transfer_size": "a file has at most 977 KiB"}))
    assert "Bottleneck: GFS-READ.\n" in text
    assert "Best" not in text
    assert "distinguish" not in text


def test_checkpoints_are_not_called_waiting_for_data() -> None:
    """Said before: although ranks wait for data, while checkpoints took 70 % of the epoch."""
    points = [
        ({"cache_rate": rate}, [[{"GFS-READ": 0.1, "epoch": 1.0, "stall": 0.1, "compute": 0.2, "checkpoint": 0.7}]])
        for rate in (0.0, 1.0)
    ]
    said = first_sentence(break_down(clocked(points)))
    assert said == "Caching does not shorten the epoch: checkpoints pause training for 70 % of it."
