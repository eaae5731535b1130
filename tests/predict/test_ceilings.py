"""What a class was ever seen to serve, and when an estimate asks for more."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.predicting import measured, tables
from tests.traces import times_of
from tierscope.analysis.times import ClassTimes
from tierscope.predict.ceilings import Ceiling, ceilings, exceeded
from tierscope.predict.processes import Processes, factor

# Seconds, operations, bytes. The slowest process takes 10 s at 0 % and 8 s at 50 %. All processes together, per second:
#   GFS-META  at 0 %: 800 / 10 =  80 operations    at 50 %: 400 / 8 =  50
#   GFS-READ  at 0 %: 800 / 10 =  80               at 50 %: none
#                     8000 / 10 = 800 bytes
#   LFS-READ  at 0 %: none                         at 50 %: 400 / 8 =  50, 2400 / 8 = 300 bytes
TWO_RANKS = {
    0.0: [
        {"GFS-META": (8.0, 400, 0), "GFS-READ": (2.0, 400, 4000)},
        {"GFS-META": (6.0, 400, 0), "GFS-READ": (2.0, 400, 4000)},
    ],
    0.5: [
        {"GFS-META": (3.0, 200, 0), "LFS-READ": (5.0, 200, 1200)},
        {"GFS-META": (2.0, 200, 0), "LFS-READ": (4.0, 200, 1200)},
    ],
}


def found(times: ClassTimes) -> dict[tuple[str, str], Ceiling]:
    return {(ceiling.class_name, ceiling.kind): ceiling for ceiling in ceilings(Processes.of(times))}


def warned(times: ClassTimes, point: int, io_seconds: float, **improve: float) -> list[tuple[str, Any, Any]]:
    """Kind, class and seconds of each; improvements by class with an underscore."""
    percents = {name.replace("_", "-"): percent for name, percent in improve.items()}
    warnings = exceeded(ceilings(Processes.of(times)), point, io_seconds, percents)
    return [(each.kind, each.evidence["class"], each.evidence["implied_seconds"]) for each in warnings]


def test_a_ceiling_is_the_most_that_all_served_while_the_slowest_worked() -> None:
    ceiling = found(measured(TWO_RANKS))
    assert set(ceiling) == {
        ("GFS-META", "ops"),
        ("GFS-READ", "ops"),
        ("GFS-READ", "bytes"),
        ("LFS-READ", "ops"),
        ("LFS-READ", "bytes"),
    }  # nothing was done otherwise
    meta, near = ceiling["GFS-META", "ops"], ceiling["LFS-READ", "ops"]
    assert (meta.per_second, meta.where, meta.share) == (80.0, "cache_rate 0%", 0.8)
    assert meta.seconds == (800 / 80, 400 / 80)
    assert (near.per_second, near.where, near.share) == (50.0, "cache_rate 50%", 0.625)
    assert near.seconds == (0.0, 8.0)
    assert ceiling["GFS-READ", "bytes"].per_second == 800.0
    assert ceiling["LFS-READ", "bytes"].per_second == 300.0


def test_the_most_may_be_of_any_epoch_and_what_is_served_is_the_median() -> None:
    rows = [
        {"rank": 0, "class": "GFS-READ", "seconds": seconds, "ops": ops, "epoch": epoch, "repetition": repetition}
        for epoch, repetition, seconds, ops in [(1, 1, 0.5, 90), (2, 1, 4.0, 40), (2, 2, 2.0, 30), (3, 1, 5.0, 20)]
    ]
    (ceiling,) = ceilings(Processes.of(times_of(rows)))
    assert (ceiling.per_second, ceiling.where) == (15.0, "the only point")  # not the first epoch's 180
    assert ceiling.seconds == (30 / 15,)


def test_a_class_that_was_not_improved_and_would_serve_more_is_named_with_the_time_it_takes() -> None:
    """Five times the LFS-READ: 3 + 5 / 5 = 4 s at 50 %, in which GFS-META would serve 100 a second, not 80."""
    (warning,) = exceeded(ceilings(Processes.of(measured(TWO_RANKS))), 1, 4.0, {"LFS-READ": 400.0})
    assert warning.kind == "beyond_ops"
    assert warning.evidence == {
        "class": "GFS-META",
        "times": 1.25,
        "most_per_second": 80.0,
        "where": "cache_rate 0%",
        "percent": 80.0,
        "implied_seconds": 5.0,
    }


@pytest.mark.parametrize(("io_seconds", "seen"), [(5.5, False), (5.0, False), (4.999, True)])
def test_what_was_served_before_can_be_served_again(io_seconds: float, seen: bool) -> None:
    assert bool(warned(measured(TWO_RANKS), 1, io_seconds, LFS_READ=100.0)) is seen


def test_a_class_that_was_improved_may_serve_that_much_more() -> None:
    """What takes 5 and 8 s at the most that was seen, in 4 s."""
    times = measured(TWO_RANKS)
    assert warned(times, 1, 4.0, GFS_META=25.0, LFS_READ=100.0) == []
    assert warned(times, 1, 4.0, GFS_META=25.0, LFS_READ=60.0) == [("beyond_ops", "LFS-READ", 5.0)]
    assert warned(times, 1, 4.0, GFS_META=25.0) == [("beyond_ops", "LFS-READ", 8.0)]


@pytest.mark.parametrize(("percent", "seconds"), [(0.0, 5.0), (-20.0, 6.25)])
def test_a_class_that_is_slower_may_serve_that_much_less(percent: float, seconds: float) -> None:
    assert ("beyond_ops", "GFS-META", seconds) in warned(measured(TWO_RANKS), 1, 4.0, GFS_META=percent)


def reading(first_bytes: int) -> ClassTimes:
    """LFS-READ: 20 operations and a tenth of those bytes per second at 0 %; 12.5 and 500 at 50 %, where it serves 100 and 4000."""
    return measured(
        {
            0.0: [{"GFS-META": (6.0, 60, 0), "LFS-READ": (4.0, 200, first_bytes)}],
            0.5: [{"GFS-META": (6.0, 60, 0), "LFS-READ": (2.0, 100, 4000)}],
        }
    )


@pytest.mark.parametrize(
    ("first_bytes", "expected"),
    [
        (2000, ("beyond_bytes", "LFS-READ", 4000 / 500)),  # 100 operations would take 5 s
        (7000, ("beyond_bytes", "LFS-READ", 4000 / 700)),
        (9000, ("beyond_ops", "LFS-READ", 100 / 20)),  # 4000 bytes would take 4.4 s
    ],
)
def test_of_operations_and_bytes_the_one_that_takes_longer_is_named(
    first_bytes: int, expected: tuple[str, str, float]
) -> None:
    assert warned(reading(first_bytes), 1, 3.0, GFS_META=500.0) == [expected]


@pytest.mark.parametrize(("seconds", "kind"), [(2.0, "beyond_ops"), (1.9, "idle_beyond_ops")])
def test_a_class_that_took_under_a_quarter_had_room_to_spare(seconds: float, kind: str) -> None:
    times = measured({0.5: [{"GFS-META": (8.0 - seconds, 60, 0), "LFS-META": (seconds, 100, 0)}]})
    assert warned(times, 0, 4.0, GFS_META=200.0) == [(kind, "LFS-META", 8.0)]


def test_bytes_of_a_class_with_room_to_spare() -> None:
    times = measured({0.5: [{"GFS-META": (7.0, 60, 0), "LFS-READ": (1.0, None, 800)}]})
    assert warned(times, 0, 4.0, GFS_META=200.0) == [("idle_beyond_bytes", "LFS-READ", 8.0)]


def test_busy_classes_come_first() -> None:
    cells = {"GFS-READ": (1.0, 10, 0), "GFS-META": (4.0, 10, 0), "LFS-READ": (4.0, 10, 0), "LFS-META": (1.0, 10, 0)}
    names = [name for _, name, _ in warned(measured({0.5: [cells]}), 0, 5.0)]
    assert names == ["GFS-META", "LFS-READ", "GFS-READ", "LFS-META"]


def test_what_is_not_known_is_no_ceiling() -> None:
    times = measured(
        {
            0.0: [{"GFS-READ": (2.0, 10, None), "LFS-READ": (1.0, None, None)}, {"GFS-READ": (1.0, 10, 5)}],
            0.5: [{"GFS-READ": (2.0, None, None), "LFS-READ": (1.0, None, 60)}],
        }
    )
    ceiling = found(times)
    assert set(ceiling) == {("GFS-READ", "ops"), ("LFS-READ", "bytes")}
    assert np.isnan(ceiling["GFS-READ", "ops"].seconds[1])
    assert warned(times, 1, 0.1) == [("beyond_bytes", "LFS-READ", 3.0)]


def test_nothing_known_gives_none() -> None:
    assert ceilings(Processes.of(measured({0.0: [{"GFS-READ": 2.0}]}))) == []


def test_where_there_was_no_io_there_is_nothing_to_exceed() -> None:
    times = measured({0.0: [{"GFS-META": (1.0, 10, 0), "LFS-READ": (0.0, 5, 0)}], 1.0: [{"LFS-READ": (0.0, 10, 0)}]})
    assert warned(times, 1, 0.0, GFS_META=50.0) == []


@settings(max_examples=examples(60))
@given(tables(), st.integers(-90, 0))
def test_what_was_measured_is_never_beyond_what_was_seen(times: ClassTimes, percent: int) -> None:
    processes = Processes.of(times)
    known = ceilings(processes)
    seconds = processes.io_seconds(np.ones((1, len(processes.classes))))[:, 0]
    for point, io_seconds in enumerate(seconds):
        improve = dict.fromkeys(processes.classes, float(percent))
        assert list(exceeded(known, point, float(io_seconds) * factor(percent), improve)) == []


@settings(max_examples=examples(60))
@given(tables(), st.floats(0.01, 1.0))
def test_every_class_that_is_known_and_busiest_here_is_beyond_when_the_time_is_cut(
    times: ClassTimes, share: float
) -> None:
    """Of one point and one epoch: any shorter time asks all classes for more than was seen."""
    processes = Processes.of(times)
    point = replace(processes.points[0], epochs=processes.points[0].epochs[:1])
    alone = replace(processes, points=(point,))
    (epoch,) = point.epochs
    io_seconds = float(epoch.seconds.sum(axis=1).max())
    warnings = list(exceeded(ceilings(alone), 0, 0.99 * share * io_seconds, {}))
    expected = {
        name
        for column, name in enumerate(alone.classes)
        if io_seconds and (epoch.ops[column] > 0 or epoch.moved_bytes[column] > 0)
    }
    assert {warning.evidence["class"] for warning in warnings} == expected
    assert [warning.evidence["implied_seconds"] for warning in warnings] == pytest.approx([io_seconds] * len(expected))
