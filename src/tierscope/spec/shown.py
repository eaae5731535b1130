"""Values of a study's keys as people write them: sizes, times and rates with their units, in tables, sentences and figures alike."""

from functools import cache
from typing import Any

from tierscope.spec.keys import leaf_keys
from tierscope.spec.kinds import Bandwidth, Bounded, Bytes, Flops, Fraction, Kind, Optional, Rate, Seconds
from tierscope.spec.study import Study

_WITH_UNITS = (Bandwidth, Bytes, Flops, Fraction, Rate, Seconds)


def shown_value(name: str, value: Any) -> str:
    """`name`: a key's path or its end, as in a sweep; any other number is shown without a unit. Costs microseconds."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if not isinstance(value, int | float):
        return str(value)
    kind = _quantities().get(name.rpartition(".")[2])
    if kind is None or (isinstance(kind, Bytes) and not float(value).is_integer()):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if isinstance(kind, Fraction) and not kind.format(value).endswith("%"):
        return f"{100 * value:.6g}%"  # a third
    return kind.format(int(value) if isinstance(kind, Bytes) else value)


def has_unit(name: str) -> bool:
    """Whether `shown_value` of a number of this key ends in a unit."""
    return name.rpartition(".")[2] in _quantities()


@cache
def _quantities() -> dict[str, Bounded]:
    """Kinds by the last part of the key; not of names that two sections use for different things."""
    kinds: dict[str, list[Kind]] = {}
    for path, key in leaf_keys(Study, ("tier",)).items():
        kind = key.kind.kind if isinstance(key.kind, Optional) else key.kind
        kinds.setdefault(path.rpartition(".")[2], []).append(kind)
    return {
        name: first
        for name, (first, *others) in kinds.items()
        if isinstance(first, _WITH_UNITS) and all(type(other) is type(first) for other in others)
    }
