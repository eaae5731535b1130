"""NumPy's `.npz`: an uncompressed zip archive with one array `x` of samples × bytes.

A file with one sample is read whole. Of a file with many, a sample needs the archive's directory at the end, the headers
at the front and its own row, as any reader of the format must fetch them: three extents.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence

from numpy.lib import format as npy_format

from tierscope.formats.base import Buffer, Extent, Shape

_MEMBER = "x.npy"
_LOCAL_CRC_AT = 14  # in a zip's local file header
_CENTRAL_CRC_AT = 16  # in a zip's central directory entry
_CRC = struct.Struct("<I")


class Npz:
    suffix = ".npz"
    has_checks = True

    def __init__(self, shape: Shape) -> None:
        if shape.samples_per_file * shape.record_bytes >= 2**32 - 2**16:
            raise ValueError("an npz file must stay below 4 GiB (larger ones need zip64)")
        self._shape = shape
        self._npy_header = self._make_npy_header()
        self._front, self._directory = self._make_archive_parts()

    def _make_npy_header(self) -> bytes:
        out = io.BytesIO()
        shape = (self._shape.samples_per_file, self._shape.record_bytes)
        npy_format.write_array_header_1_0(out, {"descr": "|u1", "fortran_order": False, "shape": shape})
        return out.getvalue()

    def _make_archive_parts(self) -> tuple[bytes, bytes]:
        """The bytes before and after the member's content, taken from an archive that zipfile wrote.

        Both hold the content's size and checksum. The size is patched in by writing the archive around an empty
        member of the right declared size; the checksum differs per file and is filled in by `encode`.
        """
        size = len(self._npy_header) + self._shape.samples_per_file * self._shape.record_bytes
        out = io.BytesIO()
        info = zipfile.ZipInfo(_MEMBER, date_time=(1980, 1, 1, 0, 0, 0))
        with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
            archive.writestr(info, b"")
        whole = bytearray(out.getvalue())
        front_bytes = 30 + len(_MEMBER)
        struct.pack_into("<II", whole, 18, size, size)
        central = front_bytes
        struct.pack_into("<II", whole, central + 20, size, size)
        end = len(whole) - 22
        struct.pack_into("<I", whole, end + 16, front_bytes + size)  # where the directory starts
        return bytes(whole[:front_bytes]), bytes(whole[front_bytes:])

    @property
    def _data_at(self) -> int:
        return len(self._front) + len(self._npy_header)

    @property
    def file_bytes(self) -> int:
        return self._data_at + self._shape.samples_per_file * self._shape.record_bytes + len(self._directory)

    @property
    def slot_bytes(self) -> int:
        return self._data_at + self._shape.record_bytes + len(self._directory)

    @property
    def payload(self) -> slice:
        start = self._data_at if self._whole else self._data_at + len(self._directory)
        return slice(start, start + self._shape.record_bytes)

    @property
    def _whole(self) -> bool:
        return self._shape.samples_per_file == 1

    def extents(self, inside: int) -> Sequence[Extent]:
        if self._whole:
            return (Extent(0, self.file_bytes),)
        row = self._data_at + inside * self._shape.record_bytes
        directory = Extent(self.file_bytes - len(self._directory), len(self._directory))
        return (directory, Extent(0, self._data_at), Extent(row, self._shape.record_bytes))

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        content: list[Buffer] = [self._npy_header, *(piece for payload in payloads for piece in payload)]
        crc = 0
        for piece in content:
            crc = zlib.crc32(piece, crc)
        front, directory = bytearray(self._front), bytearray(self._directory)
        _CRC.pack_into(front, _LOCAL_CRC_AT, crc)
        _CRC.pack_into(directory, _CENTRAL_CRC_AT, crc)
        return [front, *content, directory]

    def check(self, slot: memoryview) -> None:
        """The headers always; the checksum, which covers the whole array, where the whole array was read."""
        directory_at = self.payload.stop if self._whole else 0
        front_at = 0 if self._whole else len(self._directory)
        directory = slot[directory_at : directory_at + len(self._directory)]
        front = slot[front_at : front_at + self._data_at]
        if not _same(front, self._front + self._npy_header, _LOCAL_CRC_AT):
            raise ValueError("wrong npz header")
        if not _same(directory, self._directory, _CENTRAL_CRC_AT):
            raise ValueError("wrong npz directory")
        stored: int = _CRC.unpack_from(directory, _CENTRAL_CRC_AT)[0]
        found: int = _CRC.unpack_from(front, _LOCAL_CRC_AT)[0]
        if stored != found:
            raise ValueError(f"two npz checksums (header {found:#010x}, directory {stored:#010x})")
        if self._whole:
            found = zlib.crc32(slot[len(self._front) : self.payload.stop])
            if stored != found:
                raise ValueError(f"wrong npz checksum (stored {stored:#010x}, computed {found:#010x})")


def _same(found: memoryview, expected: bytes, crc_at: int) -> bool:
    """Equal, whatever the checksum of this file's content."""
    return found[:crc_at] == expected[:crc_at] and found[crc_at + 4 :] == expected[crc_at + 4 :]
