"""The nouns of a study: Workload, System with its Tiers, Placement, Sweep, and the Study that joins them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tierscope.spec.kinds import (
    Bandwidth,
    Bytes,
    Choice,
    Flag,
    Fraction,
    Integer,
    Name,
    Optional,
    PathPattern,
    Rate,
    Seconds,
)
from tierscope.spec.schema import key, named_sections, section

FORMATS = ("raw", "tfrecord", "npz")
DATA_LOADERS = ("auto", "native", "threads")
IO_ENGINES = ("pread", "uring")
SHUFFLES = ("global", "local", "chunked", "off")
DISCIPLINES = ("fifo", "sharing")
POLICIES = ("pinned", "first-touch", "lru", "partition", "clairvoyant")
STAGED_POLICIES = ("pinned", "partition")  # files are put on the near tier before training
MOST_VARIATION = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    format: str = key(Choice(*FORMATS), "on-disk format", "tfrecord")
    num_files_train: int = key(Integer(1, 10**12), "files in the training set")
    num_samples_per_file: int = key(Integer(1, 10**9), "samples in each file", 1)
    record_length_bytes: int = key(Bytes(1, 2**40), "payload of one sample")
    num_subfolders_train: int = key(Integer(0, 10**6), "spread the files over this many folders; 0: one flat folder", 0)

    @property
    def samples(self) -> int:
        return self.num_files_train * self.num_samples_per_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    batch_size: int = key(Integer(1, 10**6), "samples per step and rank", 1)
    read_threads: int = key(Integer(0, 256), "reading threads per rank; 0: read inline", 1)
    prefetch_size: int = key(Integer(0, 1024), "batches read ahead of the one in use", 2)
    transfer_size: int = key(Bytes(512, 2**40), "largest single read", 256 * 1024)
    shuffle: str = key(
        Choice(*SHUFFLES),
        "global: all samples over all ranks, anew each epoch; local: a rank keeps its share; "
        "chunked: as global inside groups of nodes; off: in file order",
        "global",
    )
    evict: bool = key(
        Flag(),
        "take files out of the page cache before each epoch; opening them for it leaves names and inodes cached",
        True,
    )
    shuffle_nodes: int = key(Integer(1, 10**6), "nodes that share a chunk when shuffle is chunked", 1)
    data_loader: str = key(
        Choice(*DATA_LOADERS),
        "native: reads in C, without the interpreter's lock; threads: in Python; auto: native where it is installed and emulates the tiers",
        "auto",
    )
    odirect: bool = key(Flag(), "read past the page cache with O_DIRECT; needs the native loader", False)
    io_engine: str = key(
        Choice(*IO_ENGINES),
        "pread: one operation of a thread at a time; uring: many, with io_uring; needs the native loader",
        "pread",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    epochs: int = key(Integer(1, 10**4), "passes over the training set", 3)
    computation_time: float = key(Seconds(0, 3600), "emulated compute per step", 0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    dataset: Dataset = section(Dataset, "what is read")
    reader: Reader = section(Reader, "how it is read")
    train: Train = section(Train, "what happens between reads")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One storage tier. Rates say what it is capable of; only `emulate` makes the benchmark act on them.

    Who sees a file (`visible_to`), who shares the device behind it (`device_shared_by`) and who shares the
    gateway in front of it (`gateway_shared_by`) are three different things.
    """

    name: str
    path: str = key(PathPattern(), "directory; {out}, {node} and $VARIABLES are filled in on each node")
    visible_to: str = key(
        Choice("node", "global"), "node: every node keeps its own copies; global: one for all", "global"
    )
    device_shared_by: int | None = key(
        Optional(Integer(1, 10**7)), "nodes behind one device; null: 1 for node, all for global", None
    )
    gateway_shared_by: int | None = key(Optional(Integer(1, 10**7)), "nodes behind one gateway; null: all", None)
    capacity: int | None = key(Optional(Bytes(0)), "room for our files: per node for node, in all for global", None)
    metadata_servers: int = key(Integer(1, 10**5), "metadata servers of a device; a file belongs to one of them", 1)
    metadata_ops: float | None = key(Optional(Rate(0.001)), "opens and stats per second of one metadata server", None)
    metadata_latency: float = key(Seconds(0, 60), "of each open and stat, outside any queue", 0.0)
    metadata_variation: float = key(
        Fraction(0, MOST_VARIATION), "coefficient of variation of the time that an open takes of its server", 0.0
    )
    servers: int = key(Integer(1, 10**5), "object servers of a device", 1)
    read_ops: float | None = key(Optional(Rate(0.001)), "reads per second of one server, apart from their bytes", None)
    bandwidth: float | None = key(Optional(Bandwidth(1)), "bytes per second of one server", None)
    stripe_count: int = key(Integer(1, 10**5), "servers that one file is spread over", 1)
    stripe_size: int = key(Bytes(512, 2**40), "bytes of a file on one server before the next one's turn", 2**20)
    node_bandwidth: float | None = key(Optional(Bandwidth(1)), "bytes per second of a node's own link to it", None)
    device_bandwidth: float | None = key(
        Optional(Bandwidth(1)), "bytes per second of a device, all its servers together", None
    )
    gateway_bandwidth: float | None = key(Optional(Bandwidth(1)), "bytes per second of one gateway", None)
    latency: float = key(Seconds(0, 60), "of each read, outside any queue", 0.0)
    variation: float = key(Fraction(0, 0.9), "coefficient of variation of speed between servers", 0.0)
    service_variation: float = key(
        Fraction(0, MOST_VARIATION), "coefficient of variation of the time that a read takes of its server", 0.0
    )
    discipline: str = key(
        Choice(*DISCIPLINES), "fifo: servers do one operation after another; sharing: all at once, each slower", "fifo"
    )
    background: float = key(Fraction(0, 0.9), "share of every server's time that others take", 0.0)
    emulate: bool = key(Flag(), "slow the tier down to these rates", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    nodes: int = key(Integer(1, 10**6), "compute nodes", 1)
    ranks_per_node: int = key(Integer(1, 1024), "training processes on each node", 1)
    process_overhead: float = key(Seconds(0, 60), "of a process for each sample, beside its I/O; for simulations", 0.0)
    model_error: float = key(
        Fraction(0, 1), "standard deviation of simulations of it against measurements, relative; as calibrated", 0.0
    )
    tiers: tuple[Tier, ...] = named_sections(Tier, "storage tiers, nearest first; the last one holds every file")

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    policy: str = key(
        Choice(*POLICIES),
        "pinned: a fixed random set of files stays on the near tiers; first-touch: what is read first is kept; "
        "simulated only: lru: what was read last is kept; partition: a node's own share, with shuffle local; "
        "clairvoyant: knows the coming order, keeps what is read soonest and fetches ahead",
        "pinned",
    )
    cache_rate: float = key(
        Fraction(0, 1),
        "share of the files that the near tiers hold; of each node where they are visible to a node",
        0.0,
    )


@dataclass(frozen=True, slots=True)
class Axis:
    """One swept key: its full path, and the values it takes."""

    path: str
    values: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    study: str = key(Name(), "names the results")
    seed: int = key(Integer(0, 2**63 - 1), "same seed, same plan, on any machine", 42)
    goal: float | None = key(
        Optional(Seconds(above=0)), "I/O seconds per epoch of the slowest process that you want", None
    )
    workload: Workload = section(Workload, "what the training job does")
    system: System = section(System, "what it runs on")
    placement: Placement = section(Placement, "which files are on which tier")
    sweep: tuple[Axis, ...] = ()
    repetitions: int = key(Integer(1, 1000), "runs of every point of the sweep", 1)


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of swept values, and the study with those values filled in."""

    index: int
    sweep: Mapping[str, Any]  # by short name, as in JSON and CSV
    study: Study
