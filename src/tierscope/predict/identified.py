"""What a calibration cannot tell of a point: asked for all the same, it gets bounds and the reason, never a plain number.

another size   files of one size were measured, or larger ones only: how much of a read's time is its bytes' is anyone's guess, between nothing and all of it
latency        a faster server is asked for, and much of the time was fitted as latency: a client's, which stays, or a server's
crowd          another number of ranks than was measured, and waiting that was fitted as a queue's may be each rank's own
at least       nobody ever waited for a station, so that nothing is known of its rate above; and at this point it makes a difference
more than seen the last tier is asked for more bytes per second than in the table that the system was fitted to, where they were no limit
too wide       a figure that was assumed, or fitted badly, leaves the time here with an interval that no decision can be taken on
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tierscope.analysis.statistics import USABLE
from tierscope.plan.reading import Reading
from tierscope.plan.stations import stations_of
from tierscope.predict import bound
from tierscope.predict.outcome import FloatArray, Outcome
from tierscope.predict.rates import RATES
from tierscope.predict.saves import SavePlan
from tierscope.predict.spread import SHARE, floor_seconds
from tierscope.spec.calibrated import CalibratedRange
from tierscope.spec.figures import number_keys, numbers
from tierscope.spec.known import KnownSystem
from tierscope.spec.study import Study, System, Tier
from tierscope.units import format_bandwidth, format_bytes

MATTERS = 1.15  # times as long with some of the draws as with others
_FASTER = 1.1  # times the fitted bandwidth: another server
_GOES_WITH = 0.5  # correlation
_LEAST_DRAWS = 8
_SEED = 0x1DE7
_COUNTS = ("servers", "metadata_servers")  # known, and yet another number of them is another system than was measured


@dataclass(frozen=True, slots=True)
class Identified:
    """What low and high may be of the simulated time, and why; no reason: all that is asked is known."""

    reasons: tuple[str, ...] = ()
    low: float = 1.0
    high: float = 1.0


def identify(
    study: Study,
    known: KnownSystem | None,
    reading: Reading,
    outcome: Outcome,
    systems: Sequence[System],
    saves: SavePlan | None = None,
) -> Identified:
    """Of one simulated point; `systems`: the study's own with rates drawn from their uncertainty; `saves`: its checkpoints."""
    if known is None:
        return Identified()

    def floor(system: System) -> float:
        return floor_seconds(study, system, reading, outcome, saves)

    here = floor(study.system)
    if not here:
        return Identified()
    reasons, ends = [], [1.0]
    measured = known.measured
    read_bytes = reading.read_bytes
    if measured is not None and measured.is_other_size(read_bytes):
        size = measured.read_bytes[0]
        splits = [floor(_split(study.system, other, size)) / here for other in (_by_operation, _by_bytes)]
        if measured.is_single_size or max(splits) > MATTERS * min(splits):
            sizes = f"{format_bytes(round(size))}{'' if measured.is_single_size else ' and more'}"
            reasons.append(
                f"reads of {format_bytes(round(read_bytes))}, but the system was calibrated only with reads of {sizes}"
            )
            ends += splits
    for tier, shorter in _with_shorter_latencies(study.system, known):
        share = floor(shorter) / here
        if share < 1 / MATTERS:
            reasons.append(
                f"much of {tier}'s time was fitted as latency, and whether a faster server shortens it is unknown"
            )
            ends += [share, floor(_as_fitted(study.system, known, tier)) / here]
    for why, limited in _no_faster_than_seen(study, known, outcome):
        longer = floor(limited) / max(here, float(outcome.wall_classes.sum(axis=(1, 2)).max()))
        reasons += [why] if longer > MATTERS else []
        ends.append(longer)
    drawn = DrawnTimes.of(systems, floor)
    open_ended = _open_ended(known, drawn)
    if measured is not None and measured.is_other_crowd(study.system.ranks) and outcome.copies is None:
        crowd = _Crowd(study, known, reading, outcome)
        open_ended, other_ends = crowd.told(open_ended, drawn.systems, measured.ranks)
        ends += other_ends
    reasons += open_ended or too_wide(known, drawn)
    return Identified(tuple(reasons), min(ends), max(ends))


def no_faster(system: System, key: str, measured: CalibratedRange) -> System | None:
    """The system whose last tier serves what it was seen to serve, and no more; None: it has a limit of its own there."""
    last, served = system.tiers[-1], measured.served.get(key)
    if served is None or getattr(last, key) is not None:
        return None
    limited = replace(last, **{key: served})  # type: ignore[arg-type]
    return replace(system, tiers=(*system.tiers[:-1], limited))


def only_seen(tier: str, key: str, measured: CalibratedRange) -> str:
    return f"{tier}.{key} is only known to be at least {format_bandwidth(float(f'{measured.served[key]:.3g}'))}"


