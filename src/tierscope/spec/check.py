"""What must hold between the keys of a study, beyond each key's own limits."""

from collections.abc import Iterator

from tierscope.formats import FORMATS
from tierscope.spec.collective_check import collective_problems
from tierscope.spec.emulation import GIVE_RATES, has_rate, python_only, reads_in_python, said, servers_limit
from tierscope.spec.framework_check import framework_problems
from tierscope.spec.lustre_check import lustre_problems
from tierscope.spec.model_check import model_problems
from tierscope.spec.problem import Problem
from tierscope.spec.study import Checkpoint, Dataset, Hdf5Layout, Reader, Statistics, Study, Tier
from tierscope.units import counted

MAX_SAMPLES = 2**60  # a sample's number must fit into 64 bits, with room for arithmetic


def find_problem(study: Study) -> Problem | None:
    """The first thing that cannot work."""
    return next(_problems(study), None)


def _problems(study: Study) -> Iterator[Problem]:
    system, dataset, placement = study.system, study.workload.dataset, study.placement
    files = "workload.dataset.num_files_train"
    if dataset.samples > MAX_SAMPLES:
        yield Problem(
            files,
            f"{files} = {dataset.num_files_train} makes {counted(dataset.samples, 'sample')} with num_samples_per_file; "
            f"at most {MAX_SAMPLES}: lower one of them",
        )
    if dataset.samples < system.ranks and study.workload.reader.rank_reads == "share":
        yield Problem(
            files,
            f"{files} = {dataset.num_files_train} makes {counted(dataset.samples, 'sample')} for {counted(system.ranks, 'rank')} "
            "(nodes × ranks_per_node); every rank needs at least one: raise it or lower the ranks",
        )
    if placement.cache_rate > 0 and len(system.tiers) == 1:
        yield Problem(
            "placement.cache_rate",
            f"placement.cache_rate = {placement.cache_rate:g} but there is only one tier; add a nearer tier or set it to 0",
        )
    yield from _policy_problems(study)
    home = system.tiers[-1]
    if home.visible_to != "global":
        key = f"system.tiers.{home.name}.visible_to"
        yield Problem(key, f"{key} = {home.visible_to}; the last tier holds every file and must be global")
    for number, tier in enumerate(system.tiers):
        yield from _tier_problems(tier, system.tiers[:number])
    yield from lustre_problems(study)
    yield from _reader_problems(study)
    yield from _dataset_problems(study)
    yield from _train_problems(study)
    yield from model_problems(study)
    yield from _checkpoint_problems(study)


def _dataset_problems(study: Study) -> Iterator[Problem]:
    dataset, reader = study.workload.dataset, study.workload.reader
    key = "workload.dataset"
    form = FORMATS[dataset.format]
    if form.options != "hdf5" and dataset.hdf5 != Hdf5Layout():
        yield Problem(
            f"{key}.hdf5",
            f"{key}.hdf5 describes HDF5 files, but format = {dataset.format}; set hdf5, or remove it",
        )
    yield from _statistics_problems(dataset)
    if dataset.record_length_bytes_stdev > dataset.record_length_bytes:
        yield Problem(
            f"{key}.record_length_bytes_stdev",
            f"{key}.record_length_bytes_stdev = {dataset.record_length_bytes_stdev} is more than record_length_bytes = {dataset.record_length_bytes}, "
            "but a sample has at least one byte; lower it",
        )
    mapped = next((tier.name for tier in study.system.tiers if tier.emulate), None)
    if form.mapped and mapped:
        yield Problem(
            f"{key}.format",
            f"{key}.format = {dataset.format}, but tier {mapped} is emulated: {dataset.format.upper()} maps its files, and page faults cannot be delayed; set another format",
        )
    yield from _offset_problems(reader)
    yield from _rank_reads_problems(reader)


def _statistics_problems(dataset: Dataset) -> Iterator[Problem]:
    key, wanted = "workload.dataset.statistics", dataset.statistics
    if wanted == Statistics():
        return
    if wanted.file_bytes is None:
        yield Problem(key, f"{key} has reads, but file_bytes is not set; add it")
    elif wanted.read_bytes is not None and wanted.read_bytes > wanted.file_bytes:
        yield Problem(
            f"{key}.read_bytes",
            f"{key}.read_bytes = {wanted.read_bytes} is more than file_bytes = {wanted.file_bytes}; lower it, or raise file_bytes",
        )


