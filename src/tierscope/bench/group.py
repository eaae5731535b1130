"""How the ranks of a run keep in step, seen from one rank."""

from typing import Protocol


class Group(Protocol):
    rank: int
    size: int

    def barrier(self) -> None:
        """Return when every rank has called it, at the same moment as far as the system allows."""

    def progress(self, amount: int) -> None:
        """Tell whoever watches that so much more is done."""


class Alone:
    """A group of one: for tests and calibration."""

    rank = 0
    size = 1

    def barrier(self) -> None:
        pass

    def progress(self, amount: int) -> None:
        pass
