"""A study while it runs, by a clock of the test: what is shown is what ranks did, of those that can be seen, and nothing else."""

import io
from collections.abc import Sequence

import pytest

from tierscope.bench.live import COMPUTING, MEETING, PREPARING, WAITING, RankState
from tierscope.cli.live_view import eta_text, finished_line, live_view, plain_line
from tierscope.measure.eta import CurrentRun, Remaining, RunSize, TimedRun, remaining
from tierscope.measure.live import LiveState, RunUnderWay, Tracker
from tierscope.measure.live_csv import live_rows
from tierscope.measure.live_figures import Look, StallWatch, rates
from tierscope.trace.trace import RunKey

TIERS = ("lfs", "gfs")
SECOND = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now = 1_000 * SECOND

    def __call__(self) -> int:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += round(seconds * SECOND)


class Ranks:
    """Rows that a test writes."""

    def __init__(self, clock: Clock, count: int = 2) -> None:
        self._clock = clock
        self.rows: list[RankState | None] = [None] * count

    def note(
        self, rank: int, samples: int = 0, read: int = 0, ops: int = 0, doing: int = WAITING, written: int = 0
    ) -> None:
        self.rows[rank] = RankState(rank, self._clock(), 1, doing, samples, ((0, 0, 0), (read, written, ops)))

    def __call__(self) -> Sequence[RankState | None]:
        return tuple(self.rows)


def size(point: int = 0, samples: int = 100, nbytes: float = 1e6, compute: float = 0.0) -> RunSize:
    return RunSize(point, samples, nbytes, compute)


def run(point: int = 0, number: int = 1, counted: bool = True, samples: int = 100) -> RunUnderWay:
    own = size(point, samples)
    return RunUnderWay(RunKey(point, 1), number, 3, 1, {"cache_rate": 0.4}, 2, TIERS, 2, own, counted)


def tracked(clock: Clock, ranks: Ranks, counted: bool = True) -> Tracker:
    tracker = Tracker(0.5, clock)
    tracker.plan(3, [size(0), size(1), size(2)])
    tracker.begin(run(counted=counted), ranks)
    return tracker


def line(state: LiveState) -> str:
    found = plain_line(state)
    assert found is not None
    return found


def test_the_first_tick_has_no_rate_and_divides_by_nothing() -> None:
    clock = Clock()
    ranks = Ranks(clock)
    tracker = tracked(clock, ranks)
    for _ in range(2):  # at the same instant, before and after ranks wrote
        state = tracker.state()
        assert state.figures is not None
        assert {each.read_bytes for each in state.figures.tiers} == {None}
        assert state.left is None
        assert "ETA not known yet" in line(state)
        ranks.note(0)
        ranks.note(1)


def test_rates_are_those_between_the_notes_of_each_rank() -> None:
    """Whenever the director looks: rank 1 wrote its second row 0.4 s before."""
    clock = Clock()
    ranks = Ranks(clock)
    tracker = tracked(clock, ranks)
    ranks.note(0)
    ranks.note(1)
    tracker.state()
    clock.pass_by(1.6)
    ranks.note(1, samples=10, read=1600, ops=16)
    clock.pass_by(0.4)
    ranks.note(0, samples=10, read=4000, ops=40, written=200)
    own = tracker.state().figures
    assert own is not None
    assert [each.read_bytes for each in own.tiers] == pytest.approx([0.0, 1000.0 + 2000.0])
    assert own.tiers[1].operations == pytest.approx(30.0)
    assert own.tiers[1].written_bytes == pytest.approx(100.0)  # a checkpoint is no reading


def test_staging_is_never_shown_as_reading() -> None:
    clock = Clock()
    tracker = Tracker(0.5, clock)
    tracker.plan(3, [size()] * 3)
    tracker.stage(1000)
    assert "time left not known yet" in line(tracker.state())
    clock.pass_by(2)
    tracker.staged(500)
    state = tracker.state()
    assert state.figures is None
    assert "generating data: 500 B of 1000 B, 250 B/s written · about 2 s left, then 3 runs to measure" in line(state)
    (row,) = live_rows(state)
    assert (row["activity"], row["written_bytes_per_second"]) == ("staging", 250.0)
    assert "bytes_per_second" not in row
    assert "tier" not in row
    assert state.left is None  # nothing was measured: the rest is not known


def test_bytes_before_a_run_began_do_not_count_in_it() -> None:
    """Totals go on from epoch to epoch and runs start anew: a look from the run before would give a negative rate."""
    clock = Clock()
    ranks = Ranks(clock)
    tracker = tracked(clock, ranks)
    ranks.note(0, read=10**9)
    ranks.note(1, read=10**9)
    tracker.state()
    tracker.end(finished=True)
    again = Ranks(clock)
    tracker.begin(run(1, 2), again)
    clock.pass_by(3)
    again.note(0, read=100)
    own = tracker.state().figures
    assert own is not None
    assert own.tiers[1].read_bytes is None


def test_evicting_the_page_cache_is_called_preparing() -> None:
    clock = Clock()
    ranks = Ranks(clock)
    tracker = tracked(clock, ranks)
    ranks.note(0, doing=PREPARING)
    ranks.note(1, doing=PREPARING)
    assert "preparing (evicting the page cache)" in line(tracker.state())


def test_a_rank_without_io_is_named() -> None:
    clock = Clock()
    ranks = Ranks(clock)
    tracker = tracked(clock, ranks)
    for second in range(13):
        ranks.note(0, samples=second, ops=second)
        ranks.note(1, samples=3, ops=7)
        state = tracker.state()
        clock.pass_by(1)
    assert state.figures is not None
    assert [(each.rank, each.seconds) for each in state.figures.stalled] == [(1, 12.0)]
    assert "no I/O for 12 s: rank 1" in line(state)
    assert "slowest rank: 1" in line(state)


