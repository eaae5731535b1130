"""What every registered loader must do: the plan's samples, in its order, whatever the knobs; no thread left behind."""

import errno
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.accesses import Counting, Failing, os_error
from tests.in_memory import tmp_path_factory
from tests.small_study import (
    NEEDS_LIBRARY,
    loader_of,
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
from tierscope.errors import DamagedDataError, StoppedError, UserError, VanishedDataError
from tierscope.formats import FORMATS
from tierscope.loaders import LOADERS
from tierscope.spec.study import Study
from tierscope.storage.access import Access, Directory, Punctuality

__all__ = ["tmp_path_factory"]

# Datasets of 24 samples. Whole files in one read, several samples per file, several extents per sample.
DATASETS = {
    "tfrecord-1": ("format=tfrecord",),
    "raw-3": ("format=raw", "num_files_train=8", "num_samples_per_file=3"),
    "npz-4": ("format=npz", "num_files_train=6", "num_samples_per_file=4"),
}

# Those of frameworks are tested where these are installed: tests/integration.
OURS = [name for name in LOADERS if LOADERS.entries[name].extra is None]
loaders = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=NEEDS_LIBRARY) if name == "native" else name for name in OURS]
)
# Those that read through the accesses of their source, which a test may replace.
python_loaders = pytest.mark.parametrize("name", [name for name in OURS if name != "native"])
# One lane takes the short way for whole files; several lanes take the general one.
ways = pytest.mark.parametrize(
    "way",
    [("read_threads=1",), ("read_threads=2",), ("read_threads=1", "transfer_size=512")],
    ids=["short", "general", "transfers"],
)


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> str:
    """All datasets, for tests that only read."""
    out = str(tmp_path_factory.mktemp("staged"))
    for settings in DATASETS.values():
        stage(small_study(*settings), out)
    return out


