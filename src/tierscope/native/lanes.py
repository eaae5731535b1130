"""Lanes as the C library keeps them (c/record.h): the memory layout, and a reader that trusts nothing."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

BINS = 48
KINDS = 8
LANE_MAGIC = 0x454E414C

CELL = np.dtype(
    [
        ("ops", "<i8"),
        ("bytes", "<i8"),
        ("busy_ns", "<i8"),
        ("wall_ns", "<i8"),
        ("sizes", "<i8", BINS),
        ("latencies", "<i8", BINS),
    ]
)
HEAD = np.dtype(
    [
        ("magic", "<u4"),
        ("nbytes", "<u4"),
        ("epoch", "<i4"),
        ("number", "<u4"),
        ("owner", "<u4"),
        ("tiers", "<u4"),
        ("sequence", "<u8"),
        ("check", "<u8"),
        ("limited_ops", "<i8"),
        ("late_ops", "<i8"),
        ("late_ns", "<i8"),
        ("first_ns", "<i8"),
        ("last_ns", "<i8"),
        ("step", "<i8"),
        ("under_way_ns", "<i8"),
        ("unused", "<u8", 4),
    ]
)


def lane_bytes(tiers: int) -> int:
    return HEAD.itemsize + tiers * KINDS * CELL.itemsize


def lane_cells(memory: bytes, tiers: int) -> npt.NDArray[np.void]:
    """Of a lane that is being written to: every number is one that it had, but not all of them at the same moment."""
    return np.frombuffer(memory, CELL, tiers * KINDS, HEAD.itemsize)


@dataclass(frozen=True, slots=True)
class NativeLane:
    """A lane that was read; `whole` is false when its last record was cut off in the middle."""

    number: int
    epoch: int
    limited_ops: int
    late_ops: int
    late_ns: int
    first_ns: int
    last_ns: int
    under_way_ns: int  # when the operation began that had not ended; 0: none
    cells: npt.NDArray[np.void]  # tier × kind, of CELL
    whole: bool


def read_lane(memory: bytes | bytearray | memoryview, offset: int, tiers: int) -> NativeLane | None:
    """The lane that begins there; None if what is there cannot be one."""
    if offset < 0 or offset + lane_bytes(tiers) > len(memory):
        return None
    head = np.frombuffer(memory, HEAD, 1, offset)[0]
    if head["magic"] != LANE_MAGIC or head["nbytes"] != lane_bytes(tiers) or head["tiers"] != tiers:
        return None
    cells = np.frombuffer(memory, CELL, tiers * KINDS, offset + HEAD.itemsize).copy()
    total = cells.view("<u8").sum(dtype=np.uint64)  # as C adds them: modulo 2^64
    return NativeLane(
        number=int(head["number"]),
        epoch=int(head["epoch"]),
        limited_ops=int(head["limited_ops"]),
        late_ops=int(head["late_ops"]),
        late_ns=int(head["late_ns"]),
        first_ns=int(head["first_ns"]),
        last_ns=int(head["last_ns"]),
        under_way_ns=int(head["under_way_ns"]),
        cells=cells,
        whole=bool(total == head["check"]) and int(head["sequence"]) % 2 == 0,
    )
