"""The simple scaling: what it promises, and every warning when it should and only then."""

import itertools
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.finding_cases import Case, it_appears, it_does_not_appear, its_words_are_one_line_with_its_evidence, of_kind
from tests.predict.predicting import (
    EXACT_PERCENTS,
    KINDS_OF_ESTIMATES,
    Process,
    improvements,
    io_seconds,
    measured,
    tables,
)
from tests.traces import CLASSES, TIERS, WITH_WRITES, times_of, trace_of
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.times import ClassTimes, from_traces
from tierscope.analysis.wording import Finding
from tierscope.predict.processes import Processes
from tierscope.predict.whatif import STEPS, Estimate, change_percent, estimate, scaled, sensitivity

# One process. As METHOD found for many small files: metadata of the far tier bounds below 60 %, reads of the near one above.
SMALL_FILES: dict[float, list[Process]] = {
    0.55: [{"GFS-META": 4.5, "LFS-READ": 3.7}],
    0.60: [{"GFS-META": 3.0, "LFS-READ": 4.0}],
    0.65: [{"GFS-META": 2.4, "LFS-READ": 4.5}],
    0.70: [{"GFS-META": 2.1, "LFS-READ": 5.0}],
}


def estimated(times: ClassTimes, improve: Mapping[str, float]) -> Estimate:
    return estimate(times, break_down(times), improve)


def alone(**seconds: float) -> ClassTimes:
    """One process; classes with an underscore."""
    return measured({0.5: [{name.replace("_", "-"): value for name, value in seconds.items()}]})


class TestScaling:
    def test_one_process_is_as_much_faster_as_its_class(self) -> None:
        found = estimated(alone(GFS_META=3.0), {"GFS-META": 50.0})
        assert found.after.best.io.median == 3.0 * (100 / 150)
        assert found.change_percent == pytest.approx(-100 / 3)

    @given(st.floats(0.001, 1000), st.floats(-99, 100_000))
    @settings(max_examples=examples(30))
    def test_only_the_class_itself_is_faster(self, seconds: float, percent: float) -> None:
        found = estimated(alone(GFS_READ=seconds, LFS_META=2.0), {"GFS-READ": percent})
        assert found.after.best.classes == {
            "GFS-READ": seconds * (100 / (100 + percent)),
            "GFS-META": 0.0,
            "LFS-READ": 0.0,
            "LFS-META": 2.0,
        }

    @given(tables(), st.dictionaries(st.sampled_from(CLASSES), st.just(0.0)))
    @settings(max_examples=examples(30))
    def test_nothing_improved_changes_nothing(self, times: ClassTimes, improve: dict[str, float]) -> None:
        found = estimated(times, improve)
        assert found.after == found.before
        assert found.change_percent == 0.0
        assert not found.slowest_rank_changed
        assert not found.bottleneck_moved
        assert found.warnings == ()

    @given(tables(), improvements(st.floats(0, 10_000)))
    @settings(max_examples=examples(40))
    def test_more_throughput_never_takes_longer(self, times: ClassTimes, improve: dict[str, float]) -> None:
        found = estimated(times, improve)
        for before, after in zip(io_seconds(found.before), io_seconds(found.after), strict=True):
            assert after <= before * (1 + 1e-12)
        assert found.after.best.io.median <= found.before.best.io.median * (1 + 1e-12)
        assert found.change_percent <= 1e-9

    @given(tables(), improvements(st.floats(-99, 0)))
    @settings(max_examples=examples(40))
    def test_less_throughput_is_never_faster(self, times: ClassTimes, improve: dict[str, float]) -> None:
        found = estimated(times, improve)
        for before, after in zip(io_seconds(found.before), io_seconds(found.after), strict=True):
            assert after >= before * (1 - 1e-12)
        assert found.change_percent >= -1e-9
        assert {warning.kind for warning in found.warnings} <= {"bottleneck_moves", "no_ceilings"}

    @given(tables(), st.sampled_from(EXACT_PERCENTS))
    @settings(max_examples=examples(30))
    def test_all_classes_alike_is_the_whole_alike(self, times: ClassTimes, percent: float) -> None:
        found = estimated(times, dict.fromkeys(WITH_WRITES, percent))
        assert io_seconds(found.after) == [seconds * 100 / (100 + percent) for seconds in io_seconds(found.before)]
        assert found.after.best.sweep == found.before.best.sweep
        assert (found.bottleneck_moved, found.slowest_rank_changed) == (False, False)

    @given(tables(), st.sampled_from(CLASSES), st.sampled_from(EXACT_PERCENTS))
    @settings(max_examples=examples(30))
    def test_there_and_back_again(self, times: ClassTimes, name: str, percent: float) -> None:
        back = 100 * (100 / (100 + percent) - 1)
        assert break_down(scaled(scaled(times, {name: percent}), {name: back})) == break_down(times)

    def test_writes_are_improved_like_reads(self) -> None:
        rows = [{"rank": 0, "class": "GFS-READ", "seconds": 1.0}, {"rank": 0, "class": "GFS-WRITE", "seconds": 9.0}]
        found = estimated(times_of(rows, classes=WITH_WRITES), {"GFS-WRITE": 100.0})
        assert found.change_percent == pytest.approx(-45.0)
        assert found.after.best.write_seconds == 4.5

    def test_the_measured_table_stays(self) -> None:
        times = alone(GFS_META=3.0)
        copy = times.table.clone()
        estimated(times, {"GFS-META": 50.0})
        assert times.table.equals(copy)

    def test_epochs_of_an_estimate_are_estimated(self) -> None:
        times = from_traces([trace_of({(0, 1): {"GFS-READ": 1.0}, (0, 2): {"GFS-READ": 2.0}})], TIERS)
        found = estimated(times, {"GFS-READ": 100.0})
        assert found.before.best.epoch_seconds == 10.0
        assert [point.epoch_seconds for point in found.after.points] == [9.5, 9.0]  # what the I/O gains
        assert [point.epoch_seconds for point in found.after.summary] == [9.0]
        assert found.after.best.io.median == 1.0