def _no_faster_than_seen(study: Study, known: KnownSystem, outcome: Outcome) -> Iterator[tuple[str, System]]:
    """Limits of the last tier that nothing measured ran into, of which more is asked than was measured: why nobody knows, and the system that has them."""
    measured = known.measured
    if measured is None:
        return
    asked = float(outcome.nbytes[:, -1, 1].sum()) / max(float(outcome.seconds.max()), 1e-12)
    for key, wanted in (("node_bandwidth", asked / study.system.nodes), ("device_bandwidth", asked)):
        limited = no_faster(study.system, key, measured)
        if limited is not None and wanted > _FASTER * measured.served[key]:
            yield only_seen(study.system.tiers[-1].name, key, measured), limited


@dataclass(frozen=True, slots=True)
class DrawnTimes:
    """What becomes of the time with each draw of the rates, in logarithms; nothing where there are too few draws to tell."""

    systems: tuple[System, ...]
    seconds: FloatArray

    @classmethod
    def of(cls, systems: Sequence[System], floor: Callable[[System], float]) -> "DrawnTimes":
        kept = tuple(systems) if len(systems) >= _LEAST_DRAWS else ()
        return cls(kept, np.log([max(floor(system), 1e-12) for system in kept]))

    def times(self, share: float) -> float:
        """From the low to the high end of so much of the draws."""
        if not len(self.seconds):
            return 1.0
        low, high = np.quantile(self.seconds, [(1 - share) / 2, (1 + share) / 2])
        return float(np.exp(high - low))

    def correlations(self, paths: Sequence[str]) -> dict[str, float]:
        """How much of it goes with each of these figures, whatever the direction."""
        values = [numbers(system) for system in self.systems]
        shares: dict[str, float] = {}
        for path in paths:
            drawn = np.log([float(of_system.get(path) or 1.0) for of_system in values])
            if drawn.std() and self.seconds.std():
                shares[path] = abs(float(np.corrcoef(drawn, self.seconds)[0, 1]))
        return shares


def _open_ended(known: KnownSystem, drawn: DrawnTimes) -> list[str]:
    """Rates that are only known to be at least something, where the draws are far apart and go with them. The interval has them already."""
    if drawn.times(0.8) < MATTERS:
        return []
    shares = drawn.correlations(_at_least(known))
    return [_only_at_least(known, path) for path, share in shares.items() if share > _GOES_WITH]


def too_wide(known: KnownSystem, drawn: DrawnTimes) -> list[str]:
    """Figures that leave an interval which nobody can use: those that the time goes with, or the one that it goes with most. The interval has them already."""
    if drawn.times(SHARE) <= USABLE:
        return []
    within = dict.fromkeys(path for path, figure in known.figures.items() if figure.low is not None)
    shares = drawn.correlations([*(within | dict.fromkeys(known.draws[0] if known.draws else ()))])
    most = max(shares.values(), default=0.0)
    return [_only_within(known, path) for path, share in shares.items() if share >= min(_GOES_WITH, most)]


@dataclass(frozen=True, slots=True)
class _Crowd:
    """Another number of ranks than was measured, by mean values: queues may matter where no station is the bound."""

    study: Study
    known: KnownSystem
    reading: Reading
    outcome: Outcome

    def told(
        self, known_open: list[str], systems: Sequence[System], measured: Sequence[int]
    ) -> tuple[list[str], list[float]]:
        """Which rates are open, and what low and high may be of the time because of that; `known_open`: those that are open whatever the ranks."""
        reasons, ends = (known_open, []) if known_open else self.waits_otherwise(systems)
        return reasons, [*ends, self.with_own_limits(measured)] if reasons else ends

    def waits_otherwise(self, systems: Sequence[System]) -> tuple[list[str], list[float]]:
        """Waiting that was fitted as a queue's may be each rank's own, and the other way round: draws in which a rate is lowest and highest."""
        here, reasons, ends = self._seconds(self.study.system), list[str](), list[float]()
        for path in _at_least(self.known) if here and systems else ():
            drawn = [numbers(system).get(path) or 0.0 for system in systems]
            shares = [self._seconds(systems[int(place)]) / here for place in (np.argmin(drawn), np.argmax(drawn))]
            if max(shares) > MATTERS * min(shares):
                reasons.append(_only_at_least(self.known, path))
                ends += shares
        return reasons, ends

    def with_own_limits(self, measured: Sequence[int]) -> float:
        """The share of the time if what was fitted as a server's rate is a limit of every rank: as many times it as there are times the ranks."""
        system = self.study.system
        nearest = min(measured, key=lambda ranks: abs(np.log(ranks / system.ranks)))
        factor, here = system.ranks / nearest, self._seconds(system)
        tiers = []
        for tier in system.tiers:
            paths = [path.split(".") for path in _at_least(self.known)]
            keys = [path[2] for path in paths if path[:2] == ["tiers", tier.name] and path[2] in RATES]
            tiers.append(replace(tier, **{key: factor * rate for key in keys if (rate := getattr(tier, key))}))
        return self._seconds(replace(system, tiers=tuple(tiers))) / here if here else 1.0

    def _seconds(self, system: System) -> float:
        counts = self.outcome.ops[:, :, :2], self.outcome.nbytes[:, :, :2], self.outcome.samples or 1
        stations = stations_of(system, self.study.seed)
        rng = np.random.default_rng(_SEED)
        return float(bound.simulate_counts(self.study, stations, self.reading, counts, rng).io.max())


