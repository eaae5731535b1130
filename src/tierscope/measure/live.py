"""A study while it runs, as one state that can be looked at any time: which run of how many, what ranks do now, and how long the rest may take.

The runner tells what begins and ends (`Tracker`, from the thread that directs); whoever shows it asks for a `LiveState` a few times a second, from another
thread. Looking costs a copy of a few numbers per rank.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tierscope.bench.live import LiveBoard, LiveBoardAt
from tierscope.jsonable import SweepValues
from tierscope.measure.eta import CurrentRun, Remaining, RunSize, TimedRun, remaining
from tierscope.measure.live_figures import WINDOW_SECONDS, Figures, Look, StallWatch, States, figures
from tierscope.plan.order import Order
from tierscope.spec.study import Point, Study
from tierscope.trace.trace import RunKey

_MOST_LOOKS = 64


@dataclass(frozen=True, slots=True)
class RunUnderWay:
    """`number` counts from 1 over all runs of the study, also those that an earlier command finished. `attempt`: from 1."""

    key: RunKey
    number: int
    runs: int
    repetitions: int
    sweep: SweepValues
    epochs: int
    tiers: tuple[str, ...]
    ranks: int
    size: RunSize
    counted: bool  # whether operations pass our recorder
    attempt: int = 1
    emulated: frozenset[str] = frozenset()  # tiers


@dataclass(frozen=True, slots=True)
class Staging:
    """Data being generated: never part of any rate of reading."""

    done_bytes: int
    total_bytes: int
    bytes_per_second: float | None

    @property
    def seconds_left(self) -> float | None:
        return (self.total_bytes - self.done_bytes) / self.bytes_per_second if self.bytes_per_second else None


@dataclass(frozen=True, slots=True)
class LiveState:
    """Of three at most one: staging, a run with its figures, or neither (between runs)."""

    seconds: float  # since the command began
    runs: int
    finished: int
    staging: Staging | None = None
    run: RunUnderWay | None = None
    figures: Figures | None = None
    left: Remaining | None = None


def size_of(point: Point) -> RunSize:
    study = point.study
    train, dataset = study.workload.train, study.workload.dataset
    own = Order.of(study).samples_per_rank
    samples = own * train.epochs
    steps = -(-own // study.workload.reader.batch_size) * train.epochs
    return RunSize(point.index, samples, float(samples * dataset.record_length_bytes), steps * _compute_seconds(study))


def _compute_seconds(study: Study) -> float:
    return float(study.workload.train.computation_time or 0.0)


class Tracker:
    """`tick_seconds`: how often ranks note what they do. `clock`: monotonic nanoseconds."""

    def __init__(self, tick_seconds: float, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self.tick_seconds, self._clock = tick_seconds, clock
        self._lock = threading.Lock()
        self._begun_ns = clock()
        self._runs = self._finished = 0
        self._todo: list[RunSize] = []
        self._done: list[TimedRun] = []
        self._staging: tuple[int, int, int] | None = None  # bytes, of all, since when
        self._run: RunUnderWay | None = None
        self._look: Callable[[], States] = tuple
        self._run_ns = 0
        self._looks: deque[Look] = deque(maxlen=_MOST_LOOKS)
        self._stalls = StallWatch(tick_seconds)

    def plan(self, runs: int, todo: Sequence[RunSize]) -> None:
        """All runs of the study, and what is left of them, in their order."""
        with self._lock:
            self._runs, self._finished, self._todo = runs, runs - len(todo), list(todo)

    def stage(self, total_bytes: int) -> None:
        with self._lock:
            self._staging = 0, total_bytes, self._clock()

    def staged(self, amount: int) -> None:
        with self._lock:
            if self._staging is not None:
                done, total, since = self._staging
                self._staging = done + amount, total, since

    def end_staging(self) -> None:
        with self._lock:
            self._staging = None

    @contextmanager
    def following(self, key: RunKey, point: Point, attempt: int, counted: bool) -> Iterator[LiveBoardAt]:
        """One attempt at a run: where its ranks note what they do. It counts as finished if nothing is raised."""
        study = point.study
        tiers = tuple(tier.name for tier in study.system.tiers)
        run = RunUnderWay(
            key,
            self._finished + 1,
            self._runs,
            study.repetitions,
            point.sweep,
            study.workload.train.epochs,
            tiers,
            study.system.ranks,
            size_of(point),
            counted,
            attempt,
            frozenset(tier.name for tier in study.system.tiers if tier.emulate),
        )
        board = LiveBoard(run.ranks, len(tiers), self.tick_seconds)
        finished = False
        try:
            self.begin(run, board.states)
            yield board.at
            finished = True
        finally:
            self.end(finished)
            board.close()

    def begin(self, run: RunUnderWay, look: Callable[[], States]) -> None:
        """A run, or another attempt at it: nothing of an earlier one counts."""
        with self._lock:
            self._run, self._look, self._run_ns = run, look, self._clock()
            self._looks.clear()
            self._stalls = StallWatch(self.tick_seconds)

    def end(self, finished: bool) -> None:
        """`finished`: measured to its end; else it did not happen."""
        with self._lock:
            if self._run is not None and finished:
                self._done.append(TimedRun(self._run.size, (self._clock() - self._run_ns) / 1e9))
                self._finished += 1
                self._todo = self._todo[1:]
            self._run, self._look = None, tuple

    @property
    def last_seconds(self) -> float | None:
        """Of the run that was finished last."""
        return self._done[-1].seconds if self._done else None

    def state(self) -> LiveState:
        with self._lock:
            now_ns = self._clock()
            staging = self._staging_now(now_ns)
            own = None if self._run is None else self._figures(self._run, now_ns)
            left = None if staging else self._left(own, now_ns)
            seconds = (now_ns - self._begun_ns) / 1e9
            return LiveState(seconds, self._runs, self._finished, staging, self._run, own, left)

    def _staging_now(self, now_ns: int) -> Staging | None:
        if self._staging is None or self._run is not None:
            return None
        done, total, since = self._staging
        seconds = (now_ns - since) / 1e9
        return Staging(done, total, done / seconds if done and seconds > 0 else None)

    def _figures(self, run: RunUnderWay, now_ns: int) -> Figures:
        now = Look(now_ns, self._look())
        before = next(
            (look for look in reversed(self._looks) if (now_ns - look.at_ns) / 1e9 >= WINDOW_SECONDS),
            self._looks[0] if self._looks else None,
        )
        self._looks.append(now)
        return figures(before, now, run.tiers, run.size.samples, self._stalls, run.counted)

    def _left(self, own: Figures | None, now_ns: int) -> Remaining | None:
        if self._run is None or own is None:
            return remaining(self._done, None, self._todo)
        current = CurrentRun(self._run.size, (now_ns - self._run_ns) / 1e9, own.share)
        return remaining(self._done, current, self._todo[1:])
