"""The loader in C does what the loaders in Python do: the same samples, operations, lists and errors; only times differ."""

import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.accesses import wait_until
from tests.examples import examples
from tests.nightly import every_value_in_ci
from tests.small_study import (
    NEEDS_LIBRARY,
    has_uring,
    loader_of,
    node_source,
    plan_of,
    planned_samples,
    reading,
    small_study,
    source_of,
    stage,
    tier_files,
    totals,
)
from tierscope.dataset import content
from tierscope.errors import TierscopeError, UserError
from tierscope.formats import FORMATS, Extent, Shape
from tierscope.loaders import LOADERS, Reach, SampleSource
from tierscope.loaders.native import NativeLoader, affine_extents
from tierscope.plan.plan import Block
from tierscope.spec.study import Study
from tierscope.storage.access import Directory
from tierscope.storage.emulated import Board
from tierscope.storage.files import DatasetFiles
from tierscope.storage.stations import map_stations
from tierscope.trace.ops import KINDS, OP_ROW
from tierscope.trace.recorder import LaneTable, OpSink, Recording

pytestmark = NEEDS_LIBRARY

# Datasets of 24 samples: whole files, several samples per file, several extents per sample, several transfers, subfolders.
DATASETS = {
    "tfrecord-1": ("format=tfrecord",),
    "tfrecord-4": ("format=tfrecord", "num_files_train=6", "num_samples_per_file=4"),
    "raw-3": ("format=raw", "num_files_train=8", "num_samples_per_file=3", "num_subfolders_train=3"),
    "raw-large": ("format=raw", "record_length_bytes=50000"),
    "npz-1": ("format=npz", "num_subfolders_train=5"),
    "npz-4": ("format=npz", "num_files_train=6", "num_samples_per_file=4"),
}
datasets = pytest.mark.parametrize("dataset", DATASETS)
MODES = {
    "pread": Reach(),
    "direct": Reach(odirect=True),
    "uring": Reach(io_engine="uring"),
    "uring-direct": Reach(io_engine="uring", odirect=True),
}
modes = pytest.mark.parametrize("mode", MODES)


def takes_direct(folder: Path) -> bool:
    """Whether the filesystem there reads past the page cache."""
    path = folder / "probe"
    path.write_bytes(bytes(4096))
    try:
        os.close(os.open(path, os.O_RDONLY | os.O_DIRECT))
    except OSError:
        return False
    return True


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> str:
    out = str(tmp_path_factory.mktemp("staged"))
    for settings in DATASETS.values():
        stage(small_study(*settings), out)
    return out


