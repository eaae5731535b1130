"""What the samples consist of: deterministic, incompressible unless told otherwise, and each one knows its own number.

A sample is its number (8 bytes) and slices of a pool of random bytes at offsets that depend on (file, sample): no copy and
no random generator in the writing loop. Compressors that look back less than a pool (gzip, lz4, zstd's
usual levels, a filesystem's blocks) gain nothing, and slices do not start at block boundaries, so that block
deduplication finds nothing either; a compressor with a window of many MiB could find repeated slices in large files.
With some compressibility, that share of every 256 bytes of the pool is zeros.
"""

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from tierscope.plan.permutation import IndexArray
from tierscope.plan.sizes import SampleSizes
from tierscope.spec.study import Study

POOL_BYTES = 16 << 20
_SLICE = POOL_BYTES // 2
_CELL = 256
_BY_SAMPLE, _BY_TURN, _START = 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0x2545F491  # spread where slices begin
_DROPPED = 17  # low bits
_NUMBER = struct.Struct("<q")
Buffer = bytes | bytearray | memoryview
Pool = tuple[int, float]  # what a pool depends on: seed and compressibility


def pool_of(study: Study) -> Pool:
    return study.seed, study.workload.dataset.compressibility


def pool(seed: int, compressibility: float = 0.0) -> memoryview:
    """The last one is kept."""
    return _pool(seed, compressibility)


@lru_cache(maxsize=1)
def _pool(seed: int, compressibility: float) -> memoryview:
    words = np.random.Philox(seed).random_raw(POOL_BYTES // 8)
    if not compressibility:
        return memoryview(words.astype("<u8").tobytes())
    cells = words.astype("<u8").view(np.uint8).reshape(-1, _CELL)
    cells[:, _CELL - round(compressibility * _CELL) :] = 0
    return memoryview(cells.tobytes())


def payload(seed: int, sample: int, nbytes: int, compressibility: float = 0.0) -> list[Buffer]:
    """The bytes of a sample, as pieces to be written one after another."""
    return _pieces(pool(seed, compressibility), sample, nbytes)


def payloads(of: Pool, first: int, sizes: Sequence[int]) -> list[list[Buffer]]:
    """Of samples that follow one another."""
    random = pool(*of)
    return [_pieces(random, sample, nbytes) for sample, nbytes in enumerate(sizes, first)]


def _pieces(random: memoryview, sample: int, nbytes: int) -> list[Buffer]:
    left = nbytes - _NUMBER.size
    if 0 < left <= _SLICE:  # the usual case, once more
        start = ((sample * _BY_SAMPLE + _START) >> _DROPPED) % _SLICE
        return [_NUMBER.pack(sample), random[start : start + left]]
    pieces: list[Buffer] = [_NUMBER.pack(sample)[:nbytes]]
    turn = 0
    while left > 0:
        start = ((sample * _BY_SAMPLE + turn * _BY_TURN + _START) >> _DROPPED) % _SLICE
        piece = min(left, _SLICE)
        pieces.append(random[start : start + piece])
        left -= piece
        turn += 1
    return pieces


def slices(samples: IndexArray, sizes: IndexArray) -> Iterator[tuple[IndexArray, IndexArray]]:
    """Of many samples at once: where in the pool their first slices begin and how long they are, then their second ones, and so on; 0: it has none."""
    left = np.maximum(sizes - _NUMBER.size, 0)
    turn = 0
    while left.any():
        shift = np.uint64((turn * _BY_TURN + _START) % 2**64)
        starts = (samples.astype(np.uint64) * np.uint64(_BY_SAMPLE) + shift >> np.uint64(_DROPPED)) % np.uint64(_SLICE)
        yield starts.astype(np.int64), np.minimum(left, _SLICE)
        left = np.maximum(left - _SLICE, 0)
        turn += 1


def maker(study: Study) -> Callable[[int, memoryview], int]:
    """For samples without files: puts one into memory; its bytes."""
    dataset, seed = study.workload.dataset, study.seed
    sizes = SampleSizes.of(dataset, seed, ragged=True) if dataset.record_length_bytes_stdev else None

    def make(sample: int, slot: memoryview) -> int:
        file, inside = divmod(sample, dataset.num_samples_per_file)
        nbytes = dataset.record_length_bytes if sizes is None else int(sizes.of_file(file)[inside])
        at = 0
        for piece in payload(seed, sample, nbytes, dataset.compressibility):
            slot[at : at + len(piece)] = piece
            at += len(piece)
        return at

    return make


def sample_number(payload_bytes: memoryview) -> int:
    """The number that a sample carries; records shorter than 8 bytes carry its low bytes only."""
    return int.from_bytes(payload_bytes[: _NUMBER.size], "little")