def _offset_problems(reader: Reader) -> Iterator[Problem]:
    """Batches that ranks draw from one row of them."""
    key = "workload.reader.sample_shuffle"
    if reader.sample_shuffle != "offset":
        return
    if reader.shuffle == "off":
        yield Problem(key, f"{key} = offset draws batches at random, but shuffle = off; change one of them")
    if reader.file_access == "multi":
        yield Problem(
            key, f"{key} = offset distributes batches, but file_access: multi distributes files; change one of them"
        )


def _rank_reads_problems(reader: Reader) -> Iterator[Problem]:
    """Whoever reads everything shares nothing."""
    if reader.rank_reads == "share":
        return
    key = "workload.reader.rank_reads"
    others = {"file_access": ("multi", "collective"), "shuffle": ("local", "chunked"), "sample_shuffle": ("offset",)}
    for name, values in others.items():
        if (value := getattr(reader, name)) in values:
            yield Problem(key, f"{key} = all, but {name} = {value} divides the samples among ranks; change one of them")


def _train_problems(study: Study) -> Iterator[Problem]:
    reader, train = study.workload.reader, study.workload.train
    if reader.preprocess_time and reader.preprocess not in ("busy", "sleep"):
        key = "workload.reader.preprocess_time"
        yield Problem(
            key,
            f"{key} = {reader.preprocess_time:g}, but preprocess = {reader.preprocess}; set preprocess: busy or sleep, or remove it",
        )
    if reader.computation_threads and reader.preprocess == "none":
        key = "workload.reader.computation_threads"
        yield Problem(
            key, f"{key} = {reader.computation_threads}, but preprocess = none; set preprocess, or remove the threads"
        )
    elif reader.computation_threads and not reader.read_threads:
        key = "workload.reader.computation_threads"
        yield Problem(
            key,
            f"{key} = {reader.computation_threads}, but read_threads = 0: one thread reads and preprocesses; raise read_threads, or remove this key",
        )
    varies = train.computation_time_distribution
    key = "workload.train.computation_time_stdev"
    if train.computation_time_stdev and varies not in ("normal", "uniform"):
        yield Problem(
            key,
            f"{key} = {train.computation_time_stdev:g}, but computation_time_distribution = {varies}; set normal or uniform, or remove it",
        )
    if varies in ("normal", "uniform") and not train.computation_time_stdev:
        yield Problem(
            "workload.train.computation_time_distribution",
            f"workload.train.computation_time_distribution = {varies}, but computation_time_stdev is not set; add it",
        )


def _checkpoint_problems(study: Study) -> Iterator[Problem]:
    checkpoint, key = study.workload.checkpoint, "workload.checkpoint"
    tiers = [tier.name for tier in study.system.tiers]
    if checkpoint.tier is not None and checkpoint.tier not in tiers:
        yield Problem(f"{key}.tier", f"{key}.tier = {checkpoint.tier}; tiers: {', '.join(tiers)}")
    if checkpoint.zero_stage and checkpoint.mode != "all_ranks":
        yield Problem(
            f"{key}.zero_stage",
            f"{key}.zero_stage = {checkpoint.zero_stage} splits the state over ranks, but mode = {checkpoint.mode}; set mode: all_ranks",
        )
    yield from _split_problems(checkpoint, key)
    if checkpoint.drain and checkpoint.tier in (None, tiers[-1]):
        yield Problem(
            f"{key}.drain",
            f"{key}.drain = true copies checkpoints to the last tier, but tier = {checkpoint.tier or tiers[-1]} is the last; set a nearer one, or drain: false",
        )
    if checkpoint.zero_stage and checkpoint.model_parameters is None:
        yield Problem(
            f"{key}.zero_stage",
            f"{key}.zero_stage = {checkpoint.zero_stage}, but model_parameters is not set; add it",
        )


