"""Storage at the ends of what is known of it: as slow as its uncertain figures allow, and as fast.

Figures that are assumed or fitted have an interval. Which end of it is the slow one, the key says: every number of a tier is in one of three groups below.
Ends are taken together, as if the worst of everything came at once; draws of a fit, whose values go together, are not looked at.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from tierscope.spec import schema
from tierscope.spec.calibrated import AT_LEAST_FACTOR
from tierscope.spec.figures import KnownFigure, Number, given_kind, nearest, number_keys
from tierscope.spec.kinds import Bandwidth, Seconds
from tierscope.spec.known import KnownSystem
from tierscope.spec.schema import Key
from tierscope.spec.study import System, Tier
from tierscope.units import about_bandwidth, about_seconds

SLOW, FAST = "slow", "fast"
FAST_WHEN_HIGH = frozenset(
    (
        *("capacity", "metadata_servers", "metadata_ops", "file_open_ops", "servers", "read_ops", "write_ops"),
        *("bandwidth", "write_bandwidth", "node_bandwidth", "device_bandwidth", "gateway_bandwidth"),
        *("stream_bandwidth", "credit"),
    )
)
FAST_WHEN_LOW = frozenset(
    (
        *("device_shared_by", "gateway_shared_by", "metadata_latency", "metadata_variation", "latency", "variation"),
        *("service_variation", "background", "quota_period", "open_bytes"),
    )
)
DRAWN = "variation"  # of each server's speed: where files lie on few servers, more of it may be faster
LAYOUT = frozenset(("stripe_count", "stripe_size", "lustre_ost"))  # chosen; neither end is faster for every file
ASSUMED, FITTED = "assumed", "fitted"


@dataclass(frozen=True, slots=True)
class UncertainFigure:
    """A number of a tier that is known only within an interval. `low`, `high`: as the file has them; None: open."""

    tier: str
    path: str  # tiers.gfs.node_bandwidth
    kind: str  # ASSUMED or FITTED
    low: Number | None
    high: Number | None
    slow: Number
    fast: Number
    key: Key

    @property
    def interval(self) -> str:
        """As words, rounded."""
        low, high = ("" if end is None else _shown(self.key, end) for end in (self.low, self.high))
        return f"{low} to {high}" if low and high else f"at least {low}" if low else f"at most {high}"


def _shown(key: Key, value: Number) -> str:
    if isinstance(given_kind(key), Bandwidth) and value < Bandwidth.most:
        return about_bandwidth(value)
    if isinstance(given_kind(key), Seconds):
        return about_seconds(value)
    return key.kind.format(type(value)(float(f"{value:.3g}")))


def uncertain_storage(known: KnownSystem) -> tuple[UncertainFigure, ...]:
    """In the order of the file. A figure whose ends are the same number is certain."""
    declared = number_keys(known.system)
    uncertain = []
    for tier in known.system.tiers:
        for name in sorted(FAST_WHEN_HIGH | FAST_WHEN_LOW):
            path = f"tiers.{tier.name}.{name}"
            figure = known.figures.get(path)
            if figure is None or figure.kind not in (ASSUMED, FITTED) or figure.low == figure.high:
                continue
            low, high = _ends(figure, declared[path])
            slow, fast = (low, high) if name in FAST_WHEN_HIGH else (high, low)
            uncertain.append(
                UncertainFigure(tier.name, path, figure.kind, figure.low, figure.high, slow, fast, declared[path])
            )
    places = {path: place for place, path in enumerate(known.figures)}
    return tuple(sorted(uncertain, key=lambda figure: places[figure.path]))


def _ends(figure: KnownFigure, key: Key) -> tuple[Number, Number]:
    """What a fit left open may be AT_LEAST_FACTOR times as much, or as little."""
    low, high = figure.low, figure.high
    if high is None:
        assert low is not None
        high = nearest(key, max(figure.value, low * AT_LEAST_FACTOR))
    if low is None:
        low = nearest(key, min(figure.value, high / AT_LEAST_FACTOR))
    return low, high


def moved(system: System, figures: Collection[UncertainFigure], end: str) -> System:
    """The system with these figures at their slow or fast end. A file has no more stripes than there are servers."""
    ends = {figure.path: figure.slow if end == SLOW else figure.fast for figure in figures}
    return replace(system, tiers=tuple(_moved_tier(tier, ends) for tier in system.tiers))


def either_way(figures: Sequence[UncertainFigure]) -> tuple[Sequence[UncertainFigure], ...]:
    """The figures, and again with the ends of those exchanged of which draws decide what end is slow."""
    exchanged = [
        replace(figure, slow=figure.fast, fast=figure.slow) if figure.path.endswith(f".{DRAWN}") else figure
        for figure in figures
    ]
    return (figures,) if exchanged == list(figures) else (figures, exchanged)


def _moved_tier(tier: Tier, ends: dict[str, Number]) -> Tier:
    values = {
        field.name: ends[path] for field in schema.fields(Tier) if (path := f"tiers.{tier.name}.{field.yaml}") in ends
    }
    changed = replace(tier, **values)  # type: ignore[arg-type]
    return replace(changed, stripe_count=min(changed.stripe_count, changed.servers))
