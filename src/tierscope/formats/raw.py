"""The bare samples one after another: no header, no checksum."""

from collections.abc import Sequence

from tierscope.formats.base import Buffer, Extent, Format, Shape, Starts


class Raw(Format):
    suffix = ".raw"
    ragged = True
    has_checks = False

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape)
        self._starts = Starts(shape, 0)

    @property
    def file_bytes(self) -> int:
        return self.shape.samples_per_file * self.shape.record_bytes

    def file_bytes_of(self, file: int) -> int:
        return self.file_bytes if self.shape.alike else self._starts.end(file)

    @property
    def slot_bytes(self) -> int:
        return self.shape.most

    def payload(self, inside: int = 0, file: int = 0) -> slice:
        return slice(0, self.extents(inside, file)[0].nbytes)

    def extents(self, inside: int, file: int = 0) -> Sequence[Extent]:
        if self.shape.alike:
            return (Extent(inside * self.shape.record_bytes, self.shape.record_bytes),)
        return (Extent(*self._starts.of(inside, file)),)

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        return [piece for payload in payloads for piece in payload]
