"""NumPy's `.npy`: a header, then an array of samples × bytes. Of a file with many samples, one needs the header and its own row."""

import io
from collections.abc import Sequence
from functools import lru_cache

from numpy.lib import format as npy_format

from tierscope.formats.base import Buffer, Extent, Format


@lru_cache(maxsize=64)
def array_header(samples: int, nbytes: int) -> bytes:
    """Of an array of samples × bytes."""
    out = io.BytesIO()
    npy_format.write_array_header_1_0(out, {"descr": "|u1", "fortran_order": False, "shape": (samples, nbytes)})
    return out.getvalue()


class Npy(Format):
    suffix = ".npy"

    def _header(self, nbytes: int) -> bytes:
        return array_header(self.shape.samples_per_file, nbytes)

    @property
    def file_bytes(self) -> int:
        return self._whole(self.shape.record_bytes)

    def file_bytes_of(self, file: int) -> int:
        return self._whole(self.shape.sample_bytes(file))

    def _whole(self, nbytes: int) -> int:
        return len(self._header(nbytes)) + self.shape.samples_per_file * nbytes

    @property
    def slot_bytes(self) -> int:
        return len(self._header(self.shape.most)) + self.shape.most

    def payload(self, inside: int = 0, file: int = 0) -> slice:  # noqa: ARG002
        nbytes = self.shape.sample_bytes(file)
        start = len(self._header(nbytes))
        return slice(start, start + nbytes)

    def extents(self, inside: int, file: int = 0) -> Sequence[Extent]:
        nbytes = self.shape.sample_bytes(file)
        header = len(self._header(nbytes))
        if self.shape.samples_per_file == 1:
            return (Extent(0, header + nbytes),)
        return (Extent(0, header), Extent(header + inside * nbytes, nbytes))

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        nbytes = sum(len(piece) for piece in payloads[0])
        return [self._header(nbytes), *(piece for payload in payloads for piece in payload)]

    def check(self, slot: memoryview) -> None:
        """The header; there is nothing else that could be checked."""
        header = self._header(self.shape.record_bytes)
        if not self.shape.alike:
            header = self._header(slot.nbytes - len(header))  # headers are padded to the same length
        if slot[: len(header)] != header:
            raise ValueError("wrong npy header")
