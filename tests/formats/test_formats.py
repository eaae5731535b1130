"""What every registered format must keep, so that none can go untested."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tierscope.formats import FORMATS, Extent, Format, Shape
from tierscope.formats.base import Buffer
from tierscope.registry import Entry
from tierscope.spec.study import FORMATS as NAMES_IN_A_STUDY

SHAPES = st.builds(Shape, st.integers(1, 20), st.integers(1, 3000))
every_format = pytest.mark.parametrize("name", list(FORMATS))


def payloads_of(shape: Shape, seed: int = 1) -> list[bytes]:
    source = random.Random(seed)
    return [source.randbytes(shape.record_bytes) for _ in range(shape.samples_per_file)]


def encoded(format_: Format, payloads: Sequence[bytes]) -> bytes:
    return b"".join(format_.encode([[payload] for payload in payloads]))


def slot_of(content: bytes, extents: Sequence[Extent]) -> bytearray:
    """What is in memory after a sample's extents were read one after another."""
    return bytearray().join(content[extent.offset : extent.offset + extent.nbytes] for extent in extents)


def detected(format_: Format, slot: bytearray) -> bool:
    try:
        format_.check(memoryview(slot))
    except ValueError as error:
        return bool(str(error))
    return False


def test_a_study_can_name_exactly_the_registered_formats() -> None:
    assert tuple(FORMATS) == NAMES_IN_A_STUDY


@every_format
def test_an_entry_says_when_to_choose_it(name: str) -> None:
    entry: Entry = FORMATS.entries[name]
    assert entry.what.isprintable()
    assert len(entry.what) > 10


def test_suffixes_differ() -> None:
    assert len({FORMATS.load(name).suffix for name in FORMATS}) == len(list(FORMATS))


@every_format
@given(shape=SHAPES)
@example(shape=Shape(1, 1))
@example(shape=Shape(20, 1))
@settings(max_examples=40)
def test_a_file_has_exactly_its_size_and_every_sample_comes_back(name: str, shape: Shape) -> None:
    format_ = FORMATS.load(name)(shape)
    payloads = payloads_of(shape)
    content = encoded(format_, payloads)
    assert len(content) == format_.file_bytes
    for inside, payload in enumerate(payloads):
        slot = slot_of(content, format_.extents(inside))
        assert len(slot) == format_.slot_bytes
        format_.check(memoryview(slot))
        assert slot[format_.payload(inside)] == payload


@every_format
@given(shape=SHAPES)
@settings(max_examples=20)
def test_extents_lie_inside_the_file_and_samples_do_not_overlap(name: str, shape: Shape) -> None:
    format_ = FORMATS.load(name)(shape)
    starts = set()
    for inside in range(shape.samples_per_file):
        extents = format_.extents(inside)
        assert all(extent.offset >= 0 and extent.nbytes > 0 for extent in extents)
        assert all(extent.offset + extent.nbytes <= format_.file_bytes for extent in extents)
        starts.add(extents[-1].offset)
    assert len(starts) == shape.samples_per_file


@every_format
@pytest.mark.parametrize("shape", [Shape(1, 100), Shape(4, 33)])
def test_a_payload_may_come_in_pieces_of_any_type(name: str, shape: Shape) -> None:
    format_ = FORMATS.load(name)(shape)
    payloads = payloads_of(shape)
    pieces: list[list[Buffer]] = [
        [payload[:10], bytearray(payload[10:11]), b"", memoryview(payload)[11:]] for payload in payloads
    ]
    assert b"".join(format_.encode(pieces)) == encoded(format_, payloads)


@every_format
def test_files_are_a_function_of_their_content(name: str) -> None:
    format_, shape = FORMATS.load(name), Shape(3, 50)
    one, again, other = (encoded(format_(shape), payloads_of(shape, seed)) for seed in (1, 1, 2))
    assert one == again != other


@every_format
def test_one_file_after_another_can_be_encoded(name: str) -> None:
    """Nothing of a file stays behind in the adapter."""
    shape = Shape(3, 50)
    used, fresh = FORMATS.load(name)(shape), FORMATS.load(name)(shape)
    encoded(used, payloads_of(shape, 1))
    assert encoded(used, payloads_of(shape, 2)) == encoded(fresh, payloads_of(shape, 2))


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


@every_format
@pytest.mark.parametrize("record_bytes", [1, 40])
def test_any_flipped_byte_of_a_file_with_one_sample_is_detected(name: str, record_bytes: int) -> None:
    missed = undetected(name, Shape(1, record_bytes), 0)
    if FORMATS.load(name).has_checks:
        assert missed == []
    else:
        assert len(set(missed)) == record_bytes


@pytest.mark.parametrize("inside", [0, 2])
def test_any_flipped_byte_of_one_tfrecord_among_many_is_detected(inside: int) -> None:
    assert undetected("tfrecord", Shape(3, 30), inside) == []


@pytest.mark.parametrize("inside", [0, 2])
def test_any_flipped_byte_around_one_row_among_many_of_an_npz_is_detected(inside: int) -> None:
    """The checksum of an npz covers all rows: a single one cannot be checked."""
    shape = Shape(3, 30)
    payload = FORMATS.load("npz")(shape).payload()
    assert set(undetected("npz", shape, inside)) == set(range(payload.start, payload.stop))


@every_format
def test_zeros_are_not_mistaken_for_a_sample(name: str) -> None:
    """What a sparse or never written file gives."""
    format_ = FORMATS.load(name)(Shape(1, 64))
    assert detected(format_, bytearray(format_.slot_bytes)) == format_.has_checks
