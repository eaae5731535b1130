"""Processes that read Darshan logs and outlive a command: starting one takes longer than reading a log.

Which of them die of a log, hang or are ended is for tests/imports/test_darshan_reader.py, which starts its own.
"""

import atexit
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tierscope.helper_process import Helper
from tierscope.imports.darshan_reader import _Workers

MOST_KEPT = 4
_idle: list[tuple[str, Helper]] = []  # with the working directory: paths may be relative


class KeptWorkers(_Workers):
    """Workers that answered all that they were asked wait for the next command; as a thread's own, they served before."""

    def __init__(self, segments: bool) -> None:
        super().__init__(segments)
        self._asked: set[Helper] = set()
        self._place = os.getcwd()

    def _worker(self) -> Helper:
        if not hasattr(self._mine, "worker"):
            kept = _taken(self._place)
            if kept is not None:
                self._mine.worker = kept
                self._all.append(kept)
                self._served.add(kept)
        return super()._worker()

    def _ask(self, path: str) -> tuple[dict[str, Any], list[Any]]:
        worker = self._worker()
        self._asked.add(worker)
        answer = super()._ask(path)
        self._asked.discard(worker)
        return answer

    def close(self) -> None:
        well = [worker for worker in self._all if worker not in self._asked and worker.alive()]
        self._all = [worker for worker in self._all if worker not in well]
        _idle.extend((self._place, worker) for worker in well)
        _end_all_but(MOST_KEPT)
        super().close()


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
        yield
