"""Our own recorder for strangers' commands: the C library, preloaded into everything the command starts."""

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np
from msgspec import structs

from tierscope.errors import ResultError, UserError
from tierscope.native import library
from tierscope.native.engine import path_costs_seconds, recorder_cost_seconds
from tierscope.native.program import processes_recording, still_recorded, why_unseen
from tierscope.native.rereads import GENERATION
from tierscope.native.setup import TierSetup, config_bytes, write_setup
from tierscope.native.state import (
    LIST_ROWS,
    OPTION_EVICT,
    OPTION_OPS,
    OPTION_REREADS,
    StateHead,
    WaitingRows,
    is_plain,
    read_chunks,
    read_head,
    read_names,
)
from tierscope.output.durable import boot_id
from tierscope.output.op_list import OpSource, Rows, rows_of, write_files, write_ops
from tierscope.output.tables import read_table
from tierscope.recording.collect import Collected, Process, collect
from tierscope.recording.coverage import coverage_of
from tierscope.recording.recorders import RecordingRequest
from tierscope.spec.study import System
from tierscope.spec.traced import TracedTier
from tierscope.storage.stations import StationMap, map_stations
from tierscope.trace.description import OwnCost, Traced, TracedCommand
from tierscope.trace.ops import OP_ROW
from tierscope.trace.trace import RunKey, Trace

_SEED = 42  # of the servers' speeds
_ENDING_SECONDS = 0.2
_LONGEST_FOLDER = 3000  # bytes, in the C library


class Builtin:
    def check(self, program: str, wanted: RecordingRequest) -> list[str]:
        _library()
        stations = _stations(wanted.tiers)
        config_bytes(_setups(wanted.tiers, stations), stations.count, boot_id(), 0)
        reason = why_unseen(program)
        if reason is None:
            return []
        if any(traced.tier.emulate for traced in wanted.tiers):
            raise UserError(f"{reason}: the recorder cannot be preloaded, so nothing can be emulated for it")
        return [f"{reason}: the recorder cannot be preloaded, so its own operations are not recorded"]

    def prepare(self, folder: str, wanted: RecordingRequest) -> dict[str, str]:
        if len(os.fsencode(folder)) > _LONGEST_FOLDER:
            raise UserError(f"--out: the path is longer than {_LONGEST_FOLDER} bytes; choose a shorter one")
        asked = {OPTION_OPS: wanted.ops, OPTION_REREADS: wanted.epochs == "rereads", OPTION_EVICT: wanted.evict}
        options = sum(option for option, wants in asked.items() if wants)
        stations = _stations(wanted.tiers)
        write_setup(folder, _setups(wanted.tiers, stations), stations.count, boot_id(), options)
        own_library = _library()
        others = [path for path in os.environ.get("LD_PRELOAD", "").replace(":", " ").split() if path != own_library]
        return {"LD_PRELOAD": ":".join([own_library, *others]), "TIERSCOPE_RECORD": folder}

    def running(self, folder: str, about: TracedCommand) -> list[int]:
        """Those that have not touched a tier yet have no state; those that wrote over their environment are known by it."""
        pids = set(processes_recording(folder))
        for name in os.listdir(folder):
            with suppress(ResultError):
                head = read_head(os.path.join(folder, name), len(about.tiers)) if name.endswith(".state") else None
                pids |= {head.pid} if head and _still_runs(head, folder) else set()
        return sorted(pids)

    def collect(self, folder: str, out: str, about: TracedCommand) -> Trace:
        tiers = [tier.name for tier in about.tiers]
        key = RunKey(0, 1)
        collected = collect(
            folder, tiers, lambda head: _still_runs(head, folder), time.monotonic_ns(), about.epochs == "rereads"
        )
        collected = _with_idle(collected, folder)
        if about.ops:
            _collect_ops(os.path.join(out, "ops"), key, collected.processes, tiers)
        described = Traced(
            recorder=about.recorder,
            command=about.command,
            tiers=about.tiers,
            epochs=about.epochs,
            ops=about.ops,
            exit_code=about.exit_code,
            provenance=about.provenance,
            provides=collected.provides,
            records=collected.records,
            own_cost=_own_cost(),
            coverage=coverage_of(folder, collected, about.kernel, [tier.name for tier in about.tiers if tier.emulated]),
        )
        return Trace(key, described, collected.table)


