"""Epochs simulated again with other luck: other shuffles, services and rates, and other layouts of files over servers where the real one is unknown.

With few ranks on few servers most of what varies is how often some of them meet at one server while another is idle, which no bound sees.
Epochs that are short enough are therefore drawn by events; of longer ones spread.py draws the bound, which is near the truth for them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tierscope.plan.plan import Plan
from tierscope.plan.reading import Reading
from tierscope.plan.stations import Stations, count_servers, stations_of
from tierscope.predict import events
from tierscope.predict.outcome import FloatArray
from tierscope.predict.schedule import Schedule, lay_out
from tierscope.predict.spread import DRAWS
from tierscope.spec.known import KnownSystem
from tierscope.spec.study import Study, System

_SHUFFLES = 20
_MOST_OPERATIONS = 1_000_000  # of all draws together: a fifth of a second
_OF_A_SERVER = 15  # operations that take as long as making a station
_MOST_LAYOUTS = 2**20
LAYOUTS = 9  # of which the middle one is taken where nobody knows the real one


@dataclass(frozen=True, slots=True)
class Redrawn:
    """What is simulated again. `unknown`: tiers of which nobody knows which server has which file; `share`: of all credit that an epoch begins with."""

    study: Study
    plan: Plan
    reading: Reading
    unknown: tuple[int, ...] = ()
    share: float = 1.0

    def is_short(self, epochs: int) -> bool:
        """Whether so many of them can be simulated by events for one interval."""
        operations = self.plan.order.samples_per_rank * self.plan.ranks * (1 + len(self.reading.pieces))
        wide = max(tier.stripe_count for tier in self.study.system.tiers)
        made = _OF_A_SERVER * count_servers(self.study.system)
        return (operations * wide + made) * epochs <= _MOST_OPERATIONS

    def seconds(self, systems: Sequence[System]) -> FloatArray:
        """The slowest rank's I/O time on the clock, of every draw; `systems`: the study's own with rates drawn from their uncertainty."""
        return _seconds(self, tuple(systems) or (self.study.system,))

    def drawn(self, systems: tuple[System, ...]) -> Iterator[float]:
        """Unknown layouts are drawn at random, as MooseFS lays files out: files in turns, as Lustre has them, are as soon read as with a lucky one of these."""
        seed = self.study.seed
        schedules = [lay_out(self.study, self.plan, 2 + shuffle) for shuffle in range(_SHUFFLES)]
        for draw in range(DRAWS):
            system = systems[draw % len(systems)]
            stations = stations_of(system, seed + draw + 1)
            layout = 1 + (seed * DRAWS + draw) % _MOST_LAYOUTS
            at_random = (place for place, tier in enumerate(stations.tiers) if tier.hashed or place in self.unknown)
            laid_out = stations.with_layouts(dict.fromkeys(at_random, layout))
            yield self._slowest(system, laid_out, schedules[draw % _SHUFFLES], seed + draw)

    def _slowest(self, system: System, stations: Stations, schedule: Schedule, seed: int) -> float:
        study = replace(self.study, system=system)
        options = events.EventOptions(study.workload.train.sync == "step", seed)
        outcome = events.simulate(study, stations.with_stock(self.share), self.reading, schedule, options)
        return float(outcome.wall_classes.sum(axis=(1, 2)).max())


@lru_cache(maxsize=8)
def _seconds(redrawn: Redrawn, systems: tuple[System, ...]) -> FloatArray:
    """Kept, for every repetition asks for the same."""
    return np.array(list(redrawn.drawn(systems)))


def unknown_layouts(study: Study, known: KnownSystem | None) -> tuple[int, ...]:
    """Tiers of a calibrated system of which nobody knows which server has which file: at random, or only a single server was measured."""
    if known is None or not known.is_calibrated:
        return ()
    single = {tier.name for tier in known.system.tiers if tier.servers <= tier.stripe_count}
    return tuple(
        place
        for place, tier in enumerate(study.system.tiers)
        if tier.servers > tier.stripe_count and (tier.layout == "hash" or tier.name in single)
    )


def middle_layout(stations: Stations, unknown: Sequence[int], seconds: Callable[[Stations], float]) -> Stations:
    """Of some layouts the one with the median time."""
    laid_out = [stations, *(stations.with_layouts(dict.fromkeys(unknown, 1 + number)) for number in range(1, LAYOUTS))]
    return sorted(laid_out, key=seconds)[LAYOUTS // 2]