@pytest.fixture(scope="module")
def staged_alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Nothing but the plain dataset, for tests that spoil a copy of it."""
    out = str(tmp_path_factory.mktemp("staged-alone"))
    stage(small_study(), out)
    return out


@pytest.fixture
def reach(mode: str, tmp_path: Path) -> Reach:
    if "uring" in mode and not has_uring():
        pytest.skip("no io_uring here")
    if "direct" in mode and not takes_direct(tmp_path):
        pytest.skip("the filesystem of the tests has no O_DIRECT")
    return MODES[mode]


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    """Neither threads nor descriptors."""
    tasks, fds = set(os.listdir("/proc/self/task")), set(os.listdir("/proc/self/fd"))
    yield
    assert wait_until(lambda: not set(map(task_name, set(os.listdir("/proc/self/task")) - tasks)) - {""})
    assert set(os.listdir("/proc/self/fd")) <= fds  # fewer: what earlier tests left was collected meanwhile


def task_name(task: str) -> str:
    """Nothing for one that is gone, or that the kernel has for its rings."""
    try:
        name = Path(f"/proc/self/task/{task}/comm").read_text()
    except OSError:
        return ""
    return "" if name.startswith("iou-") else name


class Epoch:
    """Everything that a loader gave and recorded in one epoch."""

    def __init__(self, study: Study, source: SampleSource, name: str, ops: Path | None = None) -> None:
        sink = OpSink(str(ops)) if ops else None
        loader = loader_of(study, source, name, sink)
        self.samples: list[list[int]] = []
        self.contents: list[bytes] = []
        self.read_ns = 0
        start = time.monotonic_ns()
        with reading(loader, plan_of(study).reads(0, 1)) as batches:
            for batch in batches:
                self.samples.append(list(batch.samples))
                self.contents += [bytes(payload) for payload in batch.payloads]
                self.read_ns += batch.read_ns
        self.elapsed_ns = time.monotonic_ns() - start
        self.tables, self.punctuality = loader.finish()
        if sink:
            sink.close()
        self.rows = np.fromfile(ops, OP_ROW) if ops else np.empty(0, OP_ROW)

    def sums(self, what: str) -> list[list[int]]:
        return [totals(self.tables, what, kind) for kind in KINDS]

    def size_histograms(self) -> list[int]:
        return list(np.sum([table.sizes for table in self.tables], axis=0))


def timeless(rows: np.ndarray) -> list[tuple[int, ...]]:
    """The list of operations without times, and without the lane, which chance decides."""
    names = ("epoch", "step", "tier", "file", "kind", "offset", "bytes")
    return sorted(tuple(int(row[name]) for name in names) for row in rows)


class TestSameAsPython:
    @datasets
    @pytest.mark.parametrize(
        ("threads", "transfer", "shuffle"), every_value_in_ci([0, 1, 3], [512, 1016, 262144], ["global", "off"])
    )
    def test_operations_and_samples(
        self, staged: str, tmp_path: Path, dataset: str, threads: int, transfer: int, shuffle: str
    ) -> None:
        knobs = (f"read_threads={threads}", f"transfer_size={transfer}", f"shuffle={shuffle}", "prefetch_size=1")
        study = small_study(*DATASETS[dataset], *knobs)
        source = source_of(study, staged)
        python = Epoch(study, source, "threads" if threads else "inline", tmp_path / "python")
        native = Epoch(study, source, "native", tmp_path / "native")
        assert native.samples == python.samples
        assert native.contents == python.contents
        assert native.sums("ops") == python.sums("ops")
        assert native.sums("nbytes") == python.sums("nbytes")
        assert native.size_histograms() == python.size_histograms()
        assert timeless(native.rows) == timeless(python.rows)
        assert [table.lane for table in native.tables] == list(range(max(1, threads)))
        assert native.punctuality == python.punctuality

    @modes
    @datasets
    @hypothesis_settings(max_examples=6)
    @given(
        batch_size=st.integers(1, 30),
        threads=st.integers(1, 4),
        prefetch=st.integers(0, 5),
        transfer=st.sampled_from([512, 5000, 1 << 20]),
    )
    def test_samples_in_every_mode(
        self, staged: str, mode: str, dataset: str, batch_size: int, threads: int, prefetch: int, transfer: int
    ) -> None:
        if "uring" in mode and not has_uring():
            pytest.skip("no io_uring here")
        if "direct" in mode and not takes_direct(Path(staged)):
            pytest.skip("the filesystem of the tests has no O_DIRECT")
        knobs = (f"batch_size={batch_size}", f"read_threads={threads}", f"prefetch_size={prefetch}")
        study = small_study(*DATASETS[dataset], *knobs, f"transfer_size={transfer}")
        source = replace(source_of(study, staged), reach=MODES[mode])
        epoch = Epoch(study, source, "native")
        planned = planned_samples(plan_of(study))
        assert [sample for batch in epoch.samples for sample in batch] == planned
        length = study.workload.dataset.record_length_bytes
        for sample, found in zip(planned, epoch.contents, strict=True):
            assert found == b"".join(bytes(piece) for piece in content.payload(study.seed, sample, length))

    @datasets
    @pytest.mark.parametrize("threads", [1, 3])
    def test_io_uring_does_the_same_operations(self, staged: str, tmp_path: Path, dataset: str, threads: int) -> None:
        if not has_uring():
            pytest.skip("no io_uring here")
        study = small_study(*DATASETS[dataset], f"read_threads={threads}", "transfer_size=1000")
        source = source_of(study, staged)
        python = Epoch(study, source, "threads", tmp_path / "python")
        native = Epoch(study, replace(source, reach=MODES["uring"]), "native", tmp_path / "native")
        assert timeless(native.rows) == timeless(python.rows)
        assert native.sums("ops") == python.sums("ops")

    def test_whole_blocks_are_read_past_the_page_cache(self, staged: str, tmp_path: Path) -> None:
        if not takes_direct(tmp_path):
            pytest.skip("the filesystem of the tests has no O_DIRECT")
        study = small_study(*DATASETS["raw-large"], "transfer_size=9000")
        native = Epoch(study, replace(source_of(study, staged), reach=MODES["direct"]), "native", tmp_path / "native")
        reads = native.rows[native.rows["kind"] == KINDS.index("read")]
        assert sorted(set(reads["offset"].tolist())) == list(range(0, 50_000, 8192))
        assert set(reads["bytes"].tolist()) == {8192, 50_000 % 8192}


class TestTimes:
    @modes
    @datasets
    @pytest.mark.parametrize("threads", [1, 3])
    def test_the_wall_clock_is_shared_and_never_more_than_there_was(
        self, staged: str, reach: Reach, dataset: str, threads: int
    ) -> None:
        study = small_study(*DATASETS[dataset], f"read_threads={threads}", "transfer_size=1000")
        epoch = Epoch(study, replace(source_of(study, staged), reach=reach), "native")
        busy, wall = (np.array(epoch.sums(what)).sum() for what in ("busy_ns", "wall_ns"))
        ops = np.array(epoch.sums("ops")).sum()
        assert 0 < wall <= busy + ops
        assert wall <= epoch.elapsed_ns
        assert wall <= epoch.read_ns + ops  # a batch's time covers its operations

    @pytest.mark.parametrize("threads", [0, 1])
    def test_one_lane_has_the_wall_clock_to_itself(self, staged: str, threads: int) -> None:
        study = small_study(f"read_threads={threads}")
        epoch = Epoch(study, source_of(study, staged), "native")
        assert epoch.sums("wall_ns") == epoch.sums("busy_ns")

    def test_operations_follow_each_other_in_a_lane(self, staged: str, tmp_path: Path) -> None:
        study = small_study(*DATASETS["npz-4"], "read_threads=3", "transfer_size=512")
        rows = Epoch(study, source_of(study, staged), "native", tmp_path / "ops").rows
        for lane in set(rows["lane"].tolist()):
            own = rows[rows["lane"] == lane]
            ends = own["start_ns"] + own["busy_ns"]
            assert (ends[:-1] <= own["start_ns"][1:]).all()

    def test_a_long_list_is_whole(self, tmp_path: Path) -> None:
        """Longer than the memory that a lane keeps for it."""
        study = small_study(
            "num_files_train=600", "record_length_bytes=8", "cache_rate=0", "read_threads=2", "epochs=1"
        )
        stage(study, str(tmp_path))
        epoch = Epoch(study, source_of(study, str(tmp_path)), "native", tmp_path / "ops")
        assert len(epoch.rows) == 3 * 600
        assert int(epoch.rows["busy_ns"].sum()) == np.array(epoch.sums("busy_ns")).sum()

    def test_a_list_that_cannot_be_written_is_an_error(self, staged: str, tmp_path: Path) -> None:
        study = small_study()
        sink = OpSink(str(tmp_path / "ops"))
        with open("/dev/full", "wb") as full:
            os.dup2(full.fileno(), sink.descriptor)
        loader = loader_of(study, source_of(study, staged), "native", sink)
        with reading(loader, plan_of(study).reads(0, 1)) as batches:
            assert len(list(batches)) == 5
        with pytest.raises(OSError, match="No space left"):
            loader.finish()
        sink._file.close()


@hypothesis_settings(max_examples=examples(20))
@given(
    st.lists(st.integers(0, 10**12) | st.integers(0, 2000), min_size=1, max_size=8, unique=True),
    st.sampled_from([0, 1, 7, 10**6]),
)
def test_files_are_found_by_the_rule_of_tiers(numbers: list[int], subfolders: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = DatasetFiles(folder, f"{folder}/a b", ".raw", subfolders)
        for number in numbers:
            path = Path(names.path(number))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(number.to_bytes(8, "little"))
        source = SampleSource(FORMATS.load("raw")(Shape(1, 8)), (names,), ("gfs",), 4096, 1, lambda: (Directory(),))
        files = np.array(numbers, np.int64)
        nothing = np.zeros_like(files)
        loader = NativeLoader(source, 3, 1, 1, Recording(1))
        found = [
            int.from_bytes(payload, "little")
            for batch in loader.batches(iter([Block(files, files, nothing, nothing.astype(np.intp))]))
            for payload in batch.payloads
        ]
        loader.finish()
    assert found == numbers


def make_directory(path: str) -> None:
    os.unlink(path)
    os.mkdir(path)


def make_loop(path: str) -> None:
    os.unlink(path)
    os.symlink(path, path)


def make_socket(path: str) -> None:
    """Something that cannot be opened."""
    os.unlink(path)
    here = os.getcwd()
    os.chdir(os.path.dirname(path))  # names of sockets must be short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(os.path.basename(path))
    finally:
        os.chdir(here)


def make_unreadable(path: str) -> None:
    """Also for root."""
    forbidden = "/proc/sys/vm/compact_memory"
    os.chmod(path, 0)
    if os.access(path, os.R_OK):
        if not os.path.exists(forbidden):
            pytest.skip("nothing is forbidden here")
        os.unlink(path)
        os.symlink(forbidden, path)


def make_failing(path: str) -> None:
    """Reading our own memory at address 0 is an input/output error."""
    os.unlink(path)
    os.symlink("/proc/self/mem", path)


def spoil_content(path: str) -> None:
    with open(path, "r+b") as file:
        file.seek(500)
        byte = file.read(1)[0]
        file.seek(500)
        file.write(bytes([byte ^ 1]))


SPOILERS: dict[str, Callable[[str], None]] = {
    "vanished": os.unlink,
    "empty": lambda path: os.truncate(path, 0),
    "short": lambda path: os.truncate(path, 700),
    "shorter by one": lambda path: os.truncate(path, 1015),
    "a directory": make_directory,
    "a loop": make_loop,
    "a socket": make_socket,
    "unreadable": make_unreadable,
    "failing": make_failing,
    "wrong": spoil_content,
}


class TestErrors:
    def victim(self, study: Study, out: Path, place: int) -> str:
        block = next(plan_of(study).reads(0, 1))
        return tier_files(study, str(out))[int(block.tiers[place])].path(int(block.files[place]))

    def error(self, study: Study, source: SampleSource, name: str) -> TierscopeError:
        with pytest.raises(TierscopeError) as caught:
            Epoch(study, source, name)
        return caught.value

    @pytest.mark.parametrize("spoiler", SPOILERS)
    @pytest.mark.parametrize("way", [("read_threads=0",), ("read_threads=1",), ("read_threads=3", "transfer_size=512")])
    def test_they_read_as_those_of_python(
        self, staged_alone: str, tmp_path: Path, spoiler: str, way: tuple[str, ...]
    ) -> None:
        own = Path(shutil.copytree(staged_alone, tmp_path / "own"))
        study = small_study(*way)
        SPOILERS[spoiler](self.victim(study, own, 13))
        source = source_of(study, str(own))
        python, native = self.error(study, source, "inline"), self.error(study, source, "native")
        assert type(native) is type(python)
        assert str(native) == str(python)

    @pytest.mark.parametrize("spoiler", SPOILERS)
    @pytest.mark.parametrize("mode", ["uring", "direct"])
    def test_in_other_modes_too(self, staged_alone: str, tmp_path: Path, spoiler: str, reach: Reach) -> None:
        if reach.odirect and spoiler in ("a directory", "failing", "unreadable"):
            pytest.skip("not a file that could be opened with O_DIRECT")
        own = Path(shutil.copytree(staged_alone, tmp_path / "own"))
        study = small_study("read_threads=2")
        SPOILERS[spoiler](self.victim(study, own, 13))
        source = source_of(study, str(own))
        python = self.error(study, source, "inline")
        native = self.error(study, replace(source, reach=reach), "native")
        assert type(native) is type(python)
        assert str(native) == str(python)

    @pytest.mark.parametrize("mode", ["pread", "uring"])
    @pytest.mark.parametrize("threads", [1, 2])
    def test_what_comes_before_it_is_delivered_and_the_first_is_named(
        self, staged_alone: str, tmp_path: Path, reach: Reach, threads: int
    ) -> None:
        own = Path(shutil.copytree(staged_alone, tmp_path / "own"))
        study = small_study("batch_size=4", "prefetch_size=5", f"read_threads={threads}")
        for place in (14, 19, 23):
            os.unlink(self.victim(study, own, place))
        source = replace(source_of(study, str(own)), reach=reach)
        loader = loader_of(study, source, "native")
        with reading(loader, plan_of(study).reads(0, 1)) as batches:
            got = [content.sample_number(payload) for _ in range(3) for payload in next(batches).payloads]
            with pytest.raises(TierscopeError) as caught:
                next(batches)
        assert got == planned_samples(plan_of(study))[:12]
        assert str(caught.value).startswith(self.victim(study, own, 14))
        loader.finish()

    def test_a_filesystem_without_direct_reads_is_named_with_the_fix(self, tmp_path: Path) -> None:
        """A file of /proc stands in for one."""
        study = small_study("cache_rate=0", "odirect=true")
        stage(study, str(tmp_path))
        path = tier_files(study, str(tmp_path))[1].path(3)
        os.unlink(path)
        os.symlink("/proc/version", path)
        error = self.error(study, node_source(study, str(tmp_path)), "native")
        assert type(error) is UserError
        assert str(error) == (
            f"{tmp_path}/gfs: its filesystem does not support O_DIRECT; set workload.reader.odirect: false"
        )

    def test_a_kernel_that_gives_no_ring_is_named_with_the_fix(self, staged: str) -> None:
        study = small_study()
        source = replace(source_of(study, staged), reach=MODES["uring"])
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        try:
            with pytest.raises(
                UserError, match=r"does not provide io_uring \(Too many open files\); set io_engine: pread$"
            ):
                loader_of(study, source, "native")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    def test_queues_that_are_gone(self, staged: str) -> None:
        study = small_study()
        source = replace(source_of(study, staged), reach=Reach(board="/proc/1/fd/no-such-board"))
        with pytest.raises(FileNotFoundError, match="no-such-board"):
            loader_of(study, source, "native")


class TestEnds:
    @modes
    @pytest.mark.parametrize("threads", [0, 1, 3])
    def test_leaving_at_any_moment(self, staged: str, reach: Reach, threads: int) -> None:
        if reach.io_engine == "uring" and not threads:
            pytest.skip("a study cannot ask for it")
        study = small_study("batch_size=2", f"read_threads={threads}", "prefetch_size=3")
        source = replace(source_of(study, staged), reach=reach)
        dice = random.Random(threads)
        for taken in range(13):
            loader = loader_of(study, source, "native")
            with reading(loader, plan_of(study).reads(0, 1)) as batches:
                for _ in range(min(12, taken)):
                    next(batches)
                time.sleep(dice.random() / 2000)
            if taken % 2:
                loader.finish()  # or not: it may also be forgotten

    def test_a_loader_that_is_never_asked(self, staged: str) -> None:
        study = small_study("read_threads=3")
        loader_of(study, source_of(study, staged), "native")
        loader = loader_of(study, source_of(study, staged), "native")
        tables, _ = loader.finish()
        assert sum(int(table.ops.sum()) for table in tables) == 0

    @pytest.mark.parametrize("prefetch", [1, 12])
    def test_batches_after_the_end_are_refused(self, staged: str, prefetch: int) -> None:
        """Again and again: threads that wait for batches must be gone before what they look at is."""
        study = small_study("read_threads=2", "batch_size=2", f"prefetch_size={prefetch}")
        for _ in range(30):
            loader = loader_of(study, source_of(study, staged), "native")
            with reading(loader, plan_of(study).reads(0, 1)) as batches:
                next(batches)
                loader.finish()
                with pytest.raises(TierscopeError, match="the epoch is finished"):
                    next(batches)
            with pytest.raises(TierscopeError, match="finished already"):
                loader.finish()

    def test_an_epoch_without_samples(self, staged: str) -> None:
        study = small_study("read_threads=2")
        loader = loader_of(study, source_of(study, staged), "native")
        assert list(loader.batches(iter([]))) == []
        loader.finish()

    def test_payloads_outlive_the_loader(self, staged: str) -> None:
        study = small_study()
        loader = loader_of(study, source_of(study, staged), "native")
        with reading(loader, plan_of(study).reads(0, 1)) as batches:
            kept = next(batches).payloads
        loader.finish()
        del loader, batches
        assert len({bytes(payload) for payload in kept}) == 5

    def test_more_threads_than_samples(self, staged: str) -> None:
        study = small_study("batch_size=2", "read_threads=9")
        epoch = Epoch(study, source_of(study, staged), "native")
        assert sum(len(batch) for batch in epoch.samples) == 24

    def test_other_threads_of_the_interpreter_get_on_meanwhile(self, tmp_path: Path) -> None:
        """Waiting for a batch does not hold the interpreter's lock."""
        study, source, board = emulated(tmp_path, "gfs.read_ops=20/s", "batch_size=4", "prefetch_size=0")
        loader = loader_of(study, source, "native")
        ticks, stop = [], threading.Event()

        def tick() -> None:
            while not stop.wait(0.002):
                ticks.append(time.monotonic())

        ticker = threading.Thread(target=tick)
        ticker.start()
        with reading(loader, plan_of(study).reads(0, 1)) as batches:
            next(batches)  # 200 ms
        stop.set()
        ticker.join()
        loader.finish()
        board.close()
        assert len(ticks) > 20


