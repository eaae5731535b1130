"""Samples that are cut from a buffer: which reads of a schedule begin in which sample, how long they are, and where they lie.

A run begins where a file is opened (`Schedule.opens`), and ends before the next open of the same rank.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.plan.permutation import IndexArray
from tierscope.plan.reading import Reading
from tierscope.predict.schedule import Schedule


@dataclass(frozen=True, slots=True)
class RunReads:
    """By (rank, sample)."""

    counts: IndexArray  # reads that begin in the sample
    firsts: IndexArray  # bytes from the beginning of the run to the first of them
    lasts: IndexArray  # bytes of the last of them
    starts: IndexArray  # where the run begins in its file

    def stripes(self, reading: Reading, of_sample: IndexArray, stripe_size: int, stripe_count: int) -> IndexArray:
        """The stripe on which every read begins; `of_sample`: the sample that it begins in, samples of all ranks in one row."""
        assert reading.buffer is not None
        first_of_sample = np.concatenate([[True], of_sample[1:] != of_sample[:-1]])[: len(of_sample)]
        places = np.arange(len(of_sample))
        number = places - np.maximum.accumulate(np.where(first_of_sample, places, 0))
        offsets = (self.starts + self.firsts).reshape(-1)[of_sample] + number * reading.buffer.request_bytes
        stripes: IndexArray = offsets // stripe_size % stripe_count
        return stripes


def run_reads(reading: Reading, schedule: Schedule) -> RunReads | None:
    """None: samples are not cut from a buffer."""
    if reading.buffer is None:
        return None
    request = reading.buffer.request_bytes
    nbytes = np.full(schedule.shape, reading.buffer.sample_bytes, np.int64)
    if schedule.sizes is not None:
        nbytes = np.rint(nbytes * schedule.sizes).astype(np.int64)
    ends = np.cumsum(nbytes, axis=1)
    begins = ends - nbytes
    last = np.ones(schedule.shape, np.bool_)
    last[:, :-1] = schedule.opens[:, 1:]
    run_begin = np.maximum.accumulate(np.where(schedule.opens, begins, 0), axis=1)
    far = np.iinfo(np.int64).max
    run_end = np.minimum.accumulate(np.where(last, ends, far)[:, ::-1], axis=1)[:, ::-1]
    first_read = -(-(begins - run_begin) // request)
    behind = -(-(ends - run_begin) // request)
    lasts = np.minimum(request, run_end - run_begin - (behind - 1) * request)
    return RunReads(behind - first_read, first_read * request, lasts, _starts(reading, schedule))


def _starts(reading: Reading, schedule: Schedule) -> npt.NDArray[np.int64]:
    """Where in its file the run begins that a sample is part of; 0 where nobody asks (`Schedule.inside`)."""
    if schedule.inside is None:
        return np.zeros(schedule.shape, np.int64)
    places = np.broadcast_to(np.arange(schedule.shape[1]), schedule.shape)
    first = np.maximum.accumulate(np.where(schedule.opens, places, 0), axis=1)
    starts: npt.NDArray[np.int64] = np.take_along_axis(schedule.inside, first, axis=1) * reading.stride
    return starts
