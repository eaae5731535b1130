"""The event engine is compiled by one process: in a fresh clone all of them would need it at about the same time, for ten seconds each."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest


@contextmanager
def _alone_with(folder: Path) -> Iterator[None]:
    """While others wait: numba keeps what it compiled beside the source, and whoever comes next loads it."""
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)


@cache
def compile_engine() -> None:
    from tests.predict.queueing import case_of, study_of, tier  # noqa: PLC0415  (slow to import)
    from tierscope.predict import engine, events  # noqa: PLC0415

    case = case_of(study_of(tier(latency=1.0), files=1))
    with _alone_with(Path(engine.__file__).parent):
        events.simulate(case.study, case.stations, case.reading, case.schedule, events.EventOptions())


@pytest.fixture(scope="module", autouse=True)
def compiled_once() -> None:
    """For modules, or a folder's conftest.py, whose tests simulate events."""
    if find_spec("numba") is not None:
        compile_engine()
