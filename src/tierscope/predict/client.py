"""What a training process is beside its I/O: who reads what of a batch, how large samples are, what a step costs that is not computing.

    startup_time      before the first read of an epoch: a constant of every rank, so the whole epoch is that much later
    process_overhead  a reading thread's work on a sample of mean size; on others as much more or less as they are larger or smaller
    step_overhead     the consumer's, in every step; nothing that is read ahead hides it, and it is no compute
    step_jitter       the same, but exponentially distributed around its mean: with sync: step the mean of the longest of n ranks is 1 + 1/2 + … + 1/n of it
    whole batches     a worker of torch's DataLoader reads a batch by itself, and each has `prefetch_size` of them ready

Assumptions: all ranks have the same costs; cores are never short.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tierscope.formats import FORMATS
from tierscope.plan.permutation import IndexArray
from tierscope.plan.sizes import SampleSizes
from tierscope.spec.study import Study


def whole_batches(study: Study) -> bool:
    """Whether a thread reads all of a batch; else all threads read parts of it."""
    loader = study.workload.reader.loader
    return loader is not None and loader.workers and study.workload.reader.read_threads > 0


def batches_ahead(study: Study) -> int:
    """Batches of a rank that are read ahead of the one in use, at most."""
    reader = study.workload.reader
    if not reader.read_threads:
        return 0
    return max(1, reader.prefetch_size) * reader.read_threads if whole_batches(study) else reader.prefetch_size


def step_seconds(study: Study) -> float:
    """Of a step in which no data is waited for, and nothing happens by chance."""
    return study.workload.train.computation_time + study.system.step_overhead


def mean_step_seconds(study: Study) -> float:
    """The same with what happens by chance; of ranks that do not wait for one another."""
    return step_seconds(study) + study.system.step_jitter


def relative_sizes(
    study: Study, files: IndexArray, samples: Callable[[], IndexArray]
) -> npt.NDArray[np.float64] | None:
    """Of every sample of every rank, of the mean's; None: all have the mean. `files` and `samples`: their numbers."""
    dataset = study.workload.dataset
    if not dataset.record_length_bytes_stdev:
        return None
    ragged = FORMATS.load(dataset.format).ragged
    numbers = samples() if ragged and dataset.num_samples_per_file > 1 else files
    sizes: npt.NDArray[np.float64] = (
        SampleSizes.of(dataset, study.seed, ragged).of_numbers(numbers) / dataset.record_length_bytes
    )
    return sizes
