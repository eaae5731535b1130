"""The keys of a system that are fitted: its rates, its latencies, and how its servers serve; taken out, and put in."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierscope.spec.study import System

RATES = ("metadata_ops", "read_ops", "bandwidth", "node_bandwidth", "device_bandwidth", "gateway_bandwidth")
NO_RATES = ("metadata_latency", "latency", "metadata_variation", "service_variation", "variation", "background")
LEAST_LATENCY = 1e-6
NEGLIGIBLE = 1.5 * LEAST_LATENCY  # a latency that is none


def without_rates(system: System) -> System:
    """The system's shape alone: who shares what, how many servers."""
    nothing: dict[str, Any] = {**dict.fromkeys(RATES), **dict.fromkeys(NO_RATES, 0.0), "discipline": "fifo"}
    tiers = tuple(replace(tier, **nothing) for tier in system.tiers)
    return replace(system, tiers=tiers, process_overhead=0.0)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A key of a tier, its first guess, and what it may be."""

    tier: str
    key: str
    guess: float
    low: float
    high: float

    @property
    def path(self) -> str:
        return f"tiers.{self.tier}.{self.key}"

    @property
    def is_rate(self) -> bool:
        return self.key in RATES


@dataclass(frozen=True, slots=True)
class Serving:
    """How servers serve: one after another or all at once, and how much their services vary (plan/variation.py)."""

    discipline: str
    variation: float


PLAIN = Serving("fifo", 0.0)


def apply(system: System, parameters: Sequence[Parameter], values: Sequence[float]) -> System:
    """The system with these rates; latencies that are next to nothing are nothing."""
    changes: dict[str, dict[str, float]] = {}
    for parameter, value in zip(parameters, values, strict=True):
        kept = 0.0 if not parameter.is_rate and value <= NEGLIGIBLE else float(value)
        changes.setdefault(parameter.tier, {})[parameter.key] = kept
    tiers = tuple(replace(tier, **changes.get(tier.name, {})) for tier in system.tiers)  # type: ignore[arg-type]
    return replace(system, tiers=tiers)


def with_serving(system: System, serving: Serving) -> System:
    changes: dict[str, Any] = {
        "discipline": serving.discipline,
        "service_variation": serving.variation,
        "metadata_variation": serving.variation,
    }
    return replace(system, tiers=tuple(replace(tier, **changes) for tier in system.tiers))
