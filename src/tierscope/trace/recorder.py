"""The recorder: what every operation cost, per lane (a thread of a rank), tier and kind.

The hot path only reads the clock and packs numbers into a ring; sums and histograms are made from whole rings at
once with NumPy. Memory is bounded by the ring, whatever the number of operations. `begin`/`end` frame any operation;
`whole_file` takes open, one read and close at once from four clock readings, for a lane that works alone.

*Busy* seconds are sums of operation times. *Wall* seconds share each instant equally among the operations of
the rank that are then active; with one lane at a time they are the same.
"""

import os
import struct
import threading
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.trace.live_totals import MOVED, LiveTotals, Moved
from tierscope.trace.ops import BINS, CLOSE, KINDS, OP_ROW, OPEN, READ, WRITE

Counts = npt.NDArray[np.int64]

_RING = 2048
_OP = struct.Struct("<8q")
_pack = _OP.pack_into
_now = time.monotonic_ns


@dataclass(frozen=True, slots=True)
class LaneTable:
    """Sums and histograms of one lane in one epoch; arrays are tier × kind (× bin)."""

    lane: int
    ops: Counts
    nbytes: Counts
    busy_ns: Counts
    wall_ns: Counts
    sizes: Counts
    latencies: Counts


class WallClock:
    """A clock that runs slower the more operations are active: its advance during one is that one's wall share."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._active = 0
        self._last = 0
        self._virtual = 0.0

    def _advance(self, now: int) -> float:
        if self._active and now > self._last:
            self._virtual += (now - self._last) / self._active
        self._last = max(self._last, now)
        return self._virtual

    def enter(self, now: int) -> float:
        with self._lock:
            virtual = self._advance(now)
            self._active += 1
            return virtual

    def leave(self, now: int) -> float:
        with self._lock:
            virtual = self._advance(now)
            self._active -= 1
            return virtual


class OpSink:
    """Appends full operation lists to one new file per rank, for all its lanes."""

    def __init__(self, path: str) -> None:
        self._lock = threading.Lock()
        self._file = open(path, "xb", buffering=1 << 20, opener=_for_appending)  # noqa: SIM115

    @property
    def descriptor(self) -> int:
        """For a recorder that appends whole rows by itself, without `append`."""
        return self._file.fileno()

    def append(self, rows: npt.NDArray[np.void]) -> None:
        with self._lock:
            self._file.write(rows.tobytes())

    def close(self) -> None:
        with self._lock:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()


def _for_appending(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_APPEND, 0o666)


class Lane:
    """One thread's records in one epoch. Not shared between threads."""

    def __init__(
        self,
        number: int,
        tiers: int,
        epoch: int = 1,
        clock: WallClock | None = None,
        sink: OpSink | None = None,
    ) -> None:
        self.number = number
        self.step = 0
        self.alone = clock is None
        self._epoch = epoch
        self._clock = clock
        self._sink = sink
        self._start = 0
        self._virtual = 0.0
        self._cells = tiers * len(KINDS)
        self._ops_ring = bytearray(_OP.size * _RING)
        self._ops_used = 0
        self._files_ring = bytearray(_OP.size * _RING)
        self._files_used = 0
        self._flushes = 0  # odd while sums are made
        self._table = LaneTable(
            number,
            *(np.zeros(self._cells, np.int64) for _ in range(4)),
            *(np.zeros(self._cells * BINS, np.int64) for _ in range(2)),
        )

    def begin(self, at: int | None = None) -> None:
        """An operation starts now, or started at a clock reading taken before."""
        self._start = now = _now() if at is None else at
        if self._clock is not None:
            self._virtual = self._clock.enter(now)

    def end(self, tier: int, kind: int, file: int, offset: int, nbytes: int, at: int | None = None) -> None:
        """The operation begun last is over, or was over at a clock reading taken before."""
        now = _now() if at is None else at
        busy = now - self._start
        wall = busy if self._clock is None else int(self._clock.leave(now) - self._virtual)
        used = self._ops_used
        _pack(
            self._ops_ring,
            used,
            tier * len(KINDS) + kind,
            self.step,
            file,
            offset,
            nbytes,
            self._start,
            busy,
            wall,
        )
        self._ops_used = used + _OP.size
        if self._ops_used == len(self._ops_ring):
            self._flush_ops()

    def abandon(self) -> None:
        """The operation begun last failed: it leaves no record."""
        if self._clock is not None:
            self._clock.leave(_now())

    def whole_file(self, tier: int, file: int, nbytes: int, t0: int, t1: int, t2: int, t3: int) -> None:
        """A file was opened (t0–t1), read from offset 0 in one read (t1–t2) and closed (t2–t3)."""
        used = self._files_used
        _pack(self._files_ring, used, tier, self.step, file, nbytes, t0, t1, t2, t3)
        self._files_used = used + _OP.size
        if self._files_used == len(self._files_ring):
            self._flush_files()

    def finish(self) -> LaneTable:
        """The sums and histograms of everything recorded."""
        self._flush_ops()
        self._flush_files()
        return self._table

    def moved(self) -> Moved | None:
        """Bytes and operations so far, by tier; any thread may ask. None: sums are being made."""
        turn = self._flushes
        ops = np.frombuffer(bytes(self._ops_ring[: self._ops_used]), "<i8").reshape(-1, 8)
        files = np.frombuffer(bytes(self._files_ring[: self._files_used]), "<i8").reshape(-1, 8)
        counts, nbytes = self._table.ops.copy(), self._table.nbytes.copy()
        if turn % 2 or self._flushes != turn:
            return None
        np.add.at(counts, ops[:, 0], 1)
        np.add.at(nbytes, ops[:, 0], ops[:, 4])
        np.add.at(counts, files[:, 0] * len(KINDS) + READ, 3)  # an open and a close with each read
        np.add.at(nbytes, files[:, 0] * len(KINDS) + READ, files[:, 3])
        return moved_by_tier(counts, nbytes)

    def _flush_ops(self) -> None:
        self._flushes += 1
        rows = np.frombuffer(self._ops_ring, "<i8", self._ops_used // 8).reshape(-1, 8)
        if len(rows):
            cells, steps, files, offsets, nbytes, starts, busy, wall = rows.T
            self._add(cells, nbytes, busy, wall)
            self._list(cells, steps, files, offsets, nbytes, starts, busy)
        self._ops_used = 0
        self._flushes += 1

    def _flush_files(self) -> None:
        self._flushes += 1
        rows = np.frombuffer(self._files_ring, "<i8", self._files_used // 8).reshape(-1, 8)
        if len(rows):
            tiers, steps, files, nbytes, t0, t1, t2, t3 = rows.T
            nothing = np.zeros_like(nbytes)
            for kind, start, end, size in (
                (OPEN, t0, t1, nothing),
                (READ, t1, t2, nbytes),
                (CLOSE, t2, t3, nothing),
            ):
                cells, busy = tiers * len(KINDS) + kind, end - start
                self._add(cells, size, busy, busy)
                self._list(cells, steps, files, nothing, size, start, busy)
        self._files_used = 0
        self._flushes += 1

    def _add(self, cells: Counts, nbytes: Counts, busy: Counts, wall: Counts) -> None:
        table = self._table
        table.ops[:] += np.bincount(cells, minlength=self._cells)
        for total, values in ((table.nbytes, nbytes), (table.busy_ns, busy), (table.wall_ns, wall)):
            np.add.at(total, cells, values)
        for histogram, values in ((table.sizes, nbytes), (table.latencies, busy)):
            bins = np.minimum(np.frexp(values.astype(np.float64))[1], BINS - 1)
            histogram[:] += np.bincount(cells * BINS + bins, minlength=self._cells * BINS)

    def _list(
        self,
        cells: Counts,
        steps: Counts,
        files: Counts,
        offsets: Counts,
        nbytes: Counts,
        starts: Counts,
        busy: Counts,
    ) -> None:
        if self._sink is None:
            return
        rows = np.empty(len(cells), OP_ROW)
        rows["epoch"], rows["lane"], rows["step"] = self._epoch, self.number, steps
        rows["tier"], rows["kind"] = np.divmod(cells, len(KINDS))
        rows["file"], rows["offset"], rows["bytes"] = files, offsets, nbytes
        rows["start_ns"], rows["busy_ns"] = starts, busy
        self._sink.append(rows)


def moved_by_tier(ops: Counts, nbytes: Counts) -> Moved:
    """From cells, tier × kind."""
    by_tier = nbytes.reshape(-1, len(KINDS))
    moved = np.empty((len(by_tier), MOVED), np.int64)
    moved[:, 0], moved[:, 1], moved[:, 2] = by_tier[:, READ], by_tier[:, WRITE], ops.reshape(-1, len(KINDS)).sum(axis=1)
    return moved


class SilentLane(Lane):
    """Records nothing and reads no clock: for runs that another profiler measures."""

    def __init__(self, number: int, tiers: int) -> None:
        super().__init__(number, tiers)
        self.alone = False  # a reader must not take times for `whole_file`

    def begin(self, at: int | None = None) -> None:
        pass

    def end(self, tier: int, kind: int, file: int, offset: int, nbytes: int, at: int | None = None) -> None:
        pass

    def abandon(self) -> None:
        pass

    def whole_file(self, tier: int, file: int, nbytes: int, t0: int, t1: int, t2: int, t3: int) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Recording:
    """What all lanes of a rank have in common in one epoch. `silent`: they record nothing."""

    tiers: int
    epoch: int = 1
    sink: OpSink | None = None
    silent: bool = False
    live: LiveTotals | None = None  # who follows

    def lanes(self, count: int) -> list[Lane]:
        """One for each thread; several share a clock."""
        if self.silent:
            return [SilentLane(number, self.tiers) for number in range(count)]
        clock = WallClock() if count > 1 else None
        return [self._followed(Lane(number, self.tiers, self.epoch, clock, self.sink)) for number in range(count)]

    def lane(self, number: int) -> Lane:
        """One of its own, for what is done while no other is used."""
        if self.silent:
            return SilentLane(number, self.tiers)
        return self._followed(Lane(number, self.tiers, self.epoch, sink=self.sink))

    def _followed(self, lane: Lane) -> Lane:
        if self.live is not None:
            self.live.follow(lane.moved)
        return lane


def cost_per_op_seconds(repeats: int = 20_000, shared: bool = False) -> tuple[float, float]:
    """What the recorder itself adds to one operation: framed by begin/end, and as a third of `whole_file`.

    `shared`: with the clock that several lanes of a rank share.
    """
    lane = Lane(0, 1, clock=WallClock() if shared else None)
    start = _now()
    for _ in range(repeats):
        lane.begin()
        lane.end(0, READ, 0, 0, 0)
    framed = (_now() - start) / repeats
    start = _now()
    for _ in range(repeats):
        lane.whole_file(0, 0, 0, _now(), _now(), _now(), _now())
    return framed / 1e9, (_now() - start) / repeats / 3 / 1e9
