"""Each key of an emulated tier changes what it should, and by how much: in virtual time, so exactly."""

import itertools
import math
import os
import random
import statistics
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.queue_ways import way  # noqa: F401  (a fixture)
from tests.virtual_time import VirtualTime, use
from tierscope.plan.stations import stations_of
from tierscope.spec.emulation import python_only
from tierscope.spec.study import System, Tier
from tierscope.storage import emulated
from tierscope.storage.access import READ_FLAGS, Punctuality
from tierscope.storage.emulated import Board, Emulated, Queues, varied
from tierscope.storage.stations import Station, TierStations, map_stations

MS = 1_000_000
START = 50 * MS
FILES = 8
FILE_BYTES = 8192


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> VirtualTime:
    return use(VirtualTime(START), monkeypatch)


@pytest.fixture
def folder(tmp_path: Path) -> str:
    for number in range(FILES):
        (tmp_path / f"{number:09d}.raw").write_bytes(bytes(FILE_BYTES))
    return str(tmp_path)


class Clients:
    """Threads of a study on one emulated tier; the first is on node 0, and so on."""

    def __init__(self, count: int, nodes: int, seed: int, keys: dict[str, Any]) -> None:
        tier = Tier(name="gfs", path="/t", emulate=True, **keys)
        mapped = map_stations(System(nodes=nodes, ranks_per_node=-(-count // nodes), tiers=(tier,)), seed)
        self.views = mapped.views[0] or ()
        self.board = Board(mapped.count)
        self.queues = [Queues(self.board.path) for _ in range(count)]
        self.accesses = [
            Emulated(self.views[number % nodes], queues, random.Random(f"{seed}/{number}"))
            for number, queues in enumerate(self.queues)
        ]

    def close(self) -> None:
        for queues in self.queues:
            queues.close()
        self.board.close()


Starter = Callable[..., Clients]


@pytest.fixture
def start() -> Iterator[Starter]:
    with ExitStack() as stack:

        def make(count: int, nodes: int = 1, seed: int = 1, **keys: Any) -> Clients:
            clients = Clients(count, nodes, seed, keys)
            stack.callback(clients.close)
            return clients

        yield make


def path(folder: str, number: int) -> str:
    return f"{folder}/{number % FILES:09d}.raw"


def opened(access: Emulated, name: str) -> None:
    access.close(access.open(name, READ_FLAGS))


def read(access: Emulated, fd: int, nbytes: int, offset: int = 0) -> None:
    access.preadv(fd, [memoryview(bytearray(nbytes))], offset)


def ends(clock: VirtualTime, *works: Callable[[], object]) -> list[float]:
    """Milliseconds after which each is over, all begun at once."""
    begun, found = clock.now, [0.0] * len(works)

    def timed(place: int, work: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            work()
            found[place] = (clock.now - begun) / MS

        return run

    clock.run(*(timed(place, work) for place, work in enumerate(works)))
    return found


def read_once(access: Emulated, name: str, nbytes: int) -> None:
    fd = access.open(name, READ_FLAGS)
    read(access, fd, nbytes)
    access.close(fd)


def read_ends(
    clock: VirtualTime, clients: Clients, folder: str, nbytes: int = 1000, files: Sequence[int] = (0,) * FILES
) -> list[float]:
    """Every client opens its file, which must take no time, and reads once."""
    pairs = zip(clients.accesses, files, strict=False)
    return ends(clock, *(partial(read_once, access, path(folder, file), nbytes) for access, file in pairs))


class TestMetadata:
    @pytest.mark.parametrize(("servers", "expected"), [(1, 400), (2, 200), (4, 100)])
    def test_servers_share_the_opens(
        self, clock: VirtualTime, start: Starter, folder: str, servers: int, expected: int
    ) -> None:
        clients = start(8, metadata_ops=1000, metadata_servers=servers)

        def work(number: int, access: Emulated) -> None:
            for file in range(50):
                opened(access, path(folder, number + file))

        found = ends(clock, *(partial(work, n, access) for n, access in enumerate(clients.accesses)))
        assert max(found) == pytest.approx(expected, rel=0.02)

    def test_a_file_belongs_to_the_server_of_its_number(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        clients = start(4, metadata_ops=1000, metadata_servers=2)
        pairs = list(zip(clients.accesses, (0, 2, 4, 1), strict=True))
        assert ends(clock, *(partial(opened, access, path(folder, file)) for access, file in pairs)) == [1, 2, 3, 1]
        assert ends(clock, *(partial(access.stat, path(folder, file)) for access, file in pairs)) == [1, 2, 3, 1]

    def test_latency_is_outside_the_queue(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        clients = start(3, metadata_ops=500, metadata_latency=0.01)
        works = [partial(opened, access, path(folder, 0)) for access in clients.accesses]
        assert ends(clock, *works) == [12, 14, 16]

    def test_latency_alone_is_of_opens_and_stats_and_of_no_read(
        self, clock: VirtualTime, start: Starter, folder: str
    ) -> None:
        access = start(1, metadata_latency=0.01).accesses[0]
        clock.run(partial(opened, access, path(folder, 0)))
        clock.run(partial(access.stat, path(folder, 0)))
        assert clock.now == START + 20 * MS
        assert access.punctuality == Punctuality(2)
        clock.run(lambda: read(access, access.open(path(folder, 0), READ_FLAGS), 10))
        assert clock.now == START + 30 * MS

    def test_variation_is_of_opens_only(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        access = start(1, metadata_ops=1000, metadata_variation=1.0, read_ops=1000).accesses[0]
        spans: dict[str, set[int]] = {"open": set(), "read": set()}

        def work() -> None:
            for _ in range(10):
                begun = clock.now
                fd = access.open(path(folder, 0), READ_FLAGS)
                spans["open"].add(clock.now - begun)
                begun = clock.now
                read(access, fd, 1)
                spans["read"].add(clock.now - begun)
                access.close(fd)

        clock.run(work)
        assert len(spans["open"]) == 10
        assert spans["read"] == {MS}


class TestLinks:
    """1000 bytes at 1 MB/s are 1 ms."""

    def test_a_node_has_its_own(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        assert read_ends(clock, start(4, nodes=4, node_bandwidth=1e6), folder) == [1, 1, 1, 1]
        assert read_ends(clock, start(4, nodes=2, node_bandwidth=1e6), folder) == [1, 1, 2, 2]

    def test_a_device_has_one_for_all_its_servers(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        keys = {"servers": 4, "bandwidth": 1e6, "device_bandwidth": 2e6}
        assert read_ends(clock, start(4, **keys), folder, files=range(4)) == [
            1,
            1,
            1.5,
            2,
        ]  # 4 servers of 1, but 2 in all
        own = start(4, nodes=4, device_shared_by=1, **keys)
        assert read_ends(clock, own, folder, files=range(4)) == [1, 1, 1, 1]

    def test_a_read_ends_when_the_slowest_of_all_is_done(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        rates = {"bandwidth": 4e6, "node_bandwidth": 4e6, "device_bandwidth": 4e6, "gateway_bandwidth": 4e6}
        assert read_ends(clock, start(1, **rates), folder) == [0.25]  # not the sum
        for slow in rates:
            assert read_ends(clock, start(1, **{**rates, slow: 0.5e6}, latency=0.01), folder) == [12]

    def test_opens_pass_none(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        access = start(1, node_bandwidth=1, device_bandwidth=1, gateway_bandwidth=1).accesses[0]
        clock.run(lambda: opened(access, path(folder, 0)))
        assert clock.now == START


class TestStripes:
    def test_four_servers_take_a_quarter(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        keys = {"servers": 4, "bandwidth": 1e6, "stripe_size": 512}
        assert read_ends(clock, start(1, **keys), folder, nbytes=4096) == [4.096]
        assert read_ends(clock, start(1, stripe_count=4, **keys), folder, nbytes=4096) == [1.024]
        assert read_ends(clock, start(1, stripe_count=2, **keys), folder, nbytes=4096) == [2.048]

    def test_a_small_read_takes_the_server_of_its_stripe(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        """Each server's operation counts, but only of those that hold a part."""
        access = start(1, servers=4, read_ops=1000, stripe_count=4, stripe_size=512).accesses[0]
        others = start(1, servers=4, read_ops=1000, stripe_count=4, stripe_size=512).accesses[0]
        fd = access.open(path(folder, 1), READ_FLAGS)
        for offset, servers in ((0, [1]), (512, [2]), (3 * 512, [0]), (500, [1, 2]), (100, [1, 2, 3, 0])):
            access._join_data(access._servers_of[fd], 2048 if len(servers) == 4 else 100, offset)
            free = [access.queues._words[station.number] for station in others._stations.servers]
            assert [number for number, time in enumerate(free) if time] == sorted(servers)
            for station in others._stations.servers:
                access.queues._words[station.number] = 0
        access.close(fd)

    def test_consecutive_files_begin_on_consecutive_servers(
        self, clock: VirtualTime, start: Starter, folder: str
    ) -> None:
        """Files 0 and 2 on servers (0, 1) and (2, 3): side by side. Files 0 and 1 meet on server 1."""
        keys = {"servers": 4, "bandwidth": 1e6, "stripe_count": 2, "stripe_size": 500}
        for files, expected in (((0, 2), [0.5, 0.5]), ((0, 1), [0.5, 1.0]), ((0, 4), [0.5, 1.0])):
            assert read_ends(clock, start(2, **keys), folder, files=files) == expected


class TestVariation:
    @pytest.mark.parametrize("variation", [0.1, 0.5, 1.0, 2.0])
    def test_factors_have_mean_one_and_the_stated_variation(self, variation: float) -> None:
        dice = random.Random(5)
        factors = [varied(10**9, variation, dice) / 1e9 for _ in range(20_000)]
        mean = statistics.fmean(factors)
        assert mean == pytest.approx(1.0, abs=5 * variation / math.sqrt(20_000))
        assert statistics.pstdev(factors) / mean == pytest.approx(variation, rel=0.1 if variation <= 1 else 0.3)
        logs = [math.log(factor) for factor in factors]  # the tail is a lognormal's
        assert statistics.pstdev(logs) == pytest.approx(math.sqrt(math.log1p(variation**2)), rel=0.03)

    def spans(
        self, clock: VirtualTime, access: Emulated, folder: str, count: int = 200, nbytes: int = 1000
    ) -> list[int]:
        found: list[int] = []

        def work() -> None:
            fd = access.open(path(folder, 0), READ_FLAGS)
            for _ in range(count):
                begun = clock.now
                read(access, fd, nbytes)
                found.append(clock.now - begun)
            access.close(fd)

        clock.run(work)
        return found

    def test_reads_vary_and_the_same_seed_gives_the_same_ones(
        self, clock: VirtualTime, start: Starter, folder: str
    ) -> None:
        keys = {"bandwidth": 1e6, "service_variation": 1.0}
        first, again, other = (self.spans(clock, start(1, seed=seed, **keys).accesses[0], folder) for seed in (1, 1, 2))
        assert first == again != other
        assert len(set(first)) > 190
        assert statistics.fmean(first) == pytest.approx(MS, rel=0.3)

    def test_servers_of_a_striped_read_vary_apart(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        """The slowest of four decides: with a long tail that takes far longer than a quarter."""
        keys = {"servers": 4, "bandwidth": 1e6, "stripe_size": 512, "stripe_count": 4}
        even, uneven = (
            sum(self.spans(clock, start(1, service_variation=variation, **keys).accesses[0], folder, nbytes=2048))
            for variation in (0.0, 1.0)
        )
        assert uneven > 1.6 * even

    def test_links_do_not_vary(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        keys = {"bandwidth": 1e9, "service_variation": 0.1, "node_bandwidth": 1e6, "gateway_bandwidth": 1e6}
        assert set(self.spans(clock, start(1, **keys).accesses[0], folder, 20)) == {MS}


class TestSharingStations:
    def test_two_clients_end_together_and_no_work_is_lost(
        self, clock: VirtualTime, start: Starter, folder: str
    ) -> None:
        keys = {"read_ops": 100}
        assert read_ends(clock, start(2, discipline="fifo", **keys), folder) == [10, 20]
        assert read_ends(clock, start(2, discipline="sharing", **keys), folder) == [20, 20]

    def test_a_latecomer_takes_half_from_then_on(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        one, two = start(2, metadata_ops=100, discipline="sharing").accesses

        def later() -> None:
            clock.sleep(0.005)
            two.stat(path(folder, 0))

        assert ends(clock, partial(one.stat, path(folder, 0)), later) == [15, 20]

    def test_a_saturated_station_serves_at_its_rate(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        clients = start(8, metadata_ops=1000, discipline="sharing")

        def work(access: Emulated) -> None:
            for _ in range(50):
                access.stat(path(folder, 0))

        found = ends(clock, *(partial(work, access) for access in clients.accesses))
        assert max(found) == pytest.approx(400, rel=0.01)
        assert min(found) == pytest.approx(400, rel=0.05)  # and fairly
        assert all(access.punctuality == Punctuality(50) for access in clients.accesses)

    def test_looks_are_few(
        self, clock: VirtualTime, start: Starter, folder: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each look is nearer to the end by a good part, down to the shortest sleep."""
        clients = start(8, metadata_ops=100, discipline="sharing")
        looks = itertools.count()
        look = Queues.look

        def counting(*arguments: Any) -> int | None:
            next(looks)
            return look(*arguments)

        monkeypatch.setattr(Queues, "look", counting)

        def work(access: Emulated) -> None:
            for _ in range(20):
                access.stat(path(folder, 0))

        clock.run(*(partial(work, access) for access in clients.accesses))
        assert next(looks) < 12 * 8 * 20

    def test_links_and_latency_stay_as_they_are(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        keys = {"read_ops": 1000, "discipline": "sharing", "node_bandwidth": 1e5, "latency": 0.001}
        assert read_ends(clock, start(2, **keys), folder) == [11, 21]  # the link is FIFO, and slower

    def test_stripes_are_shared_server_by_server(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        keys = {"servers": 2, "bandwidth": 1e6, "stripe_count": 2, "stripe_size": 500, "discipline": "sharing"}
        assert read_ends(clock, start(2, **keys), folder) == [1, 1]

    def test_a_client_that_is_gone_holds_up_nobody(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        clients = start(2, metadata_ops=100, discipline="sharing")
        gone, access = clients.accesses
        with pytest.raises(FileNotFoundError):
            gone.open(f"{folder}/0.gone", READ_FLAGS)  # it joined, and never looks again
        assert ends(clock, lambda: access.stat(path(folder, 0))) == [20]
        assert ends(clock, lambda: access.stat(path(folder, 0))) == [10]
        assert ends(clock, lambda: gone.stat(path(folder, 0))) == [10]  # nor does it wait for what failed

    def test_who_finds_no_room_waits_for_it(self, clock: VirtualTime) -> None:
        station = Station(0, 10 * MS, 0, room=2)
        board = Board(5)
        queues = [Queues(board.path) for _ in range(3)]
        accesses = [Emulated(TierStations((station,)), each) for each in queues]
        found = ends(clock, *(partial(access.stat, "/") for access in accesses))
        assert found[:2] == [20, 20]
        assert found[2] == pytest.approx(30, abs=1.1)
        for each in queues:
            each.close()
        board.close()

    def test_a_slow_disk_underneath_is_counted_as_late(
        self, clock: VirtualTime, start: Starter, folder: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        access = start(1, metadata_ops=1000, discipline="sharing").accesses[0]
        really = os.stat

        def slow_stat(name: str) -> os.stat_result:
            clock.sleep(0.005)
            return really(name)

        with monkeypatch.context() as patch:
            patch.setattr(os, "stat", slow_stat)
            clock.run(lambda: access.stat(path(folder, 0)))
        assert clock.now == START + 5 * MS
        assert access.punctuality == Punctuality(1, 1, 4 * MS)
        clock.run(lambda: access.stat(path(folder, 0)))
        assert access.punctuality == Punctuality(2, 1, 4 * MS)


def test_sharing_is_real_between_threads(start: Starter, folder: str) -> None:
    """Without any fake: two threads at once take two services each."""
    clients = start(2, metadata_ops=50, discipline="sharing")
    begun = emulated._now()
    spans: list[int] = []

    def work(access: Emulated) -> None:
        access.stat(path(folder, 0))
        spans.append(emulated._now() - begun)

    threads = [threading.Thread(target=work, args=(access,)) for access in clients.accesses]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert min(spans) >= 30 * MS  # both: neither was served first
    assert max(spans) >= 40 * MS


class TestTerms:
    """1000 bytes at 1 MB/s are 1 ms."""

    def test_a_server_makes_up_for_its_credit(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        """Three services at once after a pause, then one after another; and never more than the credit."""
        found = read_ends(clock, start(6, bandwidth=1e6, credit=0.003), folder)
        assert found == [0, 0, 0, 1, 2, 3]

    def test_portions_are_handed_out_at_the_beginning_of_a_period(
        self, clock: VirtualTime, start: Starter, folder: str
    ) -> None:
        """Three services in each period of 3 ms: as many as one after another, each at its period's beginning."""
        ended = read_ends(clock, start(7, bandwidth=1e6, quota_period=0.003), folder)
        assert len(set(ended)) == 3
        assert max(ended.count(end) for end in ended) == 3
        assert 3 < max(ended) - min(ended) <= 6

    def test_nobody_was_late_for_what_was_made_up_for(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        access = start(1, bandwidth=1e6, credit=1.0).accesses[0]
        clock.run(lambda: read_once(access, path(folder, 0), 1000))
        assert access.punctuality == Punctuality(0)

    def test_opens_queue_among_the_reads(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        clients = start(2, bandwidth=1e6, open_bytes=2000, read_ops=1000)
        works = [partial(opened, access, path(folder, 0)) for access in clients.accesses]
        assert ends(clock, *works) == [2, 4]
        stats = [partial(access.stat, path(folder, 0)) for access in clients.accesses]
        assert ends(clock, *stats) == [2, 4]

    def test_a_stream_takes_its_time_whoever_else_reads(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        assert read_ends(clock, start(3, stream_bandwidth=1e6), folder) == [1, 1, 1]
        assert read_ends(clock, start(3, stream_bandwidth=1e6, bandwidth=2e6), folder) == [1, 1, 1.5]

    def test_hashed_files_lie_where_the_model_has_them(self, clock: VirtualTime, start: Starter, folder: str) -> None:
        system = System(tiers=(Tier(name="gfs", path="/t", emulate=True, bandwidth=1e6, servers=2, layout="hash"),))
        queues = stations_of(system, 1).tiers[0]
        servers = [queues.server_of(0, file) for file in range(FILES)]
        assert servers != [file % 2 for file in range(FILES)]
        found = read_ends(clock, start(FILES, bandwidth=1e6, servers=2, layout="hash"), folder, files=range(FILES))
        assert max(found) == max(servers.count(server) for server in (0, 1))

    @pytest.mark.parametrize(
        "keys",
        [
            {"bandwidth": 1e6, "credit": 1.0},
            {"bandwidth": 1e6, "quota_period": 0.1},
            {"bandwidth": 1e6, "open_bytes": 10},
            {"file_open_ops": 10.0},
            {"bandwidth": 1e6, "servers": 2, "layout": "hash"},
        ],
    )
    def test_only_python_has_them(self, start: Starter, keys: dict[str, Any]) -> None:
        tier = Tier(name="gfs", path="/t", emulate=True, **keys)
        assert python_only(tier) in keys
        assert not any(view.plain for view in start(1, **keys).views)
