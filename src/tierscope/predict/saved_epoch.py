"""An epoch by the bound, with its checkpoints: how long training stands still for them, and what they leave of stations' time.

Synchronous ones come on top of the epoch; that a single writer slows others' reads down meanwhile is not in it, unless a station is busy all the time. Those behind training take a share of stations' time; who comes to the next one before the last is done waits.
"""

from dataclasses import replace

import numpy as np

from tierscope.plan.checkpoints import meets
from tierscope.plan.stations import Stations
from tierscope.predict.demand import least_seconds
from tierscope.predict.events import Saving
from tierscope.predict.outcome import FloatArray, Load, Outcome, SaveOutcome
from tierscope.predict.save_bound import SaveBound, save_bound
from tierscope.predict.saves import more_digits
from tierscope.spec.study import Study


def beside_saves(study: Study, stations: Stations, saving: Saving, seconds: float) -> Stations:
    """The stations as readers find them beside what goes on behind training: saves and drains, spread evenly over an epoch of so many seconds.

    Of a station's time they take no more than their part of all that ask for it: who comes to the next one before that is done waits.
    """
    bound, count, background = save_bound(study, stations, saving.plan), len(saving.epoch.steps), saving.plan.background
    work = count * (bound.drain_load.seconds + (bound.load.seconds if background else 0.0))
    if not work.any():
        return stations
    most = _part_of_writers(study, saving)
    longest = max(float(bound.drained.max()), bound.seconds if background else 0.0) / most
    busy = sum(min(longest, gap) for gap in _gaps(saving, seconds)) / max(seconds, 1e-300)
    slowed = 1 - 1 / (1 + min(1.0, busy) * most / (1 - most))
    taken = np.minimum(slowed, work / max(seconds, 1e-300))
    return replace(stations, background=1 - (1 - stations.background) * (1 - taken))


def _part_of_writers(study: Study, saving: Saving) -> float:
    """Of a station that all ask at once."""
    writers, threads = int(saving.plan.taking_part.sum()), max(1, study.workload.reader.read_threads)
    return writers / (writers + study.system.ranks * threads)


def _gaps(saving: Saving, seconds: float) -> list[float]:
    """Seconds of an epoch from each checkpoint to the next one, or to the end."""
    steps, whole = saving.epoch.steps, saving.epoch.batches
    ends = [*steps[1:], saving.epoch.before + whole]
    return [(end - step) * seconds / max(1, whole) for step, end in zip(steps, ends, strict=True)]


def with_saves(study: Study, stations: Stations, plain: Outcome, saving: Saving) -> Outcome:
    """The epoch, with what its checkpoints add to it."""
    count = len(saving.epoch.steps)
    alone = bound = save_bound(study, stations, saving.plan)
    if saving.plan.background or alone.drained.any():
        share = plain.load.seconds / max(float(plain.seconds.max()), 1e-300)
        bound = save_bound(study, stations, saving.plan, np.minimum(share, 1 - _part_of_writers(study, saving)))
    standstill = np.where(saving.plan.taking_part, _standstill(study, plain.seconds, saving, alone, bound), 0.0)
    load = Load(
        seconds=plain.load.seconds + count * (alone.load.seconds + alone.drain_load.seconds),
        ops=plain.load.ops + count * (alone.load.ops + alone.drain_load.ops),
    )
    seconds = plain.seconds + standstill
    if study.workload.train.sync == "step" and count:  # those who write nothing wait for those who do
        seconds = np.maximum(seconds, plain.seconds + standstill.max())
    seconds = seconds * max(1.0, least_seconds(stations, load) / max(float(seconds.max()), 1e-300))
    nbytes = count * bound.nbytes
    nbytes[0, :, saving.plan.tier, 2] += more_digits(saving.plan, saving.epoch)
    saved = SaveOutcome(
        tier=saving.plan.tier,
        background=saving.plan.background,
        begun=count,
        seconds=((bound if saving.plan.background else alone).seconds,) * count,
        standstill=standstill,
        busy=count * np.stack([(bound if saving.plan.background else alone).busy[0], bound.busy[1]]),
        ops=count * bound.ops,
        nbytes=nbytes,
    )
    return replace(plain, seconds=seconds, load=load, saved=saved)


def _standstill(study: Study, seconds: FloatArray, saving: Saving, alone: SaveBound, bound: SaveBound) -> FloatArray:
    """By rank: seconds of an epoch that training stands still. `alone`: a save were nobody reading, `bound`: beside readers.

    Synchronous: all stand still until the last one's files are there and it counts; a single writer stands still alone. Behind training: only for what makes
    it count, which is done together. In both for what goes on behind training, where that takes longer than the steps between.
    """
    together, count = meets(study), len(saving.epoch.steps)

    def of_all(times: FloatArray) -> FloatArray:
        return np.full(len(times), times.max()) if together else times

    if not saving.plan.background:
        written = of_all(alone.written) + of_all(alone.commit)
        return count * written + _late(saving, seconds, of_all(bound.drained), of_all(alone.drained))
    commit = of_all(bound.commit)
    beside, free = (of_all(of_bound.written) + of_all(of_bound.drained) for of_bound in (bound, alone))
    return count * commit + _late(saving, seconds, beside, free)


def _late(saving: Saving, seconds: FloatArray, beside: FloatArray, free: FloatArray) -> FloatArray:
    """By rank: seconds that the next checkpoint waits for what takes so long behind training, `beside` readers or `free` of them.

    What is begun with the last steps of an epoch goes on in the next one; in the last one it is waited for.
    """
    late, count = np.zeros(len(seconds)), len(saving.epoch.steps)
    if not count:
        return late
    gaps = [gap * seconds / max(float(seconds.max()), 1e-300) for gap in _gaps(saving, float(seconds.max()))]
    for gap in gaps[:-1]:
        late += np.maximum(0.0, beside - gap)
    if saving.epoch.last:
        return late + free * np.maximum(0.0, 1 - gaps[-1] / np.maximum(beside, 1e-300))
    return late + np.maximum(0.0, beside - np.maximum(gaps[-1], seconds / count))
