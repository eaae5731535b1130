"""A clock for threads that only moves when all of them sleep: exact times, the same in every run, in no time."""

import heapq
import itertools
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from tierscope.storage import emulated


class VirtualTime:
    """One thread runs at a time, until it sleeps or ends; then the one that wakes up first."""

    def __init__(self, start: int) -> None:
        self.now = start
        self._sleepers: list[tuple[int, int, threading.Lock]] = []
        self._order = itertools.count()
        self._all_ended = threading.Event()
        self._errors: list[BaseException] = []

    def monotonic_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        until = self.now + round(seconds * 1e9)
        if not self._sleepers or until < self._sleepers[0][0]:  # nobody wakes up before
            self.now = max(self.now, until)
            return
        bed = self._lie_down(until)
        self._wake_next()
        bed.acquire()

    def _lie_down(self, until: int) -> threading.Lock:
        """A lock that is free when it is time: an event would do the same at several times the cost."""
        bed = threading.Lock()
        bed.acquire()
        heapq.heappush(self._sleepers, (until, next(self._order), bed))
        return bed

    def _wake_next(self) -> None:
        if not self._sleepers:
            self._all_ended.set()
            return
        until, _, bed = heapq.heappop(self._sleepers)
        self.now = max(self.now, until)
        bed.release()

    def run(self, *functions: Callable[[], object]) -> None:
        """All of them at once, from now on; they are begun in this order."""

        def live(function: Callable[[], object], bed: threading.Lock) -> None:
            bed.acquire()
            try:
                function()
            except BaseException as error:  # noqa: BLE001  (raised again below)
                self._errors.append(error)
            self._wake_next()

        self._all_ended.clear()
        threads = [
            threading.Thread(target=live, args=(function, self._lie_down(self.now)), daemon=True)
            for function in functions
        ]
        for thread in threads:
            thread.start()
        self._wake_next()
        assert self._all_ended.wait(60)
        for error in self._errors:
            raise error


def use(clock: VirtualTime, monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    """Emulated tiers go by this clock."""
    monkeypatch.setattr(emulated, "_now", clock.monotonic_ns)
    monkeypatch.setattr(emulated, "time", SimpleNamespace(sleep=clock.sleep))
    return clock
