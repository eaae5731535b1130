"""What is staged in any format and read by any loader is the plan's samples in plan order: proven from their bytes."""

import errno
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.accesses import Counting, Failing, os_error
from tests.in_memory import tmp_path_factory
from tests.nightly import every_value_in_ci, first_in_ci
from tests.small_study import (
    NEEDS_LIBRARY,
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
from tierscope.errors import DamagedDataError, StoppedError, TierscopeError, UserError, VanishedDataError
from tierscope.formats import EXTENTS, FORMATS, LIBRARY, NOTHING, WHOLE
from tierscope.plan.file_format import make_format
from tierscope.plan.sizes import SampleSizes
from tierscope.spec.study import Study

pytestmark = pytest.mark.whole

__all__ = ["tmp_path_factory"]

SAMPLES = 24
LAYOUTS = {  # files, samples in each, and who reads them
    "files": (24, 1, "shared"),
    "own files": (24, 1, "multi"),
    "many": (6, 4, "shared"),
    "own many": (6, 4, "multi"),
    "one file": (1, 24, "shared"),
}
WITH_FILES = [name for name in FORMATS if FORMATS.load(name).reading != NOTHING]


@dataclass(frozen=True)
class Case:
    format: str
    layout: str
    varies: bool

    def __str__(self) -> str:
        return f"{self.format}, {self.layout}{', varying' if self.varies else ''}"

    @property
    def dataset(self) -> tuple[str, ...]:
        files, per_file, _ = LAYOUTS[self.layout]
        return (
            f"format={self.format}",
            f"num_files_train={files}",
            f"num_samples_per_file={per_file}",
            f"record_length_bytes_stdev={150 if self.varies else 0}",
            "record_length_bytes=1001",
        )

    def study(self, *settings: str) -> Study:
        _, _, access = LAYOUTS[self.layout]
        return small_study(*self.dataset, f"file_access={access}", "ranks_per_node=2", *settings)


CASES = [
    Case(name, layout, varies)
    for name in FORMATS
    for layout, (_, per_file, _) in LAYOUTS.items()
    if per_file == 1 or FORMATS.load(name).indexed
    for varies in (False, True)
]
READERS = [("inline", 0), ("threads", 1), ("threads", 3)]
# Every case with one of the readers, and every reader with every format; then all the others.
TURNS = [
    (case, *READERS[(place + turn) % len(READERS)]) for turn in range(len(READERS)) for place, case in enumerate(CASES)
]
NATIVE = [case for case in CASES if FORMATS[case.format].natively and not case.varies]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Every dataset; who reads it changes nothing in it."""
    folder = str(tmp_path_factory.mktemp("staged"))
    for dataset in {case.dataset: case for case in CASES}.values():
        stage(dataset.study(), folder)
    return folder


def expected(study: Study, sample: int) -> bytes:
    dataset = study.workload.dataset
    file, inside = divmod(sample, dataset.num_samples_per_file)
    sizes = SampleSizes.of(dataset, study.seed, FORMATS.load(dataset.format).ragged)
    nbytes = int(sizes.of_file(file)[inside]) if dataset.record_length_bytes_stdev else dataset.record_length_bytes
    return b"".join(content.payload(study.seed, sample, nbytes, dataset.compressibility))


def delivered(study: Study, out: str, name: str, rank: int = 0) -> list[bytes]:
    """The samples that a rank gets, decoded."""
    form = make_format(study)
    source = node_source(study, out, rank=rank)
    loader, found = loader_of(study, source, name), []
    with reading(loader, plan_of(study).reads(rank, 1)) as batches:
        for batch in batches:
            found += [bytes(form.decode(payload)) for payload in batch.payloads]
    loader.finish()
    return found


def assert_delivered(study: Study, out: str, name: str) -> None:
    plan, read = plan_of(study), []
    for rank in range(study.system.ranks):
        planned = planned_samples(plan, rank)
        found = delivered(study, out, name, rank)
        assert [content.sample_number(memoryview(sample)) for sample in found] == planned
        if study.workload.dataset.format != "jpeg":  # which changes its pixels
            wanted = [expected(study, sample) for sample in planned]
            assert [got[: len(want)] for got, want in zip(found, wanted, strict=True)] == wanted
            assert not b"".join(got[len(want) :] for got, want in zip(found, wanted, strict=True)).strip(b"\0")
        read += [planned]
    assert sorted(sample for planned in read for sample in planned) == list(range(SAMPLES))
    if study.workload.reader.file_access == "multi":
        per_file = study.workload.dataset.num_samples_per_file
        assert not set.intersection(*({sample // per_file for sample in planned} for planned in read))


@pytest.mark.parametrize(("case", "name", "threads"), first_in_ci(TURNS, len(CASES)), ids=str)
def test_the_plan_s_samples_in_plan_order(out: str, case: Case, name: str, threads: int) -> None:
    assert_delivered(case.study(f"read_threads={threads}", "batch_size=7", "transfer_size=600"), out, name)


@NEEDS_LIBRARY
@pytest.mark.parametrize("case", NATIVE, ids=str)
@pytest.mark.parametrize("threads", [0, 2])
def test_natively_too(out: str, case: Case, threads: int) -> None:
    assert_delivered(case.study(f"read_threads={threads}", "batch_size=7", "transfer_size=600"), out, "native")


@pytest.mark.parametrize("name", [name for name in WITH_FILES if FORMATS.load(name).reading != EXTENTS])
@pytest.mark.parametrize("threads", [1, 3])
def test_what_was_really_done_is_recorded(out: str, name: str, threads: int) -> None:
    """A mapped file is not read by calls: of LMDB only what is opened can be counted."""
    case = Case(name, "many" if FORMATS.load(name).indexed else "files", False)
    study, access = case.study(f"read_threads={threads}", "batch_size=6"), Counting()
    loader = loader_of(study, source_of(study, out, lambda: access))
    with reading(loader, plan_of(study).reads(0, 1)) as batches:
        assert sum(len(batch.samples) for batch in batches) == 12
    tables, _ = loader.finish()
    assert 0 < len(access.opened) == sum(totals(tables, "ops", "open")) == sum(totals(tables, "ops", "close"))
    assert access.open_fds == set()
    if name == "lmdb":
        assert sum(totals(tables, "ops", "read")) == 12
        assert sum(totals(tables, "nbytes", "read")) == 12 * 1001
    else:
        assert sum(totals(tables, "ops", "read")) == len(access.reads)
        assert sum(totals(tables, "nbytes", "read")) == sum(got for _, got in access.reads) > 6000


@pytest.mark.parametrize("name", [name for name in WITH_FILES if FORMATS.load(name).reading == LIBRARY])
def test_a_library_s_file_stays_open_while_samples_come_from_it(out: str, name: str) -> None:
    study = Case(name, "many", False).study("shuffle=off", "file_access=multi", "read_threads=0", "cache_rate=0")
    access = Counting()
    loader = loader_of(study, source_of(study, out, lambda: access))
    with reading(loader, plan_of(study).reads(0, 1)) as batches:
        assert sum(1 for _ in batches) == 3
    loader.finish()
    assert len(access.opened) == 3  # batches of 5 out of files of 4
    assert access.open_fds == set()


class TestDamage:
    """Found in every format, and named with the file; never a traceback."""

    def fail(self, study: Study, out: Path, name: str = "") -> TierscopeError:
        loader = loader_of(study, node_source(study, str(out)), name or None)
        with pytest.raises(TierscopeError) as caught, reading(loader, plan_of(study).reads(0, 1)) as batches:
            for _ in batches:
                pass
        assert isinstance(caught.value, UserError | VanishedDataError)
        assert "\n" not in str(caught.value)
        return caught.value

    def study(self, name: str, *settings: str) -> Study:
        layout = "many" if FORMATS.load(name).indexed else "files"
        return small_study(*Case(name, layout, False).dataset, "cache_rate=0", *settings)

    def staged(self, study: Study, out: Path) -> Path:
        stage(study, str(out))
        return Path(tier_files(study, str(out))[1].path(3))

    @pytest.mark.parametrize(("name", "threads", "share"), every_value_in_ci(WITH_FILES, [0, 2], [0, 0.5, 0.98]))
    def test_a_file_that_was_cut_off(self, tmp_path: Path, name: str, threads: int, share: float) -> None:
        study = self.study(name, f"read_threads={threads}")
        path = self.staged(study, tmp_path)
        content_ = path.read_bytes()
        path.write_bytes(content_[: int(share * len(content_))])
        assert str(self.fail(study, tmp_path)).startswith(f"{path}: ")

    @pytest.mark.parametrize("name", [name for name in WITH_FILES if name != "raw"])
    @pytest.mark.parametrize("what", [b"years of work, ", b"\0"])
    def test_another_s_file(self, tmp_path: Path, name: str, what: bytes) -> None:
        study = self.study(name)
        path = self.staged(study, tmp_path)
        path.write_bytes((what * path.stat().st_size)[: path.stat().st_size])
        error = self.fail(study, tmp_path)
        assert isinstance(error, DamagedDataError)
        assert str(error).startswith(f"{path}: sample ")
        assert "delete the file and rerun to generate it again" in str(error)

    @pytest.mark.parametrize("name", [name for name in WITH_FILES if FORMATS.load(name).reading != EXTENTS])
    def test_deleted_as_told_it_is_written_anew(self, tmp_path: Path, name: str) -> None:
        study = self.study(name)
        path = self.staged(study, tmp_path)
        good = path.read_bytes()
        path.write_bytes(b"x" * len(good))
        self.fail(study, tmp_path)
        path.unlink()
        assert stage(study, str(tmp_path)) == len(good)
        assert path.read_bytes() == good

    @pytest.mark.parametrize("name", [name for name in WITH_FILES if FORMATS.load(name).reading == LIBRARY])
    def test_a_file_of_another_dataset(self, tmp_path: Path, name: str) -> None:
        study = self.study(name)
        path = self.staged(study, tmp_path)
        other = self.study(name, "num_samples_per_file=3")
        path.write_bytes(self.staged(other, tmp_path / "other").read_bytes())
        resized = path.stat().st_size != self.staged(study, tmp_path / "again").stat().st_size
        assert isinstance(self.fail(study, tmp_path), VanishedDataError if resized else DamagedDataError)

    @pytest.mark.parametrize("name", [name for name in WITH_FILES if FORMATS.load(name).reading == LIBRARY])
    def test_samples_that_are_too_large(self, tmp_path: Path, name: str) -> None:
        study = self.study(name)
        path = self.staged(study, tmp_path)
        other = self.study(name, "record_length_bytes=5000")
        path.write_bytes(self.staged(other, tmp_path / "other").read_bytes())
        error = self.fail(study, tmp_path)
        assert isinstance(error, VanishedDataError)  # of another size: the same command writes it anew
        assert str(error).startswith(f"{path}: sample ")

    @pytest.mark.parametrize("name", WITH_FILES)
    def test_a_file_that_is_gone(self, tmp_path: Path, name: str) -> None:
        study = self.study(name)
        path = self.staged(study, tmp_path)
        path.unlink()
        error = self.fail(study, tmp_path)
        assert isinstance(error, VanishedDataError)
        assert str(error).startswith(f"{path}: has disappeared")

    @pytest.mark.parametrize("name", [name for name in WITH_FILES if FORMATS.load(name).reading != EXTENTS])
    @pytest.mark.parametrize("threads", [0, 2])
    @pytest.mark.parametrize("operation", ["open", "preadv", "close"])
    def test_what_the_system_says(self, out: str, name: str, threads: int, operation: str) -> None:
        """Whatever a library makes of an error in the middle of its own read."""
        if (name, operation) == ("lmdb", "preadv"):
            pytest.skip("it maps files")
        study = self.study(name, f"read_threads={threads}")
        access = Failing(operation, os_error(errno.EIO), after=2)
        loader = loader_of(study, source_of(study, out, lambda: access))
        with pytest.raises(StoppedError) as caught, reading(loader, plan_of(study).reads(0, 1)) as batches:
            for _ in batches:
                pass
        path, _, rest = str(caught.value).partition(": ")
        assert Path(path).exists()
        assert "Input/output error" in rest
        assert access.open_fds == set()

    @pytest.mark.parametrize("threads", [0, 1])
    def test_a_close_that_fails_when_all_is_read(self, out: str, threads: int) -> None:
        study = small_study(*Case("hdf5", "one file", False).dataset, "cache_rate=0", f"read_threads={threads}")
        access = Failing("close", os_error(errno.EIO))
        loader = loader_of(study, source_of(study, out, lambda: access))
        batches, read = loader.batches(plan_of(study).reads(0, 1)), 0
        with pytest.raises(StoppedError, match=r"000000000\.h5: cannot be read: Input/output error"):  # noqa: PT012
            for batch in batches:
                read += len(batch.samples)
        assert read == SAMPLES

    @pytest.mark.parametrize("name", [name for name in WITH_FILES if FORMATS.load(name).reading == WHOLE])
    @pytest.mark.parametrize("data_loader", ["inline", "threads"])
    def test_a_picture_that_cannot_be_decoded_is_named(self, tmp_path: Path, name: str, data_loader: str) -> None:
        """Its begin and end are right: only preprocessing looks inside."""
        study = self.study(name, "preprocess=decode", f"read_threads={0 if data_loader == 'inline' else 2}")
        path = self.staged(study, tmp_path)
        good = bytearray(path.read_bytes())
        if name == "png":  # a flipped byte fails its checksum before that
            good[60] ^= 1
        else:
            good[20:200] = bytes(180)
        path.write_bytes(good)
        error = self.fail(study, tmp_path, data_loader)
        assert isinstance(error, DamagedDataError)
        assert str(error).startswith(f"{path}: sample 0: ")
