"""Others at emulated servers: how much of their time they take, and that they come and go with the run."""

import gc
import os
import random
import statistics
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.accesses import wait_until
from tests.nightly import first_in_ci
from tests.queue_ways import way  # noqa: F401  (a fixture)
from tests.virtual_time import VirtualTime, use
from tierscope.spec.study import System, Tier
from tierscope.storage import background
from tierscope.storage.background import Arrivals, Background, BackgroundLoad, loads_of
from tierscope.storage.emulated import Board, Emulated, Queues
from tierscope.storage.stations import Station, StationMap, map_stations

pytestmark = pytest.mark.whole

MS = 1_000_000
START = 50 * MS
DISCIPLINES = pytest.mark.parametrize("discipline", ["fifo", "sharing"])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    return use(VirtualTime(START), monkeypatch)


def mapped(**keys: Any) -> StationMap:
    return map_stations(System(ranks_per_node=8, tiers=(Tier(name="gfs", path="/t", emulate=True, **keys),)), 1)


@pytest.fixture
def queues_on() -> Iterator[Callable[[StationMap], Callable[[], Queues]]]:
    with ExitStack() as stack:

        def make(stations: StationMap) -> Callable[[], Queues]:
            board = Board(stations.count)
            stack.callback(board.close)

            def one() -> Queues:
                queues = Queues(board.path)
                stack.callback(queues.close)
                return queues

            return one

        yield make


QueuesOn = Callable[[StationMap], Callable[[], Queues]]


class Shares(NamedTuple):
    """Of a server's time, in virtual time: ours, and theirs as they came."""

    ours: float
    theirs: float


def shares(clock: VirtualTime, stations: StationMap, new: Callable[[], Queues], clients: int, each: int) -> Shares:
    """With clients that always have one stat under way at a metadata server of 1000/s."""
    view = (stations.views[0] or ())[0]
    left, brought = clients, 0
    begun = clock.now

    def work(access: Emulated) -> None:
        nonlocal left
        for _ in range(each):
            access.stat("/")
        left -= 1

    def others() -> None:
        nonlocal brought
        queues = Weighing(new())
        arrivals = Arrivals(queues, loads_of(stations, 1000), 7, clock.now)  # type: ignore[arg-type]
        while left:
            clock.sleep(max(arrivals.join_until(clock.now) - clock.now, MS) / 1e9)
        brought = queues.work

    accesses = [Emulated(view, new(), random.Random(number)) for number in range(clients)]
    clock.run(*(partial(work, access) for access in accesses), others)
    elapsed = clock.now - begun
    return Shares(clients * each * MS / elapsed, brought / elapsed)


class Weighing:
    """Queues, and how much was brought to them."""

    def __init__(self, queues: Queues) -> None:
        self._queues, self.work = queues, 0

    def take(self, number: int, service: int, arrived: int) -> int:
        self.work += service
        return self._queues.take(number, service, arrived)

    def share(self, station: Station, service: int) -> tuple[int, int] | None:
        self.work += service
        return self._queues.share(station, service)


