"""With `verify: all` no flip, cut or swap gets by, in any format and layout: each is named with file and sample, in one wording for all.

A file of another size than it was staged with is exit 3, and the same command mends it; other bytes of the same size are exit 2.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.in_memory import tmp_path_factory
from tests.nightly import first_in_ci
from tests.small_study import (
    NEEDS_LIBRARY,
    loader_of,
    node_source,
    plan_of,
    reading,
    small_study,
    stage,
    stagers,
    tier_files,
)
from tierscope.dataset import content
from tierscope.errors import DamagedDataError, TierscopeError, VanishedDataError
from tierscope.formats import EXTENTS, FORMATS, LIBRARY, NOTHING, WHOLE, Format
from tierscope.native import sums as native_sums
from tierscope.plan.file_format import make_format
from tierscope.spec.study import Study
from tierscope.storage.sums import NAME

__all__ = ["tmp_path_factory"]

WITH_FILES = [name for name in FORMATS if FORMATS.load(name).reading != NOTHING]
LAYOUTS = {"one sample": (4, 1), "many": (3, 4), "one file": (1, 6)}
HEADERS = {
    "tfrecord": 2,
    "npz": 2,
    "npy": 2,
    "hdf5": 2,
    "lmdb": 17,
    "parquet": -2,
    "jpeg": 1,
    "png": 2,
}  # a byte of each
SIZE = "rerun the same command: files of the wrong size are written again"
CONTENT = "delete the file and rerun to generate it again"


@dataclass(frozen=True)
class Case:
    format: str
    layout: str
    settings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ", ".join((self.format, self.layout, *self.settings))

    def study(self, *settings: str) -> Study:
        files, per_file = LAYOUTS[self.layout]
        return small_study(
            f"format={self.format}",
            f"num_files_train={files}",
            f"num_samples_per_file={per_file}",
            "record_length_bytes=1001",
            "cache_rate=0",
            "reader.verify=all",
            *self.settings,
            *settings,
        )


VARYING = ((), ("record_length_bytes_stdev=150",))
STAGED = [
    (name, layout)
    for name in WITH_FILES
    for layout, (_, per_file) in LAYOUTS.items()
    if per_file == 1 or FORMATS.load(name).indexed
]
COMPRESSED = [
    Case("hdf5", "many", ("compression=gzip", "chunk_size=700", "compressibility=0.5")),
    Case("hdf5", "many", ("compression=lzf", "chunk_size=700", "compressibility=0.5")),
]
# Every format in every layout, with samples that vary in every other one; the other way round: nightly.
TURNS = [[Case(*staged, VARYING[(place + turn) % 2]) for place, staged in enumerate(STAGED)] for turn in (0, 1)]
CASES = first_in_ci([*COMPRESSED, *TURNS[0], *TURNS[1]], len(COMPRESSED) + len(STAGED))
Damage = Callable[[Study, Format, Sequence[Path]], None]


def samples_of(study: Study, form: Format, file: int) -> list[bytes]:
    per_file = form.shape.samples_per_file
    sizes = form.shape.of_file(file).tolist()
    return [
        b"".join(content.payload(study.seed, file * per_file + inside, nbytes, study.workload.dataset.compressibility))
        for inside, nbytes in enumerate(sizes)
    ]


def place_in(study: Study, form: Format, path: Path) -> int:
    """A byte of the first file's last sample."""
    last = form.shape.samples_per_file - 1
    if form.reading == EXTENTS:
        return form.extents(last, 0)[-1].offset + 300
    if form.reading == WHOLE:
        return path.stat().st_size // 2
    at = path.read_bytes().find(samples_of(study, form, 0)[last][100:132])
    return at if at >= 0 else path.stat().st_size // 2  # compressed


def flip(path: Path, at: int) -> None:
    whole = bytearray(path.read_bytes())
    whole[at] ^= 4
    path.write_bytes(whole)


def flipped(study: Study, form: Format, paths: Sequence[Path]) -> None:
    flip(paths[0], place_in(study, form, paths[0]))


def header_flipped(study: Study, form: Format, paths: Sequence[Path]) -> None:
    del form
    flip(paths[0], HEADERS[study.workload.dataset.format])


