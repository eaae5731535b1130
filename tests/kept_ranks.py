"""Rank processes that outlive a study: most tests ask what ranks do, and starting two of them takes longer than a tiny study.

A crew that ends well is given to the next study that would start the same one: the same size, environment and working directory. One
that failed is gone, as it always is. How ranks start, end and die is for tests/bench/test_crew.py and tests/integration, which start
their own. What we cost by ourselves is measured once, not for every study and loader: that is tests/bench/test_overhead.py's.
"""

import atexit
import os
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Self

import pytest

from tierscope.bench.crew import LocalCrew, Progress
from tierscope.bench.tasks import OverheadTask, Task

MOST_KEPT = 5
_kept: list[tuple[Hashable, LocalCrew]] = []
_own_costs: list[Any] = []


class KeptCrew:
    """A local crew whose ranks wait for the next study when it is closed."""

    def __init__(self, size: int, stall_seconds: float | None = None, pool: object = None) -> None:
        self.size = size
        self._surroundings = _surroundings(size, stall_seconds)
        self._crew = _taken(self._surroundings) or LocalCrew(size, stall_seconds=stall_seconds)

    def call(self, task: Task, progress: Progress) -> list[Any]:
        if not isinstance(task, OverheadTask):
            return self._crew.call(task, progress)
        if not _own_costs:
            _own_costs.extend(self._crew.call(task, progress))
        return _own_costs

    def close(self) -> None:
        _kept.append((self._surroundings, self._crew))
        if len(_kept) > MOST_KEPT:
            _kept.pop(0)[1].close()


class KeptProfiledCrew(KeptCrew):
    """The same for ranks under a profiler that preloads nothing: it asks them to leave, and they would have left well."""

    def __init__(self, size: int, variables: Mapping[str, str]) -> None:
        assert not variables, "ranks that are preloaded must be started anew"
        super().__init__(size)

    def __enter__(self) -> Self:
        return self

    def leave(self, _seconds: float) -> list[str]:
        return []

    def __exit__(self, *_error: object) -> None:
        self.close()


def _surroundings(size: int, stall_seconds: float | None) -> Hashable:
    """All that a rank inherits and that tests change."""
    variables = frozenset((name, value) for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST")
    return size, stall_seconds, os.getcwd(), variables


def _taken(surroundings: Hashable) -> LocalCrew | None:
    for place, (theirs, crew) in enumerate(_kept):
        if theirs == surroundings:
            del _kept[place]
            return crew if _alive(crew) else None
    return None


def _alive(crew: LocalCrew) -> bool:
    return bool(crew._processes) and all(process.poll() is None for process in crew._processes)


@atexit.register
def _end_all() -> None:
    while _kept:
        _kept.pop()[1].close()


@pytest.fixture(scope="module", autouse=True)
def kept_ranks() -> Iterator[None]:
    """For a folder's conftest.py: all studies of its tests are run by kept ranks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tierscope.measure.crews.LocalCrew", KeptCrew)
        yield
