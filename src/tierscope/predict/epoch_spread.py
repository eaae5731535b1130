"""What becomes of an epoch at the ends of its I/O time's interval: how much of that compute hides."""

import numpy as np

from tierscope.predict.outcome import Outcome
from tierscope.predict.spread import DEVIATIONS
from tierscope.spec.study import Study


def epoch_range(study: Study, outcome: Outcome, io: tuple[float, float], error: float) -> tuple[float, float]:
    """Low and high of the epoch's seconds. `io`: what low and high are of the I/O time; `error`: of the model."""
    epoch, longest = float(outcome.seconds.max()), float(outcome.wall_classes.sum(axis=(1, 2)).max())
    reach = 1 + DEVIATIONS * error if _beside_compute(study, outcome) else 1.0  # it was fitted to epochs themselves
    low, high = (_epoch_with(study, outcome, epoch, longest, longest * share) for share in io)
    return max(outcome.compute, min(epoch / reach, low)), max(epoch * reach, high)


def _epoch_with(study: Study, outcome: Outcome, epoch: float, io: float, other_io: float) -> float:
    """What becomes of the epoch with another I/O time: reading ahead hides what computing takes, else nothing is hidden.

    What ranks wait for beside that (servers that some of them want at once) changes as their I/O does. No epoch changes more than its I/O time does: were computing as much
    slower or faster too, all of it would.
    """
    reader, step = study.workload.reader, study.workload.train.computation_time
    ahead = bool(outcome.compute and reader.prefetch_size and reader.read_threads)
    if not ahead or not io:
        return max(outcome.compute, epoch + other_io - io)
    own = min(epoch, outcome.compute + _beside_compute(study, outcome))
    hidden, other_hidden = (max(own, seconds + step) for seconds in (io, other_io))
    waited = max(0.0, epoch - hidden)
    at_least, at_most = sorted((epoch, epoch * other_io / io))
    return max(outcome.compute, min(at_most, max(at_least, other_hidden + waited * other_io / io)))


def _beside_compute(study: Study, outcome: Outcome) -> float:
    """What steps of an epoch cost the client: no I/O makes that longer, and reading ahead goes on meanwhile."""
    system, batch = study.system, study.workload.reader.batch_size
    if not outcome.samples or not (system.step_overhead or system.step_jitter):
        return 0.0
    longest = float((1 / np.arange(1, system.ranks + 1)).sum()) if study.workload.train.sync == "step" else 1.0
    return outcome.samples / batch * (system.step_overhead + system.step_jitter * longest)
