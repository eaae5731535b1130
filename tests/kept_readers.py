"""Processes that read Darshan logs and outlive a command: starting one takes longer than reading a log.

Which of them die of a log, hang or are ended is for tests/imports/test_darshan_reader.py, which starts its own.
"""

import atexit
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tierscope.helper_process import Helper, HelperGroup
from tierscope.imports.darshan_reader import _Workers

MOST_KEPT = 4
_idle: list[tuple[str, Helper]] = []  # with the working directory: paths may be relative


class KeptGroup(HelperGroup):
    """Those that answered all that they were asked wait for the next command."""

    def __init__(self) -> None:
        super().__init__()
        self.well: set[Helper] = set()
        self.place = os.getcwd()

    def kill(self) -> None:
        well = [helper for helper in self._started if helper in self.well and helper.alive()]
        self._started = [helper for helper in self._started if helper not in well]
        _idle.extend((self.place, helper) for helper in well)
        _end_all_but(MOST_KEPT)
        super().kill()


class KeptWorkers(_Workers):
    """Takes kept ones first; as a thread's own, they served before."""

    _helpers: KeptGroup

    def _worker(self) -> Helper:
        if not hasattr(self._mine, "worker"):
            kept = _taken(self._helpers.place)
            if kept is not None:
                self._mine.worker = kept
                self._helpers.add(kept)
                self._served.add(kept)
        return super()._worker()

    def _ask(self, path: str) -> tuple[dict[str, Any], list[Any]]:
        worker = self._worker()
        self._helpers.well.discard(worker)
        answer = super()._ask(path)
        self._helpers.well.add(worker)
        return answer


_taking = threading.Lock()


def _taken(place: str) -> Helper | None:
    with _taking:
        for kept in _idle:
            if kept[0] == place and kept[1].alive():
                _idle.remove(kept)
                return kept[1]
    return None


@atexit.register
def _end_all_but(most: int = 0) -> None:
    while len(_idle) > most:
        _, worker = _idle.pop(0)
        worker.close()


@pytest.fixture(scope="module", autouse=True)
def kept_readers() -> Iterator[None]:
    """For a module that imports it: logs are read by kept processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tierscope.imports.darshan_reader._Workers", KeptWorkers)
        patch.setattr("tierscope.helper_process.HelperGroup", KeptGroup)
        yield
