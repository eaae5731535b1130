"""What cannot be, though every key by itself could."""

import pytest

from tests.spec.texts import SMALL, edited, parsed, refusal, swept
from tierscope.plan.permutation import Permutation
from tierscope.spec.check import MAX_SAMPLES


def test_every_rank_needs_a_sample() -> None:
    line = refusal(edited("num_files_train: 64", "num_files_train: 3"))
    assert line == (
        "my.yaml:5: workload.dataset.num_files_train = 3 makes 3 samples for 4 ranks (nodes × ranks_per_node); "
        "every rank needs at least one: raise it or lower the ranks"
    )
    assert parsed(edited("num_files_train: 64", "num_files_train: 4")).system.ranks == 4
    assert parsed(edited("num_files_train: 64", "num_files_train: 1\n    num_samples_per_file: 4")).system.ranks == 4


def test_samples_must_be_countable() -> None:
    huge = edited("num_files_train: 64", "num_files_train: 1000000000000\n    num_samples_per_file: 1000000000")
    assert "samples with num_samples_per_file; at most" in refusal(huge)
    Permutation(MAX_SAMPLES, b"the plan takes what the check lets through")


def one_tier() -> str:
    lfs = '    lfs:\n      path: "{out}/lfs/{node}"\n      visible_to: node\n'
    return edited(lfs, "")


def test_a_cache_needs_a_nearer_tier() -> None:
    assert refusal(one_tier()) == (
        "my.yaml:16: placement.cache_rate = 0.5 but there is only one tier; add a nearer tier or set it to 0"
    )
    assert len(parsed(one_tier(), "cache_rate=0").system.tiers) == 1


def test_a_policy_is_between_two_tiers() -> None:
    line = refusal(one_tier(), "cache_rate=0", "policy=lru")
    assert line == (
        "--set policy=lru: placement.policy = lru, but the system has one tier only; it needs two tiers: set pinned, or use two"
    )
    assert parsed(SMALL, "policy=lru").placement.policy == "lru"


def test_a_partition_needs_a_local_shuffle() -> None:
    line = refusal(SMALL, "policy=partition")
    assert "placement.policy = partition, but workload.reader.shuffle = global; ranks keep their shares" in line
    assert parsed(SMALL, "policy=partition", "shuffle=local").placement.policy == "partition"


def test_files_of_many_samples_are_not_fetched_ahead() -> None:
    line = refusal(SMALL, "policy=clairvoyant", "num_samples_per_file=2")
    assert (
        "placement.policy = clairvoyant, but num_samples_per_file = 2; prefetching is simulated only for files with"
        in line
    )
    assert parsed(SMALL, "policy=clairvoyant").placement.policy == "clairvoyant"


def test_the_last_tier_is_for_all() -> None:
    line = refusal(edited('path: "{out}/gfs"', 'path: "{out}/gfs"\n      visible_to: node'))
    assert line == "my.yaml:18: system.tiers.gfs.visible_to = node; the last tier holds every file and must be global"


def test_what_all_see_cannot_differ_between_nodes() -> None:
    line = refusal(edited('"{out}/gfs"', '"{out}/gfs/{node}"'))
    assert line.startswith(
        "my.yaml:17: system.tiers.gfs.path = {out}/gfs/{node}; the path of a tier visible to all nodes"
    )


@pytest.mark.parametrize(
    "rate",
    [
        "metadata_ops: 9/s",
        "metadata_latency: 1 ms",
        "read_ops: 9/s",
        "bandwidth: 9 MB/s",
        "write_ops: 9/s",
        "write_bandwidth: 9 MB/s",
        "node_bandwidth: 9 MB/s",
        "device_bandwidth: 9 MB/s",
        "gateway_bandwidth: 9 MB/s",
        "latency: 1 ms",
    ],
)
def test_an_emulated_tier_needs_a_rate(rate: str) -> None:
    emulated = edited('path: "{out}/gfs"', 'path: "{out}/gfs"\n      emulate: true')
    assert refusal(emulated) == (
        "my.yaml:18: system.tiers.gfs.emulate = true, but the tier has no rate; "
        "add metadata_ops, metadata_latency, read_ops, bandwidth, write_ops, write_bandwidth, node_bandwidth, device_bandwidth, gateway_bandwidth or latency"
    )
    assert parsed(edited("emulate: true", f"emulate: true\n      {rate}", emulated)).system.tiers[1].emulate


def test_a_tier_is_emulated_in_one_way() -> None:
    storage = edited('path: "{out}/gfs"', 'path: "{out}/gfs"\n      storage: emulated')
    assert refusal(storage) == (
        "my.yaml:18: system.tiers.gfs.storage = emulated, but emulate = false; set emulate: true instead"
    )
    rated = edited("storage: emulated", "storage: memory\n      emulate: true\n      latency: 1 ms", storage)
    assert refusal(rated) == (
        "my.yaml:18: system.tiers.gfs.storage = memory, but emulate = true, and only directories can be emulated; remove one of them"
    )
    assert parsed(edited("storage: memory\n", "storage: emulated\n", rated)).system.tiers[1].emulate


