"""Run a command as if we were not there: its streams, its signals, its exit code."""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tierscope.errors import CommandError

FORWARDED = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_LOOK_AGAIN_SECONDS = 0.2  # a thread of a library may have taken the signal that says the command has ended
_FROM_TERMINAL = 0x80  # SI_KERNEL: Ctrl-C, which the command gets from the terminal too


def find_program(name: str) -> str:
    """The file that a shell would run."""
    found = shutil.which(name)
    if found:
        return found
    beside = os.sep in name
    folders = [""] if beside else os.environ.get("PATH", os.defpath).split(os.pathsep)
    there = next((path for folder in folders if os.path.exists(path := os.path.join(folder, name))), None)
    if there is None or not name:
        raise CommandError(
            f"{name or 'an empty name'}: no such command; check its spelling, or give its path", missing=True
        )
    reason = "is a directory" if os.path.isdir(there) else "is not executable; 'chmod +x' makes it so"
    raise CommandError(f"{there}: {reason}")


@contextmanager
def holding_signals() -> Iterator[None]:
    """Signals wait for `launch`. To be entered before libraries start threads: a thread without this would take them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*FORWARDED, signal.SIGCHLD})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def launch(program: str, command: Sequence[str], environment: Mapping[str, str], output_to_stderr: bool = False) -> int:
    """The command's exit code, 128 + N when signal N ended it. Signals that are sent to us reach it."""
    if signal.sigpending() & FORWARDED:
        raise KeyboardInterrupt
    ours = {*FORWARDED, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ours)
    try:
        pid = os.posix_spawn(
            program,
            list(command),
            dict(environment),
            file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)] if output_to_stderr else [],
            setsigmask=before - ours,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores these
        )
        return _wait(pid, ours)
    except OSError as error:
        raise CommandError(f"{program}: cannot be run: {error.strerror}") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _wait(pid: int, signals: set[signal.Signals]) -> int:
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        arrived = signal.sigtimedwait(signals, _LOOK_AGAIN_SECONDS)
        if arrived and arrived.si_signo in FORWARDED and arrived.si_code != _FROM_TERMINAL:
            os.kill(pid, arrived.si_signo)
