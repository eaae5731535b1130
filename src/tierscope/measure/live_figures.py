"""What ranks do now, from two looks at their rows: pure functions of numbers and times, so that a test can be any clock.

Rates are of reading and writing on tiers as it is recorded: staging, evicting the page cache and what lies between epochs are in none of them. Each rank's rate is taken over
the time between its own two notes, so that it does not matter when the director looks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tierscope.bench.live import BETWEEN, COMPUTING, MEETING, PREPARING, SAVING, WAITING, RankState
from tierscope.trace.live_totals import OPERATIONS, READ_BYTES, WRITTEN_BYTES

WINDOW_SECONDS = 2.0  # that "now" is at least made of, once there is as much
STALLED_SECONDS = 5.0  # without I/O or a batch, while a rank waits for data, before it is said
SILENT_TICKS = 6  # that a rank may miss before it counts as one that does not report
DOING = {
    BETWEEN: "between epochs",
    PREPARING: "preparing (evicting the page cache)",
    WAITING: "reading",
    COMPUTING: "computing",
    MEETING: "waiting for other ranks",
    SAVING: "writing a checkpoint",
}

States = Sequence[RankState | None]


@dataclass(frozen=True, slots=True)
class Look:
    """All rows at one moment of the host's monotonic clock."""

    at_ns: int
    states: States


@dataclass(frozen=True, slots=True)
class TierRate:
    """Per second, now; None: not known (yet, or with another profiler)."""

    tier: str
    read_bytes: float | None = None
    written_bytes: float | None = None
    operations: float | None = None


@dataclass(frozen=True, slots=True)
class SlowRank:
    """The rank that is furthest behind, by its share of the run."""

    rank: int
    share: float
    fastest_share: float


@dataclass(frozen=True, slots=True)
class StalledRank:
    rank: int
    seconds: float
    reports: bool  # False: it does not even say what it does


@dataclass(frozen=True, slots=True)
class Figures:
    """Of the ranks that can be seen: `visible` of `ranks`."""

    visible: int
    ranks: int
    epoch: int  # of the rank furthest behind
    doing: str
    tiers: tuple[TierRate, ...]
    slowest: SlowRank | None
    share: float  # of the run, by the slowest rank
    stalled: tuple[StalledRank, ...] = ()

    @property
    def is_partial(self) -> bool:
        return self.visible < self.ranks


def rates(before: Look | None, now: Look, tiers: Sequence[str]) -> tuple[TierRate, ...]:
    """Sums over ranks that are in both looks; None where no time has passed for any of them."""
    sums = [[0.0, 0.0, 0.0] for _ in tiers]
    known = False
    for old, new in zip(before.states if before else (), now.states, strict=before is not None):
        if old is None or new is None:
            continue
        seconds = (new.beat_ns - old.beat_ns) / 1e9
        if seconds <= 0:  # it has noted nothing since
            continue
        known = True
        for place, (first, last) in enumerate(zip(old.moved, new.moved, strict=True)):
            for column in range(3):
                sums[place][column] += (last[column] - first[column]) / seconds
    if not known:
        return tuple(TierRate(tier) for tier in tiers)
    return tuple(
        TierRate(tier, own[READ_BYTES], own[WRITTEN_BYTES], own[OPERATIONS])
        for tier, own in zip(tiers, sums, strict=True)
    )


def slowest_rank(states: States, samples_per_rank: int) -> SlowRank | None:
    seen = [state for state in states if state is not None]
    if not seen or samples_per_rank <= 0:
        return None
    last = min(seen, key=lambda state: (state.samples, state.rank))
    most = max(state.samples for state in seen)
    return SlowRank(last.rank, min(1.0, last.samples / samples_per_rank), min(1.0, most / samples_per_rank))


class StallWatch:
    """When each rank last got anything done: an operation, or a batch."""

    def __init__(self, tick_seconds: float) -> None:
        self._silent_seconds = max(STALLED_SECONDS, SILENT_TICKS * tick_seconds)
        self._seen: dict[int, tuple[tuple[int, ...], int]] = {}

    def look(self, now: Look) -> tuple[StalledRank, ...]:
        """Ranks that wait for data, or write, without any I/O; and those that do not report. A rank that computes, or waits for others, does not stall."""
        stalled = []
        for state in (known for known in now.states if known is not None):
            silent = (now.at_ns - state.beat_ns) / 1e9
            idle = (now.at_ns - self._changed_ns(state)) / 1e9
            if silent >= self._silent_seconds:
                stalled.append(StalledRank(state.rank, silent, reports=False))
            elif idle >= STALLED_SECONDS and state.doing in (WAITING, SAVING):
                stalled.append(StalledRank(state.rank, idle, reports=True))
        return tuple(sorted(stalled, key=lambda rank: -rank.seconds))

    def _changed_ns(self, state: RankState) -> int:
        """What it does counts too: the time before it began to wait is not a stall."""
        mark = (state.samples, state.epoch, state.doing, *(own[OPERATIONS] for own in state.moved))
        before = self._seen.get(state.rank)
        if before is None or before[0] != mark:
            before = self._seen[state.rank] = mark, state.beat_ns
        return before[1]


def figures(
    before: Look | None, now: Look, tiers: Sequence[str], samples_per_rank: int, stalls: StallWatch, counted: bool
) -> Figures:
    """`counted`: whether operations pass our recorder; where they do not, there are no rates."""
    seen = [state for state in now.states if state is not None]
    slowest = slowest_rank(now.states, samples_per_rank)
    furthest = next((state for state in seen if slowest is not None and state.rank == slowest.rank), None)
    return Figures(
        visible=len(seen),
        ranks=len(now.states),
        epoch=furthest.epoch if furthest else 0,
        doing=DOING[furthest.doing] if furthest else "starting",
        tiers=rates(before, now, tiers) if counted else tuple(TierRate(tier) for tier in tiers),
        slowest=slowest,
        share=slowest.share if slowest else 0.0,
        stalled=stalls.look(now),
    )
