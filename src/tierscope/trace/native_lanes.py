"""What the C library recorded, as the tables that everything else works with."""

import numpy as np

from tierscope.native import engine
from tierscope.native.lanes import BINS as NATIVE_BINS
from tierscope.native.lanes import KINDS as NATIVE_KINDS
from tierscope.native.lanes import NativeLane
from tierscope.trace.live_totals import Moved
from tierscope.trace.ops import BINS, KINDS
from tierscope.trace.recorder import LaneTable, moved_by_tier

if NATIVE_BINS != BINS or len(KINDS) != NATIVE_KINDS:
    raise ImportError("native/lanes.py and trace/ops.py disagree about kinds or bins")


def lane_table(lane: NativeLane, number: int) -> LaneTable:
    """The lane under a number of its own among a rank's lanes."""
    cells = lane.cells
    return LaneTable(
        number,
        *(np.ascontiguousarray(cells[name]) for name in ("ops", "bytes", "busy_ns", "wall_ns")),
        *(np.ascontiguousarray(cells[name]).reshape(-1) for name in ("sizes", "latencies")),
    )


def engine_moved(source: engine.Engine) -> Moved | None:
    """Bytes and operations of all its lanes so far, by tier; None: it is gone."""
    lanes = source.cells()
    if lanes is None:
        return None
    whole = np.array([(cells["ops"], cells["bytes"]) for cells in lanes], np.int64)  # lane × two × cell
    return moved_by_tier(whole[:, 0].sum(axis=0), whole[:, 1].sum(axis=0))


def cost_per_op_seconds() -> float:
    """What the C recorder itself adds to one operation."""
    return engine.recorder_cost_seconds()
