"""I/O of a job beside the compute that another profiler saw: their clocks aligned, and how much I/O the compute hid.

Clocks are aligned by marks: an operation on a file of a name that only it has, inside a span of the same name. The operation lies within the span, so every mark bounds the
offset from both sides, and several bound it together. Without marks, by the epoch time that both carry, which nothing checks: its uncertainty is assumed.

Hidden is the time in which I/O and compute of a rank are both under way. Only the stretch that the profiler recorded counts: I/O before and after it is told apart, since nobody knows
what was computed then. Assumed: one offset for the whole trace (no drift, or marks contradict each other), and I/O of a rank's workers is the rank's.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tierscope.analysis.hidden import Hidden, RankHidden, weighted
from tierscope.analysis.time_spans import TimeSpans
from tierscope.clock_marks import FILE_NAME

BASIS = "time in which I/O and compute spans overlap ÷ I/O time, in the profiled stretch"
MARKS, EPOCH_TIME, SAME_CLOCK = "marks", "epoch time", "the same clock"
SAME_HOST_NS = 10_000_000  # assumed of two programs that ask the same host for the time
WHOLE_SECONDS_NS = 1_000_000_000  # of a log that has its start in whole seconds
_ROUNDING_NS = 2_000  # logs have microseconds
_TRIED = 9  # offsets within the uncertainty
_LEAST_SEEN, _MOST_APART = 0.5, 0.5  # of the I/O time: with less, or further apart, there is no one number

Marks = Mapping[str, tuple[int, int]]  # start and end by token


@dataclass(frozen=True, slots=True)
class RankOperations:
    """I/O of a rank by its log's clock, which is the calendar's to within `clock_ns`."""

    rank: int
    io: TimeSpans
    marks: Marks
    clock_ns: int
    compute: TimeSpans | None = None  # where the log itself has compute spans


@dataclass(frozen=True, slots=True)
class ProfiledCompute:
    """What a framework's profiler says about one rank. `epoch_ns`: the calendar's time of its zero; None: not told. `window`: what it recorded."""

    path: str
    compute: TimeSpans
    basis: str
    window: tuple[int, int]
    marks: Marks
    epoch_ns: int | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True)
class ClockAlignment:
    """What to add to the profiler's times to have the log's."""

    offset_ns: int
    uncertainty_ns: int
    by: str
    marks: int = 0


@dataclass(frozen=True, slots=True)
class MergedRank:
    """`hidden_ns` with the least and the most that offsets within the uncertainty give. `io_outside_ns`: I/O while the profiler did not record."""

    rank: int
    alignment: ClockAlignment
    start_ns: int  # of the stretch, by the log's clock
    window_ns: int
    io_ns: int
    compute_ns: int
    hidden_ns: int
    low_ns: int
    high_ns: int
    io_outside_ns: int
    compute_basis: str
    io: TimeSpans
    compute: TimeSpans

    @property
    def share(self) -> float | None:
        return self.hidden_ns / self.io_ns if self.io_ns else None


class UnalignedError(ValueError):
    """Why two clocks cannot be aligned, in words that follow the trace's name."""


def align(profile: ProfiledCompute, operations: RankOperations) -> ClockAlignment:
    common = sorted(profile.marks.keys() & operations.marks.keys())
    if common:
        return _by_marks([profile.marks[token] for token in common], [operations.marks[token] for token in common])
    if profile.epoch_ns is None:
        missing = (
            f"the logs have no operation on its {FILE_NAME}* file{'s' if len(profile.marks) > 1 else ''}"
            if profile.marks
            else "it has neither an epoch time nor a tierscope.mark span"
        )
        raise UnalignedError(missing)
    alignment = ClockAlignment(profile.epoch_ns, operations.clock_ns, EPOCH_TIME)
    _refuse_apart(profile, operations, alignment)
    return alignment


