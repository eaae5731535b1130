"""CRC-32 of slices of one long memory, of which hardly a byte is read for it.

What we generate are slices of a pool that stays. CRC-32 is linear: crc(A + B) = shift(crc(A), len B) ^ crc(B), where shift is a linear map of
32 bits that depends on the length alone. With checksums of the pool up to where a slice begins and up to where it ends,
crc(A + slice) = shift(crc(A) ^ start, len slice) ^ end. Costs a pass over the pool once, and 33 checksums of every new length: choose it where
many slices of few lengths are summed. CRC-32C of slices: `native/sums.py`.
"""

import zlib
from collections.abc import Iterable
from functools import lru_cache

import numpy as np

from tierscope.formats.base import Buffer

_STEP = 512
_LEAST_BYTES = 32 << 10  # below that, a checksum is as cheap
_Tables = tuple[tuple[int, ...], ...]


def crc32(pieces: Iterable[Buffer]) -> int:
    """As of zlib, of all pieces joined."""
    crc = 0
    for piece in pieces:
        crc = _with_slice(crc, piece) if _is_slice(piece) else zlib.crc32(piece, crc)  # type: ignore[arg-type]
    return crc


def _is_slice(piece: Buffer) -> bool:
    """Of something that cannot change and is longer than one use needs."""
    if not isinstance(piece, memoryview) or piece.nbytes < _LEAST_BYTES or not piece.c_contiguous:
        return False
    return type(piece.obj) is bytes and len(piece.obj) >= 2 * piece.nbytes


def _with_slice(crc: int, piece: memoryview) -> int:
    whole: bytes = piece.obj  # type: ignore[assignment]
    start, sums = _address(piece) - _address(whole), _sums(whole)
    end = start + piece.nbytes
    a, b, c, d = _shift(piece.nbytes)
    difference = crc ^ _up_to(whole, sums, start)
    return (
        a[difference & 255] ^ b[difference >> 8 & 255] ^ c[difference >> 16 & 255] ^ d[difference >> 24] ^ _up_to(whole, sums, end)
    )  # fmt: skip


def _up_to(whole: bytes, sums: tuple[int, ...], end: int) -> int:
    at = end // _STEP
    return zlib.crc32(whole[at * _STEP : end], sums[at])


def _address(memory: Buffer) -> int:
    address: int = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
    return address


@lru_cache(maxsize=2)
def _sums(whole: bytes) -> tuple[int, ...]:
    """Of the first 0, 1, 2, … steps. That bytes keep their hash makes looking it up cheap; others that are equal may lie elsewhere."""
    sums, view = [0], memoryview(whole)
    for start in range(0, len(whole) - _STEP + 1, _STEP):
        sums.append(zlib.crc32(view[start : start + _STEP], sums[-1]))
    return tuple(sums)


@lru_cache(maxsize=16)
def _shift(nbytes: int) -> _Tables:
    """The map of a length, as what becomes of every value of each of the four bytes. crc32(data, c) is shift(c) ^ crc32(data)."""
    zeros = bytes(nbytes)
    nothing = zlib.crc32(zeros)
    bits = [zlib.crc32(zeros, 1 << bit) ^ nothing for bit in range(32)]
    tables = []
    for first in range(0, 32, 8):
        table = [0]
        for bit in bits[first : first + 8]:
            table += [bit ^ value for value in table]
        tables.append(tuple(table))
    return tuple(tables)
