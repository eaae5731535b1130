"""Processes that read Darshan logs and outlive a command: starting one takes longer than reading a log.

Which of them die of a log, hang or are ended is for tests/imports/test_darshan_reader.py, which starts its own.
"""

import atexit
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tierscope.imports.darshan_reader import _Workers

_idle: list[subprocess.Popen[bytes]] = []


class KeptWorkers(_Workers):
    """Workers that answered all that they were asked wait for the next command; as a thread's own, they served before."""

    def __init__(self, library: str, segments: bool) -> None:
        super().__init__(library, segments)
        self._asked: set[subprocess.Popen[bytes]] = set()

    def _worker(self) -> subprocess.Popen[bytes]:
        if not hasattr(self._mine, "worker"):
            kept = _idle.pop() if _idle else None
            if kept is not None and kept.poll() is None:
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
        well = [worker for worker in self._all if worker not in self._asked and worker.poll() is None]
        self._all = [worker for worker in self._all if worker not in well]
        _idle.extend(well)
        super().close()


@atexit.register
def _end_all() -> None:
    while _idle:
        worker = _idle.pop()
        worker.kill()
        worker.wait()


@pytest.fixture(scope="module", autouse=True)
def kept_readers() -> Iterator[None]:
    """For a module that imports it: logs are read by kept processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tierscope.imports.darshan_reader._Workers", KeptWorkers)
        yield
