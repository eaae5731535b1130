"""What the files of a checkpoint hold: random bytes whose checksum costs nothing while they are written.

Files are made of a few slices of the pool, one of which follows on another by the file's number and the checkpoint's step. The slices' checksums are known
from the start, and the checksum of a whole file is put together from them: a checksum over all bytes would take as long as fast storage.
"""

import zlib
from collections.abc import Iterator

from tierscope.dataset.content import POOL_BYTES, pool
from tierscope.plan.checkpoints import LARGEST_PIECE

assert LARGEST_PIECE <= POOL_BYTES // 2, "a slice begins in one half of the pool"
_SLICES = 31
_STRIDE = 0x9E3779B97F4A7C15


class Snapshot:
    """Content in pieces of a transfer each; the last one of a file may be shorter."""

    def __init__(self, seed: int, transfer_bytes: int) -> None:
        self.piece_bytes = piece = min(transfer_bytes, LARGEST_PIECE)
        random, room = pool(seed), POOL_BYTES - LARGEST_PIECE
        starts = [(number * _STRIDE >> 17) % room | 1 for number in range(1, _SLICES + 1)]  # odd: no block begins there
        self._slices = [random[start : start + piece] for start in starts]
        self._sums = [zlib.crc32(part) for part in self._slices]
        self._append = _Appending(piece)

    def _order(self, step: int, file: int, nbytes: int) -> Iterator[int]:
        first = (step * 7 + file * 3) % _SLICES
        return ((first + turn * (1 + file % 5)) % _SLICES for turn in range(-(-nbytes // self.piece_bytes)))

    def pieces(self, step: int, file: int, nbytes: int) -> Iterator[memoryview]:
        left = nbytes
        for chosen in self._order(step, file, nbytes):
            yield self._slices[chosen][:left]
            left -= self.piece_bytes

    def checksum(self, step: int, file: int, nbytes: int) -> int:
        """The CRC-32 of a file."""
        left, crc = nbytes, 0
        for chosen in self._order(step, file, nbytes):
            if left < self.piece_bytes:
                return zlib.crc32(self._slices[chosen][:left], crc)
            crc = self._append(crc, self._sums[chosen])
            left -= self.piece_bytes
        return crc


class _Appending:
    """The CRC-32 of bytes that are followed by a fixed number of others, from the two checksums.

    A checksum that runs on over n bytes is a linear function of where it began, plus the checksum of those bytes alone.
    """

    def __init__(self, nbytes: int) -> None:
        zeros = bytes(nbytes)
        of_zeros = zlib.crc32(zeros)
        bits = [zlib.crc32(zeros, 1 << bit) ^ of_zeros for bit in range(32)]
        self._tables = tuple(_combinations(bits[byte * 8 : byte * 8 + 8]) for byte in range(4))

    def __call__(self, before: int, behind: int) -> int:
        a, b, c, d = self._tables
        return a[before & 255] ^ b[before >> 8 & 255] ^ c[before >> 16 & 255] ^ d[before >> 24] ^ behind


def _combinations(bits: list[int]) -> list[int]:
    """For every byte, what its bits make together."""
    table = [0]
    for bit in bits:
        table += [known ^ bit for known in table]
    return table
