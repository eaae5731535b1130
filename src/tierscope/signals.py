"""Signals that end a program which is not prepared for them: one line, nothing left behind, and exit code 3.

A signal that was ignored when we were started (`nohup`, a shell's background job) stays ignored, and one that a library handles stays with it.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

# All whose default is to end the process, but for those that a fault of ours raises (SIGSEGV, SIGABRT, …: nobody could go on), and SIGPIPE
# and SIGXFSZ, which Python ignores: then the write fails.
ENDING: frozenset[int] = frozenset(
    {
        *(signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM),
        *(signal.SIGVTALRM, signal.SIGPROF, signal.SIGXCPU, signal.SIGIO, signal.SIGPWR, signal.SIGSTKFLT),
        *range(signal.SIGRTMIN, signal.SIGRTMAX + 1),
    }
)
_TO_THE_END: set[int] = set()  # that we ignore since we were stopped
_USUAL = {signal.SIGINT, signal.SIGTERM}  # how people and schedulers stop us: nothing to explain


class Interrupted(KeyboardInterrupt):
    """Python's own, once it has passed through an exec() as imports have them, ends `python -m` by a signal, whatever the exit code."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


def stopped_by(cause: KeyboardInterrupt | int | None) -> str:
    """What to begin a line with: "stopped", and by what if that is unusual."""
    number = cause.number if isinstance(cause, Interrupted) else cause
    if not isinstance(number, int) or number in _USUAL:
        return "stopped"
    try:
        return f"stopped by {signal.Signals(number).name}"
    except ValueError:
        return f"stopped by signal {number}"


def raise_on_signals() -> None:
    """From now on `Interrupted` is raised in the main thread; once, so that tidying up is left alone."""
    for number in heeded():
        signal.signal(number, _interrupt)


def heeded() -> list[int]:
    """Those that would end us, or that we handle already."""
    ours = (signal.SIG_DFL, signal.default_int_handler, _interrupt, _ignore)
    return [number for number in sorted(ENDING) if number in _TO_THE_END or signal.getsignal(number) in ours]


def _interrupt(number: int, _frame: object) -> None:
    for other in heeded():
        signal.signal(other, _ignore)
    raise Interrupted(number)


def _ignore(_number: int, _frame: object) -> None:
    """Not SIG_IGN, which processes that we start would inherit."""


def ignore_to_the_end(is_done: bool = False) -> None:
    """For who was stopped, or is done, and starts nothing any more: before an interpreter is gone it hands handlers of its own back to the system, and a signal would end it."""
    for number in heeded():
        if is_done or signal.getsignal(number) is _ignore:
            signal.signal(number, signal.SIG_IGN)
            _TO_THE_END.add(number)


@contextmanager
def undisturbed() -> Iterator[None]:
    """A signal does not stop the tidying up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _ignore) for number in heeded()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