def _with_idle(collected: Collected, folder: str) -> Collected:
    """With processes that still run and have no state, because they have not touched a tier. Those that are just ending (trackers of multiprocessing) get
    a moment."""
    known = {process.head.pid for process in collected.processes}
    until = time.monotonic() + _ENDING_SECONDS
    while (idle := set(processes_recording(folder)) - known) and time.monotonic() < until:
        time.sleep(_ENDING_SECONDS / 10)
    still = collected.records.still_running + len(idle)
    return replace(collected, records=structs.replace(collected.records, still_running=still))


def _still_runs(head: StateHead, folder: str) -> bool:
    return head.boot == boot_id() and head.host == socket.gethostname() and still_recorded(head.pid, folder)


def _own_cost() -> OwnCost:
    """What recording adds, measured here and now; records may also be collected where there is no library."""
    if library.load() is None:
        return OwnCost()
    stat, opened = path_costs_seconds() or (None, None)
    return OwnCost(
        recorder_seconds_per_op=recorder_cost_seconds(), relative_stat_seconds=stat, foreign_open_seconds=opened
    )


def _library() -> str:
    path = library.path()
    if path is None or not os.path.exists(path):
        raise UserError(f"the recorder's C library was not built; {library.BUILD_ADVICE} (see 'tierscope doctor')")
    path = os.path.abspath(path)
    if set(path) & set(" :"):
        raise UserError(f"{path}: LD_PRELOAD does not support paths with a space or colon; install tierscope elsewhere")
    return path


def _stations(tiers: tuple[TracedTier, ...]) -> StationMap:
    return map_stations(System(nodes=1, ranks_per_node=1, tiers=tuple(traced.tier for traced in tiers)), _SEED)


def _setups(tiers: tuple[TracedTier, ...], stations: StationMap) -> list[TierSetup]:
    return [
        TierSetup(traced.prefixes, None if views is None else views[0])
        for traced, views in zip(tiers, stations.views, strict=True)
    ]


def _collect_ops(folder: str, key: RunKey, processes: list[Process], tiers: list[str]) -> None:
    """One file per node, and one that says which path a file's number means. An operation without a path (stat) has no number."""

    def names() -> Iterator[tuple[int, str]]:
        for process in processes:
            yield from read_names(f"{process.stem}.names")

    files = os.path.join(folder, "files.parquet")
    write_files(files, names)
    known = np.sort(read_table(files, ["file"])["file"].to_numpy())
    for node in sorted({process.node for process in processes}) or [0]:
        sources = [
            OpSource(process.rank, lambda process=process: _rows(process), process.lanes, known)  # type: ignore[misc]
            for process in processes
            if process.node == node
        ]
        name = f"{key.point:04d}-r{key.repetition}-node{node}.parquet"
        write_ops(os.path.join(folder, name), sources, tiers)


def _rows(process: Process) -> Iterator[Rows]:
    """With the epochs of its lanes, which may be generations as they are written."""
    for raw in _raw_rows(process):
        rows = raw
        if (raw["epoch"] >= GENERATION).any():
            numbers, places = np.unique(raw["epoch"], return_inverse=True)
            rows = raw.copy()
            rows["epoch"] = np.array([process.epoch_of(int(number)) for number in numbers])[places]
        yield rows


def _raw_rows(process: Process) -> Iterator[Rows]:
    """What was written, then what still waited to be, or was just being written."""
    waiting = [chunk for chunk in read_chunks(process.head) if isinstance(chunk, WaitingRows) and chunk.rows]
    written = f"{process.stem}.ops"
    if is_plain(written):
        yield from _written(written, {chunk.block for chunk in waiting if chunk.block is not None})
    for chunk in waiting:
        yield np.frombuffer(chunk.rows, OP_ROW)


def _written(path: str, unsure: set[int]) -> Iterator[Rows]:
    """Without the blocks that a kill may have cut, and without holes: a block that could not be written is one."""
    row = 0
    for rows in rows_of(path):
        blocks = np.arange(row, row + len(rows)) // LIST_ROWS
        row += len(rows)
        yield rows[(rows["start_ns"] != 0) & ~np.isin(blocks, list(unsure))]
