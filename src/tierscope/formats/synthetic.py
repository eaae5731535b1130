"""No files of samples: they come from memory. What is left is all that is not storage, and a file of statistics where a study has one."""

from collections.abc import Sequence

from tierscope.formats import NOTHING
from tierscope.formats.base import Buffer, Extent, Format


class Synthetic(Format):
    suffix = ".statistics"
    reading = NOTHING
    ragged = True
    has_checks = False

    @property
    def file_bytes(self) -> int:
        return 0

    @property
    def slot_bytes(self) -> int:
        return self.shape.most

    def payload(self, inside: int = 0, file: int = 0) -> slice:
        return slice(0, self.shape.record_bytes if self.shape.alike else int(self.shape.of_file(file)[inside]))

    def extents(self, inside: int, file: int = 0) -> Sequence[Extent]:  # noqa: ARG002
        return ()

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:  # noqa: ARG002
        return []