@DISCIPLINES
@pytest.mark.parametrize(("share", "clients"), first_in_ci([(0.5, 6), (0.2, 3), (0.8, 3), (0.5, 1)], 2))
def test_others_take_their_share_of_a_busy_server(
    clock: VirtualTime, queues_on: QueuesOn, discipline: str, share: float, clients: int
) -> None:
    stations = mapped(metadata_ops=1000, discipline=discipline, background=share)
    found = shares(clock, stations, queues_on(stations), clients, 3000 // clients)
    assert found.ours + found.theirs == pytest.approx(1, abs=0.01)  # it is never idle, and nothing is lost
    assert found.theirs == pytest.approx(share, rel=0.05)
    assert found.ours == pytest.approx(1 - share, rel=0.12)


@DISCIPLINES
def test_without_others_all_of_it_is_ours(clock: VirtualTime, queues_on: QueuesOn, discipline: str) -> None:
    stations = mapped(metadata_ops=1000, discipline=discipline)
    assert loads_of(stations, 1000) == []
    view, new = (stations.views[0] or ())[0], queues_on(stations)
    access = Emulated(view, new())
    clock.run(lambda: [access.stat("/") for _ in range(100)])
    assert clock.now == START + 100 * MS


class Noted:
    """Queues that note what joins them."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int, int]] = []
        self.full = False

    def take(self, number: int, service: int, arrived: int = 0) -> int:
        self.taken.append((number, service, arrived))
        return 0

    def share(self, station: Station, service: int) -> tuple[int, int] | None:
        if self.full:
            return None
        self.taken.append((station.number, service, 0))
        return 0, 0


def noted(*loads: BackgroundLoad, seed: int = 1) -> tuple[Noted, Arrivals]:
    queues = Noted()
    return queues, Arrivals(queues, loads, seed, START)  # type: ignore[arg-type]


FIFO = BackgroundLoad(Station(0, 1e6, 0, background=0.25), MS)
SHARED = BackgroundLoad(Station(1, 1e6, 0, background=0.5, room=10), MS)


def test_they_come_at_random_with_exponential_services() -> None:
    queues, arrivals = noted(FIFO)
    arrivals.join_until(START + 40_000 * MS)
    pauses = [later[2] - sooner[2] for sooner, later in zip(queues.taken, queues.taken[1:], strict=False)]
    services = [service for _, service, _ in queues.taken]
    assert statistics.fmean(pauses) == pytest.approx(4 * MS, rel=0.05)
    assert statistics.pstdev(pauses) == pytest.approx(4 * MS, rel=0.05)
    assert statistics.fmean(services) == pytest.approx(MS, rel=0.05)
    assert statistics.pstdev(services) == pytest.approx(MS, rel=0.05)


def test_the_same_seed_gives_the_same_ones_however_often_one_looks() -> None:
    whole, arrivals = noted(FIFO, SHARED)
    arrivals.join_until(START + 100 * MS)
    bit, arrivals = noted(FIFO, SHARED)
    for step in range(1, 101):
        assert arrivals.join_until(START + step * MS) > START + step * MS
    assert bit.taken == whole.taken
    other, arrivals = noted(FIFO, SHARED, seed=2)
    arrivals.join_until(START + 100 * MS)
    assert other.taken != whole.taken


def test_who_finds_no_room_comes_later() -> None:
    queues, arrivals = noted(SHARED)
    queues.full = True
    assert arrivals.join_until(START + 50 * MS) == START + 51 * MS
    assert queues.taken == []
    queues.full = False
    arrivals.join_until(START + 51 * MS)
    expected, arrivals = noted(SHARED)
    arrivals.join_until(START + 51 * MS)
    assert queues.taken == expected.taken  # none is lost


def test_their_operations_are_as_long_as_ours() -> None:
    keys = {"metadata_ops": 100, "servers": 4, "bandwidth": 1e6, "read_ops": 1000, "background": 0.5}
    metadata, *servers = loads_of(mapped(**keys), 4000)
    assert metadata.service_ns == 10 * MS
    assert [load.service_ns for load in servers] == [5 * MS] * 4
    _, *striped = loads_of(mapped(**keys, stripe_count=4, stripe_size=1000), 4000)
    assert [load.service_ns for load in striped] == [2 * MS] * 4  # a quarter of the bytes, but an operation each


def test_links_have_no_others() -> None:
    stations = mapped(metadata_ops=1, node_bandwidth=1, device_bandwidth=1, gateway_bandwidth=1, background=0.5)
    assert len(loads_of(stations, 1)) == 1


def test_nodes_that_share_a_server_share_its_others() -> None:
    tier = Tier(name="gfs", path="/t", emulate=True, read_ops=10, servers=3, device_shared_by=2, background=0.5)
    assert len(loads_of(map_stations(System(nodes=4, tiers=(tier,)), 1), 1)) == 6


class TestThread:
    """For real."""

    def test_it_comes_and_goes_with_the_run(self) -> None:
        gc.collect()  # what earlier tests left is not ours
        before = threading.active_count(), len(os.listdir("/proc/self/fd"))
        stations = mapped(metadata_ops=1000, background=0.5)
        board = Board(stations.count)
        queues = Queues(board.path)
        with Background(board.path, loads_of(stations, 1), 1):
            assert wait_until(lambda: bool(queues._words[0]))
        moved = queues._words[0]
        assert threading.active_count() == before[0]
        assert queues._words[0] == moved
        queues.close()
        board.close()
        assert (threading.active_count(), len(os.listdir("/proc/self/fd"))) == before

    def test_without_loads_there_is_no_thread(self) -> None:
        with Background("/nowhere", [], 1):
            assert not any(thread.name == "background" for thread in threading.enumerate())

    def test_what_ended_it_is_raised(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError), Background(str(tmp_path / "gone"), [FIFO], 1):
            assert wait_until(lambda: not any(thread.name == "background" for thread in threading.enumerate()))
        with pytest.raises(KeyError), Background(str(tmp_path / "gone"), [FIFO], 1):  # the run's own error comes first
            raise KeyError

    def test_it_looks_a_thousand_times_a_second_at_most(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looks = []
        really = Arrivals.join_until

        def counting(arrivals: Arrivals, now: int) -> int:
            looks.append(now)
            return really(arrivals, now)

        monkeypatch.setattr(background.Arrivals, "join_until", counting)
        stations = mapped(metadata_ops=100_000, background=0.9)
        board = Board(stations.count)
        with Background(board.path, loads_of(stations, 1), 1):
            assert wait_until(lambda: len(looks) > 20)
        board.close()
        assert looks[20] - looks[0] >= 20 * MS
