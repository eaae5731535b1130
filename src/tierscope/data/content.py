"""What the samples consist of: deterministic, incompressible, and each one knows its own number.

A sample is its number (8 bytes) and slices of a pool of random bytes at offsets that depend on (file, sample): no copy and
no random generator in the writing loop. Compressors that look back less than a pool (gzip, lz4, zstd's
usual levels, a filesystem's blocks) gain nothing, and slices do not start at block boundaries, so that block
deduplication finds nothing either; a compressor with a window of many MiB could find repeated slices in large files.
"""

import struct
from functools import lru_cache

import numpy as np

POOL_BYTES = 16 << 20
_SLICE = POOL_BYTES // 2
_NUMBER = struct.Struct("<q")


@lru_cache(maxsize=1)
def pool(seed: int) -> memoryview:
    words = np.random.Philox(seed).random_raw(POOL_BYTES // 8)
    return memoryview(words.astype("<u8").tobytes())


def payload(seed: int, sample: int, nbytes: int) -> list[bytes | bytearray | memoryview]:
    """The bytes of a sample, as pieces to be written one after another."""
    random = pool(seed)
    pieces: list[bytes | bytearray | memoryview] = [_NUMBER.pack(sample)[:nbytes]]
    left = nbytes - _NUMBER.size
    turn = 0
    while left > 0:
        start = ((sample * 0x9E3779B97F4A7C15 + turn * 0xD1B54A32D192ED03 + 0x2545F491) >> 17) % _SLICE
        piece = min(left, _SLICE)
        pieces.append(random[start : start + piece])
        left -= piece
        turn += 1
    return pieces


def sample_number(payload_bytes: memoryview) -> int:
    """The number that a sample carries; records shorter than 8 bytes carry its low bytes only."""
    return int.from_bytes(payload_bytes[: _NUMBER.size], "little")
