"""The nouns of a study: Workload, System with its Tiers, Placement, Sweep, and the Study that joins them.

Longer than other modules because every key is declared here, once, with its kind, limits and help.
"""

from dataclasses import dataclass, field
from typing import Any

from tierscope.arch.networks import NETWORKS
from tierscope.formats import FORMATS
from tierscope.jsonable import SweepValues
from tierscope.loaders import LOADERS, LoaderEntry
from tierscope.spec.goal import Goal, GoalKind
from tierscope.spec.kinds import (
    Bandwidth,
    Bytes,
    Choice,
    Dimensions,
    Flag,
    Flops,
    Fraction,
    Integer,
    Name,
    Optional,
    PathPattern,
    Rate,
    Registered,
    Seconds,
)
from tierscope.spec.schema import key, named_sections, section

COMPRESSIONS = ("none", "gzip", "lzf")
FRAMEWORKS = LOADERS.where(lambda loader: loader.framework)
CONTEXTS = ("fork", "spawn", "forkserver")
FILE_SHUFFLES = ("off", "seed", "random")
SAMPLE_SHUFFLES = ("off", "seed", "random", "offset")
FILE_ACCESSES = ("shared", "multi", "collective")
READ_AHEADS = ("batches", "all")
PREPROCESSES = ("none", "busy", "decode")
DISTRIBUTIONS = ("constant", "normal", "uniform", "exponential")
VERIFY_OFF, VERIFY_SOME, VERIFY_ALL = "off", "sample", "all"
SYNCS = ("epoch", "step")
DEVICES = ("auto", "cuda", "cpu")
TRAINING_DATA = ("tiers", "memory", "synthetic")
CHECKPOINT_MODES = ("rank_zero", "all_ranks")
IO_ENGINES = ("pread", "uring")
SHUFFLES = ("global", "local", "chunked", "off")
DISCIPLINES = ("fifo", "sharing")
POLICIES = ("pinned", "first-touch", "lru", "partition", "clairvoyant")
STAGED_POLICIES = ("pinned", "partition")  # files are put on the near tier before training
MOST_VARIATION = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Hdf5Layout:
    chunk_size: int | None = key(
        Optional(Bytes(1, 2**32 - 1)), "bytes of a chunk; null: not in chunks, unless compressed", None
    )
    compression: str = key(Choice(*COMPRESSIONS), "of every chunk", "none")
    compression_level: int = key(Integer(1, 9), "of gzip: 1 is fastest, 9 smallest", 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A small file that samples made in memory are drawn from. Without `file_bytes`: there is none."""

    file_bytes: int | None = key(
        Optional(Bytes(1, 2**30)), "size of the file, one for all ranks on the last tier; null: there is none", None
    )
    reads: int = key(Integer(1, 10**6), "of every rank, in its first epoch before its first batch", 1)
    read_bytes: int | None = key(
        Optional(Bytes(1, 2**30)), "of each, one behind the other and again from the begin; null: the whole file", None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    format: str = key(Registered(lambda: FORMATS), "on-disk format", "tfrecord")
    num_files_train: int = key(Integer(1, 10**12), "files in the training set")
    num_samples_per_file: int = key(Integer(1, 10**9), "samples in each file", 1)
    record_length_bytes: int = key(Bytes(1, 2**40), "payload of one sample")
    record_length_bytes_stdev: int = key(
        Bytes(0, 2**40), "standard deviation of it, from sample to sample; none is more than four times that off", 0
    )
    num_subfolders_train: int = key(Integer(0, 10**6), "spread the files over this many folders; 0: one flat folder", 0)
    compressibility: float = key(Fraction(0, 0.99), "share of every sample that a compressor can save", 0.0)
    hdf5: Hdf5Layout = section(Hdf5Layout, "how HDF5 files are laid out", Hdf5Layout())
    statistics: Statistics = section(Statistics, "what synthetic samples are drawn from", Statistics())

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
    file_shuffle: str = key(
        Choice(*FILE_SHUFFLES),
        "whether files are shuffled; off with shuffled samples: files in order; random: another order in every repetition",
        "seed",
    )
    sample_shuffle: str = key(
        Choice(*SAMPLE_SHUFFLES),
        "whether samples are shuffled; off: each file from begin to end; offset: batches at increasing random offsets",
        "seed",
    )
    file_access: str = key(
        Choice(*FILE_ACCESSES),
        "shared: any rank reads any file; multi: a file is read by one rank only in an epoch; collective: all read one file together, through MPI-IO",
        "shared",
    )
    read_ahead: str = key(
        Choice(*READ_AHEADS),
        "batches: prefetch_size of them; all: the whole dataset into memory before the first step, and never again",
        "batches",
    )
    preprocess: str = key(
        Choice(*PREPROCESSES),
        "after reading: nothing; busy: a core for preprocess_time per sample; decode: what the format needs, then a cast to floats",
        "none",
    )
    preprocess_time: float = key(Seconds(0, 3600), "of each sample, where preprocess is busy", 0.0)
    multiprocessing_context: str = key(Choice(*CONTEXTS), "how data_loader: pytorch starts its workers", "spawn")
    pin_memory: bool = key(
        Flag(), "data_loader: pytorch copies batches to pinned memory, where there is a device", False
    )
    computation_threads: int = key(Integer(0, 256), "preprocessing threads per rank; 0: those that read", 0)
    evict: bool = key(
        Flag(),
        "take files out of the page cache before each epoch; opening them for it leaves names and inodes cached",
        True,
    )
    shuffle_nodes: int = key(Integer(1, 10**6), "nodes that share a chunk when shuffle is chunked", 1)
    data_loader: str = key(
        Registered(lambda: ("auto", *LOADERS.where(lambda loader: loader.by_name))),
        "native: reads in C, without the interpreter's lock; threads: in Python; auto: the first where it can; pytorch: torch's DataLoader; tensorflow: tf.data",
        "auto",
    )
    odirect: bool = key(Flag(), "read past the page cache with O_DIRECT; needs the native loader", False)
    io_engine: str = key(
        Choice(*IO_ENGINES),
        "pread: one operation of a thread at a time; uring: many, with io_uring; needs the native loader",
        "pread",
    )

    verify: str = key(
        Choice(VERIFY_OFF, VERIFY_SOME, VERIFY_ALL),
        "compare samples with the checksums kept when they were staged; sample: one read in 128 to 2048, the smaller the samples the fewer, at less than 2 % of reading; all: every one",
        VERIFY_SOME,
    )

    @property
    def loader(self) -> LoaderEntry | None:
        """What the loader that was asked for can do; None: it is chosen later (auto)."""
        return LOADERS.entries.get(self.data_loader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Train:
    epochs: int = key(Integer(1, 10**4), "passes over the training set", 3)
    computation_time: float = key(Seconds(0, 3600), "emulated compute per step", 0.0)
    computation_time_stdev: float = key(
        Seconds(0, 3600), "standard deviation of it, from step to step and rank to rank", 0.0
    )
    computation_time_distribution: str = key(
        Choice(*DISTRIBUTIONS),
        "constant; normal and uniform with computation_time_stdev; exponential with computation_time as mean; never below 0",
        "constant",
    )
    sync: str = key(
        Choice(*SYNCS), "when ranks wait for one another: before every epoch, or after every step too", "epoch"
    )
    total_training_steps: int | None = key(
        Optional(Integer(1, 10**12)), "steps of an epoch at most; null: the whole dataset", None
    )
    seed_change_epoch: bool = key(Flag(), "another order in every epoch", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A real network, trained on what is read, instead of emulated compute. Without `network`: none is."""

    network: str | None = key(
        Optional(Registered(lambda: NETWORKS)), "trained for real with torch; null: compute is emulated", None
    )
    input: str | None = key(
        Optional(Dimensions()), "shape of a sample, channels first, like 3x64x64; null: the network's own", None
    )
    device: str = key(Choice(*DEVICES), "auto: an accelerator where there is one", "auto")
    arithmetic: str = key(Choice("fp32", "amp"), "amp: 16-bit matrix products with 32-bit weights (bfloat16)", "fp32")
    solver: str = key(Choice("sgd", "adam"), "sgd with momentum, or adam", "sgd")
    data: str = key(
        Choice(*TRAINING_DATA),
        "tiers: samples are read; memory: all of them into memory first; synthetic: made on the device, nothing is read",
        "tiers",
    )
    recompute: bool = key(Flag(), "keep few activations and compute the others again in backward", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What is written between steps. Without `model_parameters`: the five small files of DLIO's paper."""

    steps_between_checkpoints: int = key(Integer(0, 10**12), "write one after every so many steps; 0: not by steps", 0)
    epochs_between_checkpoints: int = key(
        Integer(0, 10**6), "write one after every so many epochs; 0: not by epochs", 0
    )
    mode: str = key(
        Choice(*CHECKPOINT_MODES), "rank_zero: the first rank writes all; all_ranks: each its part", "rank_zero"
    )
    model_parameters: int | None = key(
        Optional(Integer(1, 10**14)), "parameters of the model; null: five files of 1, 1, 4, 64 KiB and 4 MiB", None
    )
    precision: str = key(Choice("fp32", "bf16"), "of the model's weights", "bf16")
    optimizer: str = key(
        Choice("none", "sgd", "adam"),
        "whose state is written too: fp32 master weights of bf16 ones, and one (sgd) or two (adam) moments",
        "adam",
    )
    zero_stage: int = key(
        Integer(0, 3), "1: each rank its part of the optimizer's state; 3: of the weights too; needs all_ranks", 0
    )
    tier: str | None = key(Optional(Name()), "where to; null: the last tier", None)
    fsync: bool = key(Flag(), "wait until it is on the device", True)
    background: bool = key(Flag(), "write while training goes on; the next one waits for it", False)
    keep: int = key(Integer(1, 1000), "the last so many stay; older ones are removed", 2)
    verify: bool = key(Flag(), "read the last one back after training and compare: the time of a recovery", False)

    @property
    def wanted(self) -> bool:
        return bool(self.steps_between_checkpoints or self.epochs_between_checkpoints)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    dataset: Dataset = section(Dataset, "what is read")
    reader: Reader = section(Reader, "how it is read")
    train: Train = section(Train, "what happens between reads")
    model: Model = section(Model, "what is trained, if it is trained for real", Model())
    checkpoint: Checkpoint = section(Checkpoint, "what is written between steps", Checkpoint())


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
    lustre_ost: int | None = key(
        Optional(Integer(-1, 10**5)),
        "on Lustre: stripe_count stripes of every file from this OST on (-1: any); null: nothing is placed",
        None,
    )
    lustre_pool: str | None = key(Optional(Name()), "on Lustre: stripe_count stripes of every file in this pool", None)
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
    storage: str = key(
        Name(),
        "what its files lie on: directory; memory: a directory in memory, such as /dev/shm; or one that an installed package adds",
        "directory",
        dumped=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One of a node's devices that train. Nothing is emulated with it: `require` and `train` compare with it."""

    count: int | None = key(Optional(Integer(1, 1024)), "of a node", None)
    memory: int | None = key(Optional(Bytes(1)), "of each", None)
    memory_bandwidth: float | None = key(Optional(Bandwidth(1)), "to it", None)
    l2: int | None = key(Optional(Bytes(1)), "last cache before memory", None)
    fp32: float | None = key(Optional(Flops(1)), "32-bit operations per second, at peak", None)
    tensor: float | None = key(Optional(Flops(1)), "16-bit matrix operations per second, at peak", None)
    tf32: float | None = key(
        Optional(Flops(1)), "32-bit products on tensor cores with fewer bits, at peak; null: they do none", None
    )
    host_bandwidth: float | None = key(Optional(Bandwidth(1)), "bytes per second from the host to each", None)
    peer_bandwidth: float | None = key(Optional(Bandwidth(1)), "to another of them that it has a link to", None)
    far_bandwidth: float | None = key(Optional(Bandwidth(1)), "to one that it has none to; null: as peers", None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a compute node is made of, beside its tiers."""

    cores: int | None = key(Optional(Integer(1, 10**5)), "of a node", None)
    memory: int | None = key(Optional(Bytes(1)), "main memory of a node", None)
    network_bandwidth: float | None = key(Optional(Bandwidth(1)), "bytes per second between nodes, each way", None)
    accelerator: Accelerator = section(Accelerator, "what trains; without it, the node's cores do", Accelerator())


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    nodes: int = key(Integer(1, 10**6), "compute nodes", 1)
    ranks_per_node: int = key(Integer(1, 1024), "training processes on each node", 1)
    process_overhead: float = key(Seconds(0, 60), "of a process for each sample, beside its I/O; for simulations", 0.0)
    model_error: float = key(
        Fraction(0, 1), "standard deviation of simulations of it against measurements, relative; as calibrated", 0.0
    )
    hardware: Hardware = section(Hardware, "what a node is made of; for require and train", Hardware())
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
    """One swept key: its full path, and the values it takes. `zipped`: the number of its zip, whose keys change together; 0: on its own."""

    path: str
    values: tuple[Any, ...]
    zipped: int = 0


@dataclass(frozen=True, slots=True)
class StudyCase:
    """Keys that change together, under a name: full path → value. None of them: the study as it stands."""

    name: str
    settings: SweepValues = field(hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    study: str = key(Name(), "names the results")
    seed: int = key(Integer(0, 2**63 - 1), "same seed, same plan, on any machine", 42)
    goal: Goal | None = key(Optional(GoalKind()), "what you want: 4 s (of I/O per epoch), epoch=10 min or au=90%", None)
    workload: Workload = section(Workload, "what the training job does")
    system: System = section(System, "what it runs on")
    placement: Placement = section(Placement, "which files are on which tier")
    cases: tuple[StudyCase, ...] = ()  # each of them is swept by itself
    sweep: tuple[Axis, ...] = ()
    repetitions: int = key(Integer(1, 1000), "runs of every point of the sweep", 1)

    @property
    def changing(self) -> tuple[str, ...]:
        """Full paths of all keys that differ between points, by a case or by the sweep."""
        named = (path for case in self.cases for path in case.settings)
        return tuple(dict.fromkeys((*named, *(axis.path for axis in self.sweep))))


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of swept values, of one case, and the study with all of them filled in."""

    index: int
    sweep: SweepValues  # by short name, as in JSON and CSV; a case is `case`, its name, before them
    study: Study
