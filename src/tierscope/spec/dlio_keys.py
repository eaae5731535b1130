"""Every key of DLIO, and what becomes of it: mapped to keys of ours, accepted without effect, or refused by name.

Longer than other modules because it is one table with a line per key.

Keys that need one another (a record's length, chunks, times, checkpoints, paths) are read in families, at the end.
"""

import os
from collections.abc import Callable
from dataclasses import replace

from tierscope.formats import FORMATS
from tierscope.loaders import LOADERS
from tierscope.spec import dlio_checkpoint, dlio_parquet
from tierscope.spec.dlio_making import MAPPED, NOTED, REFUSED, Making, MetricOptions, Rule, is_off, product, whole
from tierscope.spec.dlio_times import read_time
from tierscope.spec.goal import AU, Goal, GoalKind
from tierscope.spec.kinds import Fraction, Integer
from tierscope.spec.tree import Node
from tierscope.units import counted

TIER = "gfs"
_DATASET, _READER, _TRAIN = "workload.dataset", "workload.reader", "workload.train"
_OWN_LOADER = "no framework needed: Tierscope's own loader reads the files (reader.data_loader: auto)"
_NO_EVALUATION = "evaluation is not supported"
_LAYOUT = "Tierscope writes Parquet files without partitions; set it to null to use that layout"
_HANDED = "samples are not resized"
_MADE = "files are always generated once, checked and kept"
_ELSEWHERE = "object stores are not supported; copy the data to a filesystem, or use a mount point"
_CUSTOM = "your own classes are not loaded; use 'tierscope trace' to measure any command, including DLIO"

DEFAULTS = {  # of DLIO, where they are not ours
    f"{_DATASET}.num_files_train": "8",
    f"{_TRAIN}.epochs": "1",
    f"{_TRAIN}.sync": "step",
    f"{_READER}.file_shuffle": "off",
    f"{_READER}.sample_shuffle": "off",
    "seed": "123",
}


def _same(path: str, to: str, says: str = "as it is") -> Rule:
    return Rule(path, MAPPED, says, (to,), lambda making, node: making.put(to, making.text(path), node.where))


def _flag(path: str, to: str) -> Rule:
    def apply(making: Making, node: Node) -> None:
        making.put(to, "true" if making.flag(path) else "false", node.where)

    return Rule(path, MAPPED, "as it is", (to,), apply)


def _noted(path: str, says: str, whole_: bool = False) -> Rule:
    return Rule(path, NOTED, says, (), lambda making, _node: making.note(path, says), whole_)


def _noted_flag(path: str, says: str) -> Rule:
    def apply(making: Making, _node: Node) -> None:
        making.flag(path)  # refuses what is neither True nor False
        making.note(path, says)

    return Rule(path, NOTED, says, (), apply)


def _shuffle(name: str) -> Rule:
    path, to = f"reader.{name}", f"{_READER}.{name}"

    def apply(making: Making, node: Node) -> None:
        text = making.text(path)
        making.put(to, "off" if is_off(text) else text, node.where)

    return Rule(path, MAPPED, "off, seed or random", (to,), apply)


def _choice(rule: Rule, taken: dict[str, Callable[[Making, Node], None]], refused: dict[str, str]) -> Rule:
    """A key with a few values: what some of them do, and why others are refused."""
    path = rule.path

    def apply(making: Making, node: Node) -> None:
        text = making.text(path)
        if text in taken:
            taken[text](making, node)
            return
        making.refuse(path, refused.get(text, f"must be one of {', '.join(taken)}"))

    return replace(rule, apply=apply)


def _refused_if_on(path: str, reason: str, otherwise: str) -> Rule:
    def apply(making: Making, _node: Node) -> None:
        if making.flag(path):
            making.refuse(path, reason)
        making.note(path, otherwise)

    return Rule(path, REFUSED, f"True: {reason}", (), apply)


