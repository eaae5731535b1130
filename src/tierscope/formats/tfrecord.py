"""TensorFlow's TFRecord: length, masked CRC32C of the length, payload, masked CRC32C of the payload."""

import struct
from collections.abc import Sequence

from crc32c import crc32c

from tierscope.formats.base import Buffer, Extent, Shape

_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_LENGTH = struct.Struct("<Q")
_MASK_DELTA = 0xA282EAD8


def masked_crc32c(*pieces: Buffer) -> int:
    """The checksum as TFRecord stores it: rotated and offset, so that checksums of checksums differ."""
    crc = 0
    for piece in pieces:
        crc = crc32c(piece, crc)
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF


class TFRecord:
    suffix = ".tfrecord"
    has_checks = True

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        length = _LENGTH.pack(shape.record_bytes)
        self._header = _HEADER.pack(shape.record_bytes, masked_crc32c(length))

    @property
    def slot_bytes(self) -> int:
        return _HEADER.size + self._shape.record_bytes + _FOOTER.size

    @property
    def file_bytes(self) -> int:
        return self._shape.samples_per_file * self.slot_bytes

    @property
    def payload(self) -> slice:
        return slice(_HEADER.size, _HEADER.size + self._shape.record_bytes)

    def extents(self, inside: int) -> Sequence[Extent]:
        return (Extent(inside * self.slot_bytes, self.slot_bytes),)

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        pieces: list[Buffer] = []
        for payload in payloads:
            pieces += [self._header, *payload, _FOOTER.pack(masked_crc32c(*payload))]
        return pieces

    def check(self, slot: memoryview) -> None:
        if slot[: _HEADER.size] != self._header:
            raise ValueError("wrong TFRecord header (length or its checksum)")
        stored: int = _FOOTER.unpack(slot[self.payload.stop :])[0]
        found = masked_crc32c(slot[self.payload])
        if stored != found:
            raise ValueError(f"wrong TFRecord checksum (stored {stored:#010x}, computed {found:#010x})")
