"""NumPy's `.npz`: an uncompressed zip archive with one array `x` of samples × bytes.

A file with one sample is read whole. Of a file with many, a sample needs the archive's directory at the end, the headers
at the front and its own row, as any reader of the format must fetch them: three extents.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tierscope.formats.base import Buffer, Extent, Format, Shape
from tierscope.formats.npy import array_header
from tierscope.formats.slices import crc32

_MEMBER = "x.npy"
_LOCAL_CRC_AT = 14  # in a zip's local file header
_CENTRAL_CRC_AT = 16  # in a zip's central directory entry
_CRC = struct.Struct("<I")
_MOST_BYTES = 2**32 - 2**16


@dataclass(frozen=True, slots=True)
class _Archive:
    """The bytes of an archive around its samples, checksums left open."""

    zip_header: bytes
    array_header: bytes
    directory: bytes

    @property
    def data_at(self) -> int:
        return len(self.zip_header) + len(self.array_header)


@lru_cache(maxsize=64)
def _archive(samples: int, nbytes: int) -> _Archive:
    """Taken from an archive that zipfile wrote.

    Header and directory hold the content's size and checksum. The size is patched in by writing the archive around an empty
    member of the right declared size; the checksum differs per file and is filled in by `encode`.
    """
    header = array_header(samples, nbytes)
    size = len(header) + samples * nbytes
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
    return _Archive(bytes(whole[:front_bytes]), header, bytes(whole[front_bytes:]))


class Npz(Format):
    suffix = ".npz"

    def __init__(self, shape: Shape) -> None:
        if shape.samples_per_file * shape.most >= _MOST_BYTES:
            raise ValueError("an npz file must stay below 4 GiB (larger ones need zip64)")
        super().__init__(shape)
        self._usual = _archive(shape.samples_per_file, shape.record_bytes)

    def _of(self, file: int) -> tuple[int, _Archive]:
        if self.shape.alike:
            return self.shape.record_bytes, self._usual
        nbytes = self.shape.sample_bytes(file)
        return nbytes, _archive(self.shape.samples_per_file, nbytes)

    @property
    def file_bytes(self) -> int:
        return self._size(self.shape.record_bytes, self._usual)

    def file_bytes_of(self, file: int) -> int:
        return self._size(*self._of(file))

    def _size(self, nbytes: int, archive: _Archive) -> int:
        return archive.data_at + self.shape.samples_per_file * nbytes + len(archive.directory)

    @property
    def slot_bytes(self) -> int:
        archive = _archive(self.shape.samples_per_file, self.shape.most)
        return archive.data_at + self.shape.most + len(archive.directory)

    @property
    def _whole(self) -> bool:
        return self.shape.samples_per_file == 1

    def payload(self, inside: int = 0, file: int = 0) -> slice:  # noqa: ARG002
        nbytes, archive = self._of(file)
        start = archive.data_at if self._whole else archive.data_at + len(archive.directory)
        return slice(start, start + nbytes)

    def extents(self, inside: int, file: int = 0) -> Sequence[Extent]:
        nbytes, archive = self._of(file)
        size = self._size(nbytes, archive)
        if self._whole:
            return (Extent(0, size),)
        directory = Extent(size - len(archive.directory), len(archive.directory))
        return (directory, Extent(0, archive.data_at), Extent(archive.data_at + inside * nbytes, nbytes))

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        archive = _archive(self.shape.samples_per_file, sum(len(piece) for piece in payloads[0]))
        content: list[Buffer] = [archive.array_header, *(piece for payload in payloads for piece in payload)]
        crc = crc32(content) if self.shape.alike else _crc32_of_any(content)
        front, directory = bytearray(archive.zip_header), bytearray(archive.directory)
        _CRC.pack_into(front, _LOCAL_CRC_AT, crc)
        _CRC.pack_into(directory, _CENTRAL_CRC_AT, crc)
        return [front, *content, directory]

    def check(self, slot: memoryview) -> None:
        """The headers always; the checksum, which covers the whole array, where the whole array was read."""
        archive = self._usual
        if not self.shape.alike:
            own = slot.nbytes - archive.data_at - len(archive.directory)  # around any array there are as many bytes
            archive = _archive(self.shape.samples_per_file, own)
        end = slot.nbytes - len(archive.directory)
        directory_at, front_at = (end, 0) if self._whole else (0, len(archive.directory))
        directory = slot[directory_at : directory_at + len(archive.directory)]
        front = slot[front_at : front_at + archive.data_at]
        if not _same(front, archive.zip_header + archive.array_header, _LOCAL_CRC_AT):
            raise ValueError("wrong npz header")
        if not _same(directory, archive.directory, _CENTRAL_CRC_AT):
            raise ValueError("wrong npz directory")
        stored: int = _CRC.unpack_from(directory, _CENTRAL_CRC_AT)[0]
        in_header: int = _CRC.unpack_from(front, _LOCAL_CRC_AT)[0]
        if stored != in_header:
            raise ValueError(f"two npz checksums (header {in_header:#010x}, directory {stored:#010x})")
        if self._whole:
            computed = zlib.crc32(slot[len(archive.zip_header) : end])
            if stored != computed:
                raise ValueError(f"wrong npz checksum (stored {stored:#010x}, computed {computed:#010x})")


def _crc32_of_any(content: Sequence[Buffer]) -> int:
    """Where every file has another length."""
    crc = 0
    for piece in content:
        crc = zlib.crc32(piece, crc)
    return crc


def _same(present: memoryview, expected: bytes, crc_at: int) -> bool:
    """Equal, whatever the checksum of this file's content."""
    return present[:crc_at] == expected[:crc_at] and present[crc_at + 4 :] == expected[crc_at + 4 :]
