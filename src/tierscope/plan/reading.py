"""How a study's format and transfer size read a sample: its operations in order, each with its place in the file.

Where samples of a file are read one behind the other, they are cut from a buffer (`is_buffered`): then reads belong to no sample, and what is told here is
the mean one, and how many there are for a sample.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tierscope.errors import UserError
from tierscope.formats import EXTENTS, FORMATS, LIBRARY, NOTHING, WHOLE, Extent, Format
from tierscope.plan.file_format import make_format
from tierscope.plan.order import Order
from tierscope.spec.study import Study

_CHUNK_CACHE = 1 << 20  # of HDF5, unless it is told otherwise
MOST_READS = 100_000  # of a sample: each is planned by itself
_ENOUGH_TURNS = 1 << 16  # of a rank, to tell how long the runs of an epoch are


@dataclass(frozen=True, slots=True)
class Reading:
    """How a format and a transfer size read a sample: (offset, bytes) of every read, and the size of a file."""

    pieces: tuple[tuple[int, int], ...]
    file_bytes: int
    stride: int = 0  # bytes from a sample of a file to the next
    buffer: "Buffered | None" = None  # then there is one piece: the mean read of a run

    @property
    def sample_bytes(self) -> int:
        return sum(nbytes for _, nbytes in self.pieces) if self.buffer is None else self.buffer.sample_bytes

    @property
    def read_bytes(self) -> float:
        """Of the mean read."""
        return sum(nbytes for _, nbytes in self.pieces) / max(1, len(self.pieces))

    @property
    def reads_per_sample(self) -> float:
        return float(len(self.pieces)) if self.buffer is None else self.buffer.reads_per_sample

    def by_request(self) -> "Reading":
        """With a read of full length as its piece, where samples are cut from a buffer."""
        return self if self.buffer is None else replace(self, pieces=((0, self.buffer.request_bytes),))


@dataclass(frozen=True, slots=True)
class Buffered:
    """Samples are cut from reads of `request_bytes`, which begin where a run begins; the last read of a run is short.

    A run is what a thread reads of a file for its part of a batch.
    """

    request_bytes: int
    sample_bytes: int
    reads_per_sample: float


def is_buffered(study: Study) -> bool:
    """Whether samples are cut from a buffer: those of a file lie one behind the other, and are read so, a call at a time.

    torch's workers read a sample at a time. io_uring has many samples in flight, and O_DIRECT reads whole blocks around each.
    """
    dataset, reader = study.workload.dataset, study.workload.reader
    loader = reader.loader
    if (
        dataset.num_samples_per_file == 1
        or reader.odirect
        or reader.io_engine != "pread"
        or reader.file_access == "collective"
        or (loader is not None and loader.workers)
        or study.placement.policy == "clairvoyant"
    ):
        return False
    form = _usual_format(study)
    return form.reading == EXTENTS and _is_packed(form) and Order.of(study).is_consecutive


def _is_packed(form: Format) -> bool:
    """Whether a sample is one stretch of its file, and the next one begins where it ends."""
    (first, *more), (second, *_) = form.extents(0, 0), form.extents(1, 0)
    return not more and first.offset + first.nbytes == second.offset


def part_starts(samples: int, batch: int, threads: int) -> Sequence[int]:
    """Where the threads' parts of all batches begin."""
    starts: list[int] = []
    for first in range(0, samples, batch):
        size = min(batch, samples - first)
        starts += range(first, first + size, -(-size // threads))
    return starts


def part_samples(study: Study) -> int:
    """Samples of a batch that one thread reads, at most."""
    reader = study.workload.reader
    return -(-reader.batch_size // max(1, reader.read_threads))


def _buffered_reading(study: Study, form: Format) -> Reading:
    reader, sample = study.workload.reader, form.extents(0, 0)[0].nbytes
    samples = max(1, min(Order.of(study).samples_per_rank, _ENOUGH_TURNS))
    starts = {
        *part_starts(samples, reader.batch_size, max(1, reader.read_threads)),
        *range(0, samples, form.shape.samples_per_file),
    }
    runs = np.diff([*sorted(starts), samples]) * sample
    reads = int((-(-runs // reader.transfer_size)).sum())
    request, mean = min(reader.transfer_size, int(runs.max())), round(int(runs.sum()) / reads)
    return Reading(((0, mean),), form.file_bytes, sample, Buffered(request, sample, reads / samples))


def reading_of(study: Study) -> Reading:
    """How the study's format and transfer size read a sample."""
    form = _usual_format(study)
    workload = study.workload
    if form.reading == NOTHING and (workload.checkpoint.wanted or workload.dataset.statistics.file_bytes is not None):
        return Reading((), 0)  # its checkpoints and the file beside it are all the I/O that there is
    extents, transfer = _asked(study, form)
    refuse_many_reads(study, _reads(extents, transfer))
    if is_buffered(study):
        return _buffered_reading(study, form)
    pieces = tuple(
        (extent.offset + start, min(transfer, extent.nbytes - start))
        for extent in extents
        for start in range(0, extent.nbytes, transfer)
    )
    return Reading(pieces, form.file_bytes, _stride(study, form))


def _stride(study: Study, form: Format) -> int:
    """From a sample of a file to the next; of those that libraries read, as if one lay behind the other."""
    if study.workload.dataset.num_samples_per_file == 1:
        return 0
    if form.reading == EXTENTS:
        return form.extents(1, 0)[0].offset - form.extents(0, 0)[0].offset
    return form.shape.record_bytes if form.reading == LIBRARY else 0


def _asked(study: Study, form: Format) -> tuple[Sequence[Extent], int]:
    """What is read for a sample, and the largest request: of HDF5 with chunks whole chunks, as many as a sample fills.

    A chunk that holds several samples is read for each of them, unless they are read in order: then the library's cache has it.
    """
    dataset, record = study.workload.dataset, form.shape.record_bytes
    chunk = dataset.hdf5.chunk_size if FORMATS[dataset.format].options == "hdf5" else None
    if chunk is None:
        return _extents(form), study.workload.reader.transfer_size
    if chunk > record and study.workload.reader.shuffle == "off" and chunk <= _CHUNK_CACHE:
        return (Extent(0, record),), record
    return (Extent(0, -(-record // chunk) * chunk),), chunk


def refuse_many_reads(study: Study, reads: int) -> None:
    """`reads`: of a sample."""
    if reads > MOST_READS:
        raise UserError(
            f"workload.reader.transfer_size = {study.workload.reader.transfer_size} splits a sample into {reads:,} reads; more than {MOST_READS:,} are not "
            f"planned one by one: raise it, or lower workload.dataset.record_length_bytes = {study.workload.dataset.record_length_bytes}"
        )


def mean_read_bytes(study: Study) -> int:
    """Of a sample's reads, however many they are."""
    if is_buffered(study):
        return round(_buffered_reading(study, _usual_format(study)).read_bytes)
    extents, transfer = _asked(study, _usual_format(study))
    return sum(extent.nbytes for extent in extents) // max(1, _reads(extents, transfer))


def reads_of(study: Study) -> int:
    """How many a sample takes; 0 where there are no files."""
    form = _usual_format(study)
    return 0 if form.reading == NOTHING else _reads(*_asked(study, form))


def _usual_format(study: Study) -> Format:
    """Of samples that all have the mean size: any one that is drawn may be far from it, also the first."""
    dataset = replace(study.workload.dataset, record_length_bytes_stdev=0)
    return make_format(replace(study, workload=replace(study.workload, dataset=dataset)))


def _reads(extents: Sequence[Extent], transfer: int) -> int:
    return sum(-(-extent.nbytes // transfer) for extent in extents)


def _extents(form: Format) -> Sequence[Extent]:
    """What is read for a sample; of files that libraries read, its own bytes alone, as if in one piece."""
    if form.reading == NOTHING:
        raise UserError(
            "workload.dataset.format = synthetic; it has no files, so there is no I/O to simulate: set another format, or add checkpoints or statistics"
        )
    if form.reading == EXTENTS:
        return form.extents(0, 0)
    return (Extent(0, form.file_bytes if form.reading == WHOLE else form.shape.record_bytes),)
