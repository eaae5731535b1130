"""What ranks read beside their samples: a small file, before the batches that the plan says (plan/side_reads.py)."""

from collections.abc import Iterator

from tierscope.loaders import Batch, SampleSource
from tierscope.loaders.cold_reads import ColdReads
from tierscope.loaders.problems import explain, truncated
from tierscope.plan.side_reads import SideReads
from tierscope.storage.access import READ_FLAGS, Punctuality
from tierscope.trace.ops import CLOSE, OPEN, READ, STATISTICS_LANE
from tierscope.trace.recorder import LaneTable, Recording


class StatisticsReader:
    """One rank's of one epoch, by the rank itself, which waits for it. The file is opened by the first read, and stays open until the epoch ends."""

    def __init__(
        self, plan: SideReads, source: SampleSource, recording: Recording, rank: int, cold: ColdReads | None = None
    ) -> None:
        self.cold = cold
        self._plan, self._rank, self._epoch = plan, rank, recording.epoch
        files = source.files[-1]
        self._tier, self._path = len(source.files) - 1, files.side_path
        self._file = 0 if files.path(0) == files.side_path else files.count  # behind those of samples
        self._lane = recording.lane(STATISTICS_LANE)
        self._accesses = source.open_accesses()
        self._access = self._accesses[self._tier]
        self._memory = memoryview(bytearray(plan.read_bytes))
        self._fd = -1

    def before(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Batches, each of which is asked for when what comes before it is read."""
        try:
            for step in range(self._plan.steps):
                self._read(step)
                batch = next(batches, None)
                if batch is None:
                    return
                yield batch
            yield from batches
        finally:
            self._close()

    def _read(self, step: int) -> None:
        lane = self._lane
        lane.step = step
        for offset in self._plan.offsets(self._rank, self._epoch, step):
            try:
                if self._fd < 0:
                    lane.begin()
                    self._fd = self._access.open(self._path, READ_FLAGS)
                    lane.end(self._tier, OPEN, self._file, 0, 0)
                    if self.cold:
                        self.cold.opened(self._access, self._fd, self._tier, self._file)
                self._read_at(offset)
            except OSError as error:
                lane.abandon()
                raise explain(error, self._path) from None

    def _read_at(self, offset: int) -> None:
        lane, done, whole = self._lane, 0, self._plan.read_bytes
        while done < whole:
            lane.begin()
            piece = self._memory[done : done + self._plan.transfer]
            got = self._access.preadv(self._fd, (piece,), offset + done)
            lane.end(self._tier, READ, self._file, offset + done, got)
            if got == 0:
                raise truncated(self._path, offset // whole, offset, whole, done)
            done += got

    def _close(self) -> None:
        if self._fd < 0:
            return
        closing, self._fd = self._fd, -1
        if self.cold:
            self.cold.closing(self._access, closing, self._tier, self._file, 1)
        self._lane.begin()
        self._access.close(closing)
        self._lane.end(self._tier, CLOSE, self._file, 0, 0)

    def finish(self) -> tuple[LaneTable, Punctuality]:
        punctuality = Punctuality()
        for access in self._accesses:
            punctuality.add(access.punctuality)
            access.leave()
        return self._lane.finish(), punctuality
