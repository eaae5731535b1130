"""Whoever watches a study being run: told what happens, decides how to show it."""

from typing import Protocol


class Watch(Protocol):
    def phase(self, title: str, total: int, unit: str) -> None:
        """A new stretch of work begins; `unit` is "bytes" or a plural noun."""

    def advance(self, amount: int) -> None: ...

    def note(self, text: str) -> None:
        """A line worth keeping."""


class Silent:
    def phase(self, title: str, total: int, unit: str) -> None:
        pass

    def advance(self, amount: int) -> None:
        pass

    def note(self, text: str) -> None:
        pass
