"""What several helpers answer that work together, each one line: none of them can go on without the others, so one that is gone or suspended ends the wait."""

import os
import select
import time
from collections.abc import Sequence

from tierscope.errors import StoppedError
from tierscope.helper_process import Helper, how_it_ended

_LOOK_AGAIN_SECONDS = 0.5
_ENDING_SECONDS = 5.0


def answers_of(helpers: Sequence[Helper], what: str, seconds: float) -> list[bytes]:
    """One line of each, in their order. `what` they do, for an error; whoever meets one closes them all."""
    until = time.monotonic() + seconds
    poll, waiting = select.poll(), {helper.output.fileno(): helper for helper in helpers}
    told = dict.fromkeys(waiting, b"")
    for fd in waiting:
        poll.register(fd, select.POLLIN)
    while waiting:
        for fd, _ in poll.poll(_LOOK_AGAIN_SECONDS * 1000):
            piece = os.read(fd, 1 << 16)
            if not piece:
                raise StoppedError(f"{what} failed: {_why_ended(waiting[fd])}")
            told[fd] += piece
            if piece.endswith(b"\n"):
                poll.unregister(fd)
                del waiting[fd]
        for helper in waiting.values():
            if _is_stopped(helper.process.pid):
                raise StoppedError(
                    f"{what} failed: process {helper.process.pid} was suspended (SIGSTOP, or a scheduler)"
                )
        if waiting and time.monotonic() > until:
            raise StoppedError(
                f"{what} failed: {len(waiting)} of {len(helpers)} processes did not answer within {seconds:g} s"
            )
    return list(told.values())


def _why_ended(helper: Helper) -> str:
    lines = helper.said().strip().splitlines()
    return lines[-1][:200] if lines else how_it_ended(helper.process.wait(_ENDING_SECONDS))


def _is_stopped(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as source:
            return source.read().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except (OSError, IndexError):
        return False
