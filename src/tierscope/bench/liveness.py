"""Who was suspended: a run during which anybody was is no measurement, and a rank that stays suspended must not hang the study.

Seen are

- a process that was stopped and goes on (SIGSTOP, Ctrl-Z, `scontrol suspend`), however shortly: it gets SIGCONT, and counts them (`Stops`). Costs nothing;
- a machine that slept: CLOCK_BOOTTIME went on meanwhile, CLOCK_MONOTONIC did not;
- a rank that is stopped now, or a worker process of its loader, or whose control group is frozen: its director looks at those it does not hear of
  (`RankWatch`), ten times within the stall limit. Looks are counted, not seconds: a director that was stopped itself has not watched;
- a director that was frozen for more than half a second without a signal (`docker pause`): it waits for at most a second at a time, and one that took longer was no
  wait for a processor (the kernel counts those).

Not seen: a freeze under MPI, of less than half a second, or of a single rank or worker between two looks; a virtual machine that is paused together with its clock. Whoever sends SIGCONT to a process that runs makes us repeat a run.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from tierscope.errors import StoppedError, SuspendedError

T = TypeVar("T")

MOST_ATTEMPTS = 3  # at a run, each of them suspended
_LOOKS = 10  # within the stall limit
_TICK_SECONDS = 1.0
_SLEPT_SECONDS = 0.01  # less cannot matter
_FROZEN_SECONDS = 0.5
_MOST_WORKERS = 1000  # of a rank, that are looked at
_CGROUPS = "/sys/fs/cgroup"
_ADVICE = "finished runs are kept; rerun the same command to continue (--stall-limit sets the limit)"


class Stops:
    """Whether this process was stopped, or its machine slept, since it was last asked."""

    def __init__(self, slept: Callable[[], float] | None = None) -> None:
        self._slept = slept or _seconds_asleep
        self._continued, self._before = 0, self._slept()

    def note(self, _number: int = 0, _frame: object = None) -> None:
        """A handler of SIGCONT."""
        self._continued += 1

    def take(self) -> bool:
        """Asked once per task: what happened before it began, while this process waited for it, counts as well."""
        asleep, continued = self._slept(), self._continued
        stopped = continued > 0 or asleep - self._before > _SLEPT_SECONDS
        self._continued, self._before = 0, asleep
        return stopped


def note_stops() -> Stops:
    """From now on. Only a main thread can; elsewhere stops go unnoticed."""
    stops = Stops()
    with suppress(ValueError):
        signal.signal(signal.SIGCONT, stops.note)
        signal.siginterrupt(signal.SIGCONT, False)  # as it would be without a handler
    return stops


@contextmanager
def noting_stops() -> Iterator[Stops]:
    """The same, for a while."""
    if threading.current_thread() is not threading.main_thread():
        yield Stops()
        return
    before = signal.getsignal(signal.SIGCONT)
    try:
        yield note_stops()
    finally:
        signal.signal(signal.SIGCONT, signal.SIG_DFL if before is None else before)


def _seconds_asleep() -> float:
    """Since boot. Both clocks are read at one moment: a try in which we were interrupted does not count."""
    while True:
        start = time.clock_gettime(time.CLOCK_MONOTONIC)
        total = time.clock_gettime(time.CLOCK_BOOTTIME)
        if time.clock_gettime(time.CLOCK_MONOTONIC) - start < _SLEPT_SECONDS / 10:
            return total - start


class RankWatch:
    """A director's eye on its ranks during one task. `limit`: how long one may be suspended; None: for ever.

    Costs a wake-up of the director per second, and a look at /proc per limit/10 and rank that said nothing meanwhile.
    """

    def __init__(
        self,
        pids: Sequence[int],
        limit: float | None,
        noun: str = "rank",
        advice: str = _ADVICE,
        clock: Callable[[], float] = time.monotonic,
        is_suspended: Callable[[int], bool] | None = None,
        waited: Callable[[], float] | None = None,
    ) -> None:
        self._pids, self._limit, self._noun, self._advice, self._clock = pids, limit, noun, advice, clock
        self._is_suspended, self._waited = is_suspended or suspended_now, waited or _waited_for_processor
        self._between = _TICK_SECONDS if limit is None else limit / _LOOKS
        self.tick = min(_TICK_SECONDS, self._between)
        self._heard: set[int] = set()
        self._looks: dict[int, int] = {}
        self.suspended: set[int] = set()  # ranks that were, at some look
        self.frozen = False  # the director itself
        self._next = clock() + self._between
        self._waited_before = self._waited()

    def heard(self, rank: int) -> None:
        """It said something."""
        self._heard.add(rank)

    def wait(self, ready: Callable[[float], T]) -> T:
        """What `ready`, which waits for at most so many seconds, returns; ranks that are suspended for too long end it."""
        start = self._clock()
        answer = ready(self.tick)
        now = self._clock()
        if now - start - self.tick > _FROZEN_SECONDS:
            self.frozen |= now - start - self.tick - (self._waited() - self._waited_before) > _FROZEN_SECONDS
        if now >= self._next:
            self._look()
            self._next, self._waited_before = now + self._between, self._waited()
        return answer

    def _look(self) -> None:
        silent = [rank for rank in range(len(self._pids)) if rank not in self._heard]
        self._heard.clear()
        self._looks = {rank: self._looks.get(rank, 0) + 1 for rank in silent if self._is_suspended(self._pids[rank])}
        self.suspended |= self._looks.keys()
        for rank, looks in self._looks.items():
            if self._limit is not None and looks >= _LOOKS:
                raise suspended_too_long(f"{self._noun} {rank}", self._pids[rank], self._limit, self._advice)


def suspended_too_long(who: str, pid: int, limit: float, advice: str = _ADVICE) -> StoppedError:
    worker = suspended_process(pid) or pid
    named = f"{who} (pid {pid})" if worker == pid else f"a worker process (pid {worker}) of {who}"
    return StoppedError(f"{named} was suspended for {limit:g} s (SIGSTOP, or a scheduler); {advice}")


def refuse_suspended(ranks: Sequence[int], director: bool, noun: str = "rank") -> None:
    """A task is done, and who was suspended meanwhile: its times mean nothing."""
    if len(ranks) > 1:
        raise SuspendedError(f"{noun} {ranks[0]} and {len(ranks) - 1} more were suspended")
    if ranks or director:
        raise SuspendedError(f"{noun} {ranks[0]} was suspended" if ranks else "the command itself was suspended")


def until_undisturbed(what: str, measure: Callable[[], T], tell: Callable[[str], None]) -> T:
    """What is measured while nobody is suspended; every attempt at which somebody was is told of and thrown away."""
    for attempt in range(1, MOST_ATTEMPTS + 1):
        try:
            return measure()
        except SuspendedError as error:
            if attempt == MOST_ATTEMPTS:
                raise StoppedError(
                    f"{what}: {error} in each of {MOST_ATTEMPTS} attempts; find out what suspends it, then rerun the same command"
                ) from None
            tell(f"{what}: {error}; discarded and repeated")
    raise AssertionError("unreachable")


def suspended_now(pid: int) -> bool:
    """A rank, or a process that works for it."""
    return suspended_process(pid) is not None


def suspended_process(pid: int) -> int | None:
    """It, or the first of its descendants, that is stopped by a signal or a tracer, or in a frozen control group. Gone is not suspended."""
    return next((process for process in _with_descendants(pid) if _is_suspended(process)), None)


def _with_descendants(pid: int) -> Iterator[int]:
    """Where the kernel lists children; elsewhere only itself."""
    waiting = [pid]
    for _ in range(_MOST_WORKERS):
        if not waiting:
            return
        process = waiting.pop(0)
        yield process
        with suppress(OSError, ValueError):
            for thread in os.listdir(f"/proc/{process}/task"):
                waiting += map(int, _text(f"/proc/{process}/task/{thread}/children").split())


def _is_suspended(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", "rb") as source:
            state = source.read().rpartition(b")")[2].split()[0]
        return state in (b"T", b"t") or _is_frozen(pid)
    except (OSError, IndexError, ValueError):
        return False


def _is_frozen(pid: int) -> bool:
    """As far as this host's control groups can be read: version 2, and the freezer of version 1."""
    for controllers, path in _groups(pid):
        if controllers == "freezer":
            if _text(f"{_CGROUPS}/freezer{path}/freezer.state").startswith("FR"):
                return True
        elif not controllers:
            facts = _facts(_text(f"{_CGROUPS}{path}/cgroup.events") or _text(f"{_CGROUPS}/unified{path}/cgroup.events"))
            if facts.get("frozen") == "1":
                return True
    return False


def _groups(pid: int) -> list[tuple[str, str]]:
    """Its control groups: (controllers, path); no controllers: version 2."""
    with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="surrogateescape") as source:
        words = [line.rstrip("\n").split(":", 2) for line in source]
    return [(controllers, path) for _, controllers, path in words]


def _facts(text: str) -> Mapping[str, str]:
    return dict(line.split(" ", 1) for line in text.splitlines() if " " in line)


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as source:
            return source.read()
    except OSError:
        return ""


def _waited_for_processor() -> float:
    """Seconds in which this thread could have run and did not; 0 where the kernel does not say."""
    words = _text(f"/proc/self/task/{threading.get_native_id()}/schedstat").split()
    return int(words[1]) / 1e9 if len(words) > 1 else 0.0
