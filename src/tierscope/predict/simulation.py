"""Simulate a study: every point of its sweep in virtual time, to the same traces as a run's.

OUT looks like that of a run, but is marked as a simulation: measured and simulated runs never mix in one directory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierscope.errors import UserError
from tierscope.plan.plan import Plan
from tierscope.plan.policies import Caches
from tierscope.plan.reading import Reading, reading_of
from tierscope.plan.stations import Stations, stations_of
from tierscope.predict import bound, events, spread
from tierscope.predict.outcome import Outcome
from tierscope.predict.schedule import Schedule, lay_out
from tierscope.predict.staging import staging_seconds
from tierscope.predict.to_trace import to_trace
from tierscope.spec.dump import identity
from tierscope.spec.known import KnownSystem, drawn_systems
from tierscope.spec.study import STAGED_POLICIES, Point, Study, System
from tierscope.trace.provenance import provenance
from tierscope.trace.trace import RunKey, Trace

DRAWN_FROM = 20_000_000  # samples of an epoch: the bound draws counts instead of dealing them one by one


def simulate_point(
    key: RunKey, point: Point, method: str, advance: Callable[[int], None], known: KnownSystem | None = None
) -> Trace:
    study = point.study
    simulation = Simulation.of(study)
    systems = drawn_systems(study.system, known) if known else ()
    outcomes: list[Outcome] = []
    factors: dict[str, tuple[float, float]] = {}
    for epoch in range(1, study.workload.train.epochs + 1):
        outcome = simulation.epoch(epoch, method, seed=hash_seed(study.seed, key.repetition, epoch))
        outcomes.append(outcome)
        factors[str(epoch)] = spread.relative(study, simulation.stations, simulation.reading, outcome, systems)
        advance(1)
    about = _about(point, method, simulation, outcomes, factors)
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

    @classmethod
    def of(cls, study: Study, system: System | None = None) -> "Simulation":
        """`system` instead of the study's own: the same plan on other storage."""
        study = study if system is None else replace(study, system=system)
        reading = reading_of(study)
        plan = Plan.of(study, reading.file_bytes)
        caches = None if study.placement.policy == "pinned" else Caches(study, plan, reading.file_bytes)
        return cls(study, plan, stations_of(study.system, study.seed), reading, caches)

    def schedule(self, epoch: int) -> Schedule:
        return lay_out(self.study, self.plan, epoch, self.caches)

    def epoch(self, epoch: int, method: str, seed: int = 0) -> Outcome:
        if method == "bound" and self._is_drawn():
            return bound.simulate_drawn(
                self.study, self.stations, self.reading, self.plan, hash_seed(self.study.seed, epoch)
            )
        schedule = self.schedule(epoch)
        if method == "events":
            return events.simulate(self.study, self.stations, self.reading, schedule, self._options(seed))
        return bound.simulate(self.study, self.stations, self.reading, schedule)

    def _options(self, seed: int) -> events.EventOptions:
        return events.EventOptions(self.study.workload.train.sync == "step", seed)

    def staging_seconds(self) -> float | None:
        """To put the files on the near tiers before training; None: not known, or nothing is staged."""
        if self._is_drawn():
            return None
        return staging_seconds(self.study, self.plan, self.stations, self.reading.file_bytes)

    def _is_drawn(self) -> bool:
        """Too large to lay out, and shuffled so that counts say all."""
        study = self.study
        large = self.plan.order.samples_per_rank * self.plan.ranks > DRAWN_FROM
        plain = study.placement.policy == "pinned" and study.workload.dataset.num_samples_per_file == 1
        return large and plain and study.workload.reader.shuffle == "global"


def check_rates(study: Study) -> None:
    """A tier that is read from must say how fast it is."""
    tiers = study.system.tiers
    rate, policy = study.placement.cache_rate, study.placement.policy
    for number, tier in enumerate(tiers):
        used = rate < 1 or policy not in STAGED_POLICIES if number == len(tiers) - 1 else rate > 0
        rates = (tier.read_ops, tier.bandwidth, tier.node_bandwidth, tier.device_bandwidth, tier.gateway_bandwidth)
        if used and not any(rates) and not tier.latency:
            raise UserError(
                f"system.tiers.{tier.name}: no rate says how fast it reads; give bandwidth, read_ops or latency "
                "('tierscope probe' and 'tierscope calibrate' find them, --system takes those of a known system)"
            )


def _about(
    point: Point,
    method: str,
    simulation: Simulation,
    outcomes: Sequence[Outcome],
    factors: dict[str, tuple[float, float]],
) -> dict[str, Any]:
    study, last = point.study, outcomes[-1]
    return {
        "kind": "simulated",
        "method": method,
        "study": identity(study),
        "point": point.index,
        "sweep": dict(point.sweep),
        "provides": ["epochs", "busy", "wall", *(["steps"] if last.steps is not None else [])],
        "tiers": [{"name": tier.name, "emulated": False} for tier in study.system.tiers],
        "ranks": study.system.ranks,
        "nodes": study.system.nodes,
        "trimmed_samples": simulation.plan.order.undivided,
        "spread": factors,
        "policy": study.placement.policy,
        "upper_bound": study.placement.policy == "clairvoyant" and method == "bound",  # see predict/bound.py
        "hit_rate": {str(number): outcome.hit_rate for number, outcome in enumerate(outcomes, start=1)},
        "staging_seconds": simulation.staging_seconds(),
        "checkpoints": study.workload.checkpoint.wanted,  # which are not simulated
        "stations": busiest(simulation.stations, last),
        "provenance": provenance("none", {}),
    }


def busiest(stations: Stations, outcome: Outcome) -> list[dict[str, Any]]:
    """The most loaded station of each kind, busiest first: seconds of work that the epoch asks of it."""
    found: list[dict[str, Any]] = []
    ours = outcome.load.seconds / (1 - stations.background) if stations.count else outcome.load.seconds
    ends = [*(first for first, _ in stations.names[1:]), stations.count]
    for (first, _), end in zip(stations.names, ends, strict=False):
        number = first + int(ours[first:end].argmax())
        found.append(
            {
                "station": stations.name_of(number),
                "of": end - first,
                "seconds": float(ours[number]),
                "ops": int(outcome.load.ops[number]),
            }
        )
    return sorted(found, key=lambda each: -each["seconds"])
