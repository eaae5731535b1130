"""Simulate a study: every point of its sweep in virtual time, to the same traces as a run's.

OUT looks like that of a run, but is marked as a simulation: measured and simulated runs never mix in one directory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from msgspec import structs

from tierscope.errors import UserError
from tierscope.formats import FORMATS
from tierscope.plan.checkpoints import tier_of
from tierscope.plan.plan import Plan
from tierscope.plan.policies import Caches
from tierscope.plan.reading import Reading, reading_of
from tierscope.plan.stations import Stations, stations_of
from tierscope.predict import bound, events, spread
from tierscope.predict.epoch_spread import epoch_range
from tierscope.predict.identified import identify, model_error
from tierscope.predict.loaded_ahead import in_step, loading_study, with_steps, without_reads
from tierscope.predict.outcome import FloatArray, Outcome, UnderWay
from tierscope.predict.redrawn import LAYOUTS, Redrawn, middle_layout, unknown_layouts
from tierscope.predict.sampled import simulate_sampled
from tierscope.predict.sampled_schedule import SAMPLED_POLICIES
from tierscope.predict.saved_epoch import with_saves
from tierscope.predict.saved_summary import summary_of
from tierscope.predict.saves import EpochSaves, SavePlan, save_plan, when
from tierscope.predict.schedule import Schedule, lay_out
from tierscope.predict.side_file import with_side_reads
from tierscope.predict.staging import staging_seconds
from tierscope.predict.to_trace import to_trace
from tierscope.spec.dump import identity
from tierscope.spec.known import KnownSystem, drawn_systems
from tierscope.spec.study import STAGED_POLICIES, Point, Study, System, Tier
from tierscope.trace.described_stations import DrawnLayout, StationLoad
from tierscope.trace.description import DescribedTier, Simulated
from tierscope.trace.provenance import provenance
from tierscope.trace.trace import RunKey, Trace

SAMPLED_FROM = 8_000_000  # operations of an epoch: a part of them stands for all. About two seconds of one core
DRAWN_FROM = 20_000_000  # samples of an epoch: the bound draws counts instead of dealing them one by one


def simulate_point(
    key: RunKey, point: Point, method: str, advance: Callable[[int], None], known: KnownSystem | None = None
) -> Trace:
    study = point.study
    simulation = Simulation.of(study).with_middle_layouts(known, method)
    systems = drawn_systems(study.system, known) if known else ()
    again = simulation.drawn_again(known, method, systems)
    outcomes: list[Outcome] = []
    factors: dict[int, tuple[float, float]] = {}
    epochs: dict[int, tuple[float, float]] = {}
    under_way: UnderWay | None = None
    reasons: dict[str, None] = {}
    error = model_error(study, known, simulation.reading)
    for epoch in range(1, study.workload.train.epochs + 1):
        outcome = simulation.epoch(epoch, method, hash_seed(study.seed, key.repetition, epoch), under_way)
        under_way = outcome.saved.under_way if outcome.saved else None
        outcomes.append(outcome)
        low, high = spread.relative(
            study, simulation.stations, simulation.reading, outcome, systems, simulation.saves, error, again
        )
        identified = identify(study, known, simulation.reading, outcome, systems, simulation.saves)
        factors[epoch] = low * identified.low, high * identified.high
        longest = float(outcome.seconds.max()) or 1.0
        ends = epoch_range(study, outcome, factors[epoch], error)
        epochs[epoch] = ends[0] / longest, ends[1] / longest
        reasons |= dict.fromkeys(identified.reasons)
        advance(1)
    about = _about(point, method, simulation, outcomes, tuple(reasons))
    stations = tuple(busiest(simulation.stations, outcomes[-1], unknown_layouts(study, known)))
    calibrated = known is not None and known.is_calibrated
    about = structs.replace(about, spread=factors, epoch_spread=epochs, calibrated=calibrated, stations=stations)
    tiers = [tier.name for tier in study.system.tiers]
    return to_trace(key, about, tiers, study.system.ranks_per_node, outcomes)


def hash_seed(*parts: int) -> int:
    """One number of several, the same everywhere."""
    value = 0
    for part in parts:
        value = (value * 1_000_003 + part) % 2**63
    return value


@dataclass(frozen=True, slots=True)
class Simulation:
    """What all epochs of one point share."""

    study: Study
    plan: Plan
    stations: Stations
    reading: Reading
    caches: Caches | None = None  # of policies that are no fixed placement
    saves: SavePlan | None = None  # None: the study saves nothing
    drawn: tuple[int, ...] = ()  # tiers whose files lie as in the middle one of some layouts

    @classmethod
    def of(cls, study: Study, system: System | None = None) -> "Simulation":
        """`system` instead of the study's own: the same plan on other storage."""
        study = study if system is None else replace(study, system=system)
        reading = reading_of(study)
        plan = Plan.of(study, reading.file_bytes)
        caches = None if study.placement.policy == "pinned" else Caches(study, plan, reading.file_bytes)
        stations = stations_of(study.system, study.seed)
        saves = save_plan(study, stations, len(when(study, 1, _batches(study, plan)).steps))
        return cls(study, plan, stations, reading, caches, saves)

    def schedule(self, epoch: int) -> Schedule:
        schedule = lay_out(self.study, self.plan, epoch, self.caches)
        return schedule if self.reading.pieces else replace(schedule, opens=np.zeros_like(schedule.opens))

    def epoch(self, epoch: int, method: str, seed: int = 0, under_way: UnderWay | None = None) -> Outcome:
        """`under_way`: what the epoch before has left of checkpoints that are written behind training."""
        saving = events.Saving(self.saves, self.saves_in(epoch), under_way) if self.saves else None
        outcome = self._loaded(epoch, method, seed, saving) or self._read(epoch, method, seed, saving)
        return with_side_reads(self.study, self.stations, outcome, epoch)

    def _loaded(self, epoch: int, method: str, seed: int, saving: events.Saving | None) -> Outcome | None:
        """Where everything is read before the first step; None: it is not."""
        if self.study.workload.reader.read_ahead != "all" or not self.reading.pieces:
            return None
        outcome = without_reads(self.study, self.plan, self.stations)
        if epoch == 1:
            loading = Simulation.of(loading_study(self.study, self.plan))
            loading = replace(loading, plan=in_step(loading.plan))
            outcome = with_steps(self.study, self.plan, loading.epoch(1, method, seed))
        return outcome if saving is None else with_saves(self.study, self.stations, outcome, saving)

    def _read(self, epoch: int, method: str, seed: int, saving: events.Saving | None) -> Outcome:
        if self.is_sampled(method):
            options = self._options(seed) if method == "events" else None
            return simulate_sampled(self.study, self.stations, self.reading, self.plan, epoch, options, saving)
        schedule = self.schedule(epoch)
        if method == "events":
            return events.simulate(self.study, self.stations, self.reading, schedule, self._options(seed), saving)
        return bound.simulate(self.study, self.stations, self.reading, schedule, saving)

    def settled_epoch(self, method: str, seed: int = 0) -> Outcome:
        """The second epoch, or the only one: what training is like when it has begun, with what the first has left under way."""
        if self.study.workload.train.epochs == 1:
            return self.epoch(1, method, seed)
        carries = self.saves is not None and self.saves.background and method == "events"
        before = self.epoch(1, method, seed).saved if carries else None
        return self.epoch(2, method, seed, before.under_way if before else None)

    def with_middle_layouts(self, known: KnownSystem | None, method: str) -> "Simulation":
        """Where nobody knows which server has which file: of some layouts the one with the median time."""
        unknown = unknown_layouts(self.study, known)
        loads_all = self.study.workload.reader.read_ahead == "all"  # from stations of its own
        if not unknown or method != "events" or loads_all or not self._redrawn.is_short(LAYOUTS):
            return self

        def seconds(stations: Stations) -> float:
            return float(replace(self, stations=stations).settled_epoch(method, self.study.seed).io.max())

        return replace(self, stations=middle_layout(self.stations, unknown, seconds), drawn=unknown)

    def drawn_again(
        self, known: KnownSystem | None, method: str, systems: Sequence[System], share: float = 1.0
    ) -> FloatArray | None:
        """I/O times of the second epoch with other luck; None: it is too long for that, or has more to it than reads. `share`: of all credit that it begins with."""
        dataset, reader = self.study.workload.dataset, self.study.workload.reader
        more_than_reads = (self.caches, self.saves, dataset.statistics.file_bytes)
        if any(part is not None for part in more_than_reads) or reader.read_ahead == "all":
            return None
        if method != "events" or not self.reading.pieces or not self._redrawn.is_short(spread.DRAWS):
            return None
        return replace(self._redrawn, unknown=unknown_layouts(self.study, known), share=share).seconds(systems)

    @property
    def _redrawn(self) -> Redrawn:
        return Redrawn(self.study, self.plan, self.reading)

    def saves_in(self, epoch: int) -> EpochSaves:
        return when(self.study, epoch, _batches(self.study, self.plan))

    def _options(self, seed: int) -> events.EventOptions:
        return events.EventOptions(self.study.workload.train.sync == "step", seed)

    def staging_seconds(self) -> float | None:
        """To put the files on the near tiers before training; None: nothing is staged."""
        return staging_seconds(self.study, self.plan, self.stations, self.reading.file_bytes)

    def is_sampled(self, method: str) -> bool:
        """Whether the epoch is too large to simulate all of it."""
        if self.study.placement.policy not in SAMPLED_POLICIES:
            return False
        samples = self.plan.order.samples_per_rank * self.plan.ranks
        if method == "events":
            return samples * (1 + len(self.reading.pieces)) > SAMPLED_FROM
        return samples > DRAWN_FROM


