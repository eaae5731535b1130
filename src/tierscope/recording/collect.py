"""What recorded processes left behind (native/state.py) as one trace: processes grouped to ranks, lanes numbered, epochs timed."""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl
from msgspec import structs

from tierscope.errors import ResultError
from tierscope.native.lanes import NativeLane
from tierscope.native.rereads import GENERATION
from tierscope.native.state import (
    NOT_PLAIN,
    MarkedEpoch,
    StateDamage,
    StateHead,
    is_plain,
    read_chunks,
    read_head,
    read_unrecorded,
)
from tierscope.output.durable import boot_id
from tierscope.recording.clocks import rank_wall
from tierscope.recording.loader_use import loader_use
from tierscope.recording.ranks import ranks_of
from tierscope.recording.rereads import settle_epochs
from tierscope.trace.columns import COLUMNS, TraceRow
from tierscope.trace.description import MappedSums, PhaseSums, RecordedProcess, Records
from tierscope.trace.native_lanes import lane_table
from tierscope.trace.ops import KINDS, MMAP
from tierscope.trace.trace import RunKey, lane_rows

COMPUTE = "compute"  # the phase that is the program's own work
MOST_LISTED = 1000
_NO_RANK = 2**31  # larger than any
_ROWS = 20_000  # that are kept as Python objects at a time


@dataclass(slots=True)
class Process:
    """A recorded process; `lanes`: the number of its lane → the number that lane has in the trace.

    `at_home`: it is on the host of its rank's first process, so that their clocks are one. `boundaries`: generations with which
    epochs that were found by re-reads begin.
    """

    head: StateHead
    rank: int | None
    node: int
    at_home: bool = True
    lanes: dict[int, int] = field(default_factory=dict)
    boundaries: tuple[int, ...] = ()
    busy_ns: int = 0  # of its operations, threads added up

    def epoch_of(self, number: int) -> int:
        """Of a lane's number, which is an epoch or a generation."""
        return max(1, number) if number < GENERATION else 1 + bisect_right(self.boundaries, number - GENERATION)

    @property
    def stem(self) -> str:
        """Of the files beside its state."""
        return self.head.path.removesuffix(".state")


@dataclass(frozen=True, slots=True)
class Collected:
    """`records` and `provides` go into the trace's description."""

    table: pl.DataFrame
    records: Records
    provides: tuple[str, ...]
    processes: list[Process]


def collect(
    folder: str,
    tiers: Sequence[str],
    still_running: Callable[[StateHead], bool],
    now_ns: int = 0,
    by_rereads: bool = False,
) -> Collected:
    """Everything in the folder. A damaged file costs what is damaged in it, nothing else.

    `now_ns`: this host's monotonic clock, to tell how long operations have been under way that did not end. `by_rereads`: epochs are what re-reads tell.
    """
    damaged: dict[str, str] = {}
    processes = _group(list(_heads(folder, len(tiers), damaged)))
    numbered = [(process.rank, process.head) for process in processes if process.rank is not None]
    rereads, boundaries = settle_epochs(folder, numbered) if by_rereads else (None, {})
    for process in processes:
        process.boundaries = () if process.rank is None else boundaries.get(process.rank, ())
    gathering = _Gathering(list(tiers), damaged, now_ns)
    for process in processes:
        gathering.add(process)
    unrecorded = read_unrecorded(folder)
    running = [process for process in processes if still_running(process.head)]
    records = structs.replace(
        gathering.records(),
        rereads=rereads,
        loader_use=loader_use((process.head, process.busy_ns) for process in processes if process.lanes),
        ranks=len({process.rank for process in processes if process.rank is not None}) or 1,
        nodes=max((process.node for process in processes), default=0) + 1,
        processes=tuple(_described(process) for process in processes[:MOST_LISTED]),
        process_count=len(processes),
        still_running=len(running),
        scattered_processes=sum(not process.at_home for process in processes),
        unrecorded_processes=unrecorded.processes,
        unrecorded_ops=unrecorded.ops,
        damaged_files=tuple(f"{name}: {reason}" for name, reason in list(damaged.items())[:MOST_LISTED]),
        damaged_file_count=len(damaged),
    )
    shared = rank_wall(
        (process.rank, process.head.shares_clock and process.at_home) for process in processes if process.lanes
    )
    return Collected(gathering.table(), records, gathering.provides() + shared, processes)


def _heads(folder: str, tiers: int, damaged: dict[str, str]) -> Iterator[StateHead]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise ResultError(f"{folder}: cannot be read: {error.strerror}") from None
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith((".ops", ".names")) and not is_plain(path):
            damaged[name] = NOT_PLAIN
        if not name.endswith(".state"):
            continue
        try:
            head = read_head(path, tiers)
        except ResultError as error:
            damaged[name] = str(error).removeprefix(f"{path}: ")
            continue
        if head is not None:
            yield head


