"""TFRecord files read by a reader of its own, written from the published format and nothing else.

A record is: length (uint64, little endian), masked CRC32C of the length's eight bytes (uint32), the data, masked
CRC32C of the data. The mask rotates right by 15 bits and adds 0xa282ead8.
"""

import random
import struct
from collections.abc import Iterator

import pytest

from tierscope.formats.base import Shape
from tierscope.formats.tfrecord import TFRecord, masked_crc32c


def slow_crc32c(data: bytes) -> int:
    """Bit by bit, with the reflected Castagnoli polynomial."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def mask(crc: int) -> int:
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def records(content: bytes) -> Iterator[bytes]:
    at = 0
    while at < len(content):
        length_bytes = content[at : at + 8]
        (length,) = struct.unpack("<Q", length_bytes)
        assert struct.unpack_from("<I", content, at + 8)[0] == mask(slow_crc32c(length_bytes))
        data = content[at + 12 : at + 12 + length]
        assert len(data) == length
        assert struct.unpack_from("<I", content, at + 12 + length)[0] == mask(slow_crc32c(data))
        yield data
        at += 16 + length
    assert at == len(content)


def test_the_readers_checksum_is_the_published_one() -> None:
    """The check value of CRC-32C, and two examples of RFC 3720."""
    assert slow_crc32c(b"123456789") == 0xE3069283
    assert slow_crc32c(bytes(32)) == 0x8A9136AA
    assert slow_crc32c(b"\xff" * 32) == 0x62A8AB43


@pytest.mark.parametrize("data", [b"", b"\0", b"123456789", bytes(range(256)) * 3])
def test_our_checksum_is_the_readers(data: bytes) -> None:
    assert masked_crc32c(data) == mask(slow_crc32c(data))
    assert masked_crc32c(data[:3], data[3:]) == masked_crc32c(data)


@pytest.mark.parametrize(("samples", "record_bytes"), [(1, 1), (1, 4096), (20, 1), (7, 333), (3, 1000)])
def test_an_independent_reader_finds_every_sample(samples: int, record_bytes: int) -> None:
    source = random.Random(3)
    payloads = [source.randbytes(record_bytes) for _ in range(samples)]
    content = b"".join(TFRecord(Shape(samples, record_bytes)).encode([[payload] for payload in payloads]))
    assert list(records(content)) == payloads


def test_a_wrong_checksum_is_shown_beside_the_right_one() -> None:
    format_ = TFRecord(Shape(1, 9))
    content = bytearray(b"".join(format_.encode([[b"123456789"]])))
    content[12] ^= 1
    found = mask(slow_crc32c(bytes(content[12:21])))
    with pytest.raises(ValueError, match=f"stored {mask(0xE3069283):#010x}, computed {found:#010x}"):
        format_.check(memoryview(content))


def test_a_record_of_another_length_is_not_taken_for_ours() -> None:
    content = bytearray(b"".join(TFRecord(Shape(1, 10)).encode([[bytes(10)]])))
    with pytest.raises(ValueError, match="header"):
        TFRecord(Shape(1, 9)).check(memoryview(content)[:25])
