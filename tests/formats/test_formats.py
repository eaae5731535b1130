"""What every registered format must keep, so that none can go untested."""

import tempfile
import time
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.formats.any_file import READ_BY_EXTENTS, WITH_FILES, encoded, payloads_of, read, shape_of, slot_of, write
from tierscope.formats import EXTENTS, FORMATS, LIBRARY, NOTHING, Format, Shape
from tierscope.formats.base import Buffer
from tierscope.registry import Entry
from tierscope.spec import schema
from tierscope.spec.kinds import Choice
from tierscope.spec.study import Dataset

SIZES = st.tuples(st.integers(1, 20), st.integers(1, 3000))
every_format = pytest.mark.parametrize("name", list(FORMATS))
with_files = pytest.mark.parametrize("name", WITH_FILES)
by_extents = pytest.mark.parametrize("name", READ_BY_EXTENTS)
one_folder = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])


def detected(format_: Format, slot: bytearray) -> bool:
    try:
        format_.check(memoryview(slot))
    except ValueError as error:
        return bool(str(error))
    return False


def test_a_study_can_name_exactly_the_registered_formats() -> None:
    (field,) = (field for field in schema.fields(Dataset) if field.name == "format")
    assert isinstance(field.meta, schema.Key)
    assert isinstance(field.meta.kind, Choice)
    assert tuple(FORMATS) == field.meta.kind.names


@every_format
def test_an_entry_says_when_to_choose_it(name: str) -> None:
    entry: Entry = FORMATS.entries[name]
    assert entry.what.isprintable()
    assert len(entry.what) > 10


def test_suffixes_differ() -> None:
    assert len({FORMATS.load(name).suffix for name in FORMATS}) == len(list(FORMATS))


def test_native_formats_are_those_whose_samples_lie_where_c_can_compute_it() -> None:
    assert list(FORMATS.where(lambda form: form.natively)) == READ_BY_EXTENTS


@every_format
def test_an_entry_says_how_its_adapter_reads(name: str) -> None:
    entry, adapter = FORMATS[name], FORMATS.load(name)
    assert entry.reading == adapter.reading
    if entry.library:
        assert entry.collective == (adapter.open_together is not Format.open_together)
    assert not entry.picture or not adapter.indexed


def came_back(name: str, found: list[bytes], payloads: list[bytes]) -> bool:
    """With padding behind some formats' samples; of a JPEG the number only, and as many pixels."""
    for sample, payload in zip(found, payloads, strict=True):
        kept = payload[:8] if name == "jpeg" else payload
        padding = sample[len(payload) :]
        if sample[: len(kept)] != kept or len(sample) < len(payload) or (name != "jpeg" and padding.strip(b"\0")):
            return False
    return True


@with_files
@given(sizes=SIZES)
@example(sizes=(1, 1))
@example(sizes=(20, 1))
@settings(one_folder, max_examples=examples(25))
def test_every_sample_comes_back(name: str, sizes: tuple[int, int], tmp_path: Path) -> None:
    shape = shape_of(name, *sizes)
    format_, payloads, path = FORMATS.load(name)(shape), payloads_of(shape), tmp_path / "file"
    path.unlink(missing_ok=True)
    write(format_, path, payloads)
    assert came_back(name, read(format_, path), payloads)
    exact = format_.file_bytes_of(0)
    size = path.stat().st_size
    assert size == exact or exact is None
    if format_.reading == EXTENTS:
        assert size == format_.file_bytes == exact


