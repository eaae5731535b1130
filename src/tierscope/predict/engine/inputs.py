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


OPEN, READ = 0, 1  # kinds of operations: the last axis of busy and wall seconds
NONE = -1  # no such station, batch or part

# How a tier's nodes and files find their stations: numbers of the first ones (NONE: there are none), and how many share them; latencies in seconds.
_WHERE = (
    "nodes_per_device", "nodes_per_gateway", "metadata", "metadata_servers", "servers_first", "servers",
    "node_link", "device_link", "gateway", "stripe_count",
)  # fmt: skip
TIER = record(*((name, np.int64) for name in _WHERE), ("metadata_latency", np.float64), ("latency", np.float64))


class Requests(NamedTuple):
    """What every rank reads. Arrays by (rank, sample) that do not apply have the shape (0, 0).

    `tiers` and `fetched` are changed: a sample that no fetcher began in time is read from the last tier, and is no longer fetched.
    """

    tiers: npt.NDArray[np.int8]  # by (rank, sample)
    files: IntArray  # by (rank, sample)
    opens: BoolArray  # by (rank, sample): the file must be opened first
    first_stripes: IntArray  # by (rank, sample): the stripe of its file on which the sample begins
    fills: BoolArray  # by (rank, sample): the file is copied to tier 0 once the sample is read
    fetched: BoolArray  # by (rank, sample): the file may be fetched ahead, from the last tier to tier 0


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
    # tier beyond the sample itself.
    nbytes: FloatArray
    ops: FloatArray  # by (tier, row): operations that a server counts for such a request
    per_op: FloatArray  # by station: seconds
    per_byte: FloatArray  # by station: seconds
    log_mean: FloatArray  # by station: of the factor by which its services vary (plan/variation.py)
    log_deviation: FloatArray  # by station; 0: they do not vary
    sharing: BoolArray  # by station: serves all at once instead of one after another
    speed: FloatArray  # by station: share of its time that is ours


class LoaderInputs(NamedTuple):
    """How every rank reads and computes."""

    batch: int  # samples
    threads: int
    prefetch: int  # batches
    compute: float  # seconds of each step
    overhead: float  # seconds of a thread after each sample
    step_barrier: bool  # a step begins when all ranks are done with the one before
    keep_steps: bool
    seed: int


class EpochTimes(NamedTuple):
    """Times of every rank, and the work of every station."""

    seconds: FloatArray  # by rank
    stall: FloatArray  # by rank: seconds that the consumer waited for batches
    busy: FloatArray  # by (rank, tier, kind): seconds of all threads
    wall: FloatArray  # by (rank, tier, kind): the same, divided among threads that are busy at the same time
    steps: FloatArray  # by (rank, batch, 3): seconds of reading, of stall, of compute; empty unless kept
    worked: FloatArray  # by station: seconds of work that were asked of it
    served: IntArray  # by station: operations


def table(dtype: np.dtype[Any], *shape: int, **columns: Any) -> Records:
    """Records with these fields; all others are 0."""
    found = np.zeros(shape, dtype)
    for name, values in columns.items():
        found[name] = values
    return found