def _split_problems(checkpoint: Checkpoint, key: str) -> Iterator[Problem]:
    """A model that is split over ranks needs all of them, and a size; and stages have layers."""
    split = next(
        (
            f"{name} = {value}"
            for name in ("tensor_parallel", "pipeline_parallel", "data_parallel")
            if (value := getattr(checkpoint, name)) not in (None, 1)
        ),
        None,
    )
    name = (split or "").partition(" ")[0]
    if split and checkpoint.mode != "all_ranks":
        yield Problem(
            f"{key}.{name}",
            f"{key}.{split} splits the model over ranks, but mode = {checkpoint.mode}; set mode: all_ranks",
        )
    if split and checkpoint.model_parameters is None:
        yield Problem(f"{key}.{name}", f"{key}.{split}, but model_parameters is not set; add it")
    layers = checkpoint.transformer.num_layers
    if layers and checkpoint.model_parameters is None:
        path = f"{key}.transformer.num_layers"
        yield Problem(path, f"{path} = {layers}, but model_parameters is not set; add it")
    if layers and checkpoint.pipeline_parallel > layers:
        yield Problem(
            f"{key}.pipeline_parallel",
            f"{key}.pipeline_parallel = {checkpoint.pipeline_parallel}, but the model has {counted(layers, 'layer')}; lower it",
        )


def _policy_problems(study: Study) -> Iterator[Problem]:
    """What policies need that are no fixed placement."""
    policy, reader, dataset = study.placement.policy, study.workload.reader, study.workload.dataset
    key, tiers = "placement.policy", len(study.system.tiers)
    if policy == "pinned":
        return
    if tiers != 2:
        count = "one tier only" if tiers == 1 else f"{tiers} tiers"
        yield Problem(
            key,
            f"{key} = {policy}, but the system has {count}; it needs two tiers: set pinned, or use two",
        )
    if policy == "first-touch" and reader.read_ahead == "all":
        yield Problem(
            key,
            f"{key} = first-touch keeps files for later epochs, but with workload.reader.read_ahead: all those read nothing; set pinned, or read_ahead: batches",
        )
    if policy == "partition" and reader.shuffle != "local":
        yield Problem(
            key,
            f"{key} = partition, but workload.reader.shuffle = {reader.shuffle}; ranks keep their shares only with shuffle: local: set it, or another policy",
        )
    if policy == "clairvoyant" and dataset.num_samples_per_file > 1:
        yield Problem(
            key,
            f"{key} = clairvoyant, but num_samples_per_file = {dataset.num_samples_per_file}; "
            "prefetching is simulated only for files with one sample: set 1, or another policy",
        )


def _reader_problems(study: Study) -> Iterator[Problem]:
    reader, key = study.workload.reader, "workload.reader"
    in_python = reader.loader is not None and reader.loader.in_python
    if in_python and reader.odirect:
        yield Problem(
            f"{key}.odirect", f"{key}.odirect = true needs the native loader; set data_loader: native or odirect: false"
        )
    yield from collective_problems(study)
    yield from framework_problems(study)
    yield from _native_problems(study)
    if reader.io_engine != "uring":
        return
    name, text = f"{key}.io_engine", f"{key}.io_engine = uring"
    emulated = next((tier.name for tier in study.system.tiers if tier.emulate), None)
    if in_python:
        yield Problem(name, f"{text} needs the native loader; set data_loader: native or io_engine: pread")
    if reader.read_threads == 0:
        yield Problem(name, f"{text} needs read threads, but read_threads = 0; raise it or set io_engine: pread")
    if emulated:
        yield Problem(
            name,
            f"{text}, but tier {emulated} is emulated: emulation needs a thread that waits for each operation; set io_engine: pread",
        )


def _native_problems(study: Study) -> Iterator[Problem]:
    """The native loader does not emulate all that Python does."""
    reader = study.workload.reader
    wanted, fix = "data_loader", "auto or threads"
    if reader.loader is None or not reader.loader.in_c:
        wanted, fix = ("odirect", "false") if reader.odirect else ("io_engine", "pread")
        if not reader.odirect and reader.io_engine == "pread":
            return
    if unread := reads_in_python(study):
        yield Problem(
            unread.partition(" ")[0],
            f"{unread}, which the native loader does not support; set workload.reader.{wanted}: {fix}",
        )
    for tier in study.system.tiers:
        if name := python_only(tier):
            key = f"system.tiers.{tier.name}.{name}"
            yield Problem(
                key,
                f"system.tiers.{tier.name}.{said(tier, name)}, which the native loader does not emulate; "
                f"set workload.reader.{wanted}: {fix}, or remove the key",
            )


