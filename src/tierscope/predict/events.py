"""Simulate an epoch with the discrete-event engine."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from tierscope.errors import UserError
from tierscope.plan.permutation import IndexArray
from tierscope.plan.plan import Plan
from tierscope.plan.policies import Flags
from tierscope.plan.reading import Reading
from tierscope.plan.stations import Stations, TierQueues, stations_of, stripes
from tierscope.plan.variation import log_parameters
from tierscope.predict.client import batches_ahead, step_seconds, whole_batches
from tierscope.predict.copies import copy_of
from tierscope.predict.engine.inputs import TIER, EpochTimes, LoaderInputs, Records, Requests, StartInputs, SystemInputs
from tierscope.predict.outcome import FloatArray, Load, Outcome, SaveOutcome, UnderWay
from tierscope.predict.runs import run_reads
from tierscope.predict.saves import EpochSaves, SavePlan, more_digits, save_inputs, save_plan, when
from tierscope.predict.schedule import Schedule
from tierscope.spec.study import Study

MOST_PARTS = 1_000_000  # of one sample, on every tier
MOST_STEPS = 4_000_000  # of all ranks; beyond, steps are not kept


@dataclass(frozen=True, slots=True)
class EventOptions:
    step_barrier: bool = False
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Saving:
    """Checkpoints of an epoch: what each consists of, when they are, and what an earlier epoch left under way."""

    plan: SavePlan
    epoch: EpochSaves
    under_way: UnderWay | None = None


def saving_of(study: Study, plan: Plan, epoch: int) -> Saving | None:
    """The checkpoints of an epoch, None: there are none; what an earlier one left under way behind training is not known."""
    batches = -(-plan.order.samples_per_rank // study.workload.reader.batch_size)
    dates = when(study, epoch, batches)
    saves = save_plan(study, stations_of(study.system, study.seed), len(dates.steps))
    return None if saves is None else Saving(saves, dates)


def simulate(
    study: Study,
    stations: Stations,
    reading: Reading,
    schedule: Schedule,
    options: EventOptions,
    saving: Saving | None = None,
) -> Outcome:
    train = study.workload.train
    samples = schedule.shape[1]
    if schedule.fetched is not None:  # what comes of it depends on who is first
        schedule = replace(schedule, tiers=schedule.tiers.copy(), fetched=schedule.fetched.copy())
    loader = _loader(study, schedule, options)
    result = times(study, stations, reading, schedule, options, saving)
    ops, nbytes = counted(study, stations, reading, schedule)
    steps, system = -(-samples // loader.batch), study.system
    beside = np.full(len(result.stall), (system.step_overhead + system.step_jitter) * steps)
    first, kept = None, result.steps if loader.keep_steps else None
    if kept is not None:  # what a step takes beside computing is no compute
        kept[:, 0, 1] += system.startup_time
        first = kept[:, 0, 1].copy()
        beside = (kept[:, :, 2] - train.computation_time).sum(axis=1)
        kept[:, :, 1] += kept[:, :, 2] - train.computation_time
        kept[:, :, 2] = train.computation_time
    return Outcome(
        seconds=result.seconds + system.startup_time,
        stall=result.stall + system.startup_time + beside,
        compute=train.computation_time * steps,
        busy=result.busy,
        wall=result.wall,
        ops=ops,
        nbytes=nbytes,
        steps=kept,
        first_batch=first,
        load=Load(seconds=result.worked, ops=result.served),
        copies=schedule.copies,
        samples=samples,
        payload_bytes=samples * study.workload.dataset.record_length_bytes,
        hit_rate=schedule.hit_rate(len(stations.tiers)),
        saved=None if saving is None else _saved(saving, result),
    )


def _saved(saving: Saving, result: EpochTimes) -> SaveOutcome:
    saved = result.saved
    assert saved is not None
    nbytes = saved.nbytes.copy()
    nbytes[0, :, saving.plan.tier, 2] += more_digits(saving.plan, saving.epoch)
    return SaveOutcome(
        tier=saving.plan.tier,
        background=saving.plan.background,
        begun=len(saving.epoch.steps),
        seconds=tuple(saved.longest.tolist()),
        standstill=saved.standstill,
        busy=saved.busy,
        ops=saved.ops,
        nbytes=nbytes,
        under_way=UnderWay(**saved.left._asdict()),
    )


def times(
    study: Study,
    stations: Stations,
    reading: Reading,
    schedule: Schedule,
    options: EventOptions,
    saving: Saving | None = None,
) -> EpochTimes:
    """What the engine says, for those who simulate the same schedule many times; it is changed where files are fetched ahead."""
    plan, epoch, under_way = (saving.plan, saving.epoch, saving.under_way) if saving else (None, None, None)
    epoch_times: EpochTimes = engine()(
        _requests(stations, reading, schedule),
        _start(study, schedule, options),
        _system(study, stations, reading, plan),
        _loader(study, schedule, options),
        save_inputs(plan, epoch, len(reading.pieces) + 1, under_way),
    )
    return epoch_times


def engine() -> Any:
    try:
        from tierscope.predict.engine.loop import run_epoch  # noqa: PLC0415  (numba is an extra, and slow to import)
    except ModuleNotFoundError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        raise UserError(
            "the event engine needs numba; pip install 'tierscope[predict]', or use --method bound"
        ) from None
    return run_epoch


def _requests(stations: Stations, reading: Reading, schedule: Schedule) -> Requests:
    nothing = np.zeros((0, 0), np.bool_)
    requests = Requests(
        tiers=schedule.tiers,
        files=schedule.files,
        opens=schedule.opens,
        first_stripes=first_stripes(stations, reading, schedule),
        fills=nothing if schedule.fills is None else schedule.fills,
        fetched=nothing if schedule.fetched is None else schedule.fetched,
        sizes=np.zeros((0, 0)) if schedule.sizes is None else schedule.sizes,
    )
    runs = run_reads(reading, schedule)
    if runs is None or reading.buffer is None:
        return requests
    request = reading.buffer.request_bytes
    lasts = runs.lasts / request
    return requests._replace(counts=runs.counts, offsets=runs.starts + runs.firsts, lasts=lasts, request_bytes=request)


def _start(study: Study, schedule: Schedule, options: EventOptions) -> StartInputs:
    """All ranks begin together: who is first depends on the seed, so that nobody always is."""
    ranks = schedule.shape[0]
    return StartInputs(
        nodes=np.arange(ranks, dtype=np.int64) // study.system.ranks_per_node,
        seconds=np.zeros(ranks),
        order=_order(ranks, options.seed).copy(),
        window=np.zeros(0, np.int64) if schedule.window is None else schedule.window,
    )


@lru_cache(maxsize=256)
def _order(ranks: int, seed: int) -> IndexArray:
    return np.random.default_rng(seed).permutation(ranks)


def _system(study: Study, stations: Stations, reading: Reading, saves: SavePlan | None) -> SystemInputs:
    copy = copy_of(study, stations, reading.file_bytes, reading.sample_bytes)
    tiers, reads = len(stations.tiers), len(reading.pieces)
    rows = reads + 1 + (0 if saves is None else saves.splits.shape[1])
    nbytes, ops = np.empty((tiers, rows, copy.nbytes.shape[1])), np.ones((tiers, rows))
    pieces = piece_bytes(stations, reading.by_request())
    nbytes[:, :reads], nbytes[:, reads], ops[:, reads] = pieces, copy.nbytes, copy.ops
    if saves is not None:
        nbytes[:, reads + 1 :], ops[:, reads + 1 :] = saves.splits, saves.row_ops
    log_mean, log_deviation = log_parameters(stations.variation)
    return SystemInputs(
        tiers=_tiers(stations.tiers),
        nbytes=nbytes,
        reads=reads,
        ops=ops,
        per_op=stations.per_op,
        per_byte=stations.per_byte,
        write_per_op=stations.write_per_op,
        write_per_byte=stations.write_per_byte,
        log_mean=log_mean,
        log_deviation=log_deviation,
        sharing=stations.sharing,
        speed=1.0 - stations.background,
        credit=stations.credit,
        stock=stations.stock,
        period=stations.period,
    )


@lru_cache(maxsize=64)
def _tiers(tiers: tuple[TierQueues, ...]) -> Records:
    return np.array([tuple(getattr(tier, name) for name in TIER.fields or ()) for tier in tiers], TIER)


def _loader(study: Study, schedule: Schedule, options: EventOptions) -> LoaderInputs:
    reader = study.workload.reader
    ranks, samples = schedule.shape
    return LoaderInputs(
        batch=reader.batch_size,
        threads=max(1, reader.read_threads),
        prefetch=batches_ahead(study),
        compute=float(step_seconds(study)),
        overhead=float(study.system.process_overhead),
        step_barrier=options.step_barrier,
        copies=readers_copy(study),
        keep_steps=ranks * -(-samples // reader.batch_size) <= MOST_STEPS,
        seed=options.seed & 0xFFFFFFFF,
        jitter=float(study.system.step_jitter),
        whole_batches=whole_batches(study),
    )


def piece_bytes(stations: Stations, reading: Reading) -> FloatArray:
    """Bytes by (tier, read of a sample, stripe); not to be changed."""
    return _piece_bytes(tuple((tier.stripe_count, tier.stripe_size) for tier in stations.tiers), reading)


@lru_cache(maxsize=8)
def _piece_bytes(layouts: tuple[tuple[int, int], ...], reading: Reading) -> FloatArray:
    most = max(count for count, _ in layouts)
    if (parts := most * len(reading.pieces)) > MOST_PARTS:
        raise UserError(
            f"workload.reader.transfer_size splits a sample into {len(reading.pieces):,} reads, and stripe_count each of them into "
            f"{most:,} parts: {parts:,} in all; more than {MOST_PARTS:,} are not simulated: raise transfer_size, or lower stripe_count"
        )
    nbytes_of = np.zeros((len(layouts), len(reading.pieces), most))
    for number, (count, size) in enumerate(layouts):
        for piece, (offset, nbytes) in enumerate(reading.pieces):
            nbytes_of[number, piece, :count] = stripes(offset, nbytes, count, size)
    nbytes_of.flags.writeable = False
    return nbytes_of


def first_stripes(stations: Stations, reading: Reading, schedule: Schedule) -> IndexArray:
    """On which stripe of its file each sample begins, seen from the first sample's; empty: all on that. From there it is split as the first is."""
    if schedule.inside is None or reading.buffer is not None or not reading.pieces:
        return np.zeros((0, 0), np.int64)
    sizes, counts = (
        np.array(some)[schedule.tiers]
        for some in zip(*((tier.stripe_size, tier.stripe_count) for tier in stations.tiers), strict=True)
    )
    first = reading.pieces[0][0]
    stripes_of: IndexArray = ((first + schedule.inside * reading.stride) // sizes - first // sizes) % counts
    return stripes_of


def counted(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> tuple[Any, Any]:
    """Operations and bytes of every (rank, tier, kind); those of fetching ahead, and of what is copied behind a reader's back, are its rank's."""
    ops, nbytes = counted_by_readers(study, stations, reading, schedule)
    if schedule.fetched is not None:
        fetched = schedule.fetched.sum(axis=1)
        ops[:, -1, 0] += fetched
        ops[:, -1, 1] += fetched * len(reading.pieces)
        nbytes[:, -1, 1] += fetched * reading.sample_bytes
    if schedule.copied is not None and not readers_copy(study):
        _add_copies(ops, nbytes, study, stations, reading, schedule.copied)
    return ops, nbytes


def counted_by_readers(study: Study, stations: Stations, reading: Reading, schedule: Schedule) -> tuple[Any, Any]:
    ranks, _ = schedule.shape
    ops = np.zeros((ranks, len(stations.tiers), 3), np.int64)
    nbytes = np.zeros_like(ops)
    runs = run_reads(reading, schedule)
    for tier in range(len(stations.tiers)):
        here = schedule.tiers == tier
        ops[:, tier, 0] = (here & schedule.opens).sum(axis=1)
        samples = here.sum(axis=1)
        ops[:, tier, 1] = samples * len(reading.pieces) if runs is None else (here * runs.counts).sum(axis=1)
        sizes = samples if schedule.sizes is None else (here * schedule.sizes).sum(axis=1)
        nbytes[:, tier, 1] = sizes * reading.sample_bytes
    if schedule.fills is not None and readers_copy(study):
        _add_copies(ops, nbytes, study, stations, reading, schedule.fills)
        copy = copy_of(study, stations, reading.file_bytes, reading.sample_bytes)
        fills = schedule.fills.sum(axis=1)
        ops[:, -1, 1] += fills * int(copy.ops[-1])
        nbytes[:, -1, 1] += fills * int(copy.nbytes[-1].sum())
    return ops, nbytes


def _add_copies(ops: Any, nbytes: Any, study: Study, stations: Stations, reading: Reading, copied: Flags) -> None:
    """Files that are made and written on the near tier."""
    copy, files = copy_of(study, stations, reading.file_bytes, reading.sample_bytes), copied.sum(axis=1)
    ops[:, 0, 0] += files
    ops[:, 0, 2] += files * int(copy.ops[0])
    nbytes[:, 0, 2] += files * int(copy.nbytes[0].sum())


def readers_copy(study: Study) -> bool:
    """Whether readers write what stays on the near tier, as ranks do with first-touch, before their next sample; else it is copied behind their backs."""
    return study.placement.policy in ("first-touch", "lru")