def test_a_shared_gateway_needs_its_bandwidth() -> None:
    shared = edited('path: "{out}/gfs"', 'path: "{out}/gfs"\n      gateway_shared_by: 192')
    assert refusal(shared) == (
        "my.yaml:18: system.tiers.gfs.gateway_shared_by = 192, but gateway_bandwidth is not set; add it"
    )
    assert parsed(shared, "gfs.gateway_bandwidth=1 GB/s").system.tiers[1].gateway_bandwidth == 1e9


def test_every_point_of_a_sweep_is_checked_and_the_bad_one_named() -> None:
    line = refusal(swept("{nodes: [2, 40]}"))
    assert "num_files_train = 64 makes 64 samples for 80 ranks" in line
    assert line.endswith("(at nodes = 40)")


def test_a_problem_that_has_nothing_to_do_with_the_sweep_does_not_name_a_point() -> None:
    line = refusal(edited('"{out}/gfs"', '"{out}/gfs/{node}"', swept("{batch_size: [1, 2]}")))
    assert "(at " not in line


def test_two_tiers_cannot_share_a_directory() -> None:
    line = refusal(edited('"{out}/gfs"', '"{out}/lfs/{node}"'))
    assert (
        "system.tiers.gfs.path = {out}/lfs/{node}; tier lfs has the same path: use a separate directory for each"
        in line
    )


def reader(*lines: str) -> str:
    return edited("batch_size: 4", "\n    ".join(("batch_size: 4", *lines)))


def test_what_only_the_native_loader_can_do() -> None:
    assert refusal(reader("data_loader: threads", "odirect: true")) == (
        "my.yaml:10: workload.reader.odirect = true needs the native loader; set data_loader: native or odirect: false"
    )
    assert refusal(reader("data_loader: threads", "io_engine: uring")) == (
        "my.yaml:10: workload.reader.io_engine = uring needs the native loader; set data_loader: native or io_engine: pread"
    )
    for name in ("auto", "native"):
        assert parsed(reader(f"data_loader: {name}", "odirect: true", "io_engine: uring")).workload.reader.odirect


def test_io_uring_needs_threads_and_tiers_that_are_not_emulated() -> None:
    assert refusal(reader("read_threads: 0", "io_engine: uring")) == (
        "my.yaml:10: workload.reader.io_engine = uring needs read threads, but read_threads = 0; raise it or set io_engine: pread"
    )
    emulated = ("gfs.emulate=true", "gfs.latency=1 ms")
    line = refusal(reader("io_engine: uring"), *emulated)
    assert "workload.reader.io_engine = uring, but tier gfs is emulated" in line
    assert line.endswith("set io_engine: pread")
    assert parsed(reader("io_engine: pread"), *emulated).system.tiers[1].emulate


def tier_keys(*lines: str) -> str:
    return edited('path: "{out}/gfs"', "\n      ".join(('path: "{out}/gfs"', *lines)))


@pytest.mark.parametrize(
    ("key", "reason", "fix"),
    [
        ("stripe_count: 4", "stripe_count = 4, but a device has 1 server; lower it or raise servers", "servers=4"),
        (
            "metadata_variation: 50%",
            "metadata_variation = 50%, but metadata_ops is not set, so nothing can vary; add it",
            "metadata_ops=9/s",
        ),
        (
            "service_variation: 100%",
            "service_variation = 100%, but no server rate is set, so nothing can vary; add read_ops or bandwidth",
            "bandwidth=9 MB/s",
        ),
        (
            "discipline: sharing",
            "discipline = sharing, but no server rate is set; add metadata_ops, read_ops or bandwidth",
            "metadata_ops=9/s",
        ),
        (
            "background: 25%",
            "background = 25%, but no server rate is set; add metadata_ops, read_ops or bandwidth",
            "read_ops=9/s",
        ),
    ],
)
def test_how_servers_serve_needs_servers_that_limit(key: str, reason: str, fix: str) -> None:
    assert refusal(tier_keys(key, "latency: 1 ms")) == f"my.yaml:18: system.tiers.gfs.{reason}"
    assert parsed(tier_keys(key), f"gfs.{fix}").system.tiers[1]


def dataset(*lines: str) -> str:
    return edited("num_files_train: 64", "\n    ".join(("num_files_train: 64", *lines)))