@pytest.mark.parametrize(
    ("before", "after", "expected"), [(4.0, 3.0, -25.0), (2.0, 3.0, 50.0), (2.0, 2.0, 0.0), (2.0, 0.0, -100.0)]
)
def test_the_change_is_in_percent_of_what_was(before: float, after: float, expected: float) -> None:
    assert change_percent(before, after) == expected


class TestWhatMoves:
    def test_more_metadata_moves_the_best_to_a_smaller_rate(self) -> None:
        found = estimated(measured(SMALL_FILES), {"GFS-META": 50.0})
        assert (found.before.best.sweep, found.after.best.sweep) == ({"cache_rate": 0.65}, {"cache_rate": 0.60})
        assert found.after.best.io.median == pytest.approx(6.0)
        assert found.change_percent == pytest.approx(100 * (6.0 / 6.9 - 1))
        assert not found.bottleneck_moved

    def test_faster_reads_leave_the_best_where_it_was(self) -> None:
        found = estimated(measured(SMALL_FILES), {"LFS-READ": 50.0})
        assert found.after.best.sweep == {"cache_rate": 0.65}
        assert found.after.best.io.median == pytest.approx(5.4)

    def test_another_process_may_become_the_slowest(self) -> None:
        """Scaling the process that was slowest would give 4 s."""
        ranks = [{"GFS-META": 6.0, "LFS-READ": 1.0}, {"GFS-META": 2.0, "LFS-READ": 4.0}]
        found = estimated(measured({0.5: ranks}), {"GFS-META": 100.0})
        assert found.after.best.io.median == 5.0
        assert found.after.points[0].slowest_rank == 1
        assert found.slowest_rank_changed
        assert not estimated(measured({0.5: ranks}), {"LFS-META": 100.0}).slowest_rank_changed

    def test_the_slowest_process_is_compared_at_one_rate_not_between_rates(self) -> None:
        """The best moves to another rate, where another process is the slowest, and was before."""
        points: dict[float, list[Process]] = {
            0.0: [{"GFS-META": 1.0}, {"GFS-META": 9.0}],
            0.5: [{"LFS-READ": 8.0}, {"LFS-READ": 1.0}],
        }
        found = estimated(measured(points), {"GFS-META": 100.0})
        assert (found.before.best.sweep, found.after.best.sweep) == ({"cache_rate": 0.5}, {"cache_rate": 0.0})
        assert not found.slowest_rank_changed

    def test_the_bottleneck_may_move(self) -> None:
        times = alone(GFS_META=6.0, LFS_READ=4.0)
        found = estimated(times, {"GFS-META": 100.0})
        assert (found.before.best.bottleneck, found.after.best.bottleneck) == ("GFS-META", "LFS-READ")
        assert found.bottleneck_moved
        assert not estimated(times, {"GFS-META": 40.0}).bottleneck_moved


