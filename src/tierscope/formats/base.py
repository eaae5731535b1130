"""What every format adapter offers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tierscope.formats import EXTENTS

Buffer = bytes | bytearray | memoryview
Sizes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Shape:
    """What a file holds. `record_bytes` is the size of every sample; the mean, where `sizes` tells those of a file's samples."""

    samples_per_file: int
    record_bytes: int
    largest_bytes: int = 0  # of any sample; 0: all are alike
    sizes: Callable[[int], Sizes] | None = None
    options: Any = None  # the format's own section of a study

    @property
    def alike(self) -> bool:
        return self.sizes is None

    @property
    def most(self) -> int:
        return self.largest_bytes or self.record_bytes

    def sample_bytes(self, file: int) -> int:
        """Of every sample of a file, where samples of one file are alike."""
        return self.record_bytes if self.sizes is None else int(self.sizes(file)[0])

    def of_file(self, file: int) -> Sizes:
        """The sizes of a file's samples."""
        if self.sizes is None:
            return np.full(self.samples_per_file, self.record_bytes, np.int64)
        return self.sizes(file)


@dataclass(frozen=True, slots=True)
class Extent:
    """A stretch of a file that must be read for a sample."""

    offset: int
    nbytes: int


@dataclass(frozen=True, slots=True)
class Opened:
    """A file for a format that is read by a library: where it is, a file object whose every read is recorded, and a way to record others.

    `timed(work)` does work that reads by itself, past the file object, and returns how many bytes it read, as it does itself.
    """

    path: str
    stream: Callable[[], Any]
    timed: Callable[[Callable[[], int]], int]


class Handle(Protocol):
    """An open file of a format that is read by a library."""

    def read(self, inside: int, slot: memoryview) -> int:
        """Sample number `inside` into the memory; its bytes."""

    def close(self) -> None: ...


class Format:
    """How samples lie in a file. What an adapter does not say itself is so for most of them.

    `reading` says how a sample is fetched:

    - `extents`: its extents are read one after another into one piece of memory of `slot_bytes`; the sample, as stored, is then the part
      `payload` of that memory, without a copy. Extents are a pure function of the Shape.
    - `whole`: the file is one sample, read from beginning to end, wherever that is.
    - `library`: someone else's code reads it; `open` gives a handle.
    - `nothing`: there is no file.
    """

    suffix: ClassVar[str]
    reading: ClassVar[str] = EXTENTS
    ragged: ClassVar[bool] = False  # samples of one file may differ in size; else only files may
    hands_over_encoded: ClassVar[bool] = (
        False  # loaders hand over what `encode` made, a piece for each sample; else samples
    )
    has_checks: ClassVar[bool] = True  # whether `check` can find anything
    indexed: ClassVar[bool] = True  # whether one sample of many can be read without the others

    def __init__(self, shape: Shape) -> None:
        self.shape = shape

    def __reduce__(self) -> tuple[Any, ...]:
        """For worker processes: made anew from its shape."""
        return type(self), (self.shape,)

    @property
    def file_bytes(self) -> int:
        """Size of a file; of one with samples of mean size, where sizes differ; about, where content decides."""
        raise NotImplementedError

    def file_bytes_of(self, file: int) -> int | None:  # noqa: ARG002
        """Exact size of a file, or None: only its content decides, and it has its name when it is complete."""
        return self.file_bytes

    @property
    def slot_bytes(self) -> int:
        """Memory that a read sample needs at most."""
        raise NotImplementedError

    def payload(self, inside: int = 0, file: int = 0) -> slice:
        """Where the sample is inside that memory."""
        raise NotImplementedError

    def extents(self, inside: int, file: int = 0) -> Sequence[Extent]:
        """What must be read for sample number `inside` of a file."""
        raise NotImplementedError

    def encode(self, payloads: Sequence[Sequence[Buffer]]) -> list[Buffer]:
        """The file as pieces to be written in order; each payload comes, and is passed on, as pieces too."""
        raise NotImplementedError

    def write(self, path: str, payloads: Sequence[Sequence[Buffer]]) -> None:
        """The file, by the library that will read it."""
        raise NotImplementedError

    def open(self, opened: Opened) -> Handle:
        """By the library; ValueError or OSError with what is wrong with the file."""
        raise NotImplementedError

    def open_together(self, path: str, communicator: Any) -> Handle:
        """By the library, with all ranks of MPI's communicator, each of whose reads is a call that all of them make; errors as above."""
        raise NotImplementedError

    def check_together(self) -> None:
        """ValueError with what is missing here for ranks to read one file together, and what to do about it."""

    def check(self, slot: memoryview) -> None:
        """Raise ValueError with what is wrong if the memory does not hold an intact sample."""

    def decode(self, stored: memoryview) -> memoryview:
        """The sample itself, from what is stored of it."""
        return stored


@dataclass(slots=True)
class Starts:
    """Where samples begin in files whose samples differ in size, `extra` bytes apart; the last few files are remembered."""

    shape: Shape
    extra: int
    _of: Callable[[int], tuple[Sizes, Sizes]] = field(init=False)

    def __post_init__(self) -> None:
        def computed(file: int) -> tuple[Sizes, Sizes]:
            sizes = self.shape.of_file(file)
            ends = np.cumsum(sizes + self.extra)
            return sizes, np.concatenate([[0], ends])

        self._of = lru_cache(maxsize=16)(computed)

    def of(self, inside: int, file: int) -> tuple[int, int]:
        """Begin of a sample with what belongs to it, and its own bytes."""
        sizes, starts = self._of(file)
        return int(starts[inside]), int(sizes[inside])

    def end(self, file: int) -> int:
        return int(self._of(file)[1][-1])