def _group(heads: list[StateHead]) -> list[Process]:
    """In the order of their start; nodes in the order of their smallest rank."""
    heads.sort(key=lambda head: (head.start_realtime_ns, head.pid))
    ranks = ranks_of([head.variables for head in heads])
    hosts = [head.variables.get("SLURMD_NODENAME") or head.host for head in heads]
    smallest: dict[str, int] = {}
    homes: dict[int | None, tuple[str, str]] = {}  # a rank is where its first process is
    for head, rank, host in zip(heads, ranks, hosts, strict=True):
        smallest[host] = min(smallest.get(host, _NO_RANK), _NO_RANK if rank is None else rank)
        homes.setdefault(rank, (host, head.clock))
    nodes = {host: number for number, host in enumerate(sorted(smallest, key=lambda host: smallest[host]))}
    return [
        Process(head, None, nodes[host])
        if rank is None
        else Process(head, rank, nodes[homes[rank][0]], head.clock == homes[rank][1])
        for head, rank, host in zip(heads, ranks, hosts, strict=True)
    ]


def _described(process: Process) -> RecordedProcess:
    head = process.head
    return RecordedProcess(
        pid=head.pid,
        parent=head.parent,
        command=head.command,
        rank=process.rank,
        host=head.host,
        start=head.start_realtime_ns / 1e9,
        lanes=len(process.lanes),
    )


@dataclass(slots=True)
class _RankEpoch:
    """What a rank did in an epoch, over its processes. Clock readings are of its own host only."""

    node: int
    marks: list[list[MarkedEpoch]] = field(default_factory=list)  # of each process that marked it
    last_ns: int = 0  # the end of its last operation
    compute_ns: int = 0
    limited_ops: int = 0
    late_ops: int = 0
    late_ns: int = 0

    @property
    def seconds(self) -> float | None:
        """As it was marked; of several processes the longest. An epoch may be marked again after another one."""
        return max((sum(map(self._passed, chunks)) / 1e9 for chunks in self.marks), default=None)

    def _passed(self, chunk: MarkedEpoch) -> int:
        return max(0, (chunk.end_ns or max(self.last_ns, chunk.last_ns)) - chunk.start_ns)