def emulated(out: Path, *settings: str) -> tuple[Study, SampleSource, Board]:
    study = small_study("gfs.emulate=true", "cache_rate=0", *settings)
    stage(study, str(out))
    board = Board(map_stations(study.system, study.seed).count)
    return study, node_source(study, str(out), 0, board.path), board


class TestEmulated:
    @pytest.mark.parametrize("threads", [0, 1, 3])
    def test_one_queue_serves_all_threads_at_its_rate(self, tmp_path: Path, threads: int) -> None:
        study, source, board = emulated(
            tmp_path, "gfs.read_ops=500/s", "gfs.metadata_ops=1000/s", f"read_threads={threads}"
        )
        epoch = Epoch(study, source, "native")
        board.close()
        assert epoch.elapsed_ns >= 24 * 2_000_000
        assert totals(epoch.tables, "busy_ns", "read")[1] >= 24 * 2_000_000
        assert totals(epoch.tables, "busy_ns", "open")[1] >= 24 * 1_000_000
        assert totals(epoch.tables, "busy_ns", "close")[1] < 24 * 1_000_000  # a close takes no slot
        assert epoch.punctuality.late_ops <= epoch.punctuality.limited_ops == 48

    def test_servers_work_side_by_side_and_latency_is_outside(self, tmp_path: Path) -> None:
        """24 reads of 10 ms: 4 threads on 4 servers take about 6 of them, on one server 24."""
        settings = ("gfs.read_ops=100/s", "gfs.latency=3 ms", "read_threads=4", "batch_size=4", "shuffle=off")
        seconds = {}
        for servers in (1, 4):
            study, source, board = emulated(tmp_path, *settings, f"gfs.servers={servers}")
            epoch = Epoch(study, source, "native")
            board.close()
            assert totals(epoch.tables, "busy_ns", "read")[1] >= 24 * 13_000_000
            seconds[servers] = epoch.elapsed_ns / 1e9
        assert seconds[1] >= 0.24
        assert seconds[4] < 0.8 * seconds[1]

    def test_a_gateway_limits_by_bytes(self, tmp_path: Path) -> None:
        study, source, board = emulated(tmp_path, "gfs.gateway_bandwidth=1 MB/s", "read_threads=2", "gfs.latency=0 s")
        epoch = Epoch(study, source, "native")
        board.close()
        assert epoch.elapsed_ns >= 24 * 1016 * 1000
        assert epoch.punctuality.limited_ops == 24

    def test_a_link_of_a_node_limits_as_a_gateway_does(self, tmp_path: Path) -> None:
        study, source, board = emulated(tmp_path, "gfs.node_bandwidth=1 MB/s", "read_threads=2")
        epoch = Epoch(study, source, "native")
        board.close()
        assert epoch.elapsed_ns >= 24 * 1016 * 1000
        assert epoch.punctuality.limited_ops == 24

    @pytest.mark.parametrize("rate", [(), ("gfs.metadata_ops=1000/s",)], ids=["alone", "behind a queue"])
    def test_opens_have_a_latency_of_their_own(self, tmp_path: Path, rate: tuple[str, ...]) -> None:
        study, source, board = emulated(tmp_path, "gfs.metadata_latency=3 ms", *rate)
        epoch = Epoch(study, source, "native")
        board.close()
        assert totals(epoch.tables, "busy_ns", "open")[1] >= 24 * (3_000_000 + 1_000_000 * len(rate))
        assert totals(epoch.tables, "busy_ns", "read")[1] < 24 * 3_000_000
        assert epoch.punctuality.limited_ops == 24

    def test_what_only_python_emulates_is_not_taken(self, tmp_path: Path) -> None:
        study, source, board = emulated(tmp_path, "gfs.read_ops=1000/s", "gfs.discipline=sharing")
        with pytest.raises(TierscopeError, match="only Python emulates"):
            loader_of(study, source, "native")
        board.close()

    def test_tiers_that_are_not_emulated_do_not_wait(self, tmp_path: Path) -> None:
        study, source, board = emulated(tmp_path, "gfs.read_ops=0.01/s", "cache_rate=100%")
        epoch = Epoch(study, source, "native")
        board.close()
        assert totals(epoch.tables, "ops", "read") == [24, 0]
        assert epoch.punctuality.limited_ops == 0

    def test_python_and_c_queue_up_together(self, tmp_path: Path) -> None:
        """Two loaders at once on one board share its rate."""
        study, source, board = emulated(tmp_path, "gfs.read_ops=1000/s")
        start = time.monotonic()
        epochs: list[Epoch] = []
        threads = [
            threading.Thread(target=lambda name: epochs.append(Epoch(study, source, name)), args=(name,))
            for name in ("threads", "native")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        board.close()
        assert len(epochs) == 2
        assert time.monotonic() - start >= 48 * 0.001


INTERRUPTED = """
import sys
from pathlib import Path
from tests.loaders.test_native import emulated
from tests.small_study import loader_of, plan_of
study, source, board = emulated(Path(sys.argv[1]), "gfs.read_ops=4/s", f"read_threads={sys.argv[2]}", "batch_size=24")
batches = loader_of(study, source, "native").batches(plan_of(study).reads(0, 1))
print("ready", flush=True)
try:
    next(batches)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.faults
@pytest.mark.parametrize("threads", [0, 2])
def test_an_interrupt_is_seen_while_a_batch_is_awaited(tmp_path: Path, threads: int) -> None:
    """The batch takes six seconds."""
    child = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path), str(threads)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    time.sleep(0.2)
    start = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "interrupted\n"
    assert child.wait(10) == 0
    child.stdout.close()
    assert time.monotonic() - start < 3


class TestExtents:
    @pytest.mark.parametrize("name", FORMATS.where(lambda form: form.natively))
    @given(samples=st.integers(1, 50), length=st.integers(1, 10_000), inside=st.integers(0, 49))
    def test_every_format_has_samples_at_equal_distances(
        self, name: str, samples: int, length: int, inside: int
    ) -> None:
        form = FORMATS.load(name)(Shape(samples, length))
        inside = min(inside, samples - 1)
        found = [(extent.first + inside * extent.step, extent.nbytes) for extent in affine_extents(form, samples)]
        assert found == [(extent.offset, extent.nbytes) for extent in form.extents(inside)]

    def test_a_format_without_them_is_refused(self) -> None:
        class Squares(FORMATS.load("raw")):  # type: ignore[misc]
            def extents(self, inside: int, file: int = 0) -> list[Extent]:
                return [Extent(inside * inside, 8)]

        with pytest.raises(TierscopeError, match="Squares: samples do not lie at equal distances"):
            affine_extents(Squares(Shape(9, 8)), 9)


def test_lanes_are_tables_like_those_of_python(staged: str) -> None:
    study = small_study("read_threads=2")
    source = source_of(study, staged)
    (native, _), (python, _) = (Epoch(study, source, name).tables for name in ("native", "threads"))
    for field in LaneTable.__dataclass_fields__:
        ours, theirs = getattr(native, field), getattr(python, field)
        assert type(ours) is type(theirs)
        if field != "lane":
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)


def test_it_is_registered_and_all_it_reads_is_recorded() -> None:
    assert LOADERS.load("native") is NativeLoader
    ours = [name for name in LOADERS if LOADERS.entries[name].extra is None]
    assert all(LOADERS.load(name).records for name in ours)