@pytest.mark.parametrize(
    ("lines", "said", "fix"),
    [
        (
            ("batch_size: 4", "sample_shuffle: offset", "shuffle: off"),
            "workload.reader.sample_shuffle = offset draws batches at random, but shuffle = off; change one of them",
            "shuffle=global",
        ),
        (
            ("batch_size: 4", "sample_shuffle: offset", "file_access: multi"),
            "workload.reader.sample_shuffle = offset distributes batches, but file_access: multi distributes files; change one of them",
            "file_access=shared",
        ),
        (
            ("batch_size: 4", "preprocess_time: 2 ms"),
            "workload.reader.preprocess_time = 0.002, but preprocess = none; set preprocess: busy or sleep, or remove it",
            "preprocess=busy",
        ),
        (
            ("batch_size: 4", "preprocess: decode", "preprocess_time: 2 ms"),
            "workload.reader.preprocess_time = 0.002, but preprocess = decode; set preprocess: busy or sleep, or remove it",
            "preprocess=busy",
        ),
        (
            ("batch_size: 4", "computation_threads: 3"),
            "workload.reader.computation_threads = 3, but preprocess = none; set preprocess, or remove the threads",
            "preprocess=decode",
        ),
        (
            ("batch_size: 4", "computation_threads: 3", "preprocess: decode", "read_threads: 0"),
            "workload.reader.computation_threads = 3, but read_threads = 0: one thread reads and preprocesses; raise read_threads, or remove this key",
            "read_threads=1",
        ),
    ],
)
def test_keys_of_a_reader_that_need_others(lines: tuple[str, ...], said: str, fix: str) -> None:
    text = edited("batch_size: 4", "\n    ".join(lines))
    line = refusal(text)
    assert line.partition(": ")[2] == said
    assert parsed(text, fix).workload.reader


@pytest.mark.parametrize("name", ["normal", "uniform", "constant", "exponential"])
def test_a_spread_of_compute_and_its_distribution_belong_together(name: str) -> None:
    distribution = (SMALL, f"computation_time_distribution={name}", "computation_time=1 s")
    key = "workload.train.computation_time"
    if name in ("normal", "uniform"):
        said = f"{key}_distribution = {name}, but computation_time_stdev is not set; add it"
        assert refusal(*distribution).endswith(said)
        assert parsed(*distribution, "computation_time_stdev=1 ms").workload.train
    else:
        line = refusal(*distribution, "computation_time_stdev=1 ms")
        said = f"{key}_stdev = 0.001, but computation_time_distribution = {name}; set normal or uniform, or remove it"
        assert line.endswith(said)
        assert parsed(*distribution).workload.train


def test_the_layout_of_hdf5_is_for_hdf5() -> None:
    text = dataset("hdf5: {chunk_size: 1 KiB}")
    said = "workload.dataset.hdf5 describes HDF5 files, but format = tfrecord; set hdf5, or remove it"
    assert refusal(text) == f"my.yaml:6: {said}"
    assert parsed(text, "format=hdf5").workload.dataset.hdf5.chunk_size == 1024


@pytest.mark.parametrize(
    ("given", "form", "line", "said"),
    [
        ("reads: 50", "synthetic", 6, "workload.dataset.statistics has reads, but file_bytes is not set; add it"),
        (
            "file_bytes: 400 B, read_bytes: 500 B",
            "synthetic",
            6,
            "workload.dataset.statistics.read_bytes = 500 is more than file_bytes = 400; lower it, or raise file_bytes",
        ),
    ],
)
def test_a_file_of_statistics(given: str, form: str, line: int, said: str) -> None:
    assert refusal(dataset(f"statistics: {{{given}}}"), f"format={form}") == f"my.yaml:{line}: {said}"
    assert parsed(dataset("statistics: {file_bytes: 500 B, reads: 9, read_bytes: 500 B}"), "format=synthetic")


def test_sizes_that_would_mostly_be_cut_off() -> None:
    said = "workload.dataset.record_length_bytes_stdev = 4097 is more than record_length_bytes = 4096, but a sample has at least one byte; lower it"
    assert refusal(dataset("record_length_bytes_stdev: 4097")) == f"my.yaml:6: {said}"
    assert parsed(dataset("record_length_bytes_stdev: 4096")).workload.dataset


def test_a_mapped_file_cannot_be_held_up() -> None:
    text = dataset("format: lmdb")
    line = refusal(text, "gfs.emulate=true", "gfs.latency=1 ms")
    assert line == (
        "my.yaml:6: workload.dataset.format = lmdb, but tier gfs is emulated: LMDB maps its files, and page faults cannot be delayed; set another format"
    )
    assert parsed(text, "gfs.latency=1 ms").workload.dataset.format == "lmdb"


