"""How long calls show where they are: as the commands do on a terminal, as a bar below the cell in a notebook. Standard output is left alone."""

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from html import escape
from typing import Any

from tierscope.cli.progress import holding_notes, watching
from tierscope.units import about_bytes
from tierscope.watch import Watch

_SECONDS = 0.2  # between two updates of a cell


def shown(progress: bool) -> AbstractContextManager[Watch]:
    """`progress`: False says nothing."""
    return _in_notebook() if progress and in_notebook() else watching(quiet=not progress)


def in_notebook() -> bool:
    """Whether a front end shows HTML here: a kernel runs us, not a terminal."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


@contextmanager
def _in_notebook() -> Iterator[Watch]:
    cell = CellProgress()
    try:
        with holding_notes(cell) as held:
            yield held
    finally:
        cell.close()


class CellProgress:
    """A bar and the notes below a notebook's cell; the bar goes when the work is done."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._notes: list[str] = []
        self._title, self._total, self._unit, self._done = "", 0, "", 0
        self._begun = self._drawn = 0.0

    def phase(self, title: str, total: int, unit: str) -> None:
        self._title, self._total, self._unit, self._done = title, total, unit, 0
        self._begun = time.monotonic()
        self._draw(self._bar())

    def advance(self, amount: int) -> None:
        self._done += amount
        if time.monotonic() - self._drawn > _SECONDS:
            self._draw(self._bar())

    def note(self, text: str) -> None:
        self._notes.append(text)
        self._draw(self._bar())

    def close(self) -> None:
        """Only the notes stay."""
        if self._handle is not None:
            self._draw("")

    def _bar(self) -> str:
        if not self._title:
            return ""
        passed = time.monotonic() - self._begun
        left = f", {passed / self._done * (self._total - self._done):.0f} s left" if self._done and passed > 1 else ""
        amount = (
            f"{about_bytes(self._done)} of {about_bytes(self._total)}"
            if self._unit == "bytes"
            else f"{self._done} of {self._total} {self._unit}"
        )
        return f'<div>{escape(self._title)} <progress max="{self._total or 1}" value="{self._done}"></progress> {escape(amount + left)}</div>'

    def _draw(self, bar: str) -> None:
        from IPython.display import HTML, display  # noqa: PLC0415  (only in a notebook)

        self._drawn = time.monotonic()
        content = HTML(bar + "".join(f"<div>{escape(note)}</div>" for note in self._notes))
        if self._handle is None:
            self._handle = display(content, display_id=True)
        else:
            self._handle.update(content)
