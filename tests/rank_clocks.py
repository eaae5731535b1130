"""Wall seconds of a rank beside a witness: the union of all its operations' intervals, from their list."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.native_programs import Ended, environment, operation_rows, run
from tierscope.native import setup, state
from tierscope.native.lanes import NativeLane
from tierscope.native.stations import Station, TierStations
from tierscope.output.durable import boot_id
from tierscope.recording.ranks import ranks_of
from tierscope.trace.ops import KINDS, OP_ROW


@dataclass(frozen=True, slots=True)
class RankTimes:
    """Seconds of one rank: as the lanes have them, and as the witness counts; and whether all its processes shared a clock."""

    busy: float
    wall: float
    union: float
    wall_of: Mapping[tuple[int, str], float]  # tier and kind
    union_of: Mapping[tuple[int, str], float]
    processes: int
    shared: bool


def union(rows: np.ndarray) -> float:
    """Seconds in which at least one of the operations was under way."""
    begins, ends = rows["start_ns"], rows["start_ns"] + rows["busy_ns"]
    order = np.argsort(begins, kind="stable")
    begins, ends = begins[order], ends[order]
    before = np.maximum.accumulate(np.concatenate(([0], ends[:-1])))
    return float(np.maximum(0, ends - np.maximum(begins, before)).sum()) / 1e9


def slow_tier(folder: Path, latency: float, metadata_latency: float = 0.0) -> setup.TierSetup:
    """Operations take this long however many there are at once."""
    stations = TierStations(
        servers=(Station(0, 1.0, 0.0),),
        latency_ns=round(latency * 1e9),
        metadata_latency_ns=round(metadata_latency * 1e9),
    )
    return setup.TierSetup((os.path.realpath(folder),), stations)


def record(folder: Path, tiers: Sequence[setup.TierSetup], command: Sequence[str], **variables: str) -> Ended:
    folder.mkdir()
    setup.write_setup(str(folder), tiers, 1, boot_id(), state.OPTION_OPS)
    ended = run(command, environment(folder, **variables), cwd=folder.parent)
    assert ended.code == 0, ended.err.decode()
    return ended


def rank_times(folder: Path, tiers: int = 1) -> dict[int | None, RankTimes]:
    paths = sorted(folder.glob("*.state"))
    heads = [head for path in paths if (head := state.read_head(str(path), tiers))]
    ranks = ranks_of([head.variables for head in heads])
    return {rank: _times([head for head, its in zip(heads, ranks, strict=True) if its == rank]) for rank in set(ranks)}


def _times(heads: Sequence[state.StateHead]) -> RankTimes:
    lanes = [chunk for head in heads for chunk in state.read_chunks(head) if isinstance(chunk, NativeLane)]
    rows = np.concatenate([np.frombuffer(part, OP_ROW) for head in heads for part in operation_rows(Path(head.path))])
    cells = np.sum([[lane.cells["busy_ns"], lane.cells["wall_ns"]] for lane in lanes], axis=0) / 1e9
    wall_of = {divmod(cell, len(KINDS)): seconds for cell, seconds in enumerate(cells[1])}
    return RankTimes(
        busy=float(cells[0].sum()),
        wall=float(cells[1].sum()),
        union=union(rows),
        wall_of={(tier, KINDS[kind]): float(seconds) for (tier, kind), seconds in wall_of.items()},
        union_of={
            (tier, KINDS[kind]): union(rows[(rows["tier"] == tier) & (rows["kind"] == kind)]) for tier, kind in wall_of
        },
        processes=len(heads),
        shared=all(head.shares_clock for head in heads),
    )
