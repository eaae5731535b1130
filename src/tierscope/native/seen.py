"""What wrappers saw on files of no tier (c/seen.h): one file for all processes of a command, so that the kernel's own count can be laid beside it."""

import os
import struct
from dataclasses import dataclass

import numpy as np

from tierscope.native.state import open_plain

NAME = "seen"
_SLOTS = 64
_HEAD = struct.Struct("<QQQQQ24x")
_SLOT = np.dtype([("read", "<i8"), ("written", "<i8"), ("unused", "<i8", 6)])
SEEN_BYTES = _HEAD.size + _SLOTS * _SLOT.itemsize
_LARGEST = 1 << 62


@dataclass(frozen=True, slots=True)
class SeenElsewhere:
    """Bytes of reads and writes on no tier's files. Less than 0: tiers' sums hold bytes that the kernel does not count (splice)."""

    read_bytes: int
    written_bytes: int
    processes: int  # that the library was loaded into; an exec counts again
    rings: int  # processes that touched a tier and had an io_uring
    early_faults: int  # page faults of processes before they first mapped a tier's file
    own_written_bytes: int  # of the recorder's own files
    writable_bytes: int  # of a tier's files that were mapped shared and writable


def read_seen(folder: str) -> SeenElsewhere | None:
    """None: there is no such file, or it cannot be."""
    try:
        with open(open_plain(os.path.join(folder, NAME)), "rb") as file:
            content = file.read(SEEN_BYTES)
    except OSError:
        return None
    if len(content) < SEEN_BYTES:
        return None
    counts = _HEAD.unpack_from(content)
    slots = np.frombuffer(content, _SLOT, _SLOTS, _HEAD.size)
    read, written = (int(slots[name].sum(dtype=object)) for name in ("read", "written"))
    seen = SeenElsewhere(read, written, *counts)
    possible = max(abs(read), abs(written), *counts) < _LARGEST
    return seen if possible else None
