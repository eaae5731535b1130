"""JPEG and PNG: a file is one sample, its bytes are the pixels of a grey picture, encoded and decoded by Pillow.

PNG gives every byte back, and has checksums. JPEG has neither: pixels come back changed, so the sample's number, its first bytes, rides in a comment.
"""

import io
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any, ClassVar

from PIL import Image

from tierscope.formats import WHOLE
from tierscope.formats.base import Buffer, Format, Shape

_NUMBER = 8
_MOST_SIDE = 65_500  # of a JPEG
_CHUNK = struct.Struct(">I4s")  # of a PNG: its bytes, its kind
_CRC = struct.Struct(">I")


class _Picture(Format):
    reading = WHOLE
    hands_over_encoded = True
    indexed = False
    _name: ClassVar[str]
    _start: ClassVar[bytes]
    _end: ClassVar[bytes]
    _keywords: ClassVar[dict[str, Any]]

    def __init__(self, shape: Shape) -> None:
        if shape.samples_per_file > 1:
            raise ValueError("a picture holds one sample; set workload.dataset.num_samples_per_file: 1")
        if math.isqrt(shape.most) > _MOST_SIDE:
            raise ValueError(f"a picture has at most {_MOST_SIDE}² bytes; lower record_length_bytes")
        super().__init__(shape)
        width, height = _sides(shape.most)
        if Image.MAX_IMAGE_PIXELS is not None:  # what Pillow takes for an attack
            Image.MAX_IMAGE_PIXELS = max(Image.MAX_IMAGE_PIXELS, width * height)

    @property
    def file_bytes(self) -> int:
        """As if nothing could be saved."""
        return self._bound(self.shape.record_bytes)

    def file_bytes_of(self, file: int) -> None:  # noqa: ARG002
        return None

    @property
    def slot_bytes(self) -> int:
        return self._bound(self.shape.most)

    def _bound(self, nbytes: int) -> int:
        width, height = _sides(nbytes)
        pixels = width * height
        return 2 * pixels + 4096 if self._name == "JPEG" else pixels + height + pixels // 1000 + 4096

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        (pieces,) = payloads
        payload = b"".join(pieces)
        width, height = _sides(len(payload))
        image = Image.frombytes("L", (width, height), payload + bytes(width * height - len(payload)))
        out = io.BytesIO()
        image.save(out, self._name, **self._keywords, **self._comment(payload))
        return [out.getvalue()]

    def _comment(self, payload: bytes) -> dict[str, bytes]:  # noqa: ARG002
        return {}

    def check(self, slot: memoryview) -> None:
        """Its start and its end; what is between, decoding tells."""
        if slot[: len(self._start)] != self._start or slot[slot.nbytes - len(self._end) :] != self._end:
            raise ValueError(f"not a complete {self._name} file")

    def decode(self, stored: memoryview) -> memoryview:
        """With some zeros behind it, where its bytes are no whole rows of pixels."""
        try:
            with Image.open(io.BytesIO(stored), formats=[self._name]) as image:
                if image.mode != "L":
                    raise ValueError(f"its pixels are {image.mode}, not greyscale")
                return self._finished(image.tobytes(), image)
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001  (Pillow has a dozen kinds for what it cannot read)
            raise ValueError(f"cannot be decoded as {self._name}: {error}") from None

    def _finished(self, pixels: bytes, image: Image.Image) -> memoryview:  # noqa: ARG002
        return memoryview(pixels)


class Png(_Picture):
    suffix = ".png"
    _name, _start, _end = "PNG", b"\x89PNG\r\n\x1a\n", b"IEND\xaeB`\x82"
    _keywords: ClassVar[dict[str, Any]] = {"compress_level": 6}

    def check(self, slot: memoryview) -> None:
        """Every chunk has a checksum."""
        super().check(slot)
        at = len(self._start)
        while at < slot.nbytes:
            if slot.nbytes - at < _CHUNK.size + _CRC.size:
                raise ValueError("not a complete PNG file")
            nbytes, kind = _CHUNK.unpack_from(slot, at)
            end = at + _CHUNK.size + nbytes
            if end + _CRC.size > slot.nbytes:
                raise ValueError("not a complete PNG file")
            stored: int = _CRC.unpack_from(slot, end)[0]
            computed = zlib.crc32(slot[at + 4 : end])
            if stored != computed:
                raise ValueError(f"wrong PNG checksum of {kind!r} (stored {stored:#010x}, computed {computed:#010x})")
            at = end + _CRC.size


class Jpeg(_Picture):
    suffix = ".jpg"
    _name, _start, _end = "JPEG", b"\xff\xd8\xff", b"\xff\xd9"
    _keywords: ClassVar[dict[str, Any]] = {"quality": 90}

    def _comment(self, payload: bytes) -> dict[str, bytes]:
        return {"comment": payload[:_NUMBER].hex().encode()}

    def _finished(self, pixels: bytes, image: Image.Image) -> memoryview:
        number = bytes.fromhex(bytes(image.info.get("comment", b"")).decode("ascii"))
        if not number:
            raise ValueError("it has no sample number")
        return memoryview(number + pixels[len(number) :])


def _sides(nbytes: int) -> tuple[int, int]:
    width = math.isqrt(nbytes - 1) + 1
    return width, -(-nbytes // width)