class _Gathering:
    def __init__(self, tiers: list[str], damaged: dict[str, str], now_ns: int) -> None:
        self._now_ns, self._under_way_ns = now_ns, 0
        self._tiers, self._damaged = tiers, damaged
        self._frames: list[pl.DataFrame] = []
        self._rows: list[TraceRow] = []
        self._epochs: dict[tuple[int, int], _RankEpoch] = {}
        self._next_lane: dict[tuple[int | None, int], int] = {}
        self._spans: dict[int, tuple[int, int]] = {}
        self._phases: dict[str, list[int]] = {}
        self._mapped: dict[str, list[int]] = {}
        self._counts = dict.fromkeys(
            ("lost_ops", "lost_rows", "mapped_ops", "unemulated_processes", "cut_lanes", "under_way_ops"), 0
        )
        self._outside = {"ops": 0, "busy_ns": 0}
        self._marked = False

    def add(self, process: Process) -> None:
        head = process.head
        for name in ("lost_ops", "lost_rows", "mapped_ops"):
            self._counts[name] += getattr(head, name)
        self._counts["unemulated_processes"] += head.unemulated
        marks: dict[int, list[MarkedEpoch]] = {}
        for chunk in read_chunks(head):
            match chunk:
                case NativeLane():
                    self._add_lane(process, chunk)
                case MarkedEpoch():
                    marks.setdefault(process.epoch_of(chunk.epoch), []).append(chunk)
                case StateDamage(reason):
                    self._damaged.setdefault(os.path.basename(head.path), reason)
                case _:
                    pass
        for epoch, chunks in marks.items():
            self._add_marks(process, epoch, chunks)

    def _rank_epoch(self, process: Process, epoch: int) -> _RankEpoch:
        """For a process without a rank one that nobody sees."""
        if process.rank is None:
            return _RankEpoch(process.node)
        return self._epochs.setdefault((process.rank, epoch), _RankEpoch(process.node))

    def _add_lane(self, process: Process, lane: NativeLane) -> None:
        epoch = process.epoch_of(lane.epoch)
        key = (process.rank, epoch)
        number = process.lanes[lane.number] = self._next_lane.get(key, 0)
        self._next_lane[key] = number + 1
        process.busy_ns += int(lane.cells["busy_ns"].sum())
        self._counts["cut_lanes"] += not lane.whole
        if lane.under_way_ns:
            self._counts["under_way_ops"] += 1
            since = self._now_ns - lane.under_way_ns if process.head.boot == boot_id() else 0
            self._under_way_ns = max(self._under_way_ns, since)
        sums = self._rank_epoch(process, epoch)
        sums.limited_ops += lane.limited_ops
        sums.late_ops += lane.late_ops
        sums.late_ns += lane.late_ns
        if process.at_home:
            sums.last_ns = max(sums.last_ns, lane.last_ns)
            self._add_span(process.rank, lane)
        if process.rank is None:
            self._outside["ops"] += int(lane.cells["ops"].sum())
            self._outside["busy_ns"] += int(lane.cells["busy_ns"].sum())
        self._add_mapped(lane)
        common = {"record": "io", "epoch": epoch, "node": process.node, "rank": process.rank}
        self._rows += [{**common, **row} for row in lane_rows(lane_table(lane, number), self._tiers)]
        if len(self._rows) > _ROWS:
            self._flush()

    def _add_span(self, rank: int | None, lane: NativeLane) -> None:
        if lane.last_ns and rank is not None:
            start, end = self._spans.get(rank, (lane.first_ns, lane.last_ns))
            self._spans[rank] = min(start, lane.first_ns), max(end, lane.last_ns)

    def _add_mapped(self, lane: NativeLane) -> None:
        for tier, name in enumerate(self._tiers):
            cell = lane.cells[tier * len(KINDS) + MMAP]
            if cell["ops"]:
                mapped = self._mapped.setdefault(name, [0, 0])
                mapped[0] += int(cell["ops"])
                mapped[1] += int(cell["bytes"])

    def _add_marks(self, process: Process, epoch: int, chunks: list[MarkedEpoch]) -> None:
        """A chunk without a beginning has phases only."""
        sums = self._rank_epoch(process, epoch)
        begun = [chunk for chunk in chunks if chunk.start_ns]
        if begun:
            self._marked = True
            sums.marks += [begun] if process.at_home else []
        for name, ns, count in (phase for chunk in chunks for phase in chunk.phases):
            known = self._phases.setdefault(name, [0, 0])
            known[0] += ns
            known[1] += count
            if name == COMPUTE:
                sums.compute_ns += ns

    def _flush(self) -> None:
        key = RunKey(0, 1)
        common = {"point": key.point, "repetition": key.repetition}
        if self._rows:
            self._frames.append(pl.DataFrame([{**common, **row} for row in self._rows], schema=COLUMNS))
        self._rows = []

    def table(self) -> pl.DataFrame:
        """Where nothing was recorded: one rank that did nothing."""
        epochs = self._epochs or {(0, 1): _RankEpoch(0)}
        for (rank, epoch), sums in sorted(epochs.items()):
            self._rows.append(
                {
                    "record": "rank",
                    "epoch": epoch,
                    "node": sums.node,
                    "rank": rank,
                    "epoch_seconds": sums.seconds,
                    "compute_seconds": sums.compute_ns / 1e9 if COMPUTE in self._phases else None,
                    "limited_ops": sums.limited_ops,
                    "late_ops": sums.late_ops,
                    "late_seconds": sums.late_ns / 1e9,
                }
            )
        self._flush()
        return pl.concat(self._frames)

    def provides(self) -> tuple[str, ...]:
        several = len({epoch for _, epoch in self._epochs}) > 1
        epochs = ("epochs",) if self._marked or several else ()
        return ("lanes", "busy", "wall", *epochs, *(("compute",) if COMPUTE in self._phases else ()))

    def records(self) -> Records:
        return Records(
            marked=self._marked,
            span_seconds=max(((end - start) / 1e9 for start, end in self._spans.values()), default=None),
            under_way_seconds=self._under_way_ns / 1e9,
            mapped={tier: MappedSums(ops=ops, bytes=nbytes) for tier, (ops, nbytes) in self._mapped.items()},
            phases={name: PhaseSums(seconds=ns / 1e9, count=count) for name, (ns, count) in self._phases.items()},
            outside_ops=self._outside["ops"],
            outside_seconds=self._outside["busy_ns"] / 1e9,
            lost_ops=self._counts["lost_ops"],
            lost_rows=self._counts["lost_rows"],
            mapped_ops=self._counts["mapped_ops"],
            unemulated_processes=self._counts["unemulated_processes"],
            cut_lanes=self._counts["cut_lanes"],
            under_way_ops=self._counts["under_way_ops"],
        )