def _tier_problems(tier: Tier, nearer: tuple[Tier, ...]) -> Iterator[Problem]:
    key = f"system.tiers.{tier.name}"
    same = next((other.name for other in nearer if other.path == tier.path), None)
    if same:
        yield Problem(
            f"{key}.path", f"{key}.path = {tier.path}; tier {same} has the same path: use a separate directory for each"
        )
    if tier.visible_to == "global" and "{node}" in tier.path:
        yield Problem(
            f"{key}.path", f"{key}.path = {tier.path}; the path of a tier visible to all nodes cannot contain {{node}}"
        )
    if tier.emulate and not has_rate(tier):
        yield Problem(f"{key}.emulate", f"{key}.emulate = true, but the tier has no rate; {GIVE_RATES}")
    if tier.emulate and tier.storage not in ("directory", "emulated"):
        yield Problem(
            f"{key}.storage",
            f"{key}.storage = {tier.storage}, but emulate = true, and only directories can be emulated; remove one of them",
        )
    if tier.storage == "emulated" and not tier.emulate:
        yield Problem(f"{key}.storage", f"{key}.storage = emulated, but emulate = false; set emulate: true instead")
    if tier.gateway_shared_by is not None and tier.gateway_bandwidth is None:
        yield Problem(
            f"{key}.gateway_shared_by",
            f"{key}.gateway_shared_by = {tier.gateway_shared_by}, but gateway_bandwidth is not set; add it",
        )
    yield from _server_problems(tier)
    yield from _queue_problems(tier)


def _server_problems(tier: Tier) -> Iterator[Problem]:
    """Keys that say how servers serve, on a tier whose servers take no time; and files on more servers than there are."""

    def problem(name: str, text: str) -> Problem:
        key = f"system.tiers.{tier.name}"
        return Problem(f"{key}.{name}", f"{key}.{said(tier, name)}, but {text}")

    if tier.stripe_count > tier.servers:
        yield problem("stripe_count", f"a device has {counted(tier.servers, 'server')}; lower it or raise servers")
    if tier.metadata_variation and not tier.metadata_ops:
        yield problem("metadata_variation", "metadata_ops is not set, so nothing can vary; add it")
    if tier.service_variation and not servers_limit(tier):
        yield problem("service_variation", "no server rate is set, so nothing can vary; add read_ops or bandwidth")
    if tier.metadata_ops or servers_limit(tier):
        return
    missing = "no server rate is set; add metadata_ops, read_ops or bandwidth"
    if tier.discipline == "sharing":
        yield problem("discipline", missing)
    if tier.background:
        yield problem("background", missing)


def _queue_problems(tier: Tier) -> Iterator[Problem]:
    """Keys of queues that are not there."""
    key = f"system.tiers.{tier.name}"
    links = (tier.bandwidth, tier.node_bandwidth, tier.device_bandwidth, tier.gateway_bandwidth)
    for name, what in (("credit", "make up for idle time"), ("quota_period", "hand out portions")):
        if getattr(tier, name) and not servers_limit(tier):
            text = "no server rate is set, so no server is ever busy; add read_ops or bandwidth"
            yield Problem(f"{key}.{name}", f"{key}.{said(tier, name)}, but {text}")
        if getattr(tier, name) and tier.discipline == "sharing":
            text = f"discipline = sharing, and only fifo servers {what}; set fifo"
            yield Problem(f"{key}.{name}", f"{key}.{said(tier, name)}, but {text}")
    if tier.open_bytes and not any(links):
        text = "no bandwidth is set, so bytes take no time; add bandwidth"
        yield Problem(f"{key}.open_bytes", f"{key}.{said(tier, 'open_bytes')}, but {text}")
