"""A study shown while it runs: a live view on a terminal, a line now and then in a log, rows in a CSV; all from one state (`measure/live.py`).

One thread of the director looks at the state, twice a second at most, and hands it to whatever shows it. Nothing that fails to be shown stops the study.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

from tierscope.cli.progress import holding_notes
from tierscope.cli.terminal import console
from tierscope.watch import Silent, Watch

if TYPE_CHECKING:
    from tierscope.measure.live import LiveState, Tracker
    from tierscope.measure.live_csv import LiveCsv

TERMINAL_SECONDS, CSV_SECONDS, LOG_SECONDS = 0.5, 1.0, 5.0  # between two looks
LINE_SECONDS = 30.0  # between two lines of a log
_PATIENCE_SECONDS = 5.0


class Screen(Protocol):
    """Where figures are shown."""

    def show(self, state: "LiveState") -> None: ...

    def note(self, text: str) -> None: ...


class NoScreen:
    def show(self, state: "LiveState") -> None:
        pass

    def note(self, text: str) -> None:
        pass


class LogScreen:
    """Plain lines on stderr: one for every finished run, and one now and then while a run goes on. `clock`: seconds."""

    def __init__(self, tracker: "Tracker", clock: Callable[[], float] = time.monotonic) -> None:
        self._tracker, self._clock = tracker, clock
        self._said = clock()
        self._finished: int | None = None

    def show(self, state: "LiveState") -> None:
        from tierscope.cli.live_view import finished_line, plain_line  # noqa: PLC0415

        now = self._clock()
        if self._finished is None or not state.runs:
            self._finished = state.finished if state.runs else None
        elif state.finished > self._finished:
            self._finished, self._said = state.finished, now
            self.note(finished_line(state, self._tracker.last_seconds))
        elif now - self._said >= LINE_SECONDS and (line := plain_line(state)) is not None:
            self._said = now
            self.note(line)

    def note(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


@contextmanager
def _terminal() -> Iterator[Screen]:
    from rich.live import Live  # noqa: PLC0415

    from tierscope.cli.live_view import live_view, speaks_unicode  # noqa: PLC0415

    screen = console(sys.stderr)
    unicode = speaks_unicode(screen)

    class TerminalScreen:
        def __init__(self, live: Live) -> None:
            self._live = live

        def show(self, state: "LiveState") -> None:
            self._live.update(live_view(state, unicode), refresh=True)

        def note(self, text: str) -> None:
            screen.print(text, highlight=False, markup=False)

    with Live(
        console=screen,
        auto_refresh=False,
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
        vertical_overflow="crop",
    ) as live:
        yield TerminalScreen(live)


class LiveWatch(Silent):
    """Tells the tracker of staging, and the screen of notes."""

    def __init__(self, tracker: "Tracker", screen: Screen) -> None:
        self._tracker, self._screen, self._stages = tracker, screen, False

    def phase(self, title: str, total: int, unit: str) -> None:  # noqa: ARG002  (there is one kind of staging)
        self._stages = unit == "bytes"
        if self._stages:
            self._tracker.stage(total)
        else:
            self._tracker.end_staging()

    def advance(self, amount: int) -> None:
        if self._stages:
            self._tracker.staged(amount)

    def note(self, text: str) -> None:
        self._screen.note(text)


class Ticker:
    """The thread that looks. `look` is called at once in the end, too, so that the last run is not lost."""

    def __init__(self, tracker: "Tracker", screen: Screen, kept: "LiveCsv | None") -> None:
        self._tracker, self._screen, self._kept = tracker, screen, kept
        self._csv_at = -CSV_SECONDS
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="live view", daemon=True)

    def look(self) -> None:
        state = self._tracker.state()
        try:
            self._screen.show(state)
        except OSError:  # the terminal is gone; the study is not
            self._screen = NoScreen()
        if self._kept is not None and state.seconds - self._csv_at >= CSV_SECONDS - TERMINAL_SECONDS / 2:
            self._csv_at = state.seconds
            try:
                self._kept.add(state)
            except OSError as error:
                self._kept = None
                self._screen.note(f"warning: --live-csv: no more figures are kept: {error.strerror}")

    def _run(self) -> None:
        while not self._over.wait(self._tracker.tick_seconds):
            self.look()

    @contextmanager
    def ticking(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._over.set()
            self._thread.join(_PATIENCE_SECONDS)
            if not self._thread.is_alive():
                self.look()


def on_terminal() -> bool:
    """One that can move its cursor."""
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") not in ("dumb", "unknown", "")


@contextmanager
def following(quiet: bool, csv_path: str | None, study: str) -> "Iterator[tuple[Watch, Tracker | None]]":
    """What a study tells while it runs. Without anybody to show it to, ranks note nothing."""
    if quiet and csv_path is None:
        yield Silent(), None
        return
    from tierscope.measure.live import Tracker  # noqa: PLC0415
    from tierscope.measure.live_csv import LiveCsv  # noqa: PLC0415

    shows = not quiet and on_terminal()
    tracker = Tracker(TERMINAL_SECONDS if shows else CSV_SECONDS if csv_path else LOG_SECONDS)
    with ExitStack() as stack:
        kept = LiveCsv(csv_path, study) if csv_path is not None else None
        if kept is not None:
            stack.callback(kept.close)
        screen: Screen = NoScreen()
        if shows:
            screen = stack.enter_context(_terminal())
        elif not quiet:
            screen = LogScreen(tracker)
        watch = stack.enter_context(holding_notes(LiveWatch(tracker, screen)))
        stack.enter_context(Ticker(tracker, screen, kept).ticking())
        yield watch, tracker