def _refused(path: str, reason: str, whole_: bool = False) -> Rule:
    return Rule(path, REFUSED, reason, (), lambda making, _node: making.refuse(path, reason), whole_)


def _steps(making: Making, node: Node) -> None:
    if (text := making.text("train.total_training_steps")) != "-1":
        making.put(f"{_TRAIN}.total_training_steps", text, node.where)


def _loader_noted(making: Making, _node: Node) -> None:
    making.note("reader.data_loader", _OWN_LOADER)


def _framework_noted(making: Making, _node: Node) -> None:
    making.note("framework", _OWN_LOADER)


def _in_memory(making: Making, node: Node) -> None:
    making.put(f"{_DATASET}.format", _IN_MEMORY, node.where)


_FORMATS = {theirs: name for name, form in FORMATS.entries.items() for theirs in form.dlio}
_LOADERS = [theirs for loader in LOADERS.entries.values() for theirs in loader.dlio]
_IN_MEMORY = FORMATS.where(lambda form: form.in_memory)[0]
_DALI = "NVIDIA DALI is not supported; set ++workload.reader.data_loader=pytorch to read the same files without it"


def _format(making: Making, node: Node) -> None:
    if making.text("reader.data_loader") != "synthetic":
        making.put(f"{_DATASET}.format", _FORMATS[making.text("dataset.format")], node.where)
    else:
        making.note("dataset.format", "reader.data_loader is synthetic: there are no files")


def _access(making: Making, node: Node) -> None:
    making.put(f"{_READER}.file_access", making.text("reader.file_access"), node.where)


def _ahead(making: Making, node: Node) -> None:
    ahead = {"on_demand": "batches", "memory": "all"}[making.text("reader.read_type")]
    making.put(f"{_READER}.read_ahead", ahead, node.where)


_DATASET_RULES = (
    Rule(
        "dataset.data_folder",
        MAPPED,
        "below OUT if relative, otherwise FOLDER/tierscope",
        (f"system.tiers.{TIER}.path",),
    ),
    _choice(
        Rule(
            "dataset.format",
            MAPPED,
            "indexed_binary, mmap_indexed_binary and hdf5_opt are rejected",
            (f"{_DATASET}.format",),
        ),
        dict.fromkeys(_FORMATS, _format),
        {
            "hdf5_opt": "is not supported; set hdf5",
            "indexed_binary": "is not supported; set another format, like npy",
            "mmap_indexed_binary": "is not supported; set another format, like npy",
        },
    ),
    _same("dataset.num_files_train", f"{_DATASET}.num_files_train"),
    _noted("dataset.num_files_eval", _NO_EVALUATION),
    _same("dataset.num_samples_per_file", f"{_DATASET}.num_samples_per_file"),
    *(
        Rule(f"dataset.{name}", MAPPED, "in whole bytes", (f"{_DATASET}.record_length_bytes",))
        for name in ("record_length_bytes", "record_length")
    ),
    *(
        Rule(f"dataset.{name}", MAPPED, "in whole bytes", (f"{_DATASET}.record_length_bytes_stdev",))
        for name in ("record_length_bytes_stdev", "record_length_stdev")
    ),
    _noted("dataset.record_length_bytes_resize", _HANDED),
    _noted("dataset.record_length_resize", _HANDED),
    Rule("dataset.record_dims", MAPPED, "their product, in bytes", (f"{_DATASET}.record_length_bytes",), whole=True),
    Rule("dataset.record_element_type", MAPPED, "with record_dims", (f"{_DATASET}.record_length_bytes",)),
    _noted("dataset.record_element_bytes", "set by record_element_type"),
    _same("dataset.num_subfolders_train", f"{_DATASET}.num_subfolders_train"),
    _noted("dataset.num_subfolders_eval", _NO_EVALUATION),
    Rule(
        "dataset.compression", MAPPED, "gzip and lzf with hdf5; others are rejected", (f"{_DATASET}.hdf5.compression",)
    ),
    Rule("dataset.compression_level", MAPPED, "of hdf5 with gzip", (f"{_DATASET}.hdf5.compression_level",)),
    Rule("dataset.enable_chunking", MAPPED, "of hdf5, with chunk_size", (f"{_DATASET}.hdf5.chunk_size",)),
    Rule("dataset.chunk_size", MAPPED, "of hdf5, with enable_chunking", (f"{_DATASET}.hdf5.chunk_size",)),
    Rule("dataset.hdf5.chunk_dims", MAPPED, "their product, in bytes", (f"{_DATASET}.hdf5.chunk_size",), whole=True),
    Rule("dataset.hdf5.num_dset_per_record", REFUSED, "more than 1: all samples of a file are in one array"),
    _noted("dataset.hdf5.max_shape", "arrays have the shape of their content", whole_=True),
    _noted("dataset.file_prefix", "our files are numbered"),
    _noted("dataset.keep_files", "data is kept after a run; 'tierscope clean --data OUT' deletes it"),
    _noted("dataset.generation_buffer_size", _MADE),
    _noted("dataset.data_gen_method", _MADE),
    Rule("dataset.parquet.columns", REFUSED, dlio_parquet.COLUMNS, (), dlio_parquet.columns, whole=True),
    _refused("dataset.parquet.read_mode", dlio_parquet.CHOSEN),
    Rule("dataset.parquet.row_group_size", REFUSED, dlio_parquet.GROUPS, (), dlio_parquet.row_group_size),
    _refused("dataset.parquet.partition_by", _LAYOUT),
    _noted("dataset.parquet.generation_batch_size", _MADE),
)

