"""The bare samples one after another: no header, no checksum."""

from collections.abc import Sequence

from tierscope.formats.base import Buffer, Extent, Shape


class Raw:
    suffix = ".raw"
    has_checks = False

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    @property
    def file_bytes(self) -> int:
        return self._shape.samples_per_file * self._shape.record_bytes

    @property
    def slot_bytes(self) -> int:
        return self._shape.record_bytes

    @property
    def payload(self) -> slice:
        return slice(0, self._shape.record_bytes)

    def extents(self, inside: int) -> Sequence[Extent]:
        return (Extent(inside * self._shape.record_bytes, self._shape.record_bytes),)

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        return [piece for payload in payloads for piece in payload]

    def check(self, slot: memoryview) -> None:
        """Nothing in a raw file tells right from wrong."""
