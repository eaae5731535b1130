"""State files as recorded processes leave them, made by hand: known operations in, so that a test knows what must come out."""

import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tierscope.native import lanes as layout
from tierscope.native import state
from tierscope.trace.ops import KINDS, OP_ROW

START = 10**9  # when the first operation begins


class Op(NamedTuple):
    kind: str
    nbytes: int = 0
    seconds: float = 0.001
    tier: int = 0


def lane_chunk(ops: Sequence[Op] = (), tiers: int = 2, epoch: int = 1, number: int = 0, **changes: int) -> bytes:
    """One thread's operations, one after another. `changes` go to the head, whatever they break."""
    cells = np.zeros(tiers * layout.KINDS, layout.CELL)
    now = START
    for op in ops:
        cell = cells[op.tier * layout.KINDS + KINDS.index(op.kind)]
        busy = round(op.seconds * 1e9)
        cell["ops"] += 1
        cell["bytes"] += op.nbytes
        cell["busy_ns"] += busy
        cell["wall_ns"] += busy
        cell["sizes"][op.nbytes.bit_length()] += 1
        cell["latencies"][busy.bit_length()] += 1
        now += busy
    head = np.zeros((), layout.HEAD)
    plain = {
        "magic": layout.LANE_MAGIC,
        "nbytes": layout.lane_bytes(tiers),
        "epoch": epoch,
        "number": number,
        "tiers": tiers,
        "sequence": 2 * len(ops),
        "check": int(cells.view("<u8").sum(dtype=np.uint64)),
        "first_ns": START if ops else 0,
        "last_ns": now if ops else 0,
    }
    for name, value in {**plain, **changes}.items():
        head[name] = value
    return head.tobytes() + cells.tobytes()


def epoch_chunk(epoch: int, begin: float = 0, end: float = 0, phases: Mapping[str, float] | None = None) -> bytes:
    """A marked epoch in seconds since START; begin 0: phases only."""
    chunk = np.zeros((), state.EPOCH)
    chunk["magic"], chunk["bytes"], chunk["epoch"] = state.EPOCH_MAGIC, state.EPOCH.itemsize, epoch
    chunk["begin_ns"], chunk["end_ns"] = (START + round(seconds * 1e9) if seconds else 0 for seconds in (begin, end))
    for place, (name, seconds) in zip(chunk["phases"], (phases or {}).items(), strict=False):
        place["name"], place["ns"], place["count"] = name.encode(), round(seconds * 1e9), 1
    return chunk.tobytes()


def rows(*entries: Mapping[str, int]) -> bytes:
    table = np.zeros(len(entries), OP_ROW)
    for row, entry in zip(table, entries, strict=True):
        for name, value in entry.items():
            row[name] = value
    return table.tobytes()


def list_chunk(content: bytes = b"", block: int | None = None) -> bytes:
    """`block`: these rows were just being written to the .ops file, as that block of it."""
    chunk = np.zeros((), state.LIST)
    chunk["block"] = 0 if block is None else block + 1
    chunk["magic"], chunk["bytes"], chunk["used"] = (
        state.LIST_MAGIC,
        state.LIST.itemsize,
        len(content) // OP_ROW.itemsize,
    )
    raw = chunk.tobytes()
    start = len(raw) - state.LIST_ROWS * state.ROW_BYTES
    return raw[:start] + content.ljust(len(raw) - start, b"\0")


def state_bytes(*chunks: bytes, tiers: int = 2, variables: Mapping[str, object] | None = None, **changes: Any) -> bytes:
    """A whole state file. `changes` go to the head; those from `used` on are not under its checksum."""
    head = np.zeros((), state.HEAD)
    plain = {
        "magic": state.STATE_MAGIC,
        "version": state.VERSION,
        "tiers": tiers,
        "kinds": layout.KINDS,
        "bins": layout.BINS,
        "pid": 100,
        "parent": 1,
        "start_ns": START,
        "start_realtime_ns": 1_700_000_000 * 10**9,
        "host": b"node",
        "boot": b"boot",
        "command": b"python train.py",
        "variables": "".join(f"{name}={value}\n" for name, value in (variables or {}).items()).encode(),
        "used": state.HEAD_BYTES + sum(map(len, chunks)),
        "shares_clock": 1,
    }
    for name, value in {**plain, **changes}.items():
        head[name] = value
    page = bytearray(head.tobytes().ljust(state.HEAD_BYTES, b"\0"))
    if "crc" not in changes:
        page[8:12] = struct.pack("<I", zlib.crc32(bytes(page[16:1440])))
    return bytes(page) + b"".join(chunks)


def write_state(folder: Path | str, name: str, *chunks: bytes, **changes: Any) -> Path:
    os.makedirs(folder, exist_ok=True)
    path = Path(folder) / f"{name}.state"
    path.write_bytes(state_bytes(*chunks, **changes))
    return path


def names_bytes(names: Mapping[int, str]) -> bytes:
    return b"".join(struct.pack("<QI", number, len(name.encode())) + name.encode() for number, name in names.items())