_READER_RULES = (
    _choice(
        Rule(
            "reader.data_loader",
            MAPPED,
            "synthetic: format synthetic; pytorch and tensorflow: Tierscope's own loader; others are rejected",
            (f"{_DATASET}.format",),
        ),
        {**dict.fromkeys(_LOADERS, _loader_noted), "synthetic": _in_memory},
        {
            "dali": _DALI,
            "native_dali": _DALI,
            "custom": _CUSTOM,
            "none": "a loader is required; set pytorch or tensorflow",
            "daos_pytorch": _ELSEWHERE,
        },
    ),
    _refused("reader.data_loader_classname", _CUSTOM),
    _refused("reader.reader_classname", _CUSTOM),
    _noted("reader.data_loader_sampler", "of custom loaders only"),
    _same("reader.batch_size", f"{_READER}.batch_size"),
    _noted("reader.batch_size_eval", _NO_EVALUATION),
    _same("reader.read_threads", f"{_READER}.read_threads", "threads of a rank, not processes"),
    Rule("reader.computation_threads", MAPPED, "where there is a preprocess_time", (f"{_READER}.computation_threads",)),
    _same("reader.prefetch_size", f"{_READER}.prefetch_size", "batches of a rank"),
    _shuffle("file_shuffle"),
    _shuffle("sample_shuffle"),
    _noted("reader.shuffle_size", "samples are shuffled over the whole dataset, not within a buffer"),
    _choice(
        Rule(
            "reader.file_access",
            MAPPED,
            "multi, shared, or collective for one hdf5 file under MPI; others are rejected",
            (f"{_READER}.file_access",),
        ),
        dict.fromkeys(("multi", "shared", "collective"), _access),
        dict.fromkeys(("mpio", "posix"), "is not supported; must be multi, shared or collective"),
    ),
    _choice(
        Rule("reader.read_type", MAPPED, "on_demand: batches; memory: all", (f"{_READER}.read_ahead",)),
        {"on_demand": _ahead, "memory": _ahead},
        {},
    ),
    _same("reader.transfer_size", f"{_READER}.transfer_size"),
    _flag("reader.odirect", f"{_READER}.odirect"),
    Rule(
        "reader.preprocess_time",
        MAPPED,
        "emulated by a busy core; varying times are rejected",
        (f"{_READER}.preprocess", f"{_READER}.preprocess_time"),
        whole=True,
    ),
    Rule("reader.preprocess_time_stdev", REFUSED, "more than 0: every sample takes the same time"),
    _noted("reader.dont_use_mmap", "nothing is mapped"),
    _noted("reader.multiprocessing_context", "a rank reads with threads"),
    _noted("reader.pin_memory", "there is no accelerator"),
    _noted("reader.write_threads", _MADE),
    _noted("reader.transformed_record_dims", _HANDED, whole_=True),
    _noted("reader.transformed_record_element_type", _HANDED),
)

