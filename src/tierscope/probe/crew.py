"""The processes of the probe, seen from whoever directs them. They never outlive their director."""

import os
import socket
import subprocess
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from tierscope import errors
from tierscope.bench.crew import Children
from tierscope.errors import StoppedError, TierscopeError
from tierscope.helper_process import ONE_THREAD, helper_command, helper_environment
from tierscope.probe.work import ProbeJob, ProbeTimes

_START_SECONDS = 120
_STOP_SECONDS = 5
_GO_DELAY_NS = 2_000_000  # for everybody to be told in time, and so much more for each
_GO_DELAY_EACH_NS = 50_000


class ProbeCrew(Children):
    """So many processes, each with a private socket, in a process group of its own: Ctrl-C reaches the director only."""

    def __init__(self, size: int) -> None:
        super().__init__()
        try:
            for _ in range(size):
                self._start()
            deadline = time.monotonic() + _START_SECONDS
            self.files_each = min(self._greeting(number, deadline) for number in range(size))
        except BaseException:
            self._kill()
            raise

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        command = helper_command("tierscope.probe.worker", str(theirs.fileno()), str(os.getpid()))
        environment = helper_environment(ONE_THREAD)
        connection = Connection(ours.detach())
        self._connections.append(connection)
        with theirs:
            self._processes.append(
                subprocess.Popen(
                    command, pass_fds=[theirs.fileno()], env=environment, stdin=subprocess.DEVNULL, process_group=0
                )
            )

    def _greeting(self, number: int, deadline: float) -> int:
        if not self._connections[number].poll(max(0.0, deadline - time.monotonic())):
            raise StoppedError(f"process {number} did not start within {_START_SECONDS} s; is the machine overloaded?")
        found: int = self._receive(number)[1]
        return found

    def run(self, jobs: Sequence[ProbeJob]) -> list[ProbeTimes]:
        """A job for each of the first processes: they prepare, begin together, and all end."""
        try:
            for number, job in enumerate(jobs):
                self._send(number, job)
            for number in range(len(jobs)):
                self._expect(number, "ready")
            start = time.monotonic_ns() + _GO_DELAY_NS + len(jobs) * _GO_DELAY_EACH_NS
            for number in range(len(jobs)):
                self._send(number, start)
            return [self._expect(number, "done")[1] for number in range(len(jobs))]
        except BaseException:
            self._kill()
            raise

    def _send(self, number: int, message: Any) -> None:
        try:
            self._connections[number].send(message)
        except OSError:
            self._receive(number)  # what it still said, or that it is gone
            raise StoppedError(f"process {number} has closed its connection; run again") from None

    def _expect(self, number: int, kind: str) -> Any:
        message = self._receive(number)
        if message[0] != kind:
            raise TierscopeError(f"process {number} sent {message!r} instead of {kind}")
        return message

    def _receive(self, number: int) -> Any:
        try:
            message = self._connections[number].recv()
        except (EOFError, OSError):
            raise StoppedError(f"process {number} of the probe was killed or has died; run again") from None
        if message[0] == "error":
            raise getattr(errors, message[1])(message[2])
        return message
