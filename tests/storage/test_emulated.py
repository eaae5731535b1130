"""Queues in virtual time: mostly on a clock that only moves when somebody sleeps, and then for real."""

import gc
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.accesses import wait_until
from tierscope.native import queues as native_queues
from tierscope.spec.study import Dataset, Tier
from tierscope.storage import emulated
from tierscope.storage.access import READ_FLAGS, Punctuality
from tierscope.storage.emulated import Board, Emulated, Queues, file_number, server_index
from tierscope.storage.files import DatasetFiles
from tierscope.storage.stations import Station, TierStations

pytestmark = pytest.mark.whole

MS = 1_000_000
START = 50 * MS


@pytest.fixture(scope="module", params=["swap", "locks"], autouse=True)
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """With the native library and without it."""
    if request.param == "swap" and not native_queues.available():
        pytest.skip("the native library is not built")
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "locks":
            patch.setattr(native_queues, "available", lambda: False)
            patch.setenv("TIERSCOPE_LIBRARY", "")  # for child processes
        yield request.param


class FakeClock:
    """Stands still until somebody sleeps. With `parallel` set it does not move at all: all arrive at one instant."""

    def __init__(self) -> None:
        self.now = START
        self.sleeps: list[int] = []
        self.parallel = False

    def monotonic_ns(self) -> int:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(round(seconds * 1e9))
        if not self.parallel:
            self.now += round(seconds * 1e9)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(emulated, "_now", fake.monotonic_ns)
    monkeypatch.setattr(emulated, "time", SimpleNamespace(sleep=fake.sleep))
    return fake


@pytest.fixture
def board() -> Iterator[Board]:
    made = Board(4)
    yield made
    made.close()


@pytest.fixture
def new_queues(board: Board) -> Iterator[Callable[[], Queues]]:
    """Handles on one board, one per thread that a test imagines."""
    made: list[Queues] = []

    def make() -> Queues:
        made.append(Queues(board.path))
        return made[-1]

    yield make
    for queues in made:
        queues.close()


METADATA = Station(0, 2 * MS, 0)
SERVERS = (Station(1, 1 * MS, 1000), Station(2, 1 * MS, 1000))  # 1 ms and 1 µs per byte
GATEWAY = Station(3, 0, 3000)


def view(
    metadata: Station | None = METADATA,
    servers: tuple[Station, ...] = SERVERS,
    gateway: Station | None = None,
    latency_ns: int = 0,
) -> TierStations:
    return TierStations((metadata,) if metadata else (), servers, (gateway,) if gateway else (), latency_ns)


@pytest.fixture
def file(tmp_path: Path) -> str:
    for number in range(4):
        (tmp_path / f"{number:09d}.raw").write_bytes(bytes(range(256)) * 8)
    return str(tmp_path / "000000000.raw")


def read(access: Emulated, fd: int, nbytes: int = 1000, offset: int = 0) -> bytes:
    buffer = bytearray(nbytes)
    got = access.preadv(fd, [memoryview(buffer)], offset)
    return bytes(buffer[:got])


class TestQueue:
    def test_each_joins_behind_the_last(self, clock: FakeClock, new_queues: Callable[[], Queues]) -> None:
        clients = [new_queues() for _ in range(5)]
        ends = [client.join(SERVERS[0], 500) for client in clients]
        assert ends == [START + (k + 1) * 1_500_000 for k in range(5)]

    def test_an_idle_queue_starts_at_once(self, clock: FakeClock, new_queues: Callable[[], Queues]) -> None:
        queues = new_queues()
        assert queues.join(METADATA, 0) == START + 2 * MS
        clock.now += 100 * MS
        assert queues.join(METADATA, 0) == clock.now + 2 * MS  # idle time is lost, not saved up

    def test_stations_do_not_wait_for_each_other(self, clock: FakeClock, new_queues: Callable[[], Queues]) -> None:
        queues = new_queues()
        assert queues.join(SERVERS[0], 0) == START + MS
        assert queues.join(SERVERS[1], 0) == START + MS
        assert queues.join(METADATA, 0) == START + 2 * MS
        assert queues.join(SERVERS[0], 0) == START + 2 * MS

    @given(st.lists(st.tuples(st.integers(0, 10 * MS), st.integers(0, 5000)), max_size=30))
    def test_fifo_for_any_arrivals(self, arrivals: list[tuple[int, int]]) -> None:
        """Lindley's recursion, against a clock of its own (fixtures outlive Hypothesis's examples)."""
        now, board = START, Board(2)
        queues = Queues(board.path)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(emulated, "_now", lambda: now)
            end = 0
            for pause, nbytes in arrivals:
                now += pause
                end = max(now, end) + SERVERS[0].service_ns(nbytes)
                assert queues.join(SERVERS[0], nbytes) == end
        queues.close()
        board.close()

    def test_closing_leaves_no_descriptor(self) -> None:
        gc.collect()  # what earlier tests left is not ours
        before = len(list(Path("/proc/self/fd").iterdir()))
        board = Board(3)
        Queues(board.path).close()
        board.close()
        assert len(list(Path("/proc/self/fd").iterdir())) == before