_TIMES = tuple(f"{_TRAIN}.computation_time{part}" for part in ("", "_stdev", "_distribution"))
_TRAIN_RULES = (
    _same("train.epochs", f"{_TRAIN}.epochs"),
    Rule(
        "train.computation_time",
        MAPPED,
        "constant, normal, uniform or exponential; others are rejected",
        _TIMES,
        whole=True,
    ),
    Rule("train.computation_time_stdev", MAPPED, "normal", _TIMES[1:]),
    Rule(
        "train.total_training_steps",
        MAPPED,
        "-1: the whole dataset",
        (f"{_TRAIN}.total_training_steps",),
        _steps,
    ),
    _flag("train.seed_change_epoch", f"{_TRAIN}.seed_change_epoch"),
    _same("train.seed", "seed"),
)

_OTHER_RULES = (
    Rule("model.name", MAPPED, "names the results", ("study",)),
    _noted("model.type", "says nothing about what is read"),
    _choice(Rule("framework", NOTED, _OWN_LOADER, ()), dict.fromkeys(_LOADERS, _framework_noted), {}),
    _noted_flag("workflow.generate_data", "missing data is always generated first, and only once"),
    Rule(
        "workflow.train",
        MAPPED,
        "False: with workflow.checkpoint, only checkpoints are written; otherwise data is only generated",
        (f"{_DATASET}.format", f"{_TRAIN}.total_training_steps"),
    ),
    _refused_if_on(
        "workflow.evaluation",
        "evaluation is not run here; turn it off with ++workload.workflow.evaluation=False",
        _NO_EVALUATION,
    ),
    Rule("workflow.checkpoint", MAPPED, "turns workload.checkpoint on", ("workload.checkpoint",)),
    _refused_if_on(
        "workflow.profiling",
        "use --profiler darshan or dftracer instead, and set it to False",
        "no other profiler is used",
    ),
    _noted_flag("workflow.debug", "there is no debugger to wait for"),
    *(
        _noted(f"evaluation.{name}", _NO_EVALUATION, whole_=True)
        for name in ("eval_time", "eval_time_stdev", "eval_after_epoch", "epochs_between_evals")
    ),
    _noted("profiling.profiler", "--profiler chooses the profiler"),
    _noted("profiling.iostat_devices", "--profiler chooses the profiler", whole_=True),
    _noted("output.folder", "results go to --out"),
    _noted("output.log_file", "results go to --out"),
    Rule("output.metric.exclude_start_steps", MAPPED, "of AU in summary.json", ()),
    Rule("output.metric.exclude_end_steps", MAPPED, "of AU in summary.json", ()),
    Rule("metric.au", MAPPED, "the goal, and that of AU in summary.json (--au)", ("goal",)),
    _choice(
        Rule("storage.storage_type", REFUSED, "local, local_fs and parallel_fs are directories; others are rejected"),
        dict.fromkeys(
            ("local", "local_fs", "parallel_fs"),
            lambda making, _node: making.note("storage.storage_type", "a directory"),
        ),
        dict.fromkeys(("s3", "aistore", "daos_pytorch"), _ELSEWHERE),
    ),
    Rule("storage.storage_root", MAPPED, "in front of data_folder", (f"system.tiers.{TIER}.path",)),
    _refused("storage.storage_options", _ELSEWHERE, whole_=True),
    _refused("storage.storage_library", _ELSEWHERE),
    _noted("storage.post_generation_settle_seconds", _MADE),
    _noted("hydra", "Hydra's own settings; results go to --out", whole_=True),
    _refused("defaults", "refers to other files, which are not read; use the file of the workload", whole_=True),
)

