"""Names for plain data that leaves the program as JSON, and for the values of a sweep: no room hands another an unnamed dictionary.

`JsonObject` is what a `to_json` function returns, finished for `json.dumps`; or what a file holds, before anything in it is checked.
"""

from collections.abc import Mapping
from typing import Any

JsonObject = dict[str, Any]
SweepValue = bool | int | float | str | None
SweepValues = Mapping[str, SweepValue]  # short name of a swept key → its value at one point


def cache_rate_of(sweep: SweepValues) -> float:
    """Zero where it is not swept. Where it is, it is a number: descriptions and CSVs are refused otherwise."""
    rate = sweep.get("cache_rate", 0.0)
    assert isinstance(rate, int | float)
    return float(rate)


def point_key(sweep: SweepValues) -> tuple[tuple[str, SweepValue], ...]:
    """The values of a point, to find it by among many."""
    return tuple(sweep.items())
