"""The keys of a system that are fitted: its rates, its latencies, and how its servers serve; taken out, and put in."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierscope.spec.emulation import servers_limit
from tierscope.spec.study import System, Tier

RATES = (
    "metadata_ops", "read_ops", "bandwidth", "write_ops", "write_bandwidth", "node_bandwidth", "device_bandwidth", "gateway_bandwidth",
    "stream_bandwidth",
)  # fmt: skip
NO_RATES = (
    "metadata_latency", "latency", "metadata_variation", "service_variation", "variation", "background", "credit",
    "open_bytes", "quota_period",
)  # fmt: skip
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


@dataclass(frozen=True, slots=True)
class Terms:
    """What tiers have beside rates and latencies, by their names; and how all servers serve."""

    serving: Serving = PLAIN
    credit: tuple[str, ...] = ()  # servers make up for idle time
    quotas: tuple[str, ...] = ()  # servers hand out what they allow in portions
    linked: tuple[str, ...] = ()  # opens queue among the reads instead of at a metadata server
    streams: tuple[str, ...] = ()  # every stream is limited
    hashed: tuple[str, ...] = ()  # files lie on servers at random instead of in turns


def apply(system: System, parameters: Sequence[Parameter], values: Sequence[float]) -> System:
    """The system with these rates; latencies that are next to nothing are nothing."""
    changes: dict[str, dict[str, float]] = {}
    for parameter, value in zip(parameters, values, strict=True):
        kept = 0.0 if not parameter.is_rate and value <= NEGLIGIBLE else float(value)
        changes.setdefault(parameter.tier, {})[parameter.key] = round(kept) if parameter.key == "open_bytes" else kept
    tiers = tuple(replace(tier, **changes.get(tier.name, {})) for tier in system.tiers)  # type: ignore[arg-type]
    return replace(system, tiers=tiers)


def consistent(system: System) -> System:
    """Without what says how servers serve that never limit: no study could run on that."""
    return replace(system, tiers=tuple(_consistent(tier) for tier in system.tiers))


def _consistent(tier: Tier) -> Tier:
    serves, changes = servers_limit(tier), dict[str, Any]()
    if not tier.metadata_ops:
        changes["metadata_variation"] = 0.0
    if not serves:
        changes |= {"service_variation": 0.0, "credit": 0.0, "quota_period": 0.0}
    if not serves and not tier.metadata_ops:
        changes["discipline"] = "fifo"
    if not tier.bandwidth:
        changes["open_bytes"] = 0
    return replace(tier, **changes)


def with_terms(system: System, terms: Terms) -> System:
    """What is chosen before any number is fitted."""
    tiers = tuple(replace(tier, layout="hash") if tier.name in terms.hashed else tier for tier in system.tiers)
    return with_serving(replace(system, tiers=tiers), terms.serving)


def with_serving(system: System, serving: Serving) -> System:
    changes: dict[str, Any] = {
        "discipline": serving.discipline,
        "service_variation": serving.variation,
        "metadata_variation": serving.variation,
    }
    return replace(system, tiers=tuple(replace(tier, **changes) for tier in system.tiers))
