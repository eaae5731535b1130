"""`file_access: collective`: the samples of one file that ranks have open together; every read is a call that all of them make.

The file is opened once in an epoch, as programs on MPI-IO do. Opening and closing it are META, a call is a READ of this rank's bytes. A call ends
when the library lets it: waiting for other ranks, and exchanging data with them, is part of READ.

All ranks must make as many calls: so a sample takes as many as the largest one needs, and a smaller one ends with reads of nothing. A rank
that fails leaves the file open: closing it would wait for the others, who wait for this rank until it ends the job.
"""

from tierscope.formats import LIBRARY, Extent, Format, Handle
from tierscope.loaders.base import SampleSource, SharedFile
from tierscope.loaders.problems import broken, explain, truncated
from tierscope.trace.ops import CLOSE, OPEN, READ
from tierscope.trace.recorder import Lane

_MOST = 1 << 30  # bytes of a call: MPI counts them with 32 bits


class CollectiveFiles:
    """A rank's part in the file that is open."""

    def __init__(self, source: SampleSource, lane: Lane) -> None:
        self._source, self._lane = source, lane
        self._open: tuple[int, int, Handle] | None = None  # file, tier
        self._reads = 0  # of samples, since it is open

    def read(self, file: int, inside: int, tier: int, slot: memoryview) -> int:
        """A sample into the memory; its bytes."""
        path = self._source.files[tier].path(file)
        try:
            if self._open is None or self._open[:2] != (file, tier):
                self.close()
                self._open, self._reads = (file, tier, self._opened(file, tier, path)), 0
            self._reads += 1
            return self._open[2].read(inside, slot)
        except OSError as error:
            raise explain(error, path) from None
        except ValueError as error:
            raise broken(self._source, (file, inside, tier), str(error)) from None

    def _opened(self, file: int, tier: int, path: str) -> Handle:
        form, together, lane = self._source.format, self._source.together[tier], self._lane
        place = lane, tier, file
        lane.begin()
        if form.reading == LIBRARY:
            handle: Handle = _ByLibrary(form.open_together(path, together.communicator), place)
        else:
            transfer = min(self._source.transfer_bytes, _MOST)
            handle = _ByExtents(together.open(path), form, path, transfer, place)
        lane.end(tier, OPEN, file, 0, 0)
        if self._source.cold:
            self._source.cold.opened_by_library(path, tier, file)
        return handle

    def close(self) -> None:
        if self._open is None:
            return
        (file, tier, handle), self._open = self._open, None
        if self._source.cold:
            self._source.cold.closing_by_library(self._source.files[tier].path(file), tier, file, self._reads)
        self._lane.begin()
        try:
            handle.close()
        except OSError as error:
            raise explain(error, self._source.files[tier].path(file)) from None
        self._lane.end(tier, CLOSE, file, 0, 0)


_Place = tuple[Lane, int, int]  # tier, file


class _ByExtents:
    def __init__(self, shared: SharedFile, form: Format, path: str, transfer: int, place: _Place) -> None:
        self._shared, self._form, self._path, self._transfer, self._place = shared, form, path, transfer, place

    def read(self, inside: int, slot: memoryview) -> int:
        lane, tier, file = self._place
        (extent,) = self._form.extents(inside, file)
        self._check_end(inside, extent)
        for done in range(0, self._form.slot_bytes, self._transfer):
            piece = slot[done : min(done + self._transfer, extent.nbytes)]
            offset = extent.offset + min(done, extent.nbytes)
            lane.begin()
            got = self._shared.read(offset, piece)
            lane.end(tier, READ, file, offset, got)
            if got != piece.nbytes:
                raise truncated(self._path, inside, extent.offset, extent.nbytes, done + got)
        return extent.nbytes

    def _check_end(self, inside: int, extent: Extent) -> None:
        """MPI libraries may count bytes behind the end of a file as read."""
        there = max(0, self._shared.size - extent.offset)
        if there < extent.nbytes:
            raise truncated(self._path, inside, extent.offset, extent.nbytes, there)

    def close(self) -> None:
        self._shared.close()


class _ByLibrary:
    def __init__(self, handle: Handle, place: _Place) -> None:
        self._handle, self._place = handle, place

    def read(self, inside: int, slot: memoryview) -> int:
        lane, tier, file = self._place
        lane.begin()
        nbytes = self._handle.read(inside, slot)
        lane.end(tier, READ, file, 0, nbytes)
        return nbytes

    def close(self) -> None:
        self._handle.close()
