"""Progress on stderr: a bar with an ETA on a terminal, nothing otherwise."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from tierscope.cli.terminal import console
from tierscope.errors import UserError
from tierscope.watch import Silent, Watch


@contextmanager
def watching(quiet: bool) -> Iterator[Watch]:
    """A refusal is one line: notes are held until work begins, and not said where the command is refused before that."""
    if quiet:
        yield Silent()
        return
    with _bars() if sys.stderr.isatty() else nullcontext(PlainProgress()) as shown, holding_notes(shown) as held:
        yield held


@contextmanager
def holding_notes(shown: Watch) -> Iterator[Watch]:
    """The same for whatever shows them."""
    held = HeldNotes(shown)
    try:
        yield held
    except UserError:
        raise
    except BaseException:
        held.say()
        raise
    held.say()


class HeldNotes:
    """Passes everything on, but notes only from the first phase on."""

    def __init__(self, watch: Watch) -> None:
        self._watch, self._notes, self._begun = watch, list[str](), False

    def say(self) -> None:
        self._begun = True
        for text in self._notes:
            self._watch.note(text)
        self._notes.clear()

    def phase(self, title: str, total: int, unit: str) -> None:
        self.say()
        self._watch.phase(title, total, unit)

    def advance(self, amount: int) -> None:
        self._watch.advance(amount)

    def note(self, text: str) -> None:
        self._notes.append(text)
        if self._begun:
            self.say()


class PlainProgress(Silent):
    """Where there is no terminal: what is worth keeping, as plain lines."""

    def note(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")


@contextmanager
def _bars() -> Iterator[Watch]:
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    from tierscope.units import about_bytes  # noqa: PLC0415

    class Bars:
        def __init__(self, progress: Progress) -> None:
            self._progress = progress
            self._task: TaskID | None = None
            self._unit = ""

        def phase(self, title: str, total: int, unit: str) -> None:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._unit = unit
            self._task = self._progress.add_task(title, total=total, amount=self._amount(0, total))

        def _amount(self, done: float, total: float) -> str:
            if self._unit == "bytes":
                return f"{about_bytes(done)} of {about_bytes(total)}"
            return f"{done:.0f} of {total:.0f} {self._unit}"

        def advance(self, amount: int) -> None:
            if self._task is None:
                return
            task = self._progress.tasks[0]
            done = task.completed + amount
            self._progress.update(self._task, advance=amount, amount=self._amount(done, task.total or 0))

        def note(self, text: str) -> None:
            self._progress.console.print(text, highlight=False, markup=False)

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[amount]}"),
        TextColumn("ETA"),
        TimeRemainingColumn(),
    )
    bars = Progress(*columns, console=console(sys.stderr), transient=True, redirect_stdout=False, redirect_stderr=False)
    with bars as progress:
        yield Bars(progress)
