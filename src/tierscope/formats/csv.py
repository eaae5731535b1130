"""CSV: a row of numbers per sample, each of them four of its bytes as an unsigned integer in ten digits.

A row is as long as any other of its file, so one can be read without the others. It is 2.75 times as long as the sample.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tierscope.formats.base import Buffer, Extent, Format

_WORD, _DIGITS = 4, 10
_FIELD = _DIGITS + 1  # and a comma, or the end of the row
_TENS = 10 ** np.arange(_DIGITS - 1, -1, -1, dtype=np.uint64)
_ZERO, _COMMA, _NEWLINE = ord("0"), ord(","), ord("\n")
_AT_ONCE = 1 << 16  # numbers: each of them takes a hundred bytes of memory on its way


def _row_bytes(nbytes: int) -> int:
    return -(-nbytes // _WORD) * _FIELD


class Csv(Format):
    suffix = ".csv"
    hands_over_encoded = True

    @property
    def file_bytes(self) -> int:
        return self.shape.samples_per_file * _row_bytes(self.shape.record_bytes)

    def file_bytes_of(self, file: int) -> int:
        return self.shape.samples_per_file * _row_bytes(self.shape.sample_bytes(file))

    @property
    def slot_bytes(self) -> int:
        return _row_bytes(self.shape.most)

    def payload(self, inside: int = 0, file: int = 0) -> slice:  # noqa: ARG002
        return slice(0, _row_bytes(self.shape.sample_bytes(file)))

    def extents(self, inside: int, file: int = 0) -> Sequence[Extent]:
        row = _row_bytes(self.shape.sample_bytes(file))
        return (Extent(inside * row, row),)

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        return [_row(b"".join(payload)) for payload in payloads]

    def check(self, slot: memoryview) -> None:
        fields = _fields(slot)
        separators = fields[:, _DIGITS]
        if separators[-1] != _NEWLINE or (separators[:-1] != _COMMA).any():
            raise ValueError("a CSV row has misplaced commas")
        if ((fields[:, :_DIGITS] < _ZERO) | (fields[:, :_DIGITS] > _ZERO + 9)).any():
            raise ValueError("a CSV row contains non-digits")

    def decode(self, stored: memoryview) -> memoryview:
        """With up to three zeros behind it, where its bytes are no whole numbers."""
        fields = _fields(stored)
        words = np.empty(len(fields), np.uint64)
        for start in range(0, len(fields), _AT_ONCE):
            some = fields[start : start + _AT_ONCE, :_DIGITS]
            words[start : start + _AT_ONCE] = (some.astype(np.uint64) - np.uint64(_ZERO)) @ _TENS
        if (words >> np.uint64(32)).any():
            raise ValueError("a CSV row contains a number of more than four bytes")
        return memoryview(words.astype("<u4").tobytes())


def _fields(row: memoryview) -> npt.NDArray[np.uint8]:
    return np.frombuffer(row, np.uint8).reshape(-1, _FIELD)


def _row(payload: bytes) -> bytes:
    words = np.frombuffer(payload + bytes(-len(payload) % _WORD), "<u4").astype(np.uint64)
    fields = np.empty((len(words), _FIELD), np.uint8)
    for start in range(0, len(words), _AT_ONCE):
        some = words[start : start + _AT_ONCE, None]
        fields[start : start + _AT_ONCE, :_DIGITS] = some // _TENS % np.uint64(10) + np.uint64(_ZERO)
    fields[:, _DIGITS] = _COMMA
    fields[-1, _DIGITS] = _NEWLINE
    return fields.tobytes()