@pytest.mark.parametrize(
    ("wanted", "fix"),
    [
        ("data_loader=native", "data_loader: auto or threads"),
        ("odirect=true", "odirect: false"),
        ("io_engine=uring", "io_engine: pread"),
    ],
)
@pytest.mark.parametrize(("key", "value"), [("format", "png"), ("format", "hdf5"), ("record_length_bytes_stdev", "10")])
def test_what_the_native_loader_does_not_read(wanted: str, fix: str, key: str, value: str) -> None:
    line = refusal(dataset(f"{key}: {value}"), wanted)
    said = f"workload.dataset.{key} = {value}, which the native loader does not support; set workload.reader.{fix}"
    assert line == f"my.yaml:6: {said}"
    assert parsed(dataset(f"{key}: {value}")).workload.dataset


def test_first_touch_needs_epochs_that_read() -> None:
    line = refusal(SMALL, "policy=first-touch", "read_ahead=all")
    assert (
        "placement.policy = first-touch keeps files for later epochs, but with workload.reader.read_ahead: all" in line
    )
    assert parsed(SMALL, "policy=first-touch").placement


@pytest.mark.parametrize(
    ("settings", "said", "fix"),
    [
        (("tier=bb",), "tier = bb; tiers: lfs, gfs", "tier=lfs"),
        (("zero_stage=1", "model_parameters=10"), "zero_stage = 1 splits the state over ranks, but mode = rank_zero; set mode: all_ranks", "mode=all_ranks"),
        (("zero_stage=3", "mode=all_ranks"), "zero_stage = 3, but model_parameters is not set; add it", "model_parameters=10"),
        (("tensor_parallel=2", "model_parameters=10"), "tensor_parallel = 2 splits the model over ranks, but mode = rank_zero; set mode: all_ranks", "mode=all_ranks"),
        (("data_parallel=2", "mode=all_ranks"), "data_parallel = 2, but model_parameters is not set; add it", "model_parameters=10"),
        (("transformer.num_layers=2",), "transformer.num_layers = 2, but model_parameters is not set; add it", "model_parameters=10"),
        (("transformer.num_layers=2", "pipeline_parallel=3", "mode=all_ranks", "model_parameters=10"), "pipeline_parallel = 3, but the model has 2 layers; lower it", "pipeline_parallel=2"),
        (("drain=true",), "drain = true copies checkpoints to the last tier, but tier = gfs is the last; set a nearer one, or drain: false", "tier=lfs"),
    ],
)  # fmt: skip
def test_what_checkpoints_need(settings: tuple[str, ...], said: str, fix: str) -> None:
    assert refusal(SMALL, *(f"checkpoint.{one}" for one in settings)).endswith(f": workload.checkpoint.{said}")
    kept = [one for one in settings if one.partition("=")[0] != fix.partition("=")[0]]
    assert parsed(SMALL, *(f"checkpoint.{one}" for one in (*kept, fix))).workload.checkpoint


PYTHON_ONLY = {
    "metadata_servers": ("metadata_servers: 2", "metadata_servers = 2"),
    "metadata_variation": ("metadata_variation: 10%", "metadata_variation = 10%"),
    "stripe_count": ("stripe_count: 3", "stripe_count = 3"),
    "service_variation": ("service_variation: 150%", "service_variation = 150%"),
    "discipline": ("discipline: sharing", "discipline = sharing"),
    "device_bandwidth": ("device_bandwidth: 3 MB/s", "device_bandwidth = 3 MB/s"),
}


@pytest.mark.parametrize("name", PYTHON_ONLY)
@pytest.mark.parametrize(
    ("wanted", "fix"), [("data_loader: native", "data_loader: auto or threads"), ("odirect: true", "odirect: false")]
)
def test_what_the_native_loader_does_not_emulate(name: str, wanted: str, fix: str) -> None:
    line, said = PYTHON_ONLY[name]
    rates = ("gfs.metadata_ops=9/s", "gfs.bandwidth=9 MB/s", "gfs.servers=3", "gfs.gateway_bandwidth=9 MB/s")
    text = edited("batch_size: 4", f"batch_size: 4\n    {wanted}", tier_keys(line))
    assert refusal(text, *rates, "gfs.emulate=true") == (
        f"my.yaml:19: system.tiers.gfs.{said}, which the native loader does not emulate; "
        f"set workload.reader.{fix}, or remove the key"
    )
    assert parsed(text, *rates).system.tiers[1]  # a tier that is measured as it is
    assert parsed(tier_keys(line), *rates, "gfs.emulate=true").system.tiers[1].emulate


def test_what_the_native_loader_emulates() -> None:
    text = edited(
        "batch_size: 4", "batch_size: 4\n    data_loader: native", tier_keys("emulate: true", "background: 50%")
    )
    rates = ("gfs.metadata_latency=1 ms", "gfs.metadata_ops=9/s", "gfs.read_ops=9/s", "gfs.node_bandwidth=1 MB/s")
    assert parsed(text, *rates, "gfs.latency=1 ms", "gfs.servers=4", "gfs.variation=10%").system.tiers[1].emulate