def cut(study: Study, form: Format, paths: Sequence[Path]) -> None:
    del study, form
    whole = paths[0].read_bytes()
    paths[0].write_bytes(whole[: len(whole) * 6 // 10])


def emptied(study: Study, form: Format, paths: Sequence[Path]) -> None:
    del study, form
    paths[0].write_bytes(b"")


def files_swapped(study: Study, form: Format, paths: Sequence[Path]) -> None:
    del study, form
    one, two = paths[0].read_bytes(), paths[1].read_bytes()
    paths[0].write_bytes(two)
    paths[1].write_bytes(one)


def samples_swapped(study: Study, form: Format, paths: Sequence[Path]) -> None:
    """Of one length each, so that the file is a sound one of its format."""
    samples = samples_of(study, form, 0)
    samples[0], samples[-1] = samples[-1], samples[0]
    if form.reading == LIBRARY:
        paths[0].unlink()
        form.write(str(paths[0]), [[sample] for sample in samples])
    else:
        paths[0].write_bytes(b"".join(form.encode([[sample] for sample in samples])))


DAMAGES: dict[str, Damage] = {
    "a flip in a payload": flipped,
    "a flip in a header": header_flipped,
    "a cut file": cut,
    "an empty file": emptied,
    "two files swapped": files_swapped,
    "two samples swapped": samples_swapped,
}


def possible(case: Case, damage: str) -> bool:
    files, per_file = LAYOUTS[case.layout]
    if damage == "a flip in a header":
        return case.format in HEADERS
    if damage == "two files swapped":
        return files > 1
    if damage == "two samples swapped":
        return (
            per_file > 1 and not case.settings
        )  # varying ones: a file of another dataset; compressed: of another size
    return True


def failure(study: Study, out: Path, loader: str) -> TierscopeError:
    found = loader_of(study, node_source(study, str(out)), loader)
    with pytest.raises(TierscopeError) as caught, reading(found, plan_of(study).reads(0, 1)) as batches:
        for _ in batches:
            pass
    found.finish()
    return caught.value


def read_all(study: Study, out: Path, loader: str) -> int:
    found = loader_of(study, node_source(study, str(out)), loader)
    with reading(found, plan_of(study).reads(0, 1)) as batches:
        read = sum(len(batch.samples) for batch in batches)
    found.finish()
    return read


def paths_of(study: Study, out: Path) -> list[Path]:
    files = tier_files(study, str(out))[-1]
    return [Path(files.path(file)) for file in range(study.workload.dataset.num_files_train)]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_whatever_happens_to_a_file_is_named_alike(case: Case, tmp_path: Path) -> None:
    study = case.study("read_threads=0")
    stage(study, str(tmp_path))
    form, paths = make_format(study), paths_of(study, tmp_path)
    loaders = ["inline", "native"] if FORMATS[case.format].natively and form.shape.alike else ["inline"]
    good = [path.read_bytes() for path in paths]
    for name, damage in DAMAGES.items():
        if not possible(case, name):
            continue
        damage(study, form, paths)
        resized = [len(whole) != path.stat().st_size for whole, path in zip(good, paths, strict=True)]
        for loader in loaders:
            error = failure(study, tmp_path, loader)
            said = re.fullmatch(r"(.+?): sample (\d+): .+; (.+?)", str(error))
            assert said, (name, loader, str(error))
            expected = (VanishedDataError, SIZE) if resized[paths.index(Path(said[1]))] else (DamagedDataError, CONTENT)
            assert (type(error), said[3]) == expected, (name, loader, str(error))
        if any(resized):  # as it says: the same command goes on
            stage(study, str(tmp_path))
            assert all(
                path.read_bytes() == whole for path, whole, found in zip(paths, good, resized, strict=True) if found
            )
        for path, whole in zip(paths, good, strict=True):
            path.write_bytes(whole)
    for loader in loaders:
        assert read_all(study, tmp_path, loader) == study.workload.dataset.samples


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_cut_file_is_staged_again_in_every_format(name: str, tmp_path: Path) -> None:
    study = Case(name, "one sample").study()
    stage(study, str(tmp_path))
    path = paths_of(study, tmp_path)[1]
    good = path.read_bytes()
    path.write_bytes(good[:-1])
    (_, gfs) = stagers(study, str(tmp_path))[0].missing()
    assert (gfs.files, gfs.resized, gfs.unsummed, gfs.example) == (1, 1, 0, str(path))
    assert stage(study, str(tmp_path)) == len(good)
    assert path.read_bytes() == good


@pytest.mark.parametrize("name", WITH_FILES)
def test_what_an_older_version_staged_gets_checksums(name: str, tmp_path: Path) -> None:
    study = Case(name, "one sample").study("read_threads=0")
    stage(study, str(tmp_path))
    paths = paths_of(study, tmp_path)
    before = [path.stat().st_mtime_ns for path in paths]
    table = paths[0].parent / NAME
    kept = table.read_bytes()
    table.unlink()
    error = failure(study, tmp_path, "inline")
    assert isinstance(error, VanishedDataError)
    assert str(error).startswith(f"{table}: checksums cannot be read: No such file")
    assert stagers(study, str(tmp_path))[0].missing()[1].unsummed == 4
    written = stage(study, str(tmp_path))
    assert table.read_bytes() == kept
    assert read_all(study, tmp_path, "inline") == 4
    assert bool(written) is (FORMATS.load(name).reading == WHOLE)  # the bytes of pictures are their encoder's
    assert written or before == [path.stat().st_mtime_ns for path in paths]


@NEEDS_LIBRARY
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("reader", ["native", "threads"])
def test_threads_find_it_too(tmp_path: Path, reader: str, threads: int) -> None:
    study = Case("raw", "many").study(f"read_threads={threads}", "batch_size=3")
    stage(study, str(tmp_path))
    path = paths_of(study, tmp_path)[2]
    flip(path, 2 * 1001 + 5)
    error = failure(study, tmp_path, reader)
    assert re.fullmatch(
        rf"{path}: sample 2: its checksum is 0x[0-9a-f]{{8}}, not 0x[0-9a-f]{{8}} as when it was staged: damaged, or another sample; {CONTENT}",
        str(error),
    )


def test_without_the_library_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Case("raw", "many").study()
    stage(study, str(tmp_path))
    monkeypatch.setattr(native_sums, "_library", lambda: None)
    assert read_all(study, tmp_path, "inline") == 12
    flip(paths_of(study, tmp_path)[0], 3)
    assert "as when it was staged" in str(failure(study, tmp_path, "inline"))


def test_nothing_is_compared_when_it_is_off(tmp_path: Path) -> None:
    study = Case("raw", "many").study("reader.verify=off")
    stage(study, str(tmp_path))
    path = paths_of(study, tmp_path)[0]
    flip(path, 3)
    assert read_all(study, tmp_path, "inline") == 12
    (path.parent / NAME).unlink()
    assert read_all(study, tmp_path, "inline") == 12