class TestSensitivity:
    @given(tables())
    @settings(max_examples=examples(30))
    def test_more_gains_more_and_no_time_at_all_gains_most(self, times: ClassTimes) -> None:
        found = list(sensitivity(Processes.of(times)))
        assert [each.class_name for each in found] == list(WITH_WRITES)
        for each in found:
            changes = [0.0, *(each.change_percent[step] for step in STEPS), each.limit_percent, -100.0]
            assert all(less >= more - 1e-9 for less, more in itertools.pairwise(changes))

    @given(tables(), st.sampled_from(CLASSES))
    @settings(max_examples=examples(15))
    def test_it_is_what_the_estimate_of_one_class_says(self, times: ClassTimes, name: str) -> None:
        (found,) = (each for each in sensitivity(Processes.of(times)) if each.class_name == name)
        expected = {step: estimated(times, {name: step}).change_percent for step in (10.0, 50.0, 100.0)}
        assert found.change_percent == pytest.approx(expected, abs=1e-9)
        assert found.limit_percent == pytest.approx(estimated(times, {name: 1e15}).change_percent, abs=1e-9)

    def test_by_hand(self) -> None:
        """At 65 % 6.9 s, at 60 % 7 s, of which 3 s are GFS-META."""
        found = {each.class_name: each for each in estimated(measured(SMALL_FILES), {}).sensitivity}
        assert found["GFS-META"].change_percent[50.0] == pytest.approx(100 * (6.0 / 6.9 - 1))
        assert found["GFS-META"].limit_percent == pytest.approx(100 * (3.7 / 6.9 - 1))  # at 55 %
        assert found["LFS-READ"].limit_percent == pytest.approx(100 * (2.1 / 6.9 - 1))  # at 70 %
        assert (found["GFS-READ"].change_percent, found["GFS-READ"].limit_percent) == (dict.fromkeys(STEPS, 0.0), 0.0)


def test_without_io_nothing_changes() -> None:
    times = measured({0.0: [{"GFS-READ": (0.0, 5, 5)}, {}], 0.5: [{"GFS-META": (0.0, 0, 0)}]})
    found = estimated(times, {"GFS-READ": 50.0, "LFS-META": -50.0})
    assert found.change_percent == 0.0
    assert found.after.best.bottleneck is None
    assert not found.bottleneck_moved
    assert {each.limit_percent for each in found.sensitivity} == {0.0}
    assert all(warning.text for warning in found.warnings)


def warned(points: Mapping[float, list[Process]], **improve: float) -> list[Finding]:
    """Improvements by class, with an underscore. Another point, never the best, makes it a sweep."""
    slow: Process = {"GFS-META": (1e6, 1, 0), "LFS-META": (1e6, 1, 0)}
    sweep = {**points, 0.9: [slow]}
    return warned_of(measured(sweep), {name.replace("_", "-"): n for name, n in improve.items()})


def warned_of(times: ClassTimes, improve: Mapping[str, float]) -> list[Finding]:
    return list(estimated(times, improve).warnings)


def metadata(near: Process) -> dict[float, list[Process]]:
    """Six seconds of it, improved, beside something near."""
    return {0.5: [{"GFS-META": (6.0, 60, 0), **near}]}


CASES: dict[str, Case] = {
    "bottleneck_moves": Case(
        lambda: warned({0.2: [{"GFS-META": 7.0, "LFS-READ": 2.0}], 0.5: [{"LFS-READ": 8.0}]}, LFS_READ=-50.0),
        {
            "before": "LFS-READ",
            "before_where": "cache_rate 50%",
            "after": "GFS-META",
            "after_where": "cache_rate 20%",
        },
        lambda: warned({0.2: [{"GFS-META": 7.0, "LFS-READ": 2.0}], 0.5: [{"LFS-READ": 8.0}]}, LFS_READ=50.0),
    ),
    "stops_mattering": Case(
        lambda: warned({0.5: [{"GFS-META": 4.0, "LFS-READ": 48.0}]}, GFS_META=100.0),  # 2 of 50 s are left of it
        {"class": "GFS-META", "percent": pytest.approx(4.0)},
        lambda: warned({0.5: [{"GFS-META": 4.0, "LFS-READ": 36.0}]}, GFS_META=100.0, GFS_READ=-10.0),  # 2 of 38 s
    ),
    "beyond_ops": Case(
        lambda: warned(metadata({"LFS-META": (2.0, 100, 0)}), GFS_META=200.0),  # in 4 s what took 8 s
        {
            "class": "LFS-META",
            "times": pytest.approx(2.0),
            "most_per_second": 12.5,
            "where": "cache_rate 50%",
            "percent": 25.0,
            "implied_seconds": 8.0,
        },
        lambda: warned(metadata({"LFS-META": (1.9, 100, 0)}), GFS_META=200.0),
    ),
    "beyond_bytes": Case(
        lambda: warned(metadata({"LFS-READ": (2.0, None, 4000)}), GFS_META=200.0),
        {
            "class": "LFS-READ",
            "times": pytest.approx(2.0),
            "most_per_second": 500.0,
            "where": "cache_rate 50%",
            "percent": 25.0,
            "implied_seconds": 8.0,
        },
        lambda: warned(metadata({"LFS-READ": (2.0, None, 4000)}), GFS_META=200.0, LFS_READ=300.0),
    ),
    "idle_beyond_ops": Case(
        lambda: warned({0.5: [{"GFS-META": (7.0, 60, 0), "LFS-META": (1.0, 100, 0)}]}, GFS_META=600.0),
        {
            "class": "LFS-META",
            "times": pytest.approx(4.0),
            "most_per_second": 12.5,
            "where": "cache_rate 50%",
            "percent": 12.5,
            "implied_seconds": 8.0,
        },
        lambda: warned(metadata({"LFS-META": (2.0, 100, 0)}), GFS_META=200.0),
    ),
    "idle_beyond_bytes": Case(
        lambda: warned({0.5: [{"GFS-META": (7.0, 60, 0), "LFS-READ": (1.0, None, 800)}]}, GFS_META=600.0),
        {
            "class": "LFS-READ",
            "times": pytest.approx(4.0),
            "most_per_second": 100.0,
            "where": "cache_rate 50%",
            "percent": 12.5,
            "implied_seconds": 8.0,
        },
        lambda: warned({0.5: [{"GFS-META": (7.0, 60, 0), "LFS-READ": (1.0, None, 800)}]}, LFS_READ=600.0),
    ),
    "no_ceilings": Case(
        lambda: warned({0.5: [{"GFS-META": (6.0, 1, 0), "LFS-READ": 1.0, "LFS-META": 1.0}]}, GFS_META=50.0),
        {"classes": ["LFS-READ", "LFS-META"]},
        lambda: warned({0.5: [{"GFS-META": 6.0, "LFS-READ": (1.0, None, 1)}]}, GFS_META=50.0),
    ),
    "one_point": Case(
        lambda: warned_of(measured({0.5: [{"GFS-META": (6.0, 1, 0)}]}), {"GFS-META": 50.0}),
        {},
        lambda: warned_of(measured({0.5: [{"GFS-META": (6.0, 1, 0)}]}), {"GFS-META": -50.0}),
    ),
}


