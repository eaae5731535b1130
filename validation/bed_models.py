"""Storage that nobody tuned the model for: small models of their own, with nothing of Tierscope's engine in them.

    fuse      a user-space file system behind a token bucket that opens and reads share
    link      sshfs behind a slow link: opens cost messages on it, reads go in chunks that take turns with others'
    bricks    two bricks; a file lies where the hash of its name says, so that some moments are crowded
    streams   every stream is limited, all of them together hardly

    throttled a near device with a byte rate and a burst, as the block layer's throttle has
    memory    a near tier in memory

Each operation is a generator of the times at which it goes on; one heap of processes is the clock. Services scatter by some
percent, and so does every epoch as a whole. What comes out is what `calibrate` reads of a result: busy seconds by rank, tier and kind.
"""

import heapq
import random
import zlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

FAR, NEAR = ("fuse", "link", "bricks", "streams"), ("throttled", "memory")
Going = Generator[float, float, float]  # yields when it goes on, is sent that time, returns when it is over


class BedTier(Protocol):
    def open(self, file: int, now: float, /) -> Going: ...

    def read(self, file: int, nbytes: int, now: float, /) -> Going: ...


@dataclass(frozen=True, slots=True)
class BedRates:
    """Of one bed: bytes per second of the far tier and of the near one, and what else its kind needs."""

    far: float
    near: float
    burst_seconds: float
    near_burst_seconds: float
    open_bytes: float
    open_seconds: float
    trip_seconds: float
    chunk: int
    together: float = 8.0  # limited streams: times one of them that all have together


@dataclass(frozen=True, slots=True)
class Bed:
    far_kind: str
    near_kind: str
    rates: BedRates
    seed: int

    @property
    def name(self) -> str:
        return f"{self.far_kind} + {self.near_kind}"

    @property
    def servers(self) -> int:
        return 2 if self.far_kind == "bricks" else 1

    def doubled(self) -> "Bed":
        """The far tier twice as fast; burst and messages as they are."""
        if self.far_kind == "streams":  # a faster server gives a client no more
            return replace(self, rates=replace(self.rates, together=2 * self.rates.together))
        rates = replace(self.rates, far=2 * self.rates.far, open_seconds=self.rates.open_seconds / 2)
        return replace(self, rates=rates)


def draw_bed(far_kind: str, near_kind: str, seed: int) -> Bed:
    """One of many: its numbers are drawn, so that nobody can tune for them."""
    dice = random.Random(f"{far_kind}/{near_kind}/{seed}")

    def between(low: float, high: float) -> float:
        return float(low * (high / low) ** dice.random())

    far = {"fuse": between(8e6, 40e6), "link": 10e6, "bricks": between(6e6, 20e6), "streams": between(3e6, 9e6)}
    rates = BedRates(
        far=far[far_kind],
        near=between(8e6, 60e6) if near_kind == "throttled" else 2e9,
        burst_seconds=between(0.01, 0.1),
        near_burst_seconds=between(0.02, 0.1),
        open_bytes=between(4e3, 40e3) if far_kind == "fuse" else between(1.5e3, 6e3),
        open_seconds=between(0.5e-3, 3e-3),
        trip_seconds=between(0.2e-3, 2e-3),
        chunk=65536,
    )
    return Bed(far_kind, near_kind, rates, seed)