def _batches(study: Study, plan: Plan) -> int:
    """Of each rank in an epoch."""
    return -(-plan.order.samples_per_rank // study.workload.reader.batch_size)


def check_rates(study: Study) -> None:
    """A tier that is read from or written to must say how fast it is."""
    _check_reads(study)
    _check_writes(study)


def _check_writes(study: Study) -> None:
    """Checkpoints go to a tier, and perhaps on to the last one."""
    wanted, tiers = study.workload.checkpoint, study.system.tiers
    if not wanted.wanted:
        return
    for tier in {tier_of(study): None, **({len(tiers) - 1: None} if wanted.drain else {})}:
        written = tiers[tier]
        rates = (written.write_ops, written.write_bandwidth, written.read_ops, written.bandwidth)
        if not any(
            (*rates, written.node_bandwidth, written.device_bandwidth, written.gateway_bandwidth, written.latency)
        ):
            raise UserError(
                f"system.tiers.{written.name}: checkpoints are written to it, but it has no write rate; set write_bandwidth, write_ops, bandwidth or latency "
                "('tierscope probe' and 'tierscope calibrate' measure them; --system uses those of a known system)"
            )


def _check_reads(study: Study) -> None:
    dataset = study.workload.dataset
    if FORMATS[dataset.format].in_memory and dataset.statistics.file_bytes is None:
        return
    tiers = study.system.tiers
    rate, policy = study.placement.cache_rate, study.placement.policy
    for number, tier in enumerate(tiers):
        used = rate < 1 or policy not in STAGED_POLICIES if number == len(tiers) - 1 else rate > 0
        rates = (tier.read_ops, tier.bandwidth, tier.node_bandwidth, tier.device_bandwidth, tier.gateway_bandwidth)
        if used and not any(rates) and not tier.latency and not tier.stream_bandwidth:
            raise UserError(
                f"system.tiers.{tier.name}: it has no read rate; set bandwidth, read_ops or latency "
                "('tierscope probe' and 'tierscope calibrate' measure them; --system uses those of a known system)"
            )


def _about(
    point: Point,
    method: str,
    simulation: Simulation,
    outcomes: Sequence[Outcome],
    unidentified: tuple[str, ...],
) -> Simulated:
    study, last = point.study, outcomes[-1]
    return Simulated(
        method=method,
        study=identity(study),
        point=point.index,
        sweep=dict(point.sweep),
        provides=("epochs", "busy", "wall", *(("steps",) if last.steps is not None else ())),
        tiers=tuple(DescribedTier(name=tier.name) for tier in study.system.tiers),
        ranks=study.system.ranks,
        nodes=study.system.nodes,
        trimmed_samples=simulation.plan.order.undivided,
        spread={},  # which the caller knows, and stations
        policy=study.placement.policy,
        upper_bound=study.placement.policy == "clairvoyant" and method == "bound",  # see predict/bound.py
        sampled_share=last.sampled_share,
        hit_rate={number: outcome.hit_rate for number, outcome in enumerate(outcomes, start=1)},
        staging_seconds=simulation.staging_seconds(),
        checkpoint=summary_of(study, simulation.stations, simulation.saves, outcomes) if simulation.saves else None,
        writes_as_reads=_writes_as_reads(study, outcomes),
        drawn_layouts=tuple(_drawn_layout(study.system.tiers[place]) for place in simulation.drawn),
        first_batch=_first_batches(outcomes),
        unidentified=unidentified,
        provenance=provenance("none", {}),
    )


def _writes_as_reads(study: Study, outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """Tiers that are written to, and do not say how fast that is."""
    written = np.zeros(len(study.system.tiers))
    for outcome in outcomes:
        written += outcome.nbytes[:, :, 2].sum(axis=0)
        if outcome.saved is not None:
            written += outcome.saved.nbytes[:, :, :, 2].sum(axis=(0, 1))
    tiers = zip(study.system.tiers, written, strict=True)
    return tuple(tier.name for tier, nbytes in tiers if nbytes and not tier.write_bandwidth and not tier.write_ops)


def _drawn_layout(tier: Tier) -> DrawnLayout:
    return DrawnLayout(tier=tier.name, servers=tier.servers, tried=LAYOUTS)


def busiest(stations: Stations, outcome: Outcome, unknown: Sequence[int] = ()) -> list[StationLoad]:
    """The most loaded station of each kind, busiest first: seconds of work that the epoch asks of it.

    `unknown`: tiers of which nobody knows which server has which file, so that a server's number would say nothing.
    """
    nameless = {stations.tiers[place].servers_first for place in unknown}
    station_loads: list[StationLoad] = []
    ours = outcome.load.seconds / (1 - stations.background) if stations.count else outcome.load.seconds
    ends = [*(first for first, _ in stations.names[1:]), stations.count]
    for (first, name), end in zip(stations.names, ends, strict=False):
        number = first + int(ours[first:end].argmax())
        station_loads.append(
            StationLoad(
                station=f"one of {end - first} {name}s" if first in nameless else stations.name_of(number),
                stations=end - first,
                seconds=float(ours[number]),
                ops=int(outcome.load.ops[number]),
            )
        )
    return sorted(station_loads, key=lambda load: -load.seconds)


def _first_batches(outcomes: Sequence[Outcome]) -> dict[int, tuple[float, float]] | None:
    """Epoch → mean and max over ranks."""
    waits = {
        number: (float(outcome.first_batch.mean()), float(outcome.first_batch.max()))
        for number, outcome in enumerate(outcomes, start=1)
        if outcome.first_batch is not None
    }
    return waits or None