class TestWarnings:
    def test_every_kind_has_a_case(self) -> None:
        assert set(CASES) == KINDS_OF_ESTIMATES

    @pytest.mark.parametrize("kind", CASES)
    def test_it_appears_when_it_should(self, kind: str) -> None:
        it_appears(kind, CASES[kind])

    @pytest.mark.parametrize("kind", CASES)
    def test_it_does_not_appear_when_it_should_not(self, kind: str) -> None:
        it_does_not_appear(kind, CASES[kind])

    @pytest.mark.parametrize("kind", CASES)
    def test_its_words_are_one_line_with_its_evidence(self, kind: str) -> None:
        its_words_are_one_line_with_its_evidence(kind, CASES[kind])

    def test_an_estimate_that_asks_nothing_of_others_has_none(self) -> None:
        assert warned({0.5: [{"GFS-META": (6.0, 60, 0)}]}, GFS_META=50.0) == []

    def test_what_ends_the_bottleneck_comes_first_and_what_others_would_serve_last(self) -> None:
        found = warned(metadata({"LFS-META": (2.0, 100, 0)}), GFS_META=10_000.0)
        assert [finding.kind for finding in found] == ["bottleneck_moves", "stops_mattering", "beyond_ops"]

    def test_ceilings_are_asked_at_the_best_point_after_it(self) -> None:
        """At 20 % LFS-META serves 20 operations a second, at 50 % 100; with faster GFS-META the best is at 20 %."""
        points: dict[float, list[Process]] = {
            0.2: [{"GFS-META": (9.0, 9, 0), "LFS-META": (1.0, 200, 0)}],
            0.5: [{"LFS-META": (6.0, 600, 0)}],
        }
        assert [finding.kind for finding in warned(points, GFS_META=200.0)] == ["bottleneck_moves"]  # 200 in 4 s
        (finding,) = of_kind("beyond_ops", warned(points, GFS_META=100_000.0))
        assert (finding.evidence["where"], finding.evidence["implied_seconds"]) == ("cache_rate 50%", 2.0)

    def test_no_money_on_a_class_that_never_mattered(self) -> None:
        found = of_kind("stops_mattering", warned({0.5: [{"GFS-META": 4.0}]}, LFS_READ=10.0, GFS_META=10.0))
        assert [finding.evidence for finding in found] == [{"class": "LFS-READ", "percent": 0.0}]

    def test_what_a_class_still_gives_is_asked_with_all_the_others_improved(self) -> None:
        """Of 2 + 4 s, taking away the 2 s is a third; of 2 + 48 s it would be next to nothing."""
        points: dict[float, list[Process]] = {0.5: [{"GFS-META": 4.0, "LFS-READ": 48.0}]}
        assert of_kind("stops_mattering", warned(points, GFS_META=100.0, LFS_READ=1100.0)) == []
