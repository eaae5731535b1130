"""Checksums of slices are those of zlib, whatever is joined."""

import random
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tierscope.formats import slices
from tierscope.formats.base import Buffer
from tierscope.formats.slices import crc32

WHOLE = random.Random(3).randbytes(300_001)
VIEW = memoryview(WHOLE)


def of_zlib(pieces: list[Buffer]) -> int:
    return zlib.crc32(b"".join(pieces))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.binary(max_size=200),
    st.lists(st.tuples(st.integers(0, 150_000), st.sampled_from([32 << 10, 100_000, 150_000])), max_size=3),
)
def test_of_joined_slices(head: bytes, places: list[tuple[int, int]]) -> None:
    pieces: list[Buffer] = [head, *(VIEW[start : start + nbytes] for start, nbytes in places), bytearray(head)]
    assert crc32(pieces) == of_zlib(pieces)


@pytest.mark.parametrize(("start", "end"), [(0, 32 << 10), (4096, 36_864), (4095, 40_000), (300_001 - 32_768, 300_001)])
def test_at_the_edges(start: int, end: int) -> None:
    assert crc32([b"12345678", VIEW[start:end]]) == of_zlib([b"12345678", VIEW[start:end]])


def test_what_can_change_or_is_no_slice_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "_with_slice", lambda *_: pytest.fail("was taken for a slice of what stays"))
    changing = memoryview(bytearray(WHOLE))
    pieces: list[Buffer] = [WHOLE, VIEW, VIEW[:200_000], VIEW[:1000], changing[:40_000]]
    assert crc32(pieces) == of_zlib(pieces)


def test_of_a_slice_hardly_a_byte_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = of_zlib([VIEW[5:100_005]])
    crc32([VIEW[5:100_005]])
    read: list[int] = []

    class Counting:
        @staticmethod
        def crc32(piece: Buffer, crc: int = 0) -> int:
            read.append(len(piece))
            return zlib.crc32(piece, crc)

    monkeypatch.setattr(slices, "zlib", Counting)
    assert crc32([VIEW[5:100_005]]) == expected
    assert sum(read) < 2 * 4096
