"""NPZ files read by NumPy and by zipfile."""

import io
import random
import struct
import zipfile
import zlib

import numpy as np
import pytest

from tierscope.formats.base import Shape
from tierscope.formats.npz import Npz

GIB_4 = 4 * 2**30
SHAPES = [Shape(1, 1), Shape(1, 4096), Shape(20, 1), Shape(7, 333), Shape(3, 100_000)]


def file_of(shape: Shape) -> tuple[bytes, list[bytes]]:
    source = random.Random(5)
    payloads = [source.randbytes(shape.record_bytes) for _ in range(shape.samples_per_file)]
    return b"".join(Npz(shape).encode([[payload] for payload in payloads])), payloads


@pytest.mark.parametrize("shape", SHAPES)
def test_numpy_reads_it(shape: Shape) -> None:
    content, payloads = file_of(shape)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        assert archive.files == ["x"]
        array = archive["x"]
    assert array.dtype == np.uint8
    assert array.shape == (shape.samples_per_file, shape.record_bytes)
    assert [row.tobytes() for row in array] == payloads


@pytest.mark.parametrize("shape", SHAPES)
def test_zipfile_finds_nothing_wrong(shape: Shape) -> None:
    content, _ = file_of(shape)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        (member,) = archive.infolist()
    assert member.compress_type == zipfile.ZIP_STORED
    assert member.file_size == member.compress_size


@pytest.mark.parametrize("shape", SHAPES)
def test_a_reader_that_streams_finds_the_same_in_the_local_header(shape: Shape) -> None:
    """By the published layout of a zip; zipfile itself trusts the directory alone."""
    content, _ = file_of(shape)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        (member,) = archive.infolist()
    magic, crc, packed, size, name_bytes, extra_bytes = struct.unpack_from("<4s10xIIIHH", content)
    assert magic == b"PK\x03\x04"
    assert (crc, packed, size) == (member.CRC, member.compress_size, member.file_size)
    assert content[30 : 30 + name_bytes] == b"x.npy"
    array = content[30 + name_bytes + extra_bytes :][:size]
    assert zlib.crc32(array) == crc


@pytest.mark.parametrize("shape", [Shape(1, 50), Shape(3, 50)])
def test_what_numpy_would_refuse_zipfile_refuses_too(shape: Shape) -> None:
    """The test above can fail: a flipped byte of the data is found by zipfile."""
    content = bytearray(file_of(shape)[0])
    content[Npz(Shape(1, shape.record_bytes)).payload().start] ^= 1
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() == "x.npy"


def test_one_sample_is_read_whole_and_one_of_many_in_three_pieces() -> None:
    assert [len(Npz(Shape(samples, 100)).extents(0)) for samples in (1, 2)] == [1, 3]


@pytest.mark.parametrize("shape", [Shape(1, GIB_4), Shape(GIB_4, 1), Shape(2**16, 2**16), Shape(10**9, 2**40)])
def test_more_than_4_gib_is_refused(shape: Shape) -> None:
    with pytest.raises(ValueError, match="must stay below 4 GiB"):
        Npz(shape)


def test_almost_4_gib_is_possible_and_its_size_fits_the_archives_fields() -> None:
    format_ = Npz(Shape(1, GIB_4 - 2**17))
    assert GIB_4 - 2**17 < format_.file_bytes < GIB_4
