"""The processes of the probe, seen from whoever directs them. They never outlive their director."""

import time
from collections.abc import Sequence
from typing import Any

from tierscope import errors
from tierscope.bench.children import Children
from tierscope.bench.liveness import RankWatch, noting_stops, refuse_suspended
from tierscope.bench.stall import USUAL_SECONDS
from tierscope.errors import StoppedError, SuspendedError, TierscopeError
from tierscope.probe.work import WRITE, ProbeJob, ProbeTimes

_GO_DELAY_NS = 2_000_000  # for everybody to be told in time, and so much more for each
_GO_DELAY_EACH_NS = 50_000


class ProbeCrew(Children):
    """So many processes, each with a private socket, in a process group of its own: Ctrl-C reaches the director only."""

    def __init__(self, size: int, stall_seconds: float | None = USUAL_SECONDS) -> None:
        super().__init__("process")
        self._stall_seconds = stall_seconds
        self._watch = RankWatch((), None)
        try:
            self.start_alike("tierscope.probe.worker", size, ())
            self.files_each = min(said[1] for said in self.greet())
        except BaseException:
            self.end()
            raise

    def run(self, jobs: Sequence[ProbeJob]) -> list[ProbeTimes]:
        """A job for each of the first processes: they prepare, begin together, and all end. Whoever was suspended meanwhile makes their times worthless."""
        try:
            return self._run(jobs)
        except SuspendedError:
            raise
        except BaseException:
            self.end()
            raise

    def _run(self, jobs: Sequence[ProbeJob]) -> list[ProbeTimes]:
        self._watch = RankWatch(self.pids, self._stall_seconds, self._noun, "run again")
        with noting_stops() as stops:
            for number, job in enumerate(jobs):
                self._send(number, job)
            for number in range(len(jobs)):
                self._expect(number, "ready")
            start = time.monotonic_ns() + _GO_DELAY_NS + len(jobs) * _GO_DELAY_EACH_NS
            for number in range(len(jobs)):
                self._send(number, start)
            done = [self._expect(number, "done") for number in range(len(jobs))]
            stopped = stops.take()
        suspended = {number for number, (_, _, stopped) in enumerate(done) if stopped}
        if any(job.kind != WRITE for job in jobs):
            refuse_suspended(sorted(suspended | self._watch.suspended), stopped or self._watch.frozen, self._noun)
        return [times for _, times, _ in done]

    def _send(self, number: int, message: Any) -> None:
        try:
            self._connections[number].send(message)
        except OSError:
            self.receive(number)  # what it still said, or that it is gone
            raise StoppedError(f"process {number} closed its connection; rerun the command") from None

    def _expect(self, number: int, kind: str) -> Any:
        while not self._watch.wait(self._connections[number].poll):
            pass
        message = self.receive(number)
        if message[0] != kind:
            raise TierscopeError(f"process {number} sent {message!r} instead of {kind}")
        return message

    def receive(self, number: int) -> Any:
        try:
            message = self._connections[number].recv()
        except (EOFError, OSError):
            raise StoppedError(f"process {number} of the probe died or was killed; rerun the command") from None
        if message[0] == "error":
            raise getattr(errors, message[1])(message[2])
        return message
