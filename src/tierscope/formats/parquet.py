"""Parquet by PyArrow: a column of binary values, `x`, a row group per sample, so that one can be read without the others."""

from collections.abc import Sequence

import pyarrow
from pyarrow import parquet

from tierscope.formats import LIBRARY
from tierscope.formats.base import Buffer, Format, Handle, Opened
from tierscope.units import counted

_OWN_BYTES = 1024  # of the library in a file, and in a row group some more
_OWN_BYTES_OF_GROUP = 160
_SCHEMA = pyarrow.schema([("x", pyarrow.binary())])


class Parquet(Format):
    suffix = ".parquet"
    reading = LIBRARY
    ragged = True
    has_checks = False

    @property
    def file_bytes(self) -> int:
        return _OWN_BYTES + self.shape.samples_per_file * (self.shape.record_bytes + _OWN_BYTES_OF_GROUP)

    def file_bytes_of(self, file: int) -> None:  # noqa: ARG002
        return None

    @property
    def slot_bytes(self) -> int:
        return self.shape.most

    def write(self, path: str, payloads: Sequence[Sequence[Buffer]]) -> None:
        """Neither compressed nor with a dictionary or statistics: values that occur once gain nothing from them."""
        with parquet.ParquetWriter(
            path, _SCHEMA, compression="none", use_dictionary=False, write_statistics=False
        ) as out:
            for payload in payloads:
                out.write_table(pyarrow.table([pyarrow.array([b"".join(payload)], pyarrow.binary())], schema=_SCHEMA))

    def open(self, opened: Opened) -> Handle:
        return _Handle(opened, self.shape.samples_per_file)


class _Handle:
    def __init__(self, opened: Opened, samples: int) -> None:
        try:
            self._file = parquet.ParquetFile(pyarrow.PythonFile(opened.stream(), mode="r"), pre_buffer=False)
        except pyarrow.ArrowException as error:
            raise ValueError(f"not a complete Parquet file: {error}") from None
        if self._file.num_row_groups != samples or self._file.schema_arrow != _SCHEMA:
            self._file.close()
            raise ValueError(
                f"it has {counted(self._file.num_row_groups, 'row group')} of other columns, not {counted(samples, 'sample')} of this dataset"
            )

    def read(self, inside: int, slot: memoryview) -> int:
        try:
            column = self._file.read_row_group(inside, use_threads=False).column("x")
        except (pyarrow.ArrowException, OSError) as error:
            raise ValueError(f"cannot be read by PyArrow: {error}") from None
        value = memoryview(column[0].as_buffer() or b"").cast("B") if len(column) == 1 else memoryview(b"")
        if not 0 < value.nbytes <= slot.nbytes:
            raise ValueError(f"sample {inside} has {value.nbytes} bytes")
        slot[: value.nbytes] = value
        return value.nbytes

    def close(self) -> None:
        self._file.close()
