"""What if a station were faster, by the model: the rates are improved, not the times, and what the others then do follows.

The model's answer is its own before and after, applied to what was measured: so its error at a point cancels, and only the error of the
change remains. Both are in the same seconds, wall or busy. Latencies outside queues stay as they are: nobody buys those away with a faster server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierscope.jsonable import SweepValues, cache_rate_of
from tierscope.predict.case import Case, simulate
from tierscope.predict.identified import Identified, identify
from tierscope.predict.outcome import CATEGORIES, Outcome
from tierscope.spec.known import KnownSystem, drawn_systems
from tierscope.spec.study import System, Tier

_OF_CLASS = {
    "META": ("metadata_ops",),
    "READ": ("read_ops", "bandwidth", "node_bandwidth", "device_bandwidth", "gateway_bandwidth", "stream_bandwidth"),
    "WRITE": ("write_ops", "write_bandwidth"),
}
_AS_READ = {"write_ops": "read_ops", "write_bandwidth": "bandwidth"}  # where rates of writing are not given


@dataclass(frozen=True, slots=True)
class PointAnswer:
    """The slowest I/O time at a point: measured, by the simple scaling, and by the model."""

    sweep: SweepValues
    measured_seconds: float
    simple_seconds: float
    model_seconds: float
    bottleneck_before: str  # in the model
    bottleneck_after: str
    unidentified: tuple[str, ...] = ()  # why the calibration does not tell: then low and high are bounds
    low_seconds: float = 0.0  # of the model's; where all is identified, the model's own
    high_seconds: float = 0.0

    @property
    def simple_off_percent(self) -> float:
        return 100 * (self.simple_seconds / self.model_seconds - 1) if self.model_seconds else 0.0


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """`shown`: which of the two answers is to be believed; the model's, where the bottleneck moved."""

    points: tuple[PointAnswer, ...]
    best_simple: PointAnswer
    best_model: PointAnswer
    moved: bool

    @property
    def shown(self) -> str:
        return "model" if self.moved else "scaling"

    @property
    def simple_off_percent(self) -> float:
        """Of the best time that it promises, against the model's best."""
        best = self.best_model.model_seconds
        return 100 * (self.best_simple.simple_seconds / best - 1) if best else 0.0


def improved(system: System, improvements: Mapping[str, float]) -> System:
    """Stations of the classes are so many percent faster."""
    return replace(system, tiers=tuple(_tier(tier, improvements) for tier in system.tiers))


def _tier(tier: Tier, improvements: Mapping[str, float]) -> Tier:
    changes: dict[str, Any] = {}
    for category, keys in _OF_CLASS.items():
        percent = improvements.get(f"{tier.name.upper()}-{category}", 0.0)
        for key in keys if percent else ():
            rate = _rate(tier, key)
            if rate is not None:
                changes[key] = rate * (1 + percent / 100)
        if percent and category == "META" and tier.open_bytes:
            changes["open_bytes"] = round(tier.open_bytes / (1 + percent / 100))
    for key, as_read in _AS_READ.items():
        if as_read in changes and key not in changes:  # who reads faster does not write faster
            changes[key] = _rate(tier, key)
    return replace(tier, **changes)


def _rate(tier: Tier, key: str) -> float | None:
    rate: float | None = getattr(tier, key)
    return getattr(tier, _AS_READ[key]) if rate is None and key in _AS_READ else rate


@dataclass(frozen=True, slots=True)
class ModelledPoint:
    """A point of a sweep: its epochs, what was measured there, and what the simple scaling makes of it."""

    sweep: SweepValues
    cases: tuple[Case, ...]
    measured_seconds: float
    simple_seconds: float
    basis: str = "busy"  # of those seconds; the model has both
    system: System | None = None  # with the rates of this point, where they are known


def answer(
    points: Sequence[ModelledPoint],
    system: System,
    improvements: Mapping[str, float],
    known: KnownSystem | None = None,
) -> ModelAnswer:
    """`system` has rates that were fitted; for points that do not have their own. `known`: how well those are known."""
    by_point = tuple(_answer(point, system, improvements, known) for point in points)
    by_rate = sorted(by_point, key=lambda point: cache_rate_of(point.sweep))
    simple = min(by_rate, key=lambda point: point.simple_seconds)
    model = min(by_rate, key=lambda point: point.model_seconds)
    moved = any(best.bottleneck_before != best.bottleneck_after for best in (simple, model)) or simple != model
    return ModelAnswer(by_point, simple, model, moved)


def _answer(
    point: ModelledPoint, system: System, improvements: Mapping[str, float], known: KnownSystem | None
) -> PointAnswer:
    told: dict[str, None] = {}
    ends = [1.0]
    ratios: list[float] = []
    leaders: list[tuple[str, str]] = []
    for case in point.cases:
        shape = case.study.system
        rated = point.system or _with_rates_of(shape, system)
        faster = improved(rated, improvements)
        before, after = (simulate(case, some) for some in (rated, faster))
        identified = _identified(case, faster, known, after)
        told |= dict.fromkeys(identified.reasons)
        ends += [identified.low, identified.high]
        (was, first), (now, then) = (_slowest(some, shape, point.basis) for some in (before, after))
        ratios.append(now / was if was else 1.0)
        leaders.append((first, then))
    ratio = sorted(ratios)[len(ratios) // 2]
    first, then = leaders[len(leaders) // 2]
    modelled = point.measured_seconds * ratio
    seconds = (point.measured_seconds, point.simple_seconds, modelled)
    return PointAnswer(point.sweep, *seconds, first, then, tuple(told), min(ends) * modelled, max(ends) * modelled)


def _identified(case: Case, faster: System, known: KnownSystem | None, after: Outcome) -> Identified:
    """Whether what was fitted tells of such a system."""
    if known is None:
        return Identified()
    study = replace(case.study, system=faster)
    return identify(study, known, case.reading, after, drawn_systems(faster, known))


def _slowest(outcome: Outcome, shape: System, basis: str) -> tuple[float, str]:
    """Seconds of I/O of the slowest process in the model, and its largest class."""
    times = outcome.wall_classes if basis == "wall" else outcome.busy_classes
    sums = times.sum(axis=(1, 2))
    names = [f"{tier.name.upper()}-{kind}" for tier in shape.tiers for kind in CATEGORIES]
    return float(sums.max()), names[int(times[int(sums.argmax())].reshape(-1).argmax())]


def _with_rates_of(shape: System, rated: System) -> System:
    """A point's own shape (servers, nodes, who shares what) with a calibrated system's rates."""
    by_name = {tier.name: tier for tier in rated.tiers}
    keys = ("metadata_ops", "read_ops", "bandwidth", "write_ops", "write_bandwidth", "node_bandwidth", "device_bandwidth", "gateway_bandwidth",
            "latency", "metadata_latency", "variation", "metadata_variation", "service_variation", "background", "discipline",
            "credit", "quota_period", "open_bytes", "stream_bandwidth", "layout")  # fmt: skip
    tiers = tuple(
        replace(tier, **{key: getattr(by_name[tier.name], key) for key in keys}) if tier.name in by_name else tier
        for tier in shape.tiers
    )
    return replace(shape, tiers=tiers)
