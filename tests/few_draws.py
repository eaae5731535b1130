"""Intervals of simulated times from a third of the draws: most tests ask for an answer, and drawing its interval took a tenth of their time.

How wide intervals are, and that they hold, is for tests/predict/test_spread.py; what commands print is for tests/golden. Both have all draws.
"""

from collections.abc import Iterator

import pytest

from tierscope.predict import spread

FEW = 20
ALL_DRAWS = {"test_spread.py", "golden", "papers", "validation", "integration"}


@pytest.fixture(scope="module", autouse=True)
def few_draws(request: pytest.FixtureRequest) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        if ALL_DRAWS.isdisjoint(request.path.parts):
            patch.setattr(spread, "DRAWS", FEW)
        yield
