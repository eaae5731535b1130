"""Simulate an epoch of any size: its counts in full, and a part of its operations (sampled_schedule.py) for how far the bound is off.

How many operations of which tier each rank has is drawn at full size, as the shuffle would deal them, and the bound tells what becomes of every
rank: so the slowest of all comes from its own counts, never from the luck of the few operations that were simulated. By events, a part
of the epoch is simulated twice, with the engine and with the bound; what one says of the other there corrects the bound of the whole. How a part
grows to the whole is what its second half adds to its first: both begin and end alike, so that neither counts more than once. Where compute takes
longer than reading, processes read without pause until they are as far ahead as they may be, and at the pace of steps from then on: a part is long
enough to have that behind it in its first half, or the interval has what that may change.

What servers have to begin with (the stock of their credit) belongs to the whole epoch: a part begins without, and the bound says what it brings.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tierscope.plan.permutation import IndexArray
from tierscope.plan.plan import Plan
from tierscope.plan.reading import Reading
from tierscope.plan.stations import Stations, stations_of
from tierscope.predict import bound, events
from tierscope.predict.client import batches_ahead, mean_step_seconds
from tierscope.predict.outcome import FloatArray, Outcome
from tierscope.predict.sampled_schedule import Part, sampled
from tierscope.predict.saved_epoch import with_saves
from tierscope.predict.schedule import stay_open
from tierscope.predict.spread import DEVIATIONS
from tierscope.spec.study import Study

_TINY = 1e-300


def simulate_sampled(
    study: Study,
    stations: Stations,
    reading: Reading,
    plan: Plan,
    epoch: int,
    options: events.EventOptions | None,
    saving: events.Saving | None = None,
) -> Outcome:
    """`options`: of the engine; None: by the bound alone. `saving`: by the bound in any case. Steps are not kept, `sampling_error` is that of the part."""
    outcome = _simulated(study, stations, reading, plan, epoch, options, saving)
    return outcome if saving is None else with_saves(study, stations, outcome, saving)


def _simulated(
    study: Study,
    stations: Stations,
    reading: Reading,
    plan: Plan,
    epoch: int,
    options: events.EventOptions | None,
    saving: events.Saving | None,
) -> Outcome:
    """Without what is saved."""
    part = sampled(study, plan, reading, epoch)
    rng = np.random.default_rng((study.seed, epoch))
    ops, nbytes = _counts(plan, reading, part, rng)
    counts = ops, nbytes, plan.order.samples_per_rank
    whole = bound.simulate_counts(study, stations, reading, counts, rng, saving)
    whole = replace(whole, hit_rate=float((part.schedule.tiers < len(stations.tiers) - 1).mean()))
    if options is None:
        return whole
    ahead, pause = batches_ahead(study), _first_pause(study, whole, plan.steps)
    if pause > part.batches // 2:
        part = sampled(study, plan, reading, epoch, pause)
    all_stations = stations_of(part.study.system, study.seed)
    parts_stations = all_stations.with_stock(0.0)
    left = part.schedule.shape[0]
    grown_counts = ops[:left], nbytes[:left], plan.order.samples_per_rank
    settled = bound.simulate_counts(part.study, parts_stations, reading, grown_counts, copy.deepcopy(rng))
    engine = events.simulate(part.study, parts_stations, reading, part.schedule, options)
    beside = bound.simulate(part.study, parts_stations, reading, part.schedule)
    assert engine.steps is not None  # a part is small enough to keep them
    first = engine if parts_stations is all_stations else _beginning(part, reading, options, study.seed, ahead)
    half = _half(part, parts_stations, reading, options)
    grown = _Growth(plan.steps, part.batches, half)
    slower = grown.of(engine, lambda outcome: outcome.io) / (float(settled.io.mean()) / float(beside.io.mean()))
    longer = grown.of(engine, lambda outcome: outcome.seconds) / (
        float(settled.seconds.mean()) / float(beside.seconds.mean())
    )
    sizes = part.schedule.sizes
    whole = _varied(whole, plan, sizes, rng)
    level = _mean if sizes is not None else _longest  # the sizes of a part's few samples are its luck
    seconds = whole.seconds * longer * (level(engine.seconds) / level(beside.seconds))
    threads = max(1, study.workload.reader.read_threads)
    return replace(
        whole,
        busy=_within(whole.busy * slower * _factors(engine.busy, beside.busy, level), threads * seconds),
        wall=_within(whole.wall * slower * _factors(engine.wall, beside.wall, level), seconds),
        seconds=seconds,
        stall=np.maximum(0.0, seconds - whole.compute),
        first_batch=_first_batch(whole, first, beside),
        sampled_share=min(1.0, int(engine.ops.sum()) / int(ops.sum())),
        sampling_error=math.hypot(
            _error(engine.steps[:, :, 1:].sum(axis=2), plan.steps, ahead),
            _error(engine.steps[:, :, 0], plan.steps, ahead),
            _tail(engine.io, beside.io, level),
            _unsettled(part, parts_stations, reading, grown_counts, settled),
        ),
    )


def _counts(plan: Plan, reading: Reading, part: Part, rng: np.random.Generator) -> tuple[IndexArray, IndexArray]:
    """Operations and bytes by (rank, tier, kind): how many samples of each rank are on which tier, as a shuffle would deal them."""
    order, tiers = plan.order, len(part.study.system.tiers)
    here = np.stack([part.schedule.tiers == tier for tier in range(tiers)])
    counts = here.sum(axis=(1, 2))
    kept = stay_open(part.study)
    opened = (
        part.schedule.opens[:, 1:] if kept else part.schedule.opens
    )  # the first is one of the epoch, not of a part of it
    opens = (here[:, :, int(kept) :] & opened).sum(axis=(1, 2)) / np.maximum(1, counts)  # of a sample
    shares = _shares(plan, counts / counts.sum())
    whole_files = order.group_ranks < order.ranks or order.walk != "samples"  # are dealt, not samples one by one
    together = order.samples_per_file if whole_files else 1
    samples = order.samples_per_rank
    dealt = rng.multinomial(samples // together, shares, size=plan.ranks) * together
    dealt[:, -1] += samples - dealt.sum(axis=1)
    reads = np.rint(dealt * reading.reads_per_sample).astype(np.int64)
    ops = np.stack([np.rint(dealt * opens).astype(np.int64), reads], axis=2)
    ops[:, -1, 0] += kept
    nbytes = np.stack([np.zeros_like(dealt), dealt * reading.sample_bytes], axis=2)
    return ops, nbytes


def _shares(plan: Plan, drawn: FloatArray) -> FloatArray:
    """Of samples by tier: those of a fixed placement are known, others are as found in the part."""
    bounds = plan.placement.bounds
    known = np.diff([0, *bounds]) / plan.placement.files
    return known if np.abs(known - drawn).max() < 0.05 and len(known) == len(drawn) else drawn


def _first_batch(whole: Outcome, engine: Outcome, bound: Outcome) -> FloatArray | None:
    """All ranks begin at once, however long the epoch is: what the engine says of the slowest, for all."""
    if whole.first_batch is None or engine.first_batch is None or bound.first_batch is None:
        return whole.first_batch
    return whole.first_batch * (float(engine.first_batch.max()) / max(float(bound.first_batch.max()), _TINY))


def _beginning(part: Part, reading: Reading, options: events.EventOptions, seed: int, ahead: int) -> Outcome:
    """The first batches of a part, with all that servers have to begin with."""
    samples = 2 * (1 + ahead) * part.study.workload.reader.batch_size
    stations = stations_of(part.study.system, seed)
    return events.simulate(part.study, stations, reading, part.schedule.some(0, samples), options)


def _mean(of_ranks: FloatArray) -> float:
    return float(of_ranks.mean())


def _longest(of_ranks: FloatArray) -> float:
    return float(of_ranks.max())


def _varied(whole: Outcome, plan: Plan, sizes: FloatArray | None, rng: np.random.Generator) -> Outcome:
    """Where samples differ in size, so do the sums of ranks."""
    if sizes is None:
        return whole
    scatter = float(sizes.std()) / math.sqrt(plan.order.samples_per_rank)
    variation = np.maximum(0.0, rng.normal(1.0, scatter, len(whole.seconds)))
    stall = whole.stall * variation
    classes = variation[:, None, None]
    return replace(
        whole,
        busy=whole.busy * classes,
        wall=whole.wall * classes,
        stall=stall,
        seconds=whole.seconds - whole.stall + stall,
    )


def _factors(engine: FloatArray, bound: FloatArray, level: Callable[[FloatArray], float]) -> FloatArray:
    """By (tier, kind): what the engine says of what the bound says; of the slowest rank (or the mean) in all, of others class by class."""
    ours, theirs = engine.sum(axis=0), bound.sum(axis=0)
    factors: FloatArray = np.where((ours > 0) & (theirs > 0), ours / np.maximum(theirs, _TINY), 1.0)
    longest = level((bound * factors).sum(axis=(1, 2)))
    return factors * (level(engine.sum(axis=(1, 2))) / longest) if longest else factors


def _within(classes: FloatArray, most: FloatArray) -> FloatArray:
    """By rank, in all no more than this: nobody reads for longer than the epoch takes."""
    total = classes.sum(axis=(1, 2))
    share: FloatArray = np.divide(most, total, out=np.ones_like(total), where=total > most)
    kept: FloatArray = classes * share[:, None, None]
    return kept


@dataclass(frozen=True, slots=True)
class _Growth:
    """How many times as long as a part an epoch of so many steps takes. `half`: the part without its second half; None: the part is the epoch."""

    steps: int
    batches: int
    half: tuple[Outcome, int] | None

    def of(self, part: Outcome, figure: Callable[[Outcome], FloatArray]) -> float:
        """All ranks begin at once, and behind the last batches nothing is read any more: what lies between is what goes on."""
        more, total = max(0, self.steps - self.batches), float(figure(part).mean())
        if self.half is None or not more or not total:
            return 1.0
        shorter, batches = self.half
        added = max(0.0, total - float(figure(shorter).mean())) / (self.batches - batches)
        return 1 + more * added / total


def _half(part: Part, stations: Stations, reading: Reading, options: events.EventOptions) -> tuple[Outcome, int] | None:
    """The first half of its batches; None: there is only one."""
    batches = part.batches // 2
    if not batches:
        return None
    some = part.schedule.some(0, batches * part.study.workload.reader.batch_size)
    return events.simulate(part.study, stations, reading, some, options), batches


def _error(seconds: FloatArray, steps: int, ahead: int) -> float:
    """Relative, of the mean of a part's steady steps, for those of an epoch that it stands for: neither the first ones nor the last, behind which nothing is read."""
    means = seconds.mean(axis=0)
    steady = means[len(means) // 2 : len(means) - min(ahead, len(means) // 4)]
    scatter = float(steady.std()) / math.sqrt(len(steady)) / max(float(steady.mean()), _TINY)
    return scatter * max(0, steps - len(means)) / steps


def _first_pause(study: Study, settled: Outcome, steps: int) -> float:
    """Batches of a rank after which it first waits for memory, by the bound; 0: it never does."""
    ahead, step = batches_ahead(study), mean_step_seconds(study)
    pace = float(settled.io.mean()) / steps + bound.beside_reads(study, study.workload.reader.batch_size)
    if not ahead or pace >= step:
        return 0.0
    pause = (1 + ahead) / (1 - pace / step)
    return pause if pause < steps else 0.0


def _tail(engine: FloatArray, beside: FloatArray, level: Callable[[FloatArray], float]) -> float:
    """Relative error of the slowest rank: the bound says how much slower than most it is in the epoch, the engine of a part says otherwise."""
    if not engine.any() or not beside.any():
        return 0.0
    ours, theirs = (level(of_ranks) / float(of_ranks.mean()) for of_ranks in (engine, beside))
    return abs(ours / theirs - 1) / DEVIATIONS


def _unsettled(part: Part, stations: Stations, reading: Reading, counts: bound.DrawnCounts, settled: Outcome) -> float:
    """Relative error of I/O where half a part ends before the first pause: behind it, reads may be as fast as where steps compute between them."""
    study, workload = part.study, part.study.workload
    steps = -(-counts[2] // workload.reader.batch_size)
    pause = _first_pause(study, settled, steps)
    if pause <= part.batches // 2 or part.batches >= steps:
        return 0.0
    inline = replace(study, workload=replace(workload, reader=replace(workload.reader, read_threads=0)))
    calm = bound.simulate_counts(inline, stations, reading, counts, np.random.default_rng(study.seed))
    faster = 1 - float(calm.busy.sum()) / max(float(settled.busy.sum()), _TINY)
    return max(0.0, faster) * (steps - max(pause, part.batches)) / steps / DEVIATIONS