RULES = {
    rule.path: rule for rule in (*_OTHER_RULES, *_DATASET_RULES, *_READER_RULES, *_TRAIN_RULES, *dlio_checkpoint.RULES)
}

_ELEMENT_BYTES = {
    f"{kind}{bits}": bits // 8
    for kind in ("int", "uint", "float")
    for bits in (8, 16, 32, 64)
    if (kind, bits) != ("float", 8)
}


def _element_bytes(making: Making) -> int:
    path = "dataset.record_element_type"
    name = making.text(path, "uint8")
    if name not in _ELEMENT_BYTES:
        making.refuse(path, f"must be one of {', '.join(_ELEMENT_BYTES)}")
    return _ELEMENT_BYTES[name]


def _record_length(making: Making) -> None:
    lengths, spreads = ("record_length_bytes", "record_length"), ("record_length_bytes_stdev", "record_length_stdev")
    stdev = _one_of(making, spreads)
    path = "dataset.record_dims"
    if path in making.given and making.given[path].value != []:
        nbytes = product([*making.numbers(path), _element_bytes(making)])
        making.put(f"{_DATASET}.record_length_bytes", str(nbytes), making.where(path))
        for name in lengths:
            if f"dataset.{name}" in making.given:
                making.note(f"dataset.{name}", "set by record_dims")
        if making.text(stdev, "0") != "0":
            making.refuse(stdev, "records with record_dims have equal sizes; remove one of them")
        return
    if "dataset.record_element_type" in making.given:
        making.note("dataset.record_element_type", "applies to record_dims, which is not set; records are bytes")
    for source, name, usual in (
        (_one_of(making, lengths), "record_length_bytes", "65536"),
        (stdev, "record_length_bytes_stdev", "0"),
    ):
        text = making.text(source, usual)
        if whole(text) != text:
            making.note(source, f"rounded to {counted(int(whole(text)), 'byte')}")
        making.put(f"{_DATASET}.{name}", whole(text), making.where(source))


def _one_of(making: Making, names: tuple[str, str]) -> str:
    """The path under which it is given, by today's name or the old one."""
    given = [f"dataset.{name}" for name in names if f"dataset.{name}" in making.given]
    if len(given) > 1:
        making.refuse(given[1], f"{given[0]} sets it too; remove one")
    return given[0] if given else f"dataset.{names[0]}"


def _hdf5(making: Making) -> None:
    ours = _FORMATS.get(making.text("dataset.format", "tfrecord"))
    is_hdf5 = ours is not None and FORMATS[ours].options == "hdf5"
    compression = making.text("dataset.compression", "none")
    if compression != "none":
        if not is_hdf5 or compression not in ("gzip", "lzf"):
            making.refuse("dataset.compression", "compression is supported only for HDF5, with gzip or lzf; set none")
        making.put(f"{_DATASET}.hdf5.compression", compression, making.where("dataset.compression"))
    elif "dataset.compression" in making.given:
        making.note("dataset.compression", "nothing is compressed")
    if "dataset.compression_level" in making.given:
        if compression == "gzip":
            level = "dataset.compression_level"
            making.put(f"{_DATASET}.hdf5.compression_level", making.text(level), making.where(level))
        else:
            making.note("dataset.compression_level", "only gzip has levels")
    several = "dataset.hdf5.num_dset_per_record"
    if making.read(several, Integer(1, 10**6), "arrays of a record", 1) > 1:
        making.refuse(several, "all samples of a file are in one array; set 1")
    if several in making.given:
        making.note(several, "all samples of a file are in one array")
    _chunks(making, is_hdf5)


