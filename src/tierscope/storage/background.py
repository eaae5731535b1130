"""What others do at the servers of emulated tiers while we run: operations without a client.

They come at random (Poisson), each with an exponential service whose mean is that of a typical operation of ours, and so many of
them that they take the configured share of the station's time. Whoever directs the run has one thread that lets them join the queues;
nobody sleeps for them. At a FIFO station they join as of the time they came, so a thread that wakes up late loses none of their work.
"""

import heapq
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tierscope.plan.stations import stripes
from tierscope.storage.emulated import Queues
from tierscope.storage.stations import Station, StationMap

_TICK_NS = 1_000_000  # between two looks
_now = time.monotonic_ns


@dataclass(frozen=True, slots=True)
class BackgroundLoad:
    """Others at a station: their services' mean."""

    station: Station
    service_ns: int


def loads_of(mapped: StationMap, read_bytes: int) -> list[BackgroundLoad]:
    """Every station that others use too; `read_bytes` is the size of a typical read of ours."""
    loads: dict[int, BackgroundLoad] = {}
    for view in (view for views in mapped.views for view in views or ()):
        parts = [part for part in stripes(0, read_bytes, view.stripe_count, view.stripe_size) if part]
        for station in view.metadata:
            loads[station.number] = BackgroundLoad(station, station.service_ns(0))
        for station in view.servers:
            loads[station.number] = BackgroundLoad(station, station.service_ns(read_bytes / max(1, len(parts))))
    return [load for load in loads.values() if load.station.background and load.service_ns]


class _Others:
    """Those of one station: when the next of them comes, and how long it takes."""

    def __init__(self, load: BackgroundLoad, seed: int, start: int) -> None:
        self._dice = random.Random(f"{seed}/background/{load.station.number}")
        self.station, self._mean = load.station, load.service_ns
        self.due, self.service = start, 0
        self.next()

    def next(self) -> None:
        self.due += round(self._dice.expovariate(self.station.background / self._mean))
        self.service = round(self._dice.expovariate(1 / self._mean))


class Arrivals:
    """Others' operations at all stations, in the order of their times. The same seed gives the same ones."""

    def __init__(self, queues: Queues, loads: Sequence[BackgroundLoad], seed: int, start: int) -> None:
        self._queues = queues
        self._others = [_Others(load, seed, start) for load in loads]
        self._looks = [(others.due, number) for number, others in enumerate(self._others)]
        heapq.heapify(self._looks)

    def join_until(self, now: int) -> int:
        """All that came until now join their queues; when the next one comes."""
        while self._looks[0][0] <= now:
            _, number = heapq.heappop(self._looks)
            others = self._others[number]
            if self._join(others):
                others.next()
                heapq.heappush(self._looks, (others.due, number))
            else:  # no room
                heapq.heappush(self._looks, (now + _TICK_NS, number))
        return self._looks[0][0]

    def _join(self, others: _Others) -> bool:
        if others.station.room:
            return self._queues.share(others.station, others.service) is not None
        self._queues.take(others.station.number, others.service, others.due)
        return True


class Background:
    """`with Background(...):` others are busy meanwhile. Without loads it does nothing."""

    def __init__(self, board: str, loads: Sequence[BackgroundLoad], seed: int) -> None:
        self._board, self._loads, self._seed = board, loads, seed
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def __enter__(self) -> Self:
        if self._loads:
            self._thread = threading.Thread(target=self._run, name="background", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread:
            self._thread.join()
        if self._error and not error:
            raise self._error

    def _run(self) -> None:
        try:
            self._play()
        except Exception as error:  # noqa: BLE001  (raised again by who started it)
            self._error = error

    def _play(self) -> None:
        queues = Queues(self._board)
        try:
            now = _now()
            arrivals = Arrivals(queues, self._loads, self._seed, now)
            coming = arrivals.join_until(now)
            while not self._stop.wait(max(coming - now, _TICK_NS) / 1e9):
                now = _now()
                coming = arrivals.join_until(now)
        finally:
            queues.close()
