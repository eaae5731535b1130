"""The ranks of a study, seen from whoever directs them; here as processes of this machine.

A crew does one task at a time, all ranks together. If a rank fails or dies, or stays suspended for longer than the stall limit, all are
ended at once and the rank's own error is raised. Who was suspended while ranks measured makes the result worthless: then the task is done, nobody is
ended, and SuspendedError is raised in place of the results.
"""

import selectors
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from tierscope import errors
from tierscope.bench.children import Children, how_it_ended
from tierscope.bench.liveness import RankWatch, noting_stops, refuse_suspended
from tierscope.bench.tasks import Task, measures
from tierscope.dataset.content import Pool
from tierscope.errors import StoppedError, SuspendedError, TierscopeError, UserError

MAX_LOCAL_RANKS = 512
_PROGRAM = "tierscope.bench.rank"
_GO_DELAY_NS = 2_000_000  # for everybody to be told in time, and so much more per rank
_GO_DELAY_PER_RANK_NS = 50_000

Progress = Callable[[int], None]


class Crew(Protocol):
    size: int

    def call(self, task: Task, progress: Progress) -> list[Any]:
        """Let all ranks do the task; their results in the order of ranks."""

    def close(self) -> None: ...


class LocalCrew(Children):
    """Ranks as child processes, each with a private socket. `variables`: of their environment, beside our own; then each is started afresh.

    `numbered`: the environment tells each its rank as launchers do, and so do the processes that it starts. `stall_seconds`: how long
    a rank may wait for storage, or be suspended; None: for ever. `pool`: random bytes that ranks will write; those that are alike share it.
    """

    def __init__(
        self,
        size: int,
        variables: Mapping[str, str] | None = None,
        numbered: bool = False,
        stall_seconds: float | None = None,
        pool: Pool | None = None,
    ) -> None:
        if size > MAX_LOCAL_RANKS:
            raise UserError(
                f"{size} ranks (system.nodes × system.ranks_per_node) exceed the limit of {MAX_LOCAL_RANKS} on one "
                "machine; start them on your cluster with 'mpirun -n … tierscope run …' or srun, or use fewer"
            )
        super().__init__()
        self.size = size
        self._stall_seconds = stall_seconds
        self._selector = selectors.DefaultSelector()
        try:
            self._start(dict(variables or {}), numbered, pool)
            came = {said[1] for said in self.greet()}
            if came != set(range(size)):
                raise TierscopeError(f"asked for ranks 0–{size - 1}, but {sorted(came)} came up")
        except BaseException:
            self.end()
            raise
        for rank, connection in enumerate(self._connections):
            self._selector.register(connection.fileno(), selectors.EVENT_READ, rank)

    def _start(self, variables: dict[str, str], numbered: bool, pool: Pool | None) -> None:
        arguments = (str(self.size), str(self._stall_seconds or 0), *map(str, pool or ()))
        if not variables and not numbered:
            self.start_alike(_PROGRAM, self.size, arguments)
            return
        for rank in range(self.size):
            own = {"RANK": str(rank), "WORLD_SIZE": str(self.size)} if numbered else {}
            self.start_afresh(_PROGRAM, rank, arguments, {**variables, **own})

    def end(self) -> None:
        self._selector.close()
        super().end()

    def call(self, task: Task, progress: Progress) -> list[Any]:
        try:
            return self._call(task, progress)
        except SuspendedError:
            raise
        except BaseException:
            self.end()
            raise

    def _call(self, task: Task, progress: Progress) -> list[Any]:
        watch = RankWatch(self.pids, self._stall_seconds)
        with noting_stops() as stops:
            for rank in range(self.size):
                self._send(rank, task)
            results, suspended = self._results(watch, progress)
            stopped = stops.take()
        if measures(task):
            refuse_suspended(sorted(suspended | watch.suspended), stopped or watch.frozen)
        return results

    def _results(self, watch: RankWatch, progress: Progress) -> tuple[list[Any], set[int]]:
        """Of all ranks; and those that were suspended, as they say themselves."""
        results: dict[int, Any] = {}
        suspended: set[int] = set()
        waiting: set[int] = set()
        together = True  # those that wait go on at the same instant, not as soon as they are told
        while len(results) < self.size:
            for key, _ in watch.wait(self._selector.select):
                rank = key.data
                watch.heard(rank)
                match self.receive(rank):
                    case ("progress", amount):
                        progress(amount)
                    case ("barrier", together):
                        waiting.add(rank)
                    case ("result", result, stopped):
                        results[rank] = result
                        suspended |= {rank} if stopped else set()
                    case other:
                        raise TierscopeError(f"rank {rank} sent {other!r}")
            if len(waiting) == self.size:
                waiting.clear()
                start = time.monotonic_ns() + (_GO_DELAY_NS + self.size * _GO_DELAY_PER_RANK_NS if together else 0)
                for rank in range(self.size):
                    self._send(rank, start)
        return [results[rank] for rank in range(self.size)], suspended

    def _send(self, rank: int, message: Any) -> None:
        try:
            self._connections[rank].send(message)
        except OSError:
            while True:  # what it still said, and then why it is gone
                self.receive(rank)

    def receive(self, rank: int) -> Any:
        try:
            message = self._connections[rank].recv()
        except (EOFError, OSError):
            raise StoppedError(
                f"rank {rank} {how_it_ended(self._processes[rank])}; finished runs are kept; rerun to continue"
            ) from None
        if message[0] == "error":
            _, kind, text, trace = message
            error_type = getattr(errors, kind, None)
            if error_type is None:
                raise TierscopeError(f"rank {rank} failed with {kind}: {text}\n{trace}")
            raise error_type(text)
        return message
