"""What ranks read where samples are made in memory: a small file of statistics, once, before the first batch of the first epoch."""

from collections.abc import Iterator
from dataclasses import replace

from tierscope.dataset.stage import STATISTICS
from tierscope.formats import Shape
from tierscope.formats.raw import Raw
from tierscope.loaders import Batch, SampleSource
from tierscope.loaders.base import Slots, StepSamples
from tierscope.loaders.reader import SampleReader
from tierscope.spec.study import Study
from tierscope.storage.access import Punctuality
from tierscope.trace.recorder import LaneTable, Recording

LANE = 1001  # next to that of checkpoints: loaders have fewer


def reads_statistics(study: Study, epoch: int) -> bool:
    """Whether ranks read it in this epoch; never, where a device makes the samples."""
    workload = study.workload
    return epoch == 1 and workload.dataset.statistics.file_bytes is not None and workload.model.data != "synthetic"


def statistics_path(source: SampleSource) -> str:
    return source.files[-1].path(STATISTICS)


class StatisticsReads:
    """One rank's: an open, the reads one behind the other (again from the begin, where the next would pass the end), a close."""

    def __init__(self, study: Study, source: SampleSource, recording: Recording) -> None:
        wanted = study.workload.dataset.statistics
        assert wanted.file_bytes is not None, "a study without a file of statistics"
        nbytes, reads = wanted.read_bytes or wanted.file_bytes, wanted.reads
        places = wanted.file_bytes // nbytes
        home = len(source.files) - 1
        self._work = StepSamples(
            step=0,
            samples=list(range(reads)),
            files=[STATISTICS] * reads,
            inside=[number % places for number in range(reads)],
            tiers=[home] * reads,
        )
        self._slots = Slots(1, nbytes, slice(None)).slots * reads
        pieces = replace(source, format=Raw(Shape(places, nbytes)), samples_per_file=reads, checks=None)
        self._reader = SampleReader(pieces, recording.lane(LANE))

    def before(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Batches whose first one waits for it."""
        self._reader.read(self._work, self._slots, self._slots)
        yield from batches

    def finish(self) -> tuple[LaneTable, Punctuality]:
        return self._reader.lane.finish(), self._reader.close()
