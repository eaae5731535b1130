"""What if a station were faster, by the model: the rates are improved, not the times, and what the others then do follows.

The model's answer is its own before and after, applied to what was measured: so its error at a point cancels, and only the error of the
change remains. Both are in the same seconds, wall or busy; writes are none of the model's, and scaled as by the simple scaling. Latencies outside queues stay as they are: nobody buys those away with a faster server.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierscope.jsonable import SweepValues, cache_rate_of
from tierscope.predict.fit import Case, simulate
from tierscope.predict.outcome import Outcome
from tierscope.spec.study import System, Tier

_OF_CLASS = {
    "META": ("metadata_ops",),
    "READ": ("read_ops", "bandwidth", "node_bandwidth", "device_bandwidth", "gateway_bandwidth"),
}


@dataclass(frozen=True, slots=True)
class PointAnswer:
    """The slowest I/O time at a point: measured, by the simple scaling, and by the model."""

    sweep: SweepValues
    measured_seconds: float
    simple_seconds: float
    model_seconds: float
    bottleneck_before: str  # in the model
    bottleneck_after: str

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
            rate = getattr(tier, key)
            if rate is not None:
                changes[key] = rate * (1 + percent / 100)
    return replace(tier, **changes)


@dataclass(frozen=True, slots=True)
class ModelledPoint:
    """A point of a sweep: its epochs, what was measured there, and what the simple scaling makes of it."""

    sweep: SweepValues
    cases: tuple[Case, ...]
    measured_seconds: float
    simple_seconds: float
    basis: str = "busy"  # of those seconds; the model has both
    write_seconds: tuple[float, float] = (0.0, 0.0)  # of the two: what the model knows nothing of
    system: System | None = None  # with the rates of this point, where they are known


def answer(points: Sequence[ModelledPoint], system: System, improvements: Mapping[str, float]) -> ModelAnswer:
    """`system` has rates that were fitted; for points that do not have their own."""
    found = tuple(_answer(point, system, improvements) for point in points)
    by_rate = sorted(found, key=lambda each: cache_rate_of(each.sweep))
    simple = min(by_rate, key=lambda each: each.simple_seconds)
    model = min(by_rate, key=lambda each: each.model_seconds)
    moved = any(each.bottleneck_before != each.bottleneck_after for each in (simple, model)) or simple != model
    return ModelAnswer(found, simple, model, moved)


def _answer(point: ModelledPoint, system: System, improvements: Mapping[str, float]) -> PointAnswer:
    ratios: list[float] = []
    leaders: list[tuple[str, str]] = []
    for case in point.cases:
        shape = case.study.system
        rated = point.system or _with_rates_of(shape, system)
        before, after = (simulate(case, some) for some in (rated, improved(rated, improvements)))
        (was, first), (now, then) = (_slowest(some, shape, point.basis) for some in (before, after))
        ratios.append(now / was if was else 1.0)
        leaders.append((first, then))
    ratio = sorted(ratios)[len(ratios) // 2]
    first, then = leaders[len(leaders) // 2]
    wrote, writes = point.write_seconds
    modelled = (point.measured_seconds - wrote) * ratio + writes
    return PointAnswer(point.sweep, point.measured_seconds, point.simple_seconds, modelled, first, then)


def _slowest(outcome: Outcome, shape: System, basis: str) -> tuple[float, str]:
    """Seconds of I/O of the slowest process in the model, and its largest class."""
    times = outcome.wall if basis == "wall" else outcome.busy
    sums = times.sum(axis=(1, 2))
    names = [f"{tier.name.upper()}-{kind}" for tier in shape.tiers for kind in ("META", "READ")]
    return float(sums.max()), names[int(times[int(sums.argmax())].reshape(-1).argmax())]


def _with_rates_of(shape: System, rated: System) -> System:
    """A point's own shape (servers, nodes, who shares what) with a calibrated system's rates."""
    by_name = {tier.name: tier for tier in rated.tiers}
    keys = ("metadata_ops", "read_ops", "bandwidth", "node_bandwidth", "device_bandwidth", "gateway_bandwidth",
            "latency", "metadata_latency", "variation", "metadata_variation", "service_variation", "background", "discipline")  # fmt: skip
    tiers = tuple(
        replace(tier, **{key: getattr(by_name[tier.name], key) for key in keys}) if tier.name in by_name else tier
        for tier in shape.tiers
    )
    return replace(shape, tiers=tiers)