class _Bucket:
    """Tokens are bytes: they come at a rate, up to a burst. Whoever takes more than there are waits for the rest."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst, self._tokens, self._last = rate, burst, burst, 0.0

    def take(self, nbytes: float, now: float) -> float:
        self._tokens = min(self._burst, self._tokens + (now - self._last) * self._rate)
        self._last = now
        self._tokens -= nbytes
        return now if self._tokens >= 0 else now - self._tokens / self._rate


class _Line:
    """One after another."""

    def __init__(self) -> None:
        self._free = 0.0

    def serve(self, seconds: float, now: float) -> float:
        self._free = max(self._free, now) + seconds
        return self._free


class _Fuse:
    _REQUESTS = 2  # of an open: lookup, open

    def __init__(self, bed: Bed, dice: random.Random) -> None:
        rates = bed.rates
        self._bucket = _Bucket(rates.far, rates.far * rates.burst_seconds)
        self._rates, self._dice = rates, dice

    def open(self, _file: int, now: float) -> Going:
        for _ in range(self._REQUESTS):
            now = yield self._bucket.take(self._rates.open_bytes / self._REQUESTS, now) + self._crossing()
        return now

    def read(self, _file: int, nbytes: int, now: float) -> Going:
        for start in range(0, nbytes, 131072):
            now = yield self._bucket.take(min(131072, nbytes - start), now) + self._crossing()
        return now

    def _crossing(self) -> float:
        return 150e-6 * self._dice.lognormvariate(0, 0.3)


class _Link:
    _TRIPS = 2  # of an open: stat, open

    def __init__(self, bed: Bed, dice: random.Random) -> None:
        self._bucket = _Bucket(bed.rates.far, 32768)
        self._rates, self._dice = bed.rates, dice

    def open(self, _file: int, now: float) -> Going:
        for _ in range(self._TRIPS):
            now = yield self._bucket.take(self._rates.open_bytes / self._TRIPS, now) + self._trip()
        return now

    def read(self, _file: int, nbytes: int, now: float) -> Going:
        for start in range(0, nbytes, self._rates.chunk):
            now = yield self._bucket.take(min(self._rates.chunk, nbytes - start) + 100, now)
        return (yield now + self._trip())

    def _trip(self) -> float:
        return self._rates.trip_seconds * self._dice.lognormvariate(0, 0.2)


class _Bricks:
    def __init__(self, bed: Bed, dice: random.Random) -> None:
        rates = bed.rates
        self._bricks = [_Bucket(rates.far, rates.far * rates.burst_seconds / 4) for _ in range(2)]
        self._metadata = [_Line(), _Line()]
        self._rates, self._dice = rates, dice

    def open(self, file: int, now: float) -> Going:
        brick = self._of(file)
        now = yield self._metadata[brick].serve(self._rates.open_seconds * self._scatter(), now)
        return (yield now + self._rates.trip_seconds * self._scatter())

    def read(self, file: int, nbytes: int, now: float) -> Going:
        now = yield self._bricks[self._of(file)].take(nbytes * self._scatter(), now)
        return (yield now + self._rates.trip_seconds * self._scatter())

    def _scatter(self) -> float:
        return self._dice.lognormvariate(-0.02, 0.2)

    @staticmethod
    def _of(file: int) -> int:
        return zlib.crc32(f"img_{file:09}.raw".encode()) % 2


class _Streams:
    def __init__(self, bed: Bed, dice: random.Random) -> None:
        self._all = _Bucket(bed.rates.together * bed.rates.far, 0.02 * bed.rates.far)
        self._rates, self._dice = bed.rates, dice

    def open(self, _file: int, now: float) -> Going:
        return (yield now + self._rates.open_seconds * self._dice.lognormvariate(0, 0.2))

    def read(self, _file: int, nbytes: int, now: float) -> Going:
        alone = nbytes / self._rates.far * self._dice.lognormvariate(-0.005, 0.1)
        return (yield max(now + alone, self._all.take(nbytes, now)) + 200e-6)


class _Throttled:
    def __init__(self, bed: Bed, dice: random.Random) -> None:
        rates = bed.rates
        self._bucket = _Bucket(rates.near, rates.near * rates.near_burst_seconds)
        self._dice = dice

    def open(self, _file: int, now: float) -> Going:
        return (yield now + 40e-6 * self._dice.lognormvariate(0, 0.3))

    def read(self, _file: int, nbytes: int, now: float) -> Going:
        return (yield self._bucket.take(nbytes, now) + (80e-6 + nbytes / 1.5e9) * self._dice.lognormvariate(0, 0.3))


class _Memory:
    def __init__(self, bed: Bed, dice: random.Random) -> None:
        self._rates, self._dice = bed.rates, dice

    def open(self, _file: int, now: float) -> Going:
        return (yield now + 20e-6 * self._dice.lognormvariate(0, 0.3))

    def read(self, _file: int, nbytes: int, now: float) -> Going:
        return (yield now + (15e-6 + nbytes / self._rates.near) * self._dice.lognormvariate(0, 0.3))


_KINDS: dict[str, Callable[[Bed, random.Random], BedTier]] = {"fuse": _Fuse, "link": _Link, "bricks": _Bricks, "streams": _Streams, "throttled": _Throttled, "memory": _Memory}  # fmt: skip
BESIDE = 60e-6  # seconds of a process per sample beside its I/O
EPOCH_SCATTER = 0.015  # of an epoch as a whole


def run_bed(
    bed: Bed, tiers: npt.NDArray[np.int8], files: npt.NDArray[np.int64], reads: Sequence[int], turn: int
) -> npt.NDArray[np.float64]:
    """An epoch: busy seconds by (rank, tier, kind: open, read, write; nothing is written). `tiers`, `files` by (rank, sample); `reads`: bytes of each read of a sample."""
    dice = random.Random(f"{bed.seed}/{turn}")
    luck = dice.lognormvariate(0, EPOCH_SCATTER)
    rates = replace(bed.rates, far=bed.rates.far * luck, near=bed.rates.near * luck)
    lucky = replace(bed, rates=rates)
    both: list[BedTier] = [_KINDS[kind](lucky, dice) for kind in (bed.near_kind, bed.far_kind)]
    busy = np.zeros((len(tiers), 2, 3))

    def process(rank: int) -> Generator[float, float, None]:
        now = yield 0.0
        for tier, file in zip(tiers[rank].tolist(), files[rank].tolist(), strict=True):
            begun, now = now, (yield from both[tier].open(file, now))
            busy[rank, tier, 0] += now - begun
            for nbytes in reads:
                begun, now = now, (yield from both[tier].read(file, nbytes, now))
                busy[rank, tier, 1] += now - begun
            now = yield now + BESIDE * dice.lognormvariate(0, 0.3)

    running = [process(rank) for rank in range(len(tiers))]
    order = [(next(steps) + 1e-5 * dice.random(), rank) for rank, steps in enumerate(running)]
    heapq.heapify(order)
    while order:
        now, rank = order[0]
        try:
            heapq.heapreplace(order, (running[rank].send(now), rank))
        except StopIteration:
            heapq.heappop(order)
    return busy
