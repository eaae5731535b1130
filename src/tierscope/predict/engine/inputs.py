"""What the event engine simulates: the requests of all ranks, the system that serves them, the loader that makes them; and its result."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Records = Any  # a table: an array whose rows have named fields; or one row of it


def record(*fields: tuple[str, type]) -> np.dtype[Any]:
    """The type of rows with these fields, which are attributes of a row and columns of a table."""
    return np.dtype((np.record, list(fields)))


OPEN, READ, WRITE, SYNC = 0, 1, 2, 3  # kinds of operations: the last axis of busy and wall seconds; readers do not sync
MEET = 4  # no operation: all ranks wait for one another
LOCKS = 64  # of a device: that of plan/stations.py
ANOTHER_HASH = 0x9E3779B1  # that of plan/stations.py
NONE = -1  # no such station, batch, part or operation

# How a tier's nodes and files find their stations: numbers of the first ones (NONE: there are none), and how many share them; latencies in seconds.
_WHERE = (
    "nodes_per_device", "nodes_per_gateway", "metadata", "metadata_servers", "servers_first", "servers",
    "node_link", "device_link", "gateway", "stripe_count", "stripe_size", "hashed", "locks",
)  # fmt: skip
_SECONDS = ("metadata_latency", "latency", "open_bytes", "stream_seconds")
TIER = record(*((name, np.int64) for name in _WHERE), *((name, np.float64) for name in _SECONDS))


class Requests(NamedTuple):
    """What every rank reads. Arrays by (rank, sample) that do not apply have the shape (0, 0).

    `tiers` and `fetched` are changed: a sample that no fetcher began in time is read from the last tier, and is no longer fetched.
    """

    tiers: npt.NDArray[np.int8]  # by (rank, sample)
    files: IntArray  # by (rank, sample)
    opens: BoolArray  # by (rank, sample): the file must be opened first
    first_stripes: IntArray  # by (rank, sample): the stripe of its file on which the sample begins
    fills: BoolArray  # by (rank, sample): the file is copied to tier 0 once the sample is read; see LoaderInputs.copies
    fetched: BoolArray  # by (rank, sample): the file may be fetched ahead, from the last tier to tier 0
    sizes: FloatArray  # by (rank, sample): bytes of the sample, of the mean's; empty: all have the mean
    # Where samples are cut from a buffer, by (rank, sample): the reads that begin in it, perhaps none, the place of the first in the file, and the length
    # of the last, of the row's; else empty. All others are as long as the row.
    counts: IntArray = np.zeros((0, 0), np.int64)
    offsets: IntArray = np.zeros((0, 0), np.int64)
    lasts: FloatArray = np.zeros((0, 0))
    request_bytes: int = 0


class StartInputs(NamedTuple):
    """Where ranks are and when they begin."""

    nodes: IntArray  # by rank
    seconds: FloatArray  # by rank
    order: IntArray  # all ranks: of those that begin at the same time, who is first
    window: IntArray  # by rank: files fetched ahead and not yet read, at most; empty where none are


class SystemInputs(NamedTuple):
    """Tiers, and stations by number."""

    tiers: Records  # of TIER
    # Bytes by (tier, row, stripe). Rows: the reads of a sample, then a copy: what is written to tier 0, and what is read of the last
    # tier beyond the sample itself; then those of checkpoints.
    nbytes: FloatArray
    reads: int  # of a sample: rows before that of a copy
    ops: FloatArray  # by (tier, row): operations that a server counts for such a request
    per_op: FloatArray  # by station: seconds
    per_byte: FloatArray  # by station: seconds
    write_per_op: FloatArray  # by station: the same of writes
    write_per_byte: FloatArray
    log_mean: FloatArray  # by station: of the factor by which its services vary (plan/variation.py)
    log_deviation: FloatArray  # by station; 0: they do not vary
    sharing: BoolArray  # by station: serves all at once instead of one after another
    speed: FloatArray  # by station: share of its time that is ours
    credit: FloatArray  # by station: seconds of idle time that it makes up for
    stock: FloatArray  # by station: of these, what it has at the beginning
    period: FloatArray  # by station: seconds in which it hands out what it allows, all at once; 0: no portions


class LoaderInputs(NamedTuple):
    """How every rank reads and computes."""

    batch: int  # samples
    threads: int
    prefetch: int  # batches
    compute: float  # seconds of each step
    overhead: float  # seconds of a thread after each sample
    step_barrier: bool  # a step begins when all ranks are done with the one before
    copies: bool  # readers write fills themselves, before their next sample; else somebody does behind their backs
    keep_steps: bool
    seed: int
    jitter: float = 0.0  # seconds: the mean of what each step takes longer by chance
    whole_batches: bool = False  # a thread reads all of a batch, as torch's workers do, instead of a part of it


class Left(NamedTuple):
    """What an earlier epoch left under way of its checkpoints, by rank."""

    resumes: IntArray  # the operation that a save is at, NONE: it is written
    resumes_drain: IntArray  # the same of what copies it on
    unsettled: BoolArray  # it does not count yet
    since: FloatArray  # seconds that it has taken by now


class SaveInputs(NamedTuple):
    """What ranks save, and when; `first` is empty where nothing is saved.

    Operations of a rank: those that write its files from `first` on, those that make the checkpoint count from `commit`, those that copy its files on to
    the last tier, behind training, from `end` up to `drained`.
    """

    first: IntArray  # by rank
    commit: IntArray  # by rank
    end: IntArray  # by rank
    drained: IntArray  # by rank
    kinds: IntArray  # by operation: OPEN, READ, WRITE, SYNC or MEET
    tiers: IntArray  # by operation
    files: IntArray  # by operation
    rows: IntArray  # by operation that moves data: of SystemInputs.nbytes
    turns: FloatArray  # by operation: so many, one after another, are simulated as this one
    nbytes: IntArray  # by operation
    every: int  # steps; 0: not by steps
    before: int  # steps of earlier epochs
    most: int  # saves that may begin in this epoch
    at_end: bool  # one more when the last step is done
    last: bool  # the epoch ends when nothing is under way any more
    background: bool  # training goes on while files are written; the next save waits for them
    left: Left  # by an earlier epoch


class SaveTimes(NamedTuple):
    """What saving took. Arrays of operations by (writer or drain, rank, tier, kind)."""

    standstill: FloatArray  # by rank: seconds that training stood still for it
    longest: FloatArray  # by save that ended in this epoch: of the rank that took longest
    busy: FloatArray
    ops: IntArray
    nbytes: IntArray
    left: Left  # for the next epoch


class EpochTimes(NamedTuple):
    """Times of every rank, and the work of every station."""

    seconds: FloatArray  # by rank
    stall: FloatArray  # by rank: seconds that the consumer waited for batches
    busy: FloatArray  # by (rank, tier, kind): seconds of all threads
    wall: FloatArray  # by (rank, tier, kind): the same, divided among threads that are busy at the same time
    steps: FloatArray  # by (rank, batch, 3): seconds of reading, of stall, of compute; empty unless kept
    worked: FloatArray  # by station: seconds of work that were asked of it
    served: IntArray  # by station: operations
    saved: SaveTimes | None  # None: nothing is saved


def table(dtype: np.dtype[Any], *shape: int, **columns: Any) -> Records:
    """Records with these fields; all others are 0."""
    records = np.zeros(shape, dtype)
    for name, values in columns.items():
        records[name] = values
    return records
