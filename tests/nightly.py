"""Tests of which CI runs a part, and `make nightly` all: the same statement for many kills, signals or moments."""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import Any

import pytest


def first_in_ci(cases: Iterable[Any], number: int) -> list[Any]:
    """For parametrize: so many of the cases are for CI, the others are marked nightly. A case of several values is a tuple."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.nightly] * (place >= number))
        for place, case in enumerate(cases)
    ]


def every_value_in_ci(*axes: Sequence[Any]) -> list[Any]:
    """For parametrize, of several names: all combinations, of which CI has as many as the longest axis, with every value of every axis."""
    turns = range(max(map(len, axes)))
    for_ci = list(dict.fromkeys(tuple(axis[turn % len(axis)] for axis in axes) for turn in turns))
    return first_in_ci([*for_ci, *(case for case in product(*axes) if case not in for_ci)], len(for_ci))
