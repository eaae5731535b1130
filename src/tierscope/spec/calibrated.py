"""What a system was calibrated with: what its rates are known for, and how far from that a question is."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tierscope.errors import SpecError
from tierscope.spec.build import read_value
from tierscope.spec.kinds import Bandwidth, Bytes, Fraction, Integer
from tierscope.spec.schema import Key
from tierscope.spec.tree import Node

AT_LEAST_FACTOR = 10.0  # times what a rate is at least: so far it may be

_MOST = 1000  # values of one kind
_KINDS = {
    "read_bytes": Key(Bytes(1, 2**40), "mean bytes of a read"),
    "ranks": Key(Integer(1, 10**9), "training processes"),
    "cache_rates": Key(Fraction(0, 1), "share of the files on near tiers"),
    "node_bandwidth": Key(Bandwidth(), "bytes per second that a node got from the last tier, at least"),
    "device_bandwidth": Key(Bandwidth(), "bytes per second that all nodes together got from it, at least"),
}
LIMITS = ("node_bandwidth", "device_bandwidth")  # keys of a tier
_PER_DOUBLING = 0.5  # of the model error more for every doubling beyond what was measured
_PER_RATE = 2.0  # for a whole cache rate beyond
_SAME = 1.1  # sizes that differ by less are one


@dataclass(frozen=True, slots=True)
class CalibratedRange:
    """Mean bytes of a read, ranks and cache rates that were measured, in order; and what the last tier served without being the limit."""

    read_bytes: tuple[float, ...] = ()
    ranks: tuple[int, ...] = ()
    cache_rates: tuple[float, ...] = ()
    node_bandwidth: tuple[float, ...] = ()
    device_bandwidth: tuple[float, ...] = ()

    @property
    def served(self) -> dict[str, float]:
        """Key of the last tier → what it is at least. Nothing measured asked for more."""
        return {key: max(values) for key in LIMITS if (values := getattr(self, key))}

    def is_other_size(self, read_bytes: float) -> bool:
        """What of a read's time is its bytes' is not known: one size was measured, and it is not this one; or all were larger, which hardly shows what a read itself takes."""
        sizes = self.read_bytes
        if not sizes or sizes[0] / _SAME < read_bytes < sizes[-1] * _SAME:
            return False
        return self.is_single_size or read_bytes < sizes[0]

    @property
    def is_single_size(self) -> bool:
        return bool(self.read_bytes) and self.read_bytes[-1] < _SAME * self.read_bytes[0]

    def is_other_crowd(self, ranks: int) -> bool:
        """More ranks than were measured, or fewer: they wait for one another in another way."""
        return bool(self.ranks) and not self.ranks[0] / _SAME < ranks < self.ranks[-1] * _SAME

    def times_the_error(self, read_bytes: float, ranks: int, cache_rate: float, changed: float = 1.0) -> float:
        """1 within what was measured, and more the further away. `changed`: by which factor a fitted rate is not what was fitted."""
        beyond = _PER_DOUBLING * math.log2(changed)
        for value, known in ((read_bytes, self.read_bytes), (float(ranks), self.ranks)):
            if known:
                beyond += _PER_DOUBLING * max(0.0, math.log2(value / known[-1]), math.log2(known[0] / value))
        if self.cache_rates:
            beyond += _PER_RATE * max(0.0, cache_rate - self.cache_rates[-1], self.cache_rates[0] - cache_rate)
        return 1 + beyond


def read_range(node: Node | None) -> CalibratedRange | None:
    """The `calibrated:` of a system's file."""
    if node is None or node.value is None:
        return None
    if not isinstance(node.value, dict):
        raise SpecError(f"{node.where}: calibrated must be a mapping with {', '.join(_KINDS)}")
    ranges = {}
    for name, child in node.value.items():
        if name not in _KINDS:
            raise SpecError(f"{child.where}: calibrated.{name}: unknown key; known here: {', '.join(_KINDS)}")
        if not isinstance(child.value, list) or not 0 < len(child.value) <= _MOST:
            raise SpecError(f"{child.where}: calibrated.{name} must be a list of 1 to {_MOST} values")
        values = [
            read_value(_KINDS[name], item, f"calibrated.{name}[{place}]") for place, item in enumerate(child.value)
        ]
        ranges[name] = tuple(sorted(values))
    return CalibratedRange(**ranges)


def range_lines(measured: CalibratedRange | None) -> Iterator[str]:
    """As `read_range` reads it."""
    if measured is None:
        return
    yield "calibrated:"
    for name, key in _KINDS.items():
        if values := getattr(measured, name):
            texts = (key.kind.format(value if name == "cache_rates" else round(value)) for value in values)
            yield f"  {name}: [{', '.join(texts)}]"