@pytest.fixture(scope="module")
def staged_alone(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The plain dataset alone."""
    out = str(tmp_path_factory.mktemp("staged-alone"))
    stage(small_study(), out)
    return out


@pytest.fixture
def own(staged_alone: str, tmp_path: Path) -> Path:
    """A copy of the plain dataset that a test may spoil."""
    return Path(shutil.copytree(staged_alone, tmp_path / "own"))


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert [thread.name for thread in threading.enumerate() if thread not in before] == []


@dataclass(frozen=True)
class Epoch:
    """Everything that a loader gave in one epoch."""

    batches: list[list[int]]  # samples of each
    numbers: list[int]  # as the payloads carry them
    sizes: set[int]


def read_epoch(study: Study, source_out: str, name: str, access: Callable[[], Access] = Directory) -> Epoch:
    loader = loader_of(study, source_of(study, source_out, access), name)
    batches, numbers, sizes = [], [], set()
    with reading(loader, plan_of(study).reads(0, 1)) as given:
        for step, batch in enumerate(given):
            assert batch.step == step
            assert len(batch.samples) == len(batch.payloads)
            batches.append(list(batch.samples))
            numbers += [content.sample_number(payload) for payload in batch.payloads]
            sizes |= {payload.nbytes for payload in batch.payloads}
    loader.finish()
    return Epoch(batches, numbers, sizes)


class TestOrder:
    @loaders
    @pytest.mark.parametrize("dataset", DATASETS)
    @hypothesis_settings(max_examples=12)
    @given(
        batch_size=st.integers(1, 30),
        threads=st.integers(1, 4),
        prefetch=st.integers(0, 6),
        transfer=st.sampled_from([512, 1000, 4096]),
    )
    def test_samples_come_in_plan_order_for_any_knobs(
        self, staged: str, name: str, dataset: str, batch_size: int, threads: int, prefetch: int, transfer: int
    ) -> None:
        knobs = (f"batch_size={batch_size}", f"read_threads={threads}", f"prefetch_size={prefetch}")
        study = small_study(*DATASETS[dataset], *knobs, f"transfer_size={transfer}")
        planned = planned_samples(plan_of(study))
        epoch = read_epoch(study, staged, name)
        assert sorted(planned) == list(range(24))
        assert epoch.numbers == planned
        assert epoch.sizes == {1000}
        assert epoch.batches == [planned[start : start + batch_size] for start in range(0, 24, batch_size)]

    @loaders
    def test_batches_larger_than_256_end(self, tmp_path: Path, name: str) -> None:
        """A peer compares sizes with `is not` and never ends past 256."""
        study = small_study("num_files_train=600", "batch_size=257", "record_length_bytes=8", "cache_rate=0")
        stage(study, str(tmp_path))
        epoch = read_epoch(study, str(tmp_path), name)
        assert [len(batch) for batch in epoch.batches] == [257, 257, 86]
        assert epoch.numbers == planned_samples(plan_of(study))

    @loaders
    def test_an_epoch_longer_than_a_block_of_the_plan(self, tmp_path: Path, name: str) -> None:
        settings = ("num_files_train=9", "num_samples_per_file=1000", "record_length_bytes=8", "batch_size=1000")
        study = small_study(*settings, "shuffle=off", "cache_rate=0", "format=raw")
        stage(study, str(tmp_path))
        epoch = read_epoch(study, str(tmp_path), name)
        assert epoch.numbers == list(range(9000))
        assert [len(batch) for batch in epoch.batches] == [1000] * 9

    @loaders
    def test_shuffle_changes_the_order_that_is_read(self, staged: str, name: str) -> None:
        orders = [
            read_epoch(small_study(*DATASETS["raw-3"], f"shuffle={shuffle}"), staged, name).numbers
            for shuffle in ("off", "global")
        ]
        assert orders[0] == list(range(24))
        assert orders[1] != orders[0]
        assert sorted(orders[1]) == orders[0]


class TestMemory:
    @loaders
    @pytest.mark.parametrize("prefetch", [0, 1, 3])
    def test_memory_is_a_few_batches_that_are_used_again(self, staged: str, name: str, prefetch: int) -> None:
        study = small_study("batch_size=2", f"prefetch_size={prefetch}")
        loader = loader_of(study, source_of(study, staged), name)
        with reading(loader, plan_of(study).reads(0, 1)) as batches:
            places = [[np.frombuffer(payload, np.uint8).ctypes.data for payload in batch.payloads] for batch in batches]
        loader.finish()
        assert len(places) == 12
        assert len({place for batch in places for place in batch}) == 2 * (1 if name == "inline" else prefetch + 1)

    @loaders
    def test_a_batch_keeps_its_content_until_the_next_is_asked_for(self, staged: str, name: str) -> None:
        study = small_study("batch_size=1", "prefetch_size=5", "read_threads=2")
        loader = loader_of(study, source_of(study, staged), name)
        with reading(loader, plan_of(study).reads(0, 1)) as batches:
            for batch in batches:
                before = bytes(batch.payloads[0])
                threading.Event().wait(0.002)  # time to read ahead
                assert bytes(batch.payloads[0]) == before
                assert content.sample_number(batch.payloads[0]) == batch.samples[0]
        loader.finish()


class TestRecord:
    @python_loaders
    @pytest.mark.parametrize("dataset", DATASETS)
    @pytest.mark.parametrize("threads", [1, 3])
    @pytest.mark.parametrize("transfer", [512, 262144])
    def test_totals_are_what_was_really_done(
        self, staged: str, name: str, dataset: str, threads: int, transfer: int
    ) -> None:
        knobs = (f"read_threads={threads}", f"transfer_size={transfer}")
        study = small_study(*DATASETS[dataset], *knobs)
        access = Counting()
        loader = loader_of(study, source_of(study, staged, lambda: access), name)
        with reading(loader, plan_of(study).reads(0, 1)) as batches:
            read_ns = [batch.read_ns for batch in batches]
        tables, punctuality = loader.finish()
        assert [table.lane for table in tables] == list(range(1 if name == "inline" else threads))
        for tier, folder in enumerate(("/lfs/", "/gfs/")):
            opened = sum(folder in path for path in access.opened)
            assert 0 < opened == totals(tables, "ops", "open")[tier] == totals(tables, "ops", "close")[tier]
        assert len(access.opened) == access.closes
        assert sum(totals(tables, "ops", "read")) == len(access.reads)
        assert sum(totals(tables, "nbytes", "read")) == sum(got for _, got in access.reads)
        assert sum(totals(tables, "nbytes", "open")) == 0
        assert sum(totals(tables, "ops", "stat")) == sum(totals(tables, "ops", "write")) == 0
        assert punctuality == Punctuality()
        busy = sum(sum(totals(tables, "busy_ns", kind)) for kind in ("open", "read", "close"))
        wall = sum(sum(totals(tables, "wall_ns", kind)) for kind in ("open", "read", "close"))
        assert 0 < wall <= busy + 1000
        assert wall <= sum(read_ns) + 1000  # a batch's time covers its operations, threads not summed

    @python_loaders
    @pytest.mark.parametrize("threads", [1, 2])
    def test_transfer_size_splits_reads(self, staged: str, name: str, threads: int) -> None:
        def sizes(transfer: int) -> list[int]:
            study = small_study(f"transfer_size={transfer}", f"read_threads={threads}")
            access = Counting()
            read_epoch(study, staged, name, lambda: access)
            return sorted(got for _, got in access.reads)

        assert sizes(1016) == [1016] * 24  # a TFRecord of 1000 bytes
        assert sizes(1015) == [1] * 24 + [1015] * 24
        assert sizes(600) == [416] * 24 + [600] * 24

    @python_loaders
    def test_neighbours_in_one_file_share_an_open(self, staged: str, name: str) -> None:
        study = small_study(*DATASETS["raw-3"], "shuffle=off", "batch_size=6", "prefetch_size=0")
        access = Counting()
        read_epoch(study, staged, name, lambda: access)
        assert len(access.opened) == 8  # not 24
        assert access.closes == 8


def write_over(path: str, offset: int, byte: int) -> None:
    with open(path, "r+b") as out:
        out.seek(offset)
        out.write(bytes([byte]))


class TestErrors:
    """On data of their own, and on each way of reading."""

    def fail(self, study: Study, out: Path, name: str, access: Callable[[], Access] = Directory) -> BaseException:
        with pytest.raises(Exception) as caught:  # noqa: PT011  (which one it is is what the tests look at)
            read_epoch(study, str(out), name, access)
        assert "\n" not in str(caught.value)
        return caught.value

    def victim(self, study: Study, out: Path) -> str:
        """A file in the middle of the epoch, where it is read."""
        block = next(plan_of(study).reads(0, 1))
        middle = len(block.files) // 2
        return tier_files(study, str(out))[int(block.tiers[middle])].path(int(block.files[middle]))

    @loaders
    @ways
    def test_a_vanished_file_is_named(self, own: Path, name: str, way: tuple[str, ...]) -> None:
        study = small_study(*way)
        os.unlink(self.victim(study, own))
        error = self.fail(study, own, name)
        assert isinstance(error, VanishedDataError)
        assert str(error).startswith(
            f"{self.victim(study, own)}: has disappeared; rerun the same command to write missing files again"
        )

    @loaders
    @ways
    @pytest.mark.parametrize("left", [0, 700])
    def test_a_truncated_file_is_named(self, own: Path, name: str, way: tuple[str, ...], left: int) -> None:
        study = small_study(*way)
        os.truncate(self.victim(study, own), left)
        error = self.fail(study, own, name)
        assert isinstance(error, VanishedDataError)
        expected = (
            f"{self.victim(study, own)}: sample 0: truncated: {left} of 1016 bytes at offset 0; rerun the same command"
        )
        assert str(error).startswith(expected)

    @loaders
    @ways
    @pytest.mark.parametrize(("offset", "what"), [(500, "checksum"), (3, "header"), (1015, "checksum")])
    def test_wrong_content_is_named(self, own: Path, name: str, way: tuple[str, ...], offset: int, what: str) -> None:
        study = small_study(*way)
        path = self.victim(study, own)
        write_over(path, offset, Path(path).read_bytes()[offset] ^ 1)
        error = self.fail(study, own, name)
        assert isinstance(error, DamagedDataError)
        assert str(error).startswith(f"{path}: sample 0: wrong TFRecord {what}")
        assert "delete the file and rerun" in str(error)

    @loaders
    def test_the_damaged_sample_of_a_file_is_named(self, tmp_path: Path, name: str) -> None:
        study = small_study("num_files_train=6", "num_samples_per_file=4", "cache_rate=0")
        stage(study, str(tmp_path))
        path = tier_files(study, str(tmp_path))[1].path(2)
        write_over(path, 3 * 1016 + 20, Path(path).read_bytes()[3 * 1016 + 20] ^ 1)
        assert str(self.fail(study, tmp_path, name)).startswith(f"{path}: sample 3: wrong TFRecord checksum")

    @python_loaders
    @ways
    @pytest.mark.parametrize("operation", ["open", "preadv", "close"])
    @pytest.mark.parametrize(
        ("number", "kind", "words"),
        [
            (errno.EACCES, UserError, "permission denied"),
            (errno.ESTALE, VanishedDataError, "has disappeared"),
            (errno.EIO, StoppedError, "cannot be read: Input/output error"),
        ],
    )
    def test_what_the_system_says_becomes_one_line(
        self, staged: str, name: str, way: tuple[str, ...], operation: str, number: int, kind: type, words: str
    ) -> None:
        access = Failing(operation, os_error(number), after=7)
        error = self.fail(small_study(*way), Path(staged), name, lambda: access)
        assert type(error) is kind
        path, _, rest = str(error).partition(": ")
        assert os.path.exists(path)
        assert rest.startswith(words)
        assert access.open_fds == set()  # nothing is left open

    @python_loaders
    @ways
    def test_a_bug_in_a_reading_thread_surfaces_as_it_is(self, staged: str, name: str, way: tuple[str, ...]) -> None:
        bug = RuntimeError("a bug")
        access = Failing("preadv", bug, after=11)
        assert self.fail(small_study(*way), Path(staged), name, lambda: access) is bug
        assert access.open_fds == set()

    @python_loaders
    def test_batches_before_the_error_are_delivered(self, staged: str, name: str) -> None:
        study = small_study("prefetch_size=0")
        access = Failing("open", os_error(errno.EIO), after=12)
        loader = loader_of(study, source_of(study, staged, lambda: access), name)
        with reading(loader, plan_of(study).reads(0, 1)) as batches:
            assert [len(next(batches).samples) for _ in range(2)] == [5, 5]
            with pytest.raises(StoppedError):
                next(batches)

    @loaders
    def test_leaving_early_leaves_nothing_running(self, staged: str, name: str) -> None:
        study = small_study("read_threads=3", "prefetch_size=4", "batch_size=2")
        loader = loader_of(study, source_of(study, staged), name)
        with reading(loader, plan_of(study).reads(0, 1)) as batches:
            next(batches)
        assert [thread for thread in threading.enumerate() if thread.name.startswith("reader-")] == []


def test_formats_that_are_not_used_here_are_none_of_the_fastest() -> None:
    """All of them: tests/loaders/test_every_format.py."""
    assert {dataset.split("-")[0] for dataset in DATASETS} | {"npy", "csv"} == set(
        FORMATS.where(lambda form: form.natively)
    )