def _at_least(known: KnownSystem) -> list[str]:
    return [path for path, figure in known.figures.items() if figure.kind == "fitted" and figure.high is None]


def _only_at_least(known: KnownSystem, path: str) -> str:
    kind = number_keys(known.system)[path].kind
    return f"{path.removeprefix('tiers.')} is only known to be at least {kind.format(float(f'{known.figures[path].low:.3g}'))}"


def _only_within(known: KnownSystem, path: str) -> str:
    figure, kind = known.figures.get(path), number_keys(known.system)[path].kind
    if figure is None:
        return f"{path.removeprefix('tiers.')} limits in some fits that are as good, and in others nothing does"
    if figure.high is None:
        return _only_at_least(known, path)
    low, high = (kind.format(type(figure.value)(float(f"{end or 0:.3g}"))) for end in (figure.low, figure.high))
    return f"{path.removeprefix('tiers.')} is {'assumed' if figure.kind == 'assumed' else 'known'} only to within {low} to {high}"


def _with_shorter_latencies(system: System, known: KnownSystem) -> Iterator[tuple[str, System]]:
    """Of tiers that are faster than was fitted: the system with latencies that are as much shorter. A client's would stay, a server's would not."""
    fitted = {tier.name: tier for tier in known.system.tiers}
    for tier in system.tiers if known.measured is not None else ():
        was = fitted[tier.name].bandwidth if tier.name in fitted else None
        if was and tier.bandwidth and tier.bandwidth > _FASTER * was:
            factor = was / tier.bandwidth
            other = replace(tier, latency=tier.latency * factor, metadata_latency=tier.metadata_latency * factor)
            yield (
                tier.name,
                replace(system, tiers=tuple(other if listed is tier else listed for listed in system.tiers)),
            )


def _as_fitted(system: System, known: KnownSystem, name: str) -> System:
    """The tier as slow as it was: what streams are limited to is no faster on a faster server."""
    was = {tier.name: tier for tier in known.system.tiers}[name]
    rates = {key: getattr(was, key) for key in RATES}
    tiers = tuple(replace(tier, **rates) if tier.name == name else tier for tier in system.tiers)
    return replace(system, tiers=tiers)


def _split(system: System, other: Callable[[Tier, float], Tier], size: float) -> System:
    """With the same time for reads of this size, made up in another way."""
    return replace(system, tiers=tuple(other(tier, size) for tier in system.tiers))


def _by_operation(tier: Tier, size: float) -> Tier:
    """All of a read's time is its own, none its bytes': the same for reads of this size."""
    if not tier.bandwidth:
        return tier
    seconds = size / tier.bandwidth + (1 / tier.read_ops if tier.read_ops else 0.0)
    opened = tier.open_bytes / tier.bandwidth
    extra = 1 / opened if opened and not tier.metadata_ops else tier.metadata_ops
    return replace(tier, bandwidth=None, read_ops=1 / seconds, metadata_ops=extra, open_bytes=0)


def _by_bytes(tier: Tier, size: float) -> Tier:
    """All of it is the bytes': what is taken for an open, too, may be a part of reading that waits on the same link."""
    if not tier.bandwidth:
        return tier
    seconds = (size + tier.open_bytes) / tier.bandwidth + (1 / tier.read_ops if tier.read_ops else 0.0)
    if tier.metadata_ops:
        seconds += tier.servers / tier.metadata_servers / tier.metadata_ops
    alone = seconds + tier.latency + tier.metadata_latency
    nothing: dict[str, Any] = {
        "read_ops": None,
        "metadata_ops": None,
        "open_bytes": 0,
        "latency": 0.0,
        "metadata_latency": 0.0,
    }
    return replace(tier, bandwidth=size / seconds, stream_bandwidth=size / alone, **nothing)


def model_error(study: Study, known: KnownSystem | None, reading: Reading) -> float:
    """Of the model at this point: the system's own within what was calibrated, more the further away."""
    error = study.system.model_error
    if known is None or known.measured is None or not error:
        return error
    read_bytes = reading.read_bytes
    base, ours = numbers(known.system), numbers(study.system)
    paths = [*known.figures, *(f"tiers.{tier.name}.{key}" for tier in known.system.tiers for key in _COUNTS)]
    changed = [ours[path] / base[path] for path in paths if base.get(path) and ours.get(path)]  # type: ignore[operator]
    return error * known.measured.times_the_error(
        read_bytes,
        study.system.ranks,
        study.placement.cache_rate,
        max([1.0, *changed, *(1 / factor for factor in changed)]),
    )
