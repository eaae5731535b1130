"""How often, with how many processes and for how long: a series of points for one kind of operation on files of one size.

A repetition lets some processes work at the same time; only the stretch in which all of them were at work counts. Processes are
doubled until throughput grows by less than 5 %, but two levels are always measured. What a series may take is its budget:
repetitions get shorter with it and, where even that is too much, fewer.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.probe.throttle import Pace, pace_of
from tierscope.probe.work import ProbeTimes

GROWTH = 0.05  # less than that more throughput: no more processes
LEAST_REPETITIONS = 3
MOST_REPETITIONS = 10
LONGEST_SECONDS = 2.0  # of a repetition
PREPARATION = 2.0  # evicting and opening files takes about as long as reading them: a repetition costs so much more
BUSY_SHARE = 0.8  # of a process's time on a core, or in wait for one, and the host is the limit
SLOWEST_CUT = 0.99
FLAT, MOST_PROCESSES, NO_TIME = "flat", "most processes", "no time"
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Repetition:
    """Operations of all processes per second; seconds of a single one: their median, and their coefficient of variation."""

    ops_per_second: float
    op_seconds: float
    variation: float
    operations: int
    on_processor: float
    credit_seconds: float = 0.0  # idle time that storage makes up for (throttle.py)


@dataclass(frozen=True, slots=True)
class MeasuredLevel:
    """One kind of operation, files of one size, so many processes."""

    kind: str
    nbytes: int
    processes: int
    repetitions: tuple[Repetition, ...]

    @property
    def rates(self) -> list[float]:
        return [repetition.ops_per_second for repetition in self.repetitions]

    @property
    def ops_per_second(self) -> float:
        return statistics.median(self.rates)

    @property
    def op_seconds(self) -> float:
        return statistics.median(repetition.op_seconds for repetition in self.repetitions)

    @property
    def n(self) -> int:
        return len(self.repetitions)

    @property
    def host_bound(self) -> bool:
        """The processes were busy themselves, rather than waiting for storage."""
        return statistics.median(repetition.on_processor for repetition in self.repetitions) >= BUSY_SHARE


@dataclass(frozen=True, slots=True)
class Series:
    """`stopped`: throughput was FLAT, or there were MOST_PROCESSES, or NO_TIME to go on."""

    kind: str
    nbytes: int
    points: tuple[MeasuredLevel, ...]
    stopped: str

    @property
    def most(self) -> MeasuredLevel:
        return max(self.points, key=lambda point: point.ops_per_second)

    @property
    def alone(self) -> MeasuredLevel:
        return self.points[0]

    @property
    def saturated(self) -> bool:
        """Throughput is what storage gives, not what we asked of it."""
        return self.stopped == FLAT and not self.most.host_bound


def levels_up_to(most: int) -> list[int]:
    """1, 2, 4, … and the most itself."""
    levels = [1]
    while levels[-1] * 2 <= most:
        levels.append(levels[-1] * 2)
    return levels if levels[-1] == most else [*levels, most]


Attempt = Callable[[int, float], Repetition]  # with so many processes, for so many seconds


def measure_series(
    kind: str, nbytes: int, levels: Sequence[int], attempt: Attempt, seconds: float, clock: Callable[[], float]
) -> Series:
    """All within about so many seconds, counted from now."""
    start = clock()
    deadline = start + seconds
    repetition_seconds, repetitions = _plan(len(levels), seconds)
    attempt(levels[0], min(repetition_seconds, 0.1))  # not counted: how fast it is, and first times of everything
    points: list[MeasuredLevel] = []
    took = 0.0
    for place, processes in enumerate(levels):
        level_start = clock()
        if place > 1 and level_start + took > deadline:
            return Series(kind, nbytes, tuple(points), NO_TIME)
        done: list[Repetition] = []
        while len(done) < repetitions and (not done or _goes_on(len(done), clock() - level_start, deadline - clock())):
            done.append(attempt(processes, repetition_seconds))
        took = clock() - level_start
        best = max((point.ops_per_second for point in points), default=0.0)
        points.append(MeasuredLevel(kind, nbytes, processes, tuple(done)))
        if place > 0 and points[-1].ops_per_second < best * (1 + GROWTH):
            return Series(kind, nbytes, tuple(points), FLAT)
    return Series(kind, nbytes, tuple(points), MOST_PROCESSES)


def _plan(levels: int, seconds: float) -> tuple[float, int]:
    """Seconds of a repetition, and how many of them."""
    repetition_seconds = seconds / (levels * LEAST_REPETITIONS * PREPARATION)
    if repetition_seconds <= LONGEST_SECONDS:
        return repetition_seconds, LEAST_REPETITIONS
    return LONGEST_SECONDS, min(MOST_REPETITIONS, int(LEAST_REPETITIONS * repetition_seconds / LONGEST_SECONDS))


def _goes_on(done: int, took: float, left: float) -> bool:
    """There is time for one more like those."""
    return took / done <= left


def repetition_of(done: Sequence[ProbeTimes]) -> Repetition:
    times = np.concatenate([(times_of.ends - times_of.starts) / 1e9 for times_of in done])
    varied = variation(times)
    pace = pace_of(done[0].starts, done[0].ends, varied) if len(done) == 1 else Pace(varied, 0.0)
    return Repetition(
        throughput(done),
        float(np.median(times)),
        pace.variation,
        len(times),
        statistics.fmean(times_of.on_processor for times_of in done),
        pace.credit_seconds,
    )


def variation(times: FloatArray) -> float:
    """Coefficient of variation; the slowest 1 % count as the fastest of them, or a process that lost its core would decide it."""
    cut = np.minimum(times, np.quantile(times, SLOWEST_CUT, method="higher"))
    mean = float(cut.mean())
    return float(cut.std() / mean) if mean else 0.0


def throughput(done: Sequence[ProbeTimes]) -> float:
    """Operations per second while all processes were at work; one that reaches over an end counts with its part inside."""
    first = max(int(probe_times.starts[0]) for probe_times in done)
    last = min(int(probe_times.ends[-1]) for probe_times in done)
    if last <= first:  # some were done before others began: they did not work at the same time
        first = min(int(probe_times.starts[0]) for probe_times in done)
        last = max(int(probe_times.ends[-1]) for probe_times in done)
    within = 0.0
    for probe_times in done:
        inside = np.minimum(probe_times.ends, last) - np.maximum(probe_times.starts, first)
        within += float((np.maximum(inside, 0) / np.maximum(probe_times.ends - probe_times.starts, 1)).sum())
    return within / max(last - first, 1) * 1e9
