"""How the ranks of a run keep in step, seen from one rank."""

import time
from collections.abc import Callable
from typing import Protocol

_PROGRESS_SECONDS = 0.2


class Group(Protocol):
    rank: int
    size: int

    def barrier(self) -> None:
        """Return when every rank has called it, at the same moment as far as the system allows."""

    def meet(self) -> None:
        """Return when every rank has called it, as soon as it can; for every step."""

    def progress(self, amount: int) -> None:
        """Tell whoever watches that so much more is done; cheap enough for every batch."""


class Alone:
    """A group of one: for tests and calibration."""

    rank = 0
    size = 1

    def barrier(self) -> None:
        pass

    def meet(self) -> None:
        pass

    def progress(self, amount: int) -> None:
        pass


class Throttle:
    """Adds amounts up and tells them a few times a second, so that telling does not disturb what is measured."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self._amount = 0
        self._told = time.monotonic()

    def add(self, amount: int) -> None:
        self._amount += amount
        if time.monotonic() - self._told >= _PROGRESS_SECONDS:
            self.flush()

    def flush(self) -> None:
        if self._amount:
            self._tell(self._amount)
        self._amount = 0
        self._told = time.monotonic()