def _chunks(making: Making, is_hdf5: bool) -> None:
    flag, size, dims = "dataset.enable_chunking", "dataset.chunk_size", "dataset.hdf5.chunk_dims"
    on = making.flag(flag)
    to = f"{_DATASET}.hdf5.chunk_size"
    if not is_hdf5:
        for path in (flag, size, dims):
            if path in making.given:
                making.note(path, "only HDF5 files have chunks")
        return
    if dims in making.given and making.given[dims].value != []:
        making.put(to, str(product([*making.numbers(dims), _element_bytes(making)])), making.where(dims))
        return
    if on and making.text(size, "0") == "0":
        making.refuse(flag, "dataset.chunk_size is missing; add it")
    if on:
        making.put(to, making.text(size), making.where(size))
        return
    for path in (flag, size, dims):
        if path in making.given:
            making.note(path, "without enable_chunking there are no chunks")


def _times(making: Making) -> None:
    computing = read_time(making, "train.computation_time")
    where = making.where("train.computation_time")
    making.put(_TIMES[0], repr(computing.mean), where)
    if computing.distribution != "constant":
        making.put(_TIMES[2], computing.distribution, where)
    if computing.stdev:
        making.put(_TIMES[1], repr(computing.stdev), where)
    path, threads = "reader.preprocess_time", "reader.computation_threads"
    before = read_time(making, path)
    if before.distribution != "constant":
        stdev = f"{path}_stdev"
        making.refuse(
            stdev if stdev in making.given else path,
            "preprocessing takes the same time for every sample; set a number",
        )
    if before.mean:
        making.put(f"{_READER}.preprocess", "busy", making.where(path))
        making.put(f"{_READER}.preprocess_time", repr(before.mean), making.where(path))
        making.note(path, "DLIO sleeps; Tierscope keeps a core busy")
        if threads in making.given:
            making.put(f"{_READER}.computation_threads", making.text(threads), making.where(threads))
        return
    for idle in (path, f"{path}_stdev"):
        if idle in making.given:
            making.note(idle, "nothing is preprocessed")
    if threads in making.given:
        making.note(threads, "nothing is preprocessed: there is no preprocess_time")


def _paths(making: Making) -> None:
    root, folder = "storage.storage_root", "dataset.data_folder"
    given = next((path for path in (folder, root) if path in making.given), folder)
    for path in (root, folder):
        if "://" in making.text(path):
            making.refuse(path, _ELSEWHERE)
    if not making.own_system:
        for path in (root, folder):
            if path in making.given:
                making.note(path, "the tiers of --system have their own paths")
        return
    joined = os.path.normpath(os.path.join(making.text(root) or ".", making.text(folder) or "data"))
    if joined.startswith(".."):
        making.refuse(given, "points outside the results directory; use an absolute path")
    absolute = os.path.isabs(joined) or joined.startswith(("$", "~"))
    path = os.path.join(joined, "tierscope") if absolute else os.path.join("{out}", joined)
    making.put(f"system.tiers.{TIER}.path", path, making.where(given))


def _metric(making: Making) -> None:
    au = making.read("metric.au", Fraction(0, 1), "the goal, a share like 0.9", 0.9)
    counts = [
        making.read(f"output.metric.exclude_{end}_steps", Integer(0, 10**6), "steps that do not count", usual)
        for end, usual in (("start", 1), ("end", 0))
    ]
    making.wanted = MetricOptions(au, counts[0], counts[1])
    if "metric.au" in making.given:
        making.put("goal", GoalKind().format(Goal(AU, au)), making.where("metric.au"))


FAMILIES = (_record_length, _hdf5, _times, _paths, _metric, dlio_checkpoint.checkpoint)