@pytest.mark.parametrize("doing", [COMPUTING, MEETING])
def test_a_rank_that_computes_or_waits_for_others_does_not_stall(doing: int) -> None:
    clock = Clock()
    ranks = Ranks(clock, 1)
    watch = StallWatch(0.5)
    for _ in range(40):
        ranks.note(0, samples=3, ops=7, doing=doing)
        assert watch.look(Look(clock(), ranks())) == ()
        clock.pass_by(1)
    ranks.note(0, samples=3, ops=7)
    assert watch.look(Look(clock(), ranks())) == ()  # it waits for data only since now


def test_a_suspended_rank_does_not_look_fine() -> None:
    """It writes no more rows: its last one says that it reads, at full speed."""
    clock = Clock()
    ranks = Ranks(clock)
    tracker = tracked(clock, ranks)
    for second in range(20):
        ranks.note(0, samples=second, read=100 * second, ops=second)
        if second < 5:
            ranks.note(1, samples=second, read=100 * second, ops=second)
        state = tracker.state()
        clock.pass_by(1)
    assert "no report for 15 s: rank 1 (suspended?)" in line(state)
    assert state.figures is not None
    assert state.figures.tiers[1].read_bytes == pytest.approx(100.0)  # of rank 0 alone


def test_sums_over_a_part_of_the_ranks_say_so() -> None:
    clock = Clock()
    ranks = Ranks(clock, 4)
    tracker = tracked(clock, ranks)
    ranks.note(0)
    assert "1 of 4 ranks visible: figures are of the ranks on this host only" in line(tracker.state())
    (row, _) = live_rows(tracker.state())
    assert (row["visible_ranks"], row["ranks"]) == (1, 4)


def test_with_another_profiler_nothing_is_shown_as_zero() -> None:
    clock = Clock()
    ranks = Ranks(clock)
    tracker = tracked(clock, ranks, counted=False)
    for samples in (1, 2):
        ranks.note(0, samples=samples)
        ranks.note(1, samples=samples)
        state = tracker.state()
        clock.pass_by(3)
    assert "bytes and operations are not visible" in line(state)
    assert "0 B/s" not in line(state)
    assert {row["ops_per_second"] for row in live_rows(state)} == {""}


def test_a_continued_study_counts_what_is_finished_once() -> None:
    clock = Clock()
    tracker = Tracker(0.5, clock)
    tracker.plan(12, [size(5), size(7)])
    assert (tracker.state().finished, tracker.state().runs) == (10, 12)
    for number in (11, 12):
        tracker.begin(run(number=number), Ranks(clock))
        tracker.end(finished=False)  # a discarded attempt
        assert tracker.state().finished == number - 1
        tracker.begin(run(number=number), Ranks(clock))
        clock.pass_by(4)
        tracker.end(finished=True)
        assert finished_line(tracker.state(), tracker.last_seconds).startswith(f"finished run {number} of 12 in 4 s")
    assert tracker.state().left == Remaining(0.0, 0.0)


def test_points_of_other_sizes_count_with_their_size() -> None:
    """The first of three took 10 s; the second has four times the samples, the third as many, each eight times as large."""
    done = [TimedRun(size(0), 10.0)]
    todo = [size(1, samples=400, nbytes=4e6), size(2, samples=100, nbytes=8e6)]
    assert remaining(done, None, todo) == Remaining(40.0 + 10.0, 40.0 + 80.0)


def test_a_point_that_was_measured_before_takes_as_long_again() -> None:
    done = [TimedRun(size(0), 10.0), TimedRun(size(1), 2.0)]
    assert remaining(done, None, [size(1)]) == Remaining(2.0, 2.0)


def test_a_run_under_way_is_projected_and_the_rest_comes_on_top() -> None:
    current = CurrentRun(size(0), elapsed_seconds=5.0, share=0.25)
    assert remaining([], current, [size(1)]) == Remaining(15.0 + 20.0, 15.0 + 20.0)
    assert remaining([], CurrentRun(size(0), 5.0, share=0.0), [size(1)]) is None
    assert remaining([], CurrentRun(size(0), 0.0, share=0.0), []) is None


def test_no_run_is_shorter_than_its_compute() -> None:
    assert remaining([TimedRun(size(0), 10.0)], None, [size(1, compute=500.0)]) == Remaining(500.0, 500.0)


def test_a_wide_range_is_shown_as_one() -> None:
    assert eta_text(Remaining(50.0, 240.0)) == "ETA 50 s to 4 min"
    assert eta_text(Remaining(230.0, 240.0)) == "ETA about 4 min"


def test_rates_of_nothing() -> None:
    assert {each.read_bytes for each in rates(None, Look(0, ()), TIERS)} == {None}


@pytest.mark.parametrize("width", [20, 80, 200])
@pytest.mark.parametrize("unicode", [True, False])
def test_the_view_fits_its_terminal(width: int, unicode: bool) -> None:
    from rich.console import Console  # noqa: PLC0415

    clock = Clock()
    ranks = Ranks(clock)
    tracker = tracked(clock, ranks)
    ranks.note(0, samples=40, read=100)
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(live_view(tracker.state(), unicode))
    text = console.export_text()
    assert all(len(each) <= width for each in text.splitlines())
    assert unicode or text.isascii()
    assert text.startswith("run 1 of 3")
