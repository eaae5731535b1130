"""How a study's format and transfer size read a sample: its operations in order, each with its place in the file."""

from collections.abc import Sequence
from dataclasses import dataclass

from tierscope.errors import UserError
from tierscope.formats import EXTENTS, NOTHING, WHOLE, Extent, Format
from tierscope.plan.file_format import make_format
from tierscope.spec.study import Study

MOST_READS = 100_000  # of a sample: each is planned by itself


@dataclass(frozen=True, slots=True)
class Reading:
    """How a format and a transfer size read a sample: (offset, bytes) of every read, and the size of a file."""

    pieces: tuple[tuple[int, int], ...]
    file_bytes: int
    stride: int = 0  # bytes from a sample of a file to the next

    @property
    def sample_bytes(self) -> int:
        return sum(nbytes for _, nbytes in self.pieces)


def reading_of(study: Study) -> Reading:
    """How the study's format and transfer size read a sample."""
    form = make_format(study)
    transfer = study.workload.reader.transfer_size
    extents = _extents(form)
    refuse_many_reads(study, _reads(extents, transfer))
    pieces = tuple(
        (extent.offset + start, min(transfer, extent.nbytes - start))
        for extent in extents
        for start in range(0, extent.nbytes, transfer)
    )
    several = study.workload.dataset.num_samples_per_file > 1
    stride = form.extents(1, 0)[0].offset - form.extents(0, 0)[0].offset if several and form.reading == EXTENTS else 0
    return Reading(pieces, form.file_bytes, stride)


def refuse_many_reads(study: Study, reads: int) -> None:
    """`reads`: of a sample."""
    if reads > MOST_READS:
        raise UserError(
            f"workload.reader.transfer_size = {study.workload.reader.transfer_size} splits a sample into {reads:,} reads; more than {MOST_READS:,} are not "
            f"planned one by one: raise it, or lower workload.dataset.record_length_bytes = {study.workload.dataset.record_length_bytes}"
        )


def mean_read_bytes(study: Study) -> int:
    """Of a sample's reads, however many they are."""
    extents = _extents(make_format(study))
    return sum(extent.nbytes for extent in extents) // max(1, _reads(extents, study.workload.reader.transfer_size))


def reads_of(study: Study) -> int:
    """How many a sample takes; 0 where there are no files."""
    form = make_format(study)
    return 0 if form.reading == NOTHING else _reads(_extents(form), study.workload.reader.transfer_size)


def _reads(extents: Sequence[Extent], transfer: int) -> int:
    return sum(-(-extent.nbytes // transfer) for extent in extents)


def _extents(form: Format) -> Sequence[Extent]:
    """What is read for a sample; of files that libraries read, its own bytes alone, as if in one piece."""
    if form.reading == NOTHING:
        raise UserError(
            "workload.dataset.format = synthetic; it has no files, so there is no I/O to simulate: set another format"
        )
    if form.reading == EXTENTS:
        return form.extents(0, 0)
    return (Extent(0, form.file_bytes if form.reading == WHOLE else form.shape.record_bytes),)
