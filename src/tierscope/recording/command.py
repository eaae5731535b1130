"""Run a command as if we were not there: its streams, its signals, its exit code."""

import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress

from tierscope.errors import CommandError
from tierscope.signals import ENDING

FORWARDED = {*ENDING, signal.SIGWINCH, signal.SIGCONT}
_HELD = {*FORWARDED, signal.SIGCHLD}
_LOOK_AGAIN_SECONDS = 0.2  # a thread of a library may have taken the signal that says the command has ended
_FROM_KERNEL = 0x80  # SI_KERNEL: from the terminal (Ctrl-C, Ctrl-\, its size), which the command gets too; or an alarm


def find_program(name: str) -> str:
    """The file that a shell would run."""
    program = shutil.which(name)
    if program:
        return program
    beside = os.sep in name
    folders = [""] if beside else os.environ.get("PATH", os.defpath).split(os.pathsep)
    there = next((path for folder in folders if os.path.exists(path := os.path.join(folder, name))), None)
    if there is None or not name:
        raise CommandError(
            f"{name or 'an empty name'}: no such command; check the spelling, or use its path", missing=True
        )
    reason = "is a directory" if os.path.isdir(there) else "is not executable; run 'chmod +x' on it"
    raise CommandError(f"{there}: {reason}")


@contextmanager
def holding_signals() -> Iterator[None]:
    """Signals wait for `launch`. To be entered before libraries start threads: a thread without this would take them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def launch(program: str, command: Sequence[str], environment: Mapping[str, str], output_to_stderr: bool = False) -> int:
    """The command's exit code, 128 + N when signal N ended it. Signals that are sent to us reach it."""
    if any(signal.getsignal(number) != signal.SIG_IGN for number in signal.sigpending() & ENDING):
        raise KeyboardInterrupt
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # or the kernel would not keep the exit code
    with holding_signals():
        pid = _spawn(program, command, environment, output_to_stderr)
        code = _wait(pid)
        while signal.sigtimedwait(FORWARDED, 0):
            pass  # what came before its end was meant for it
    return code


def _spawn(program: str, command: Sequence[str], environment: Mapping[str, str], output_to_stderr: bool) -> int:
    """SIGPIPE and SIGXFSZ get their defaults back, since Python ignores them; whether our caller did so too, nobody can tell."""
    try:
        return os.posix_spawn(
            program,
            list(command),
            dict(environment),
            file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)] if output_to_stderr else [],
            setsigmask=signal.pthread_sigmask(signal.SIG_BLOCK, []) - _HELD,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
    except OSError as error:
        raise CommandError(f"{program}: cannot be run: {error.strerror}") from None


def _wait(pid: int) -> int:
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        arrived = signal.sigtimedwait(_HELD, _LOOK_AGAIN_SECONDS)
        if arrived and _is_for_the_command(arrived):
            with suppress(OSError):  # it may have become another user's
                os.kill(pid, arrived.si_signo)


def _is_for_the_command(arrived: signal.struct_siginfo) -> bool:
    """An alarm may have been set before we were started (`perl -e 'alarm 9; exec @ARGV'`): it was meant for the command."""
    if arrived.si_signo not in FORWARDED:
        return False
    return arrived.si_code != _FROM_KERNEL or arrived.si_signo == signal.SIGALRM
