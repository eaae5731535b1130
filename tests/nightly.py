"""Tests of which CI runs a part, and `make nightly` all: the same statement for many kills, signals or moments."""

from collections.abc import Iterable
from typing import Any

import pytest


def first_in_ci(cases: Iterable[Any], number: int) -> list[Any]:
    """For parametrize: so many of the cases are for CI, the others are marked nightly. A case of several values is a tuple."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.nightly] * (place >= number))
        for place, case in enumerate(cases)
    ]