@pytest.mark.parametrize("name", [name for name in WITH_FILES if FORMATS.load(name).ragged])
@given(sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=12))
@settings(one_folder, max_examples=examples(25))
def test_samples_of_any_sizes_come_back(name: str, sizes: list[int], tmp_path: Path) -> None:
    files = [np.array(sizes), np.array(sizes[::-1])]
    shape = Shape(len(sizes), sum(sizes) // len(sizes) or 1, max(sizes), lambda file: files[file])
    format_ = FORMATS.load(name)(shape)
    for file in (0, 1):
        path, payloads = tmp_path / f"file-{file}", payloads_of(shape, file=file)
        path.unlink(missing_ok=True)
        write(format_, path, payloads)
        assert read(format_, path, file) == payloads
        assert format_.file_bytes_of(file) in (None, path.stat().st_size)


@pytest.mark.parametrize("name", [name for name in WITH_FILES if not FORMATS.load(name).ragged])
@given(sizes=st.lists(st.integers(1, 3000), min_size=2, max_size=2), samples=st.integers(1, 9))
@settings(one_folder, max_examples=examples(25))
def test_files_of_any_sizes_come_back(name: str, sizes: list[int], samples: int, tmp_path: Path) -> None:
    samples = samples if FORMATS.load(name).indexed else 1
    shape = Shape(samples, sum(sizes) // 2, max(sizes), lambda file: np.full(samples, sizes[file]))
    format_ = FORMATS.load(name)(shape)
    for file in (0, 1):
        path, payloads = tmp_path / f"file-{file}", payloads_of(shape, file=file)
        write(format_, path, payloads)
        assert came_back(name, read(format_, path, file), payloads)
        assert format_.file_bytes_of(file) in (None, path.stat().st_size)


@with_files
@pytest.mark.parametrize(("samples", "record_bytes"), [(1, 200_000), (16, 10_000), (300, 500)])
def test_sizes_that_only_content_decides_are_foretold_well_enough(
    name: str, samples: int, record_bytes: int, tmp_path: Path
) -> None:
    """For the room on a disk: never far too little."""
    shape = shape_of(name, samples, record_bytes)
    format_, path = FORMATS.load(name)(shape), tmp_path / "file"
    write(format_, path, payloads_of(shape))
    assert 0.98 * path.stat().st_size <= format_.file_bytes <= 2.2 * path.stat().st_size + 70_000


@by_extents
@given(sizes=SIZES)
@settings(max_examples=examples(20))
def test_extents_lie_inside_the_file_and_samples_do_not_overlap(name: str, sizes: tuple[int, int]) -> None:
    format_ = FORMATS.load(name)(Shape(*sizes))
    starts = set()
    for inside in range(sizes[0]):
        extents = format_.extents(inside)
        assert all(extent.offset >= 0 and extent.nbytes > 0 for extent in extents)
        assert all(extent.offset + extent.nbytes <= format_.file_bytes for extent in extents)
        assert sum(extent.nbytes for extent in extents) == format_.slot_bytes
        starts.add(extents[-1].offset)
    assert len(starts) == sizes[0]


def test_what_is_not_read_has_no_extents() -> None:
    (name,) = (name for name in FORMATS if FORMATS.load(name).reading == NOTHING)
    format_ = FORMATS.load(name)(Shape(3, 50))
    assert (format_.file_bytes, list(format_.extents(1)), format_.encode([[b"x"]])) == (0, [], [])
    assert format_.payload(1) == slice(0, 50)


@with_files
@pytest.mark.parametrize(("samples", "record_bytes"), [(1, 100), (4, 33)])
def test_a_payload_may_come_in_pieces_of_any_type(name: str, samples: int, record_bytes: int, tmp_path: Path) -> None:
    shape = shape_of(name, samples, record_bytes)
    format_, payloads, path = FORMATS.load(name)(shape), payloads_of(shape), tmp_path / "file"
    pieces: list[list[Buffer]] = [
        [payload[:10], bytearray(payload[10:11]), b"", memoryview(payload)[11:]] for payload in payloads
    ]
    if format_.reading == LIBRARY:
        format_.write(str(path), pieces)
        assert read(format_, path) == payloads
    else:
        assert b"".join(format_.encode(pieces)) == encoded(format_, payloads)


@with_files
def test_files_are_a_function_of_their_content(name: str, tmp_path: Path) -> None:
    """One file after another: nothing of it stays behind in the adapter."""
    shape = shape_of(name, 3, 50)
    format_ = FORMATS.load(name)(shape)
    early, began = early_files()
    files = [early.get(name)]
    time.sleep(max(0.0, began + 1.01 - time.time()) if name in early else 0.0)  # nor does it say when it was written
    for number, seed in enumerate((1, 2, 1)):
        path = tmp_path / str(number)
        write(format_, path, payloads_of(shape, seed))
        files.append(path.read_bytes())
    assert files[1] == files[3] != files[2]
    assert files[0] in (None, files[1])


@cache
def early_files() -> tuple[dict[str, bytes], float]:
    """The same file of every format of a library, and when the last one was written: one wait for all of them."""
    early = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in FORMATS.where(lambda form: form.reading == LIBRARY):
            path, shape = Path(folder, name), shape_of(name, 3, 50)
            write(FORMATS.load(name)(shape), path, payloads_of(shape, 1))
            early[name] = path.read_bytes()
    return early, time.time()


def undetected(name: str, shape: Shape, inside: int) -> list[int]:
    """Positions in what is read for a sample where a flipped bit passes the check."""
    format_ = FORMATS.load(name)(shape)
    slot = slot_of(encoded(format_, payloads_of(shape)), format_.extents(inside))
    assert not detected(format_, slot)
    missed = []
    for position in range(len(slot)):
        for bit in (1, 128):
            slot[position] ^= bit
            if not detected(format_, slot):
                missed.append(position)
            slot[position] ^= bit
    return missed


@pytest.mark.parametrize("record_bytes", [1, 40])
@pytest.mark.parametrize("name", ["tfrecord", "npz"])
def test_any_flipped_byte_of_a_file_with_one_sample_is_detected(name: str, record_bytes: int) -> None:
    assert undetected(name, Shape(1, record_bytes), 0) == []


@pytest.mark.parametrize("name", ["raw", "npy"])
@pytest.mark.parametrize("record_bytes", [1, 40])
def test_any_flipped_byte_around_a_sample_without_checksum_is_detected(name: str, record_bytes: int) -> None:
    payload = FORMATS.load(name)(Shape(1, record_bytes)).payload()
    assert set(undetected(name, Shape(1, record_bytes), 0)) == set(range(payload.start, payload.stop))


def test_a_flipped_byte_of_a_csv_is_detected_unless_it_makes_another_digit() -> None:
    format_, shape = FORMATS.load("csv")(Shape(2, 40)), Shape(2, 40)
    slot = slot_of(encoded(format_, payloads_of(shape)), format_.extents(1))
    for position, sign in enumerate(bytes(slot)):
        for bit in (1, 16, 128):
            slot[position] = sign ^ bit
            assert detected(format_, slot) or chr(slot[position]).isdigit()
        slot[position] = sign


def test_formats_whose_checks_are_tested_here_are_all_that_have_any() -> None:
    """PNG and JPEG: tests/formats/test_pictures.py."""
    with_checks = {name for name in FORMATS if FORMATS.load(name).has_checks}
    assert with_checks == {"tfrecord", "npz", "npy", "csv", "png", "jpeg"}


@pytest.mark.parametrize("inside", [0, 2])
def test_any_flipped_byte_of_one_tfrecord_among_many_is_detected(inside: int) -> None:
    assert undetected("tfrecord", Shape(3, 30), inside) == []


@pytest.mark.parametrize("inside", [0, 2])
def test_any_flipped_byte_around_one_row_among_many_of_an_npz_is_detected(inside: int) -> None:
    """The checksum of an npz covers all rows: a single one cannot be checked."""
    shape = Shape(3, 30)
    payload = FORMATS.load("npz")(shape).payload()
    assert set(undetected("npz", shape, inside)) == set(range(payload.start, payload.stop))


@pytest.mark.parametrize("name", [*READ_BY_EXTENTS, "png", "jpeg"])
def test_zeros_are_not_mistaken_for_a_sample(name: str) -> None:
    """What a sparse or never written file gives."""
    format_ = FORMATS.load(name)(Shape(1, 64))
    assert detected(format_, bytearray(format_.slot_bytes)) == format_.has_checks
