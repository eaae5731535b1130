"""Reading through a buffer, as TensorFlow's input streams do: samples that follow one another in a file are cut from reads of one size.

A run is what a thread wants of an open file without a gap, within its part of a batch. Reads begin where the run begins, and the last one is short: every
byte of a run is read once, none beside it is. A read that belongs to one sample goes straight to its slot.
"""

from dataclasses import dataclass

from tierscope.formats import Extent, Format
from tierscope.loaders.base import StepSamples


@dataclass(frozen=True, slots=True)
class Run:
    """A sample's place in its file, and where the run ends that it is part of."""

    extent: Extent
    end: int


def runs_of(form: Format, work: StepSamples) -> list[Run]:
    """Of every sample."""
    extents = [form.extents(inside, file)[0] for file, inside in zip(work.files, work.inside, strict=True)]
    runs: list[Run] = []
    end = 0
    for at in range(len(extents) - 1, -1, -1):
        extent, behind = extents[at], at + 1
        goes_on = (
            behind < len(extents)
            and (work.files[at], work.tiers[at]) == (work.files[behind], work.tiers[behind])
            and extent.offset + extent.nbytes == extents[behind].offset
        )
        end = end if goes_on else extent.offset + extent.nbytes
        runs.append(Run(extent, end))
    return runs[::-1]


class ReadBuffer:
    """What one thread holds of its open file: never more than a transfer, nor than its part of a batch."""

    def __init__(self) -> None:
        self._memory = bytearray()
        self._start = self._held = 0
        self._is_straight = False

    def clear(self) -> None:
        """Another file is open now."""
        self._held = 0

    def take(self, offset: int, into: memoryview, done: int) -> int:
        """Copy what is held of the sample at `offset`, of which `done` bytes are there; how many are there then."""
        start = offset + done - self._start
        if 0 <= start < self._held:
            taken = min(self._held - start, into.nbytes - done)
            into[done : done + taken] = memoryview(self._memory)[start : start + taken]
            return done + taken
        return done

    def room(self, nbytes: int, rest: memoryview) -> memoryview:
        """Where the next read goes: to the rest of the sample, if nothing of it is another's."""
        self._is_straight = nbytes <= rest.nbytes
        if self._is_straight:
            return rest[:nbytes]
        if len(self._memory) < nbytes:
            self._memory = bytearray(nbytes)
        return memoryview(self._memory)[:nbytes]

    def filled(self, offset: int, nbytes: int) -> int:
        """A read is done; how many bytes of it are in the sample already."""
        if self._is_straight:
            return nbytes
        self._start, self._held = offset, nbytes
        return 0