class TestEmulated:
    def test_an_operation_lasts_its_service(
        self, clock: FakeClock, new_queues: Callable[[], Queues], file: str
    ) -> None:
        access = Emulated(view(), new_queues())
        fd = access.open(file, READ_FLAGS)
        assert clock.now == START + 2 * MS
        assert read(access, fd, 500, offset=1) == (bytes(range(256)) * 8)[1:501]
        assert clock.now == START + 2 * MS + 1_500_000
        access.close(fd)
        assert clock.now == START + 2 * MS + 1_500_000  # a close takes no slot
        assert access.stat(file).st_size == 2048
        assert clock.now == START + 4 * MS + 1_500_000  # a stat takes one
        assert clock.sleeps == [2 * MS, 1_500_000, 2 * MS]
        assert access.punctuality == Punctuality(3)

    def test_writing_costs_what_reading_costs(
        self, clock: FakeClock, new_queues: Callable[[], Queues], tmp_path: Path
    ) -> None:
        access, other = Emulated(view(latency_ns=MS), new_queues()), Emulated(view(latency_ns=MS), new_queues())
        path = tmp_path / "000000001.raw.part"  # of the second server, as the file that it will be
        fd = access.create(str(path))
        assert clock.now == START + 2 * MS
        assert access.pwrite(fd, memoryview(b"abcd" * 125), 0) == 500
        assert clock.now == START + 2 * MS + 2_500_000
        assert access.pwrite(fd, memoryview(b"e" * 1000), 500) == 1000
        access.close(fd)
        assert clock.sleeps == [2 * MS, 2_500_000, 3 * MS]
        assert access.punctuality == Punctuality(3)
        assert path.read_bytes() == b"abcd" * 125 + b"e" * 1000
        clock.parallel, before = True, len(clock.sleeps)
        for client in (access, other):
            client.pwrite(client.create(str(path)), memoryview(bytes(1000)), 0)
        assert clock.sleeps[before:] == [2 * MS, 3 * MS, 4 * MS, 5 * MS]  # each waits for its turn, opens and writes

    def test_writing_costs_what_the_rates_of_writing_say(
        self, clock: FakeClock, new_queues: Callable[[], Queues], tmp_path: Path
    ) -> None:
        """5 µs for a byte and 3 ms for a write, in place of 1 µs and 1 ms; reads and opens stay as they are."""
        server = Station(1, MS, 1000, write_per_op_ns=3 * MS, write_per_byte_ns=5000)
        access = Emulated(view(servers=(server,)), new_queues())
        fd = access.create(str(tmp_path / "000000001.raw"))
        access.pwrite(fd, memoryview(bytes(1000)), 0)
        access.close(fd)
        fd = access.open(str(tmp_path / "000000001.raw"), os.O_RDONLY)
        access.preadv(fd, [memoryview(bytearray(1000))], 0)
        assert clock.sleeps == [2 * MS, 8 * MS, 2 * MS, 2 * MS]

    def test_a_sync_is_one_way_there_and_back(
        self, clock: FakeClock, new_queues: Callable[[], Queues], tmp_path: Path
    ) -> None:
        """What was written has had its time, and the disk underneath must not make any."""
        for latency_ns, sleeps in ((MS, [MS]), (0, [])):
            access = Emulated(view(metadata=None, latency_ns=latency_ns), new_queues())
            fd = access.create(str(tmp_path / "000000001.raw"))
            before = len(clock.sleeps)
            access.sync(fd)
            access.close(fd)
            assert clock.sleeps[before:] == sleeps

    def test_a_file_that_is_not_finished_belongs_to_the_servers_of_the_finished_one(self) -> None:
        tier = Tier(name="lfs", path="/lfs")
        dataset = Dataset(format="npz", num_files_train=100, record_length_bytes=4)
        files = DatasetFiles.of(tier, "/out", 0, dataset, 42, ".npz", copies=True)
        assert [file_number(files.unfinished(file)) for file in (0, 7, 42)] == [0, 7, 42]

    def test_clients_of_one_server_wait_for_their_turn(
        self, clock: FakeClock, new_queues: Callable[[], Queues], file: str
    ) -> None:
        clients = [Emulated(view(metadata=None), new_queues()) for _ in range(4)]
        clock.parallel = True
        for client in clients:
            read(client, client.open(file, READ_FLAGS), 1000)
        assert clock.sleeps == [2 * MS, 4 * MS, 6 * MS, 8 * MS]

    def test_opens_and_stats_queue_together(
        self, clock: FakeClock, new_queues: Callable[[], Queues], file: str
    ) -> None:
        clients = [Emulated(view(), new_queues()) for _ in range(4)]
        clock.parallel = True
        for number, client in enumerate(clients):
            if number % 2:
                client.stat(file)
            else:
                client.close(client.open(file, READ_FLAGS))
        assert clock.sleeps == [2 * MS, 4 * MS, 6 * MS, 8 * MS]

    def test_servers_work_side_by_side(self, clock: FakeClock, new_queues: Callable[[], Queues], file: str) -> None:
        access = Emulated(view(metadata=None), new_queues())
        clock.parallel = True
        for name in ("000000000", "000000001", "000000002", "000000003"):
            read(access, access.open(file.replace("000000000", name), READ_FLAGS), 1000)
        assert clock.sleeps == [2 * MS, 2 * MS, 4 * MS, 4 * MS]

    def test_a_gateway_is_shared_by_servers(
        self, clock: FakeClock, new_queues: Callable[[], Queues], file: str
    ) -> None:
        access = Emulated(view(metadata=None, gateway=GATEWAY), new_queues())
        clock.parallel = True
        for name in ("000000000", "000000001"):
            read(access, access.open(file.replace("000000000", name), READ_FLAGS), 1000)
        assert clock.sleeps == [3 * MS, 6 * MS]  # 2 ms of each server, but 3 ms of the one gateway

    def test_a_fast_gateway_does_not_limit(self, clock: FakeClock, new_queues: Callable[[], Queues], file: str) -> None:
        access = Emulated(view(gateway=Station(3, 0, 1.0)), new_queues())
        fd = access.open(file, READ_FLAGS)
        read(access, fd, 1000)
        assert clock.sleeps[-1] == 2 * MS

    def test_latency_is_outside_the_queue(self, clock: FakeClock, new_queues: Callable[[], Queues], file: str) -> None:
        clients = [Emulated(view(metadata=None, latency_ns=10 * MS), new_queues()) for _ in range(3)]
        clock.parallel = True
        for client in clients:
            read(client, client.open(file, READ_FLAGS), 1000)
        assert clock.sleeps == [12 * MS, 14 * MS, 16 * MS]  # nobody waits for another's latency

    def test_latency_alone(self, clock: FakeClock, new_queues: Callable[[], Queues], file: str) -> None:
        access = Emulated(view(metadata=None, servers=(), latency_ns=10 * MS), new_queues())
        fd = access.open(file, READ_FLAGS)
        assert clock.sleeps == []  # latency is of reads
        read(access, fd)
        assert clock.sleeps == [10 * MS]

    def test_what_no_rate_limits_neither_waits_nor_is_late(
        self, clock: FakeClock, new_queues: Callable[[], Queues], file: str
    ) -> None:
        access = Emulated(view(metadata=None, servers=()), new_queues())
        fd = access.open(file, READ_FLAGS)
        read(access, fd)
        access.close(fd)
        access.stat(file)
        assert clock.sleeps == []
        assert access.punctuality.late_ops == 0

    def test_a_slow_disk_underneath_is_counted_as_late(
        self, clock: FakeClock, new_queues: Callable[[], Queues], file: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        access = Emulated(view(), new_queues())
        fd = access.open(file, READ_FLAGS)
        really = os.preadv

        def slow_preadv(fd: int, buffers: list[memoryview], offset: int) -> int:
            clock.now += 5 * MS
            return really(fd, buffers, offset)

        with monkeypatch.context() as patch:
            patch.setattr(os, "preadv", slow_preadv)
            sleeps = len(clock.sleeps)
            read(access, fd, 1000)
        assert len(clock.sleeps) == sleeps
        assert (access.punctuality.late_ops, access.punctuality.late_ns) == (
            1,
            3 * MS,
        )  # 5 ms of work in a service of 2 ms
        read(access, fd, 1000)
        assert access.punctuality.late_ops == 1

    def test_a_missing_file_is_the_system_s_own_error(
        self, clock: FakeClock, new_queues: Callable[[], Queues], file: str
    ) -> None:
        access = Emulated(view(), new_queues())
        with pytest.raises(FileNotFoundError):
            access.open(file + ".gone", READ_FLAGS)

    def test_a_reused_descriptor_belongs_to_the_new_file(
        self, clock: FakeClock, new_queues: Callable[[], Queues], file: str
    ) -> None:
        queues = new_queues()
        access = Emulated(view(metadata=None), queues)
        first = access.open(file, READ_FLAGS)
        access.close(first)
        second = access.open(file.replace("000000000", "000000001"), READ_FLAGS)
        assert second == first
        read(access, second, 1000)
        assert queues.join(SERVERS[0], 0) == clock.now + MS  # server 0 was left alone
        access.close(second)


class TestServerIndex:
    @given(st.integers(0, 10**12), st.integers(1, 64), st.integers(1, 10))
    def test_consecutive_files_are_dealt_out_evenly(self, first: int, servers: int, rounds: int) -> None:
        found = [server_index(f"/t/000001/{first + k:09d}.npz", servers) for k in range(servers * rounds)]
        assert sorted(found) == sorted(list(range(servers)) * rounds)

    def test_only_the_file_s_own_name_counts(self) -> None:
        assert server_index("/node7/seed42/000000005.raw", 4) == server_index("/other/000000005.tfrecord", 4) == 1

    def test_names_without_numbers_spread_and_stay(self) -> None:
        names = [f"/t/{chr(97 + k % 26)}{chr(97 + k // 26)}" for k in range(200)]
        found = [server_index(name, 4) for name in names]
        assert found == [server_index(name, 4) for name in names]
        assert min(found.count(server) for server in range(4)) > 20


@given(st.text(max_size=30).filter(lambda text: "\0" not in text), st.integers(1, 10**6))
def test_c_finds_the_same_server(path: str, servers: int) -> None:
    if not native_queues.available():
        pytest.skip("the native library is not built, or not meant here")
    for name in (path, f"/t/{path}.npz", f"/t/7/{path}12{path}", f"/t/{servers * 10**20}{path}"):
        assert native_queues.server_index(name, servers) == server_index(name, servers)


CHILD = """
import sys, time
from tierscope.storage import emulated
from tierscope.storage.emulated import Emulated, Queues, sharpen_sleep
from tierscope.storage.stations import Station, TierStations
path, count, service = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
queues = Queues(path)
"""


@pytest.fixture
def start_child() -> Iterator[Callable[[str, str, int, int], "subprocess.Popen[str]"]]:
    children: list[subprocess.Popen[str]] = []

    def start(script: str, path: str, count: int, service: int) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", CHILD + script, path, str(count), str(service)]
        children.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return children[-1]

    yield start
    for child in children:
        child.kill()
        child.communicate()


Starter = Callable[[str, str, int, int], "subprocess.Popen[str]"]


def free_time(queues: Queues, number: int) -> int:
    """When the station will be free, in a future that the clock does not reach."""
    return queues.join(Station(number, 0, 0), 0)


class TestSharing:
    FUTURE = Station(0, 10**15, 0)  # from here on only sums decide, not the clock

    def test_processes_lose_no_update(
        self, board: Board, new_queues: Callable[[], Queues], start_child: Starter
    ) -> None:
        queues = new_queues()
        start = queues.join(self.FUTURE, 0)
        script = "print('ready', flush=True); sys.stdin.readline()\n"
        script += "for _ in range(count): queues.join(Station(0, service, 0), 0)\n"
        services = [3, 5, 7]
        children = [start_child(script, board.path, 2000, service) for service in services]
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()
        assert [child.wait(30) for child in children] == [0, 0, 0]
        assert free_time(queues, 0) == start + 2000 * sum(services)

    def test_threads_lose_no_update(self, new_queues: Callable[[], Queues]) -> None:
        handles = [new_queues() for _ in range(4)]
        start = handles[0].join(self.FUTURE, 0)

        def work(queues: Queues, service: int) -> None:
            for _ in range(1000):
                queues.join(Station(0, service, 0), 0)

        threads = [threading.Thread(target=work, args=(queues, 2 + k)) for k, queues in enumerate(handles)]
        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        assert free_time(handles[0], 0) == start + 1000 * (2 + 3 + 4 + 5)

    def test_a_killed_process_frees_its_lock(
        self, board: Board, new_queues: Callable[[], Queues], start_child: Starter, way: str
    ) -> None:
        if way == "swap":
            pytest.skip("there are no locks")
        queues, other = new_queues(), new_queues()
        start = queues.join(self.FUTURE, 0)
        script = "def hang():\n    print('locked', flush=True)\n    time.sleep(60)\n"
        script += "emulated._now = hang\nqueues.join(Station(0, service, 0), 0)\n"
        child = start_child(script, board.path, 1, 1000)
        assert child.stdout is not None
        assert child.stdout.readline() == "locked\n"
        ends: list[int] = []
        waiting = threading.Thread(target=lambda: ends.append(queues.join(Station(0, 10, 0), 0)))
        waiting.start()
        assert other.join(Station(1, 0, 0), 0) > 0  # other stations are not held up
        waiting.join(0.05)
        assert waiting.is_alive()
        assert ends == []
        child.kill()
        waiting.join(10)
        assert ends == [start + 10]  # and nothing of the dead one's service

    def test_the_board_is_gone_with_its_owner(self, start_child: Starter, board: Board) -> None:
        """Nothing lies in a file system: the path is one of a process."""
        path = board.path
        assert path.startswith("/proc/")
        child = start_child("print(emulated.Board(1).path, flush=True)\n", path, 0, 0)
        assert child.stdout is not None
        gone = child.stdout.readline().strip()
        child.wait(10)
        with pytest.raises(FileNotFoundError):
            Queues(gone)

    @pytest.mark.parametrize("processes", [3])
    def test_a_saturated_station_serves_at_its_rate(
        self, new_queues: Callable[[], Queues], board: Board, start_child: Starter, tmp_path: Path, processes: int
    ) -> None:
        """Real processes and real sleeps; noise of the machine gets three chances."""
        (tmp_path / "0.raw").write_bytes(b"x")
        script = f"""
sharpen_sleep()
access = Emulated(TierStations((Station(0, service, 0),)), queues)
print('ready', flush=True)
while sys.stdin.readline():
    start = time.monotonic_ns()
    for _ in range(count):
        access.close(access.open({str(tmp_path / "0.raw")!r}, 0))
    print(start, time.monotonic_ns(), flush=True)
"""
        children = [start_child(script, board.path, 100, MS) for _ in range(processes)]
        errors: list[float] = []
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for _ in range(3):
            spans = []
            for child in children:
                assert child.stdin is not None
                child.stdin.write("go\n")
                child.stdin.flush()
            for child in children:
                assert child.stdout is not None
                spans.append([int(word) for word in child.stdout.readline().split()])
            seconds = (max(end for _, end in spans) - min(start for start, _ in spans)) / 1e9
            errors.append(processes * 100 / seconds / 1000 - 1)
            if abs(errors[-1]) < 0.1:
                return
        pytest.fail(f"rate off by {errors}")


def test_sleeping_while_another_thread_waits_for_its_turn_is_real(new_queues: Callable[[], Queues], file: str) -> None:
    """Without any fake: two threads on one station take at least two services together."""
    station = Station(0, 20 * MS, 0)
    accesses = [Emulated(view(metadata=station), new_queues()) for _ in range(2)]
    start = emulated._now()
    threads = [threading.Thread(target=access.stat, args=(file,)) for access in accesses]
    for thread in threads:
        thread.start()
    assert wait_until(lambda: not any(thread.is_alive() for thread in threads))
    assert emulated._now() - start >= 40 * MS
