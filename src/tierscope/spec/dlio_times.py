"""DLIO's times: a number, or a mapping that names a distribution."""

import math
from dataclasses import dataclass

from tierscope.errors import SpecError
from tierscope.spec.dlio_making import Making, amount
from tierscope.spec.tree import Node
from tierscope.units import closest

_PARTS = {"normal": ("mean", "stdev"), "uniform": ("min", "max"), "exponential": ("scale",)}
_OTHERS = ("gamma", "poisson")


@dataclass(frozen=True, slots=True)
class Time:
    mean: float
    stdev: float = 0.0
    distribution: str = "constant"


def read_time(making: Making, path: str) -> Time:
    """Of `path`, with the standard deviation of `path`_stdev; 0 where nothing is given."""
    node = making.given.get(path)
    apart = making.given.get(f"{path}_stdev")
    stdev = amount(f"{path}_stdev", apart) if apart is not None else 0.0
    if node is None:
        time = Time(0.0)
    elif isinstance(node.value, dict):
        time = _drawn(path, node)
    else:
        time = Time(amount(path, node))
    if not stdev:
        return time
    if time.distribution not in ("constant", "normal"):
        making.refuse(f"{path}_stdev", f"but {path} is {time.distribution}; remove one of them")
    return Time(time.mean, stdev, "normal")


def _drawn(path: str, node: Node) -> Time:
    assert isinstance(node.value, dict)
    parts = {name: child for name, child in node.value.items() if child.value is not None}
    named = parts.pop("type", Node("normal", node.where))
    kind = named.value if isinstance(named.value, str) else "…"
    if kind not in _PARTS:
        known = f"must be one of {', '.join(_PARTS)}"
        reason = f"is not supported; {known}" if kind in _OTHERS else known
        raise SpecError(f"{named.where}: {path}.type = {kind[:80]}; {reason}")
    wanted = _PARTS[kind]
    for name, child in parts.items():
        if name not in wanted:
            guess = closest(name, wanted)
            hint = f"did you mean {guess}?" if guess else f"{kind} has {' and '.join(wanted)}"
            raise SpecError(f"{child.where}: {path}.{name}: unknown key; {hint}")
    values = {name: amount(f"{path}.{name}", child) for name, child in parts.items()}
    missing = next((name for name in wanted if name not in values and name != "stdev"), None)
    if missing:
        raise SpecError(f"{node.where}: {path}.{missing} is missing; a {kind} time needs it")
    return _of(kind, values, node, path)


def _of(kind: str, values: dict[str, float], node: Node, path: str) -> Time:
    if kind == "exponential":
        return Time(values["scale"], 0.0, kind)
    if kind == "normal":
        stdev = values.get("stdev", 0.0)
        return Time(values["mean"], stdev, kind if stdev else "constant")
    low, high = values["min"], values["max"]
    if low > high:
        raise SpecError(f"{node.where}: {path}.min = {low:g} is more than {path}.max = {high:g}; swap them")
    return Time((low + high) / 2, (high - low) / math.sqrt(12), kind if high > low else "constant")