def _by_marks(spans: Sequence[tuple[int, int]], operations: Sequence[tuple[int, int]]) -> ClockAlignment:
    pairs = list(zip(spans, operations, strict=True))
    low = max(operation[1] - span[1] for span, operation in pairs) - _ROUNDING_NS
    high = min(operation[0] - span[0] for span, operation in pairs) + _ROUNDING_NS
    if low > high:
        what = (
            f"its {len(pairs)} marks contradict each other"
            if len(pairs) > 1
            else "its mark is shorter than the operation in it"
        )
        raise UnalignedError(f"{what} by {(low - high) / 1e3:,.0f} µs: a clock was set or drifts")
    return ClockAlignment((low + high) // 2, (high - low + 1) // 2, MARKS, len(pairs))


def _refuse_apart(profile: ProfiledCompute, operations: RankOperations, alignment: ClockAlignment) -> None:
    """Epoch times that cannot be of the same run."""
    extent = operations.io.extent
    if extent is None:
        return
    start, end = (time + alignment.offset_ns for time in profile.window)
    apart = max(extent[0] - end, start - extent[1])
    if apart > alignment.uncertainty_ns:
        raise UnalignedError(f"by its epoch time it lies {apart / 1e9:,.3f} s away from the logs' operations")


def merge(profile: ProfiledCompute, operations: RankOperations) -> MergedRank:
    """Raises UnalignedError."""
    return _merged(operations, profile.compute, profile.window, align(profile, operations), profile.basis)


def merge_own(operations: RankOperations, basis: str) -> MergedRank | None:
    """Of a log that has compute spans itself: all of it counts. None: it has none."""
    if operations.compute is None or operations.compute.extent is None or operations.io.extent is None:
        return None
    (first, last), (start, end) = operations.compute.extent, operations.io.extent
    window = min(first, start), max(last, end)
    return _merged(operations, operations.compute, window, ClockAlignment(0, 0, SAME_CLOCK), basis)


def _merged(
    operations: RankOperations, compute: TimeSpans, window: tuple[int, int], alignment: ClockAlignment, basis: str
) -> MergedRank:
    def at(offset: int) -> tuple[TimeSpans, TimeSpans]:
        low, high = window[0] + offset, window[1] + offset
        return operations.io.within(low, high), compute.shifted(offset).within(low, high)

    reach = alignment.uncertainty_ns
    tried = {alignment.offset_ns + round(reach * (2 * place / (_TRIED - 1) - 1)) for place in range(_TRIED)}
    hidden = [io.overlap_ns(computing) for io, computing in map(at, sorted(tried))]
    io, computing = at(alignment.offset_ns)
    middle = io.overlap_ns(computing)
    return MergedRank(
        operations.rank,
        alignment,
        window[0] + alignment.offset_ns,
        window[1] - window[0],
        io.total_ns,
        computing.total_ns,
        middle,
        min(*hidden, middle),
        max(*hidden, middle),
        operations.io.total_ns - io.total_ns,
        basis,
        io,
        computing,
    )


def hidden_of_merged(ranks: Sequence[MergedRank]) -> Hidden:
    known = [
        (merged, RankHidden(0, merged.rank, merged.io_ns / 1e9, merged.hidden_ns / merged.io_ns))
        for merged in ranks
        if merged.io_ns
    ]
    if not known:
        return Hidden(None, "there is no I/O in the profiled stretch")
    seen, unseen, low, high = (
        sum(getattr(merged, name) for merged in ranks) for name in ("io_ns", "io_outside_ns", "low_ns", "high_ns")
    )
    if seen < _LEAST_SEEN * (seen + unseen):
        return Hidden(None, f"the profiler recorded during {100 * seen / (seen + unseen):.1g} % of the I/O time only")
    if high - low > _MOST_APART * seen:
        return Hidden(
            None, f"clocks are not aligned well enough: between {100 * low / seen:.0f} and {100 * high / seen:.0f} %"
        )
    by_rank = tuple(rank for _, rank in known)
    slowest = max(by_rank, key=lambda rank: rank.io_wall_seconds)
    return Hidden(weighted(by_rank), "", by_rank, (slowest,), BASIS)
