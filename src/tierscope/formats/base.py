"""What every format adapter offers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Buffer = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class Shape:
    """What a file holds: samples of equal size."""

    samples_per_file: int
    record_bytes: int


@dataclass(frozen=True, slots=True)
class Extent:
    """A stretch of a file that must be read for a sample."""

    offset: int
    nbytes: int


class Format(Protocol):
    """The layout of a file, a pure function of its Shape.

    A sample is read by reading its extents one after another into one piece of memory of `slot_bytes`; its payload
    is then the part `payload` of that memory, without a copy.
    """

    suffix: str
    has_checks: bool  # whether `check` can find anything

    def __init__(self, shape: Shape) -> None: ...

    @property
    def file_bytes(self) -> int:
        """Exact size of a file."""

    @property
    def slot_bytes(self) -> int:
        """Memory that a read sample needs: the sum of its extents."""

    @property
    def payload(self) -> slice:
        """Where the sample itself is inside that memory."""

    def extents(self, inside: int) -> Sequence[Extent]:
        """What must be read for sample number `inside` of a file."""

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        """The file as pieces to be written in order; each payload comes, and is passed on, as pieces too."""

    def check(self, slot: memoryview) -> None:
        """Raise ValueError with what is wrong if the memory does not hold an intact sample."""
