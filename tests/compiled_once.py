"""The event engine is compiled by one process: in a fresh clone both workers would do so at about the same time, for ten seconds each."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

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


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> Iterator[None]:
    """Whichever test simulates events first, in any folder: a worker's first simulation is alone."""
    from tierscope.predict import events  # noqa: PLC0415  (slow to import)

    real = events.engine
    compiled = False

    def engine() -> Any:
        run_epoch = real()

        def run_alone(*inputs: Any) -> Any:
            nonlocal compiled
            with _alone_with(Path(events.__file__).parent):
                times = run_epoch(*inputs)
            compiled = True
            return times

        return run_epoch if compiled else run_alone

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "engine", engine)
        yield
