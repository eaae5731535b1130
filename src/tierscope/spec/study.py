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
    FlagOr,
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
PREPROCESSES = ("none", "busy", "sleep", "decode")
DISTRIBUTIONS = ("constant", "normal", "uniform", "exponential")
VERIFY_OFF, VERIFY_SOME, VERIFY_ALL = "off", "sample", "all"
SYNCS = ("epoch", "step")
DEVICES = ("auto", "cuda", "cpu")
TRAINING_DATA = ("tiers", "memory", "synthetic")
CHECKPOINT_MODES = ("rank_zero", "all_ranks")
IO_ENGINES = ("pread", "uring")
SHUFFLES = ("global", "local", "chunked", "off")
RANK_READS = ("share", "all")
SIDE_READS = ("start", "step", "random")
DISCIPLINES = ("fifo", "sharing")
LAYOUTS = ("turns", "hash")
POLICIES = ("pinned", "first-touch", "lru", "partition", "clairvoyant")
STAGED_POLICIES = ("pinned", "partition")  # files are put on the near tier before training
EVICT_METADATA = "metadata"
MOST_VARIATION = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Hdf5Layout:
    chunk_size: int | None = key(
        Optional(Bytes(1, 2**32 - 1)), "bytes per chunk; null: no chunks, unless compressed", None
    )
    compression: str = key(Choice(*COMPRESSIONS), "compression of every chunk", "none")
    compression_level: int = key(Integer(1, 9), "gzip level: 1 is fastest, 9 smallest", 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A small file beside the samples: statistics they are drawn from, metadata, a list of signals. Without `file_bytes`: there is none."""

    file_bytes: int | None = key(
        Optional(Bytes(1, 2**30)), "size of the file, shared by all ranks, on the last tier; null: no file", None
    )
    reads: int = key(Integer(1, 10**6), "reads per rank: of a run, or with when: step of every step", 1)
    read_bytes: int | None = key(
        Optional(Bytes(1, 2**30)), "bytes per read, sequential, wrapping around at the end; null: the whole file", None
    )
    when: str = key(
        Choice(*SIDE_READS),
        "start: before the first batch of the first epoch; step: before every batch; random: before random batches of the run, at random offsets",
        "start",
        dumped=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    format: str = key(Registered(lambda: FORMATS), "on-disk format", "tfrecord")
    num_files_train: int = key(Integer(1, 10**12), "files in the training set")
    num_samples_per_file: int = key(Integer(1, 10**9), "samples in each file", 1)
    record_length_bytes: int = key(Bytes(1, 2**40), "payload of one sample")
    record_length_bytes_stdev: int = key(
        Bytes(0, 2**40), "standard deviation of the payload; cut off at four standard deviations", 0
    )
    num_subfolders_train: int = key(
        Integer(0, 10**6), "number of subdirectories for the files; 0: one flat directory", 0
    )
    compressibility: float = key(Fraction(0, 0.99), "fraction of every sample that compression can save", 0.0)
    hdf5: Hdf5Layout = section(Hdf5Layout, "layout of HDF5 files", Hdf5Layout())
    statistics: Statistics = section(
        Statistics, "small file beside the samples: statistics, metadata, a list of signals", Statistics()
    )

    @property
    def samples(self) -> int:
        return self.num_files_train * self.num_samples_per_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    batch_size: int = key(Integer(1, 10**6), "samples per step and rank", 1)
    read_threads: int = key(Integer(0, 256), "read threads per rank; 0: read inline", 1)
    prefetch_size: int = key(Integer(0, 1024), "batches to prefetch", 2)
    transfer_size: int = key(
        Bytes(512, 2**40),
        "largest single read; samples of a file that are read in order share reads of this size",
        256 * 1024,
    )
    shuffle: str = key(
        Choice(*SHUFFLES),
        "global: all samples over all ranks, every epoch; local: within a rank's share; "
        "chunked: global within groups of nodes; off: file order",
        "global",
    )
    file_shuffle: str = key(
        Choice(*FILE_SHUFFLES),
        "shuffle files; off with shuffled samples: files in order; random: another order in every repetition",
        "seed",
    )
    sample_shuffle: str = key(
        Choice(*SAMPLE_SHUFFLES),
        "shuffle samples; off: each file from beginning to end; offset: batches at increasing random offsets",
        "seed",
    )
    rank_reads: str = key(
        Choice(*RANK_READS),
        "share: each rank reads its share of the samples per epoch; all: each rank reads all samples, in an order of its own",
        "share",
        dumped=False,
    )
    file_access: str = key(
        Choice(*FILE_ACCESSES),
        "shared: any rank reads any file; multi: each rank reads whole files, or a part of one if files do not divide among ranks; "
        "collective: all ranks read one file together, with MPI-IO",
        "shared",
    )
    read_ahead: str = key(
        Choice(*READ_AHEADS),
        "batches: prefetch_size batches; all: load the whole dataset into memory before the first step",
        "batches",
    )
    preprocess: str = key(
        Choice(*PREPROCESSES),
        "none; busy: a core for preprocess_time per sample; sleep: that time without a core; decode: decode the format, then cast to floats",
        "none",
    )
    preprocess_time: float = key(Seconds(0, 3600), "time per sample with preprocess: busy or sleep", 0.0)
    multiprocessing_context: str = key(Choice(*CONTEXTS), "start method of workers, for data_loader: pytorch", "spawn")
    pin_memory: bool = key(
        Flag(), "copy batches to pinned memory if there is a device, for data_loader: pytorch", False
    )
    computation_threads: int = key(Integer(0, 256), "preprocessing threads per rank; 0: the read threads", 0)
    evict: bool | str = key(
        FlagOr(EVICT_METADATA),
        "true: files leave the page cache before they are read and after, through the descriptor that reads them; "
        "metadata: names and inodes too, before each epoch, for the whole machine (root); false: caches are left alone",
        True,
    )
    shuffle_nodes: int = key(Integer(1, 10**6), "nodes that share a chunk when shuffle is chunked", 1)
    data_loader: str = key(
        Registered(lambda: ("auto", *LOADERS.where(lambda loader: loader.by_name))),
        "native: reads in C, without the GIL; threads: in Python; auto: native if possible; pytorch: torch's DataLoader; tensorflow: tf.data",
        "auto",
    )
    odirect: bool = key(Flag(), "bypass the page cache with O_DIRECT; needs the native loader", False)
    io_engine: str = key(
        Choice(*IO_ENGINES),
        "pread: one operation per thread at a time; uring: many, with io_uring; needs the native loader",
        "pread",
    )

    verify: str = key(
        Choice(VERIFY_OFF, VERIFY_SOME, VERIFY_ALL),
        "verify checksums of samples; sample: one read in 128 to 2048, fewer for small samples, under 2 % overhead; all: every sample",
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
    computation_time_stdev: float = key(Seconds(0, 3600), "standard deviation of compute, over steps and ranks", 0.0)
    computation_time_distribution: str = key(
        Choice(*DISTRIBUTIONS),
        "constant; normal and uniform with computation_time_stdev; exponential with computation_time as mean; never below 0",
        "constant",
    )
    sync: str = key(Choice(*SYNCS), "when ranks synchronise: before every epoch, or also after every step", "epoch")
    total_training_steps: int | None = key(
        Optional(Integer(1, 10**12)), "maximum steps per epoch; null: the whole dataset", None
    )
    seed_change_epoch: bool = key(Flag(), "a new order in every epoch", True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A real network, trained on what is read, instead of emulated compute. Without `network`: none is."""

    network: str | None = key(
        Optional(Registered(lambda: NETWORKS)), "network to train with torch; null: emulate compute", None
    )
    input: str | None = key(
        Optional(Dimensions()), "shape of a sample, channels first, e.g. 3x64x64; null: that of the network", None
    )
    device: str = key(Choice(*DEVICES), "auto: an accelerator if there is one", "auto")
    arithmetic: str = key(Choice("fp32", "amp"), "amp: 16-bit matrix products with 32-bit weights (bfloat16)", "fp32")
    solver: str = key(Choice("sgd", "adam"), "sgd with momentum, or adam", "sgd")
    data: str = key(
        Choice(*TRAINING_DATA),
        "tiers: read samples; memory: load all into memory first; synthetic: generate on the device, read nothing",
        "tiers",
    )
    recompute: bool = key(Flag(), "recompute activations in the backward pass instead of keeping them", False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformer:
    """The shape of a language model, for what each rank writes of one that is split over ranks. Without `num_layers`: all parts are alike."""

    num_layers: int = key(Integer(0, 10**5), "number of layers; 0: shape not set", 0, dumped=False)
    hidden_size: int = key(Integer(1, 10**9), "width of a layer", 2048, dumped=False)
    ffn_hidden_size: int = key(Integer(1, 10**9), "width of the feed-forward layer", 8192, dumped=False)
    vocab_size: int = key(Integer(1, 10**9), "tokens", 32000, dumped=False)
    num_attention_heads: int = key(Integer(1, 10**6), "attention heads", 32, dumped=False)
    num_kv_heads: int = key(Integer(1, 10**6), "number of key-value heads", 8, dumped=False)

    @property
    def given(self) -> bool:
        return self.num_layers > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """What is written between steps. Without `model_parameters`: the five small files of DLIO's paper."""

    steps_between_checkpoints: int = key(Integer(0, 10**12), "steps between checkpoints; 0: not by steps", 0)
    epochs_between_checkpoints: int = key(Integer(0, 10**6), "epochs between checkpoints; 0: not by epochs", 0)
    mode: str = key(
        Choice(*CHECKPOINT_MODES),
        "rank_zero: the first rank writes everything; all_ranks: each writes its part",
        "rank_zero",
    )
    model_parameters: int | None = key(
        Optional(Integer(1, 10**14)), "parameters of the model; null: five files of 1, 1, 4, 64 KiB and 4 MiB", None
    )
    precision: str = key(Choice("fp32", "bf16"), "precision of the model's weights", "bf16")
    optimizer: str = key(
        Choice("none", "sgd", "adam"),
        "optimizer whose state is written: fp32 master weights for bf16, and one (sgd) or two (adam) moments",
        "adam",
    )
    zero_stage: int = key(
        Integer(0, 3),
        "ZeRO stage; 1: each rank writes its part of the optimizer state; 3: and of the weights; needs all_ranks",
        0,
    )
    tier: str | None = key(Optional(Name()), "destination tier; null: the last tier", None)
    fsync: bool = key(Flag(), "wait until the data is on the device (fsync)", True)
    background: bool = key(Flag(), "write in the background; the next checkpoint waits for it", False)
    keep: int = key(Integer(1, 1000), "checkpoints to keep; older ones are removed", 2)
    verify: bool = key(Flag(), "read the last checkpoint back after training and verify it: recovery time", False)
    drain: bool = key(Flag(), "copy it to the last tier in the background; simulation only", False, dumped=False)
    tensor_parallel: int = key(
        Integer(1, 10**5), "ranks that share every layer of the model (tensor parallelism)", 1, dumped=False
    )
    pipeline_parallel: int = key(Integer(1, 10**5), "pipeline stages", 1, dumped=False)
    data_parallel: int | None = key(
        Optional(Integer(1, 10**6)), "replicas of the model; null: as many as the ranks allow", None, dumped=False
    )
    transformer: Transformer = section(Transformer, "shape of the model, if it is split over ranks", Transformer())
    mean_time_between_failures: float | None = key(
        Optional(Seconds(1, 10**10)),
        "mean time between failures of the job, for the best interval; null: unknown",
        None,
        dumped=False,
    )

    @property
    def wanted(self) -> bool:
        return bool(self.steps_between_checkpoints or self.epochs_between_checkpoints)

    @property
    def model_parallel(self) -> int:
        """Ranks that one replica of the model takes."""
        return self.tensor_parallel * self.pipeline_parallel


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    dataset: Dataset = section(Dataset, "what is read")
    reader: Reader = section(Reader, "how it is read")
    train: Train = section(Train, "what happens between reads")
    model: Model = section(Model, "network to train for real", Model())
    checkpoint: Checkpoint = section(Checkpoint, "what is written between steps", Checkpoint())


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One storage tier. Rates say what it is capable of; only `emulate` makes the benchmark act on them.

    Who sees a file (`visible_to`), who shares the device behind it (`device_shared_by`) and who shares the
    gateway in front of it (`gateway_shared_by`) are three different things.
    """

    name: str
    path: str = key(PathPattern(), "directory; {out}, {node} and $VARIABLES are expanded on each node")
    visible_to: str = key(
        Choice("node", "global"), "node: every node has its own copies; global: shared by all nodes", "global"
    )
    device_shared_by: int | None = key(
        Optional(Integer(1, 10**7)), "nodes per device; null: 1 for node, all for global", None
    )
    gateway_shared_by: int | None = key(Optional(Integer(1, 10**7)), "nodes per gateway; null: all", None)
    capacity: int | None = key(Optional(Bytes(0)), "space for files: per node for node, in total for global", None)
    metadata_servers: int = key(Integer(1, 10**5), "metadata servers per device; each file belongs to one", 1)
    metadata_ops: float | None = key(
        Optional(Rate(0.001)), "opens and stats per second and metadata server; unlimited: they take no time", None
    )
    metadata_latency: float = key(Seconds(0, 60), "latency of each open and stat, outside any queue", 0.0)
    file_open_ops: float | None = key(
        Optional(Rate(0.001)),
        "opens per second of the same file, whose lock processes take in turn; null: limited only by metadata_ops",
        None,
        dumped=False,
    )
    metadata_variation: float = key(
        Fraction(0, MOST_VARIATION), "coefficient of variation of service times of opens", 0.0
    )
    servers: int = key(Integer(1, 10**5), "object servers per device", 1)
    read_ops: float | None = key(Optional(Rate(0.001)), "reads per second and server, regardless of size", None)
    bandwidth: float | None = key(Optional(Bandwidth(1)), "bytes per second and server", None)
    write_ops: float | None = key(
        Optional(Rate(0.001)),
        "writes per second and server, regardless of size; null: as reads",
        None,
        dumped=False,
    )
    write_bandwidth: float | None = key(
        Optional(Bandwidth(1)), "bytes written per second and server; null: as reads", None, dumped=False
    )
    stripe_count: int = key(Integer(1, 10**5), "servers per file", 1)
    stripe_size: int = key(Bytes(512, 2**40), "bytes of a file on one server before the next", 2**20)
    lustre_ost: int | None = key(
        Optional(Integer(-1, 10**5)),
        "on Lustre: first OST of every file, with stripe_count stripes (-1: any); null: do not set",
        None,
    )
    lustre_pool: str | None = key(
        Optional(Name()), "on Lustre: OST pool of every file, with stripe_count stripes", None
    )
    node_bandwidth: float | None = key(Optional(Bandwidth(1)), "bytes per second of each node's link", None)
    device_bandwidth: float | None = key(
        Optional(Bandwidth(1)), "bytes per second of a device, over all its servers", None
    )
    gateway_bandwidth: float | None = key(Optional(Bandwidth(1)), "bytes per second of one gateway", None)
    latency: float = key(Seconds(0, 60), "latency of each read, outside any queue", 0.0)
    variation: float = key(Fraction(0, 0.9), "coefficient of variation of speed between servers", 0.0)
    service_variation: float = key(
        Fraction(0, MOST_VARIATION), "coefficient of variation of service times of reads", 0.0
    )
    discipline: str = key(
        Choice(*DISCIPLINES), "fifo: servers process one operation at a time; sharing: all at once, each slower", "fifo"
    )
    background: float = key(Fraction(0, 0.9), "fraction of every server's time used by others", 0.0)
    credit: float = key(
        Seconds(0, 3600),
        "idle time that a server can make up for with a burst, as token buckets and device caches do",
        0.0,
        dumped=False,
    )
    quota_period: float = key(
        Seconds(0, 60),
        "period in which a server hands out what its rates allow, all at once at the start, as throttled block devices do; 0: no portions",
        0.0,
        dumped=False,
    )
    open_bytes: int = key(
        Bytes(0, 2**30),
        "bytes by which an open or stat loads the object server and links, like a read; 0: no load",
        0,
        dumped=False,
    )
    stream_bandwidth: float | None = key(
        Optional(Bandwidth(1)),
        "maximum bytes per second of one stream, even without contention",
        None,
        dumped=False,
    )
    layout: str = key(
        Choice(*LAYOUTS),
        "first server of a file; turns: round robin, evenly; hash: at random, unevenly",
        "turns",
        dumped=False,
    )
    emulate: bool = key(Flag(), "slow this tier down to its rates", False)
    storage: str = key(
        Name(),
        "storage backend: directory; memory: a directory in memory, such as /dev/shm; or one from an installed package",
        "directory",
        dumped=False,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One of a node's devices that train. Nothing is emulated with it: `require` and `train` compare with it."""

    count: int | None = key(Optional(Integer(1, 1024)), "per node", None)
    memory: int | None = key(Optional(Bytes(1)), "of each", None)
    memory_bandwidth: float | None = key(Optional(Bandwidth(1)), "to it", None)
    l2: int | None = key(Optional(Bytes(1)), "last-level cache", None)
    fp32: float | None = key(Optional(Flops(1)), "peak 32-bit operations per second", None)
    tensor: float | None = key(Optional(Flops(1)), "peak 16-bit matrix operations per second", None)
    tf32: float | None = key(
        Optional(Flops(1)), "peak 32-bit products on tensor cores with reduced precision; null: not supported", None
    )
    host_bandwidth: float | None = key(
        Optional(Bandwidth(1)), "bytes per second from the host to each accelerator", None
    )
    peer_bandwidth: float | None = key(
        Optional(Bandwidth(1)), "bytes per second to another accelerator with a direct link", None
    )
    far_bandwidth: float | None = key(
        Optional(Bandwidth(1)), "bytes per second to one without a direct link; null: as peers", None
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """What a compute node is made of, beside its tiers."""

    cores: int | None = key(Optional(Integer(1, 10**5)), "per node", None)
    memory: int | None = key(Optional(Bytes(1)), "main memory of a node", None)
    network_bandwidth: float | None = key(Optional(Bandwidth(1)), "bytes per second between nodes, each way", None)
    accelerator: Accelerator = section(
        Accelerator, "the accelerators; without them, the node's cores compute", Accelerator()
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    nodes: int = key(Integer(1, 10**6), "compute nodes", 1)
    ranks_per_node: int = key(Integer(1, 1024), "training processes on each node", 1)
    process_overhead: float = key(
        Seconds(0, 60),
        "CPU time of a read thread per sample (of mean size): decoding, copying; simulation only",
        0.0,
    )
    startup_time: float = key(
        Seconds(0, 3600),
        "time of a process per epoch before its first read: starting workers, listing files; simulation only",
        0.0,
    )
    step_overhead: float = key(
        Seconds(0, 3600),
        "time of a process per step besides compute: taking a batch from its workers; simulation only",
        0.0,
    )
    step_jitter: float = key(
        Seconds(0, 3600),
        "mean random delay of a step; with sync: step all ranks wait for the longest; simulation only",
        0.0,
    )
    model_error: float = key(
        Fraction(0, 1), "relative standard deviation of simulations from measurements, as calibrated", 0.0
    )
    hardware: Hardware = section(Hardware, "hardware of a node; for require and train", Hardware())
    tiers: tuple[Tier, ...] = named_sections(Tier, "storage tiers, nearest first; the last one holds every file")

    @property
    def ranks(self) -> int:
        return self.nodes * self.ranks_per_node


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    policy: str = key(
        Choice(*POLICIES),
        "pinned: a fixed random set of files is on the near tiers; first-touch: keep what is read first; "
        "simulation only: lru: keep what was read last; partition: each node's share, with shuffle local; "
        "clairvoyant: knows the order, keeps what is needed soonest and prefetches",
        "pinned",
    )
    cache_rate: float = key(
        Fraction(0, 1),
        "fraction of the files on the near tiers; a full copy of that fraction on every node if they are visible to a node",
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
    study: str = key(Name(), "name of the results")
    seed: int = key(Integer(0, 2**63 - 1), "the same seed gives the same plan on any machine", 42)
    goal: Goal | None = key(Optional(GoalKind()), "goal: 4 s (I/O per epoch), epoch=10 min or au=90%", None)
    workload: Workload = section(Workload, "what the training job does")
    system: System = section(System, "what it runs on")
    placement: Placement = section(Placement, "which files are on which tier")
    cases: tuple[StudyCase, ...] = ()  # each of them is swept by itself
    sweep: tuple[Axis, ...] = ()
    repetitions: int = key(Integer(1, 1000), "runs per sweep point", 1)

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
