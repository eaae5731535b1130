"""TensorFlow's TFRecord: length, masked CRC32C of the length, payload, masked CRC32C of the payload."""

import struct
from collections.abc import Sequence

from tierscope.checksum import crc32c
from tierscope.formats.base import Buffer, Extent, Format, Shape, Starts

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
_MASK_DELTA = 0xA282EAD8
_EXTRA = _HEADER.size + _FOOTER.size


def masked_crc32c(*pieces: Buffer) -> int:
    """The checksum as TFRecord stores it: rotated and offset, so that checksums of checksums differ."""
    crc = 0
    for piece in pieces:
        crc = crc32c(piece, crc)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


def _header(nbytes: int) -> bytes:
    return _HEADER.pack(nbytes, masked_crc32c(_LENGTH.pack(nbytes)))


class TFRecord(Format):
    suffix = ".tfrecord"
    ragged = True

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._starts = Starts(shape, _EXTRA)
        self._usual_header = _header(shape.record_bytes) if shape.alike else None

    @property
    def slot_bytes(self) -> int:
        return self.shape.most + _EXTRA

    @property
    def file_bytes(self) -> int:
        return self.shape.samples_per_file * (self.shape.record_bytes + _EXTRA)

    def file_bytes_of(self, file: int) -> int:
        return self.file_bytes if self.shape.alike else self._starts.end(file)

    def payload(self, inside: int = 0, file: int = 0) -> slice:
        return slice(_HEADER.size, self.extents(inside, file)[0].nbytes - _FOOTER.size)

    def extents(self, inside: int, file: int = 0) -> Sequence[Extent]:
        if self.shape.alike:
            nbytes = self.shape.record_bytes + _EXTRA
            return (Extent(inside * nbytes, nbytes),)
        start, own = self._starts.of(inside, file)
        return (Extent(start, own + _EXTRA),)

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        pieces: list[Buffer] = []
        for payload in payloads:
            header = self._usual_header or _header(sum(len(piece) for piece in payload))
            pieces += [header, *payload, _FOOTER.pack(masked_crc32c(*payload))]
        return pieces

    def check(self, slot: memoryview) -> None:
        own = slot.nbytes - _EXTRA
        if slot[: _HEADER.size] != (self._usual_header or _header(own)):
            raise ValueError("wrong TFRecord header (length or its checksum)")
        end = _HEADER.size + own
        stored: int = _FOOTER.unpack(slot[end:])[0]
        computed = masked_crc32c(slot[_HEADER.size : end])
        if stored != computed:
            raise ValueError(f"wrong TFRecord checksum (stored {stored:#010x}, computed {computed:#010x})")
