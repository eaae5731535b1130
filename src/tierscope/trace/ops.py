"""The kinds of operation, and the I/O class that each belongs to."""

import numpy as np

# The order is that of native/c/record.h. New kinds go to the end: numbers of kinds are in operation lists.
KINDS = ("open", "read", "close", "stat", "write", "seek", "mmap", "sync")
OPEN, READ, CLOSE, STAT, WRITE, SEEK, MMAP, SYNC = range(len(KINDS))

# METHOD: META is what asks the metadata path, READ what moves data in, WRITE what moves data out. What is read
# through an mmap is seen by nobody: only the call is counted, and the bytes that were mapped.
CATEGORY = {
    "open": "META",
    "read": "READ",
    "close": "META",
    "stat": "META",
    "write": "WRITE",
    "seek": "META",
    "mmap": "META",
    "sync": "WRITE",
    "meta": "META",  # of a log that does not tell them apart; never recorded by us
}
MOVES_BYTES = ("read", "write")  # the bytes of the other kinds are not data that was moved
CATEGORIES = ("READ", "META", "WRITE")  # what `io_seconds` sums, unless fewer are asked for
LOADING = ("READ", "META")  # what brings data in: the Hierarchy study's I/O, and what compute can hide
CHECKPOINT_LANE = 1000  # of a rank that stands still while it writes checkpoints: loaders have fewer
BACKGROUND_LANE = 1001  # of the thread that writes checkpoints while training goes on: no part of the I/O time
CHECKPOINT_LANES = (CHECKPOINT_LANE, BACKGROUND_LANE)
STATISTICS_LANE = 1002  # of reads of the file that samples made in memory are drawn from

BINS = 48  # histogram bins: bin b counts values v with 2**(b-1) <= v < 2**b; bin 0 counts zeros

# One row of the full operation list (`--ops`), as ranks write it.
OP_ROW = np.dtype(
    [
        ("epoch", "<i4"),
        ("lane", "<i4"),
        ("step", "<i8"),
        ("tier", "<i2"),
        ("kind", "<i2"),
        ("file", "<i8"),
        ("offset", "<i8"),
        ("bytes", "<i8"),
        ("start_ns", "<i8"),
        ("busy_ns", "<i8"),
    ]
)


def class_name(tier: str, kind: str) -> str:
    """`GFS-READ` for a read on tier gfs."""
    return f"{tier.upper()}-{CATEGORY[kind]}"
