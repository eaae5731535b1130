"""Epochs simulated again with other luck: other shuffles, services and rates, and other servers for files whose layout nobody knows.

With few ranks on few servers most of what varies is how often some of them meet at one server while another is idle, which no bound sees.
Epochs that are short enough are therefore drawn by events; of longer ones spread.py draws the bound, which is near the truth for them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tierscope.plan.plan import Plan
from tierscope.plan.reading import Reading
from tierscope.plan.stations import Stations, stations_of
from tierscope.predict import events
from tierscope.predict.outcome import FloatArray
from tierscope.predict.schedule import Schedule, lay_out
from tierscope.spec.known import KnownSystem
from tierscope.spec.study import Study, System

DRAWS = 60
_SHUFFLES = 20
_MOST_OPERATIONS = 1_000_000  # of all draws together: a fifth of a second
LAYOUTS = 9  # of which the middle one is taken where nobody knows the real one


@dataclass(frozen=True, slots=True)
class Redrawn:
    """What is simulated again. `unknown`: tiers whose files lie on servers nobody knows how; `share`: of all credit that an epoch begins with."""

    study: Study
    plan: Plan
    reading: Reading
    unknown: tuple[int, ...] = ()
    share: float = 1.0

    def is_short(self, epochs: int = DRAWS) -> bool:
        """Whether so many of them can be simulated by events for one interval."""
        operations = self.plan.order.samples_per_rank * self.plan.ranks * (1 + len(self.reading.pieces))
        return operations * epochs <= _MOST_OPERATIONS

    def seconds(self, systems: Sequence[System]) -> FloatArray:
        """The slowest rank's I/O time on the clock, of every draw; `systems`: the study's own with rates drawn from their uncertainty."""
        return np.array(list(self._drawn(tuple(systems) or (self.study.system,))))

    def _drawn(self, systems: tuple[System, ...]) -> Iterator[float]:
        shape = self.study.system  # of this study: draws of a system may have other ranks, too
        schedules = [lay_out(self.study, self.plan, 2 + shuffle) for shuffle in range(_SHUFFLES)]
        for draw in range(DRAWS):
            system = replace(systems[draw % len(systems)], nodes=shape.nodes, ranks_per_node=shape.ranks_per_node)
            stations = stations_of(system, self.study.seed + draw + 1)
            hashed = {place: draw + 1 for place, tier in enumerate(stations.tiers) if tier.hashed}
            hashed |= {place: draw + 1 for place in self.unknown if draw % 2}
            yield self._slowest(system, stations.with_layouts(hashed), schedules[draw % _SHUFFLES], draw)

    def _slowest(self, system: System, stations: Stations, schedule: Schedule, seed: int) -> float:
        study = replace(self.study, system=system)
        options = events.EventOptions(study.workload.train.sync == "step", seed)
        outcome = events.simulate(study, stations.with_stock(self.share), self.reading, schedule, options)
        return float(outcome.wall_classes.sum(axis=(1, 2)).max())


def unknown_layouts(study: Study, known: KnownSystem | None) -> tuple[int, ...]:
    """Tiers of a calibrated system whose files lie on servers nobody knows how: at random, or over another number of servers than was measured."""
    if known is None or not known.is_calibrated:
        return ()
    servers = {tier.name: tier.servers for tier in known.system.tiers}
    return tuple(
        place
        for place, tier in enumerate(study.system.tiers)
        if tier.servers > tier.stripe_count and (tier.layout == "hash" or servers.get(tier.name) != tier.servers)
    )


def middle_layout(stations: Stations, unknown: Sequence[int], seconds: Callable[[Stations], float]) -> Stations:
    """Of some layouts the one whose epoch takes neither long nor short."""
    laid_out = [stations, *(stations.with_layouts(dict.fromkeys(unknown, 1 + number)) for number in range(1, LAYOUTS))]
    return sorted(laid_out, key=seconds)[LAYOUTS // 2]
