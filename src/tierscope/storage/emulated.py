"""A directory whose operations take as long as the configured queues would make them.

Most stations are FIFO queues in virtual time: one number, the time when it will be free. An operation moves that number
on by its service time, does its real work, and sleeps until its turn has passed. Others serve all at once (`sharing.py`): there
an operation sleeps until it could be over, looks again, and so on; each look is later only by what came meanwhile. All ranks of the
host share the numbers through one anonymous file in memory. Nothing is left behind when processes are killed.

With the native library a FIFO number is moved by compare-and-swap, as the library's own readers move it. Without it each number
is guarded by a byte-range lock that belongs to an open file description (so that threads exclude each other too); every
thread opens its own. The two know nothing of each other and must not meet on one number: which it is depends only on
whether the library can be loaded, and all processes of a board are of one host and one installation. A station that serves all at once
is always behind its lock, and the library never touches one.
"""

import contextlib
import fcntl
import mmap
import os
import random
import re
import struct
import time
import zlib
from collections.abc import Callable, Iterator, Sequence

from tierscope.native import queues as native_queues
from tierscope.plan.stations import mixed, stripes
from tierscope.plan.variation import factor
from tierscope.storage import cold
from tierscope.storage.access import Punctuality, create, open_folder, size
from tierscope.storage.sharing import Present
from tierscope.storage.stations import Station, TierStations

_SLOT = struct.Struct("=q")
_FLOCK = struct.Struct("@hhqqi4x")  # struct flock of 64-bit Linux
_SHORTEST_NS = 50_000  # between two looks at a station that serves all at once: no sleep is shorter
_FULL_SECONDS = 0.001  # until the next look at one without room
_now = time.monotonic_ns


class Board:
    """Owner of the shared numbers; `path` lets other processes of this host open them."""

    def __init__(self, stations: int) -> None:
        self._fd = os.memfd_create("tierscope-stations")
        os.truncate(self._fd, max(1, stations) * _SLOT.size)
        self.path = f"/proc/{os.getpid()}/fd/{self._fd}"

    def close(self) -> None:
        os.close(self._fd)


class Queues:
    """One thread's handle on the board."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        size = os.fstat(self._fd).st_size
        self._slots = mmap.mmap(self._fd, size)
        self._words = memoryview(self._slots).cast("q")
        self._swap = native_queues.swap_of(self._slots) if native_queues.available() else None
        self._locks: dict[int, tuple[bytes, bytes]] = {}

    def join(self, station: Station, nbytes: int) -> int:
        """Queue up for a service; the time (monotonic ns) at which it will be over."""
        return self.take(station.number, station.service_ns(nbytes))

    def take(self, number: int, service: int, arrived: int = 0) -> int:
        """The same for any service; `arrived`: then, or 0 for now."""
        if self._swap is not None:
            return self._swap(number, arrived or _now(), service)
        lock, unlock = self._locks.get(number) or self._make_locks(number)
        fcntl.fcntl(self._fd, fcntl.F_OFD_SETLKW, lock)
        try:
            done = max(arrived or _now(), self._words[number]) + service
            self._words[number] = done
        finally:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, unlock)
        return done

    def share(self, station: Station, service: int) -> tuple[int, int] | None:
        """Join those that a station serves all at once: a target to look after, and when it is reached at the earliest. None: no room."""
        with self._present(station) as present:
            if len(present.targets) >= station.room:
                return None
            target = present.join(service)
            over = present.over_at(target)
            return target, present.updated if over is None else over

    def look(self, station: Station, target: int) -> int | None:
        """When the target is reached at the earliest; None: it was."""
        with self._present(station) as present:
            return present.over_at(target)

    @contextlib.contextmanager
    def _present(self, station: Station) -> Iterator[Present]:
        """Those that it serves now; whatever happens to them is kept."""
        lock, unlock = self._locks.get(station.number) or self._make_locks(station.number)
        fcntl.fcntl(self._fd, fcntl.F_OFD_SETLKW, lock)
        try:
            present = Present.read(self._words, station.number)
            present.advance(_now())
            yield present
            present.write(self._words, station.number)
        finally:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, unlock)

    def _make_locks(self, number: int) -> tuple[bytes, bytes]:
        lock, unlock = (
            _FLOCK.pack(kind, os.SEEK_SET, number * _SLOT.size, _SLOT.size, 0)
            for kind in (fcntl.F_WRLCK, fcntl.F_UNLCK)
        )
        self._locks[number] = lock, unlock
        return lock, unlock

    def close(self) -> None:
        self._swap = None  # it holds on to the memory
        self._words.release()
        self._slots.close()
        os.close(self._fd)


def file_number(path: str) -> int:
    """The number in a file's name, or a hash of a name without one, whatever its folder: it decides which servers the file belongs to."""
    digits = re.search(r"([0-9]+)[^0-9]*$", os.path.basename(path))
    return int(digits[1]) if digits else zlib.crc32(os.fsencode(os.path.basename(path)))


def server_index(path: str, servers: int) -> int:
    """The object server on which a file begins: files take turns."""
    return file_number(path) % servers


def varied(service: int, variation: float, dice: random.Random) -> int:
    """A service around this one; its mean is the one given."""
    return round(service * factor(variation, dice))


class Emulated:
    """One thread's access to an emulated tier, as one node sees it. `dice`: for services that vary."""

    def __init__(self, stations: TierStations, queues: Queues, dice: random.Random | None = None) -> None:
        self.punctuality = Punctuality()
        self._stations = stations
        self.queues = queues
        self._dice = dice or random.Random(0)
        self._servers_of: dict[int, tuple[Station, ...]] = {}  # of an open file: those of its stripes, in their order
        self._shares: list[tuple[Station, int, int]] = []  # of this operation: station, target, when at the earliest

    def _join(self, station: Station, nbytes: int, writes: bool = False) -> int:
        """When the service will be over, as far as it is known yet."""
        return self._join_for(station, station.write_ns(nbytes) if writes else station.service_ns(nbytes))

    def _join_bytes(self, station: Station, nbytes: int) -> int:
        """The same for bytes that no read asks for: the time of an operation is not in it."""
        return self._join_for(station, round(nbytes * station.per_byte_ns))

    def _join_for(self, station: Station, service: int) -> int:
        if station.variation:
            service = varied(service, station.variation, self._dice)
        if station.credit_ns or station.period_ns:
            now, period = _now(), station.period_ns or 1
            done = self.queues.take(station.number, service, now - now % period - station.credit_ns)
            if station.period_ns:
                done = (-(-done // period) - 1) * period  # when its portion is handed out
            return done if done > now else 0  # made up for: nobody waits
        if not station.room:
            return self.queues.take(station.number, service)
        while (share := self.queues.share(station, service)) is None:
            time.sleep(_FULL_SECONDS)
        self._shares.append((station, *share))
        return share[1]

    def _finish(self, done: int, latency_ns: int) -> None:
        """Sleep until the operation is over; `done` is 0 for one that no rate limits."""
        if not done:
            return
        worked = now = _now()
        if self._shares:
            done = max(done, *(self._leave(*share) for share in self._shares))
            now = _now()
        done += latency_ns
        self.punctuality.limited_ops += 1
        if done > now:
            time.sleep((done - now) / 1e9)
        elif done <= worked:
            self.punctuality.late_ops += 1
            self.punctuality.late_ns += worked - done

    def _leave(self, station: Station, target: int, earliest: int) -> int:
        """Sleep until a station that serves all at once is done with it; when it was. What came meanwhile makes it later."""
        over: int | None = earliest
        while over is not None:
            earliest, left = over, over - _now()
            if left > 0:
                time.sleep(max(left, _SHORTEST_NS) / 1e9)
            over = self.queues.look(station, target)
        return earliest

    def _join_metadata(self, file: int) -> int:
        self._shares.clear()  # of an operation that failed
        stations = self._stations
        done = _now() if stations.metadata_latency_ns else 0
        if stations.metadata:
            done = max(done, self._join(stations.metadata[file % len(stations.metadata)], 0))
        if stations.locks:
            done = max(done, self._join(stations.locks[file % len(stations.locks)], 0))
        if stations.open_bytes:
            queues = (*self._servers(file, 1), *stations.links)
            done = max(done, *(self._join_bytes(queue, stations.open_bytes) for queue in queues))
        return done

    def _servers(self, file: int, stripes: int) -> tuple[Station, ...]:
        """Those of a file's stripes, in their order; none where no server limits."""
        servers = self._stations.servers
        first = mixed(file) if self._stations.hashed else file
        return tuple(servers[(first + stripe) % len(servers)] for stripe in range(stripes if servers else 0))

    def open(self, path: str, flags: int, /) -> int:
        return self._open(path, lambda: os.open(path, flags))

    def create(self, path: str, /) -> int:
        """Costs what an open costs."""
        return self._open(path, lambda: create(path))

    def _open(self, path: str, really: Callable[[], int]) -> int:
        file = file_number(path)
        done = self._join_metadata(file)
        fd = really()
        self._servers_of[fd] = self._servers(file, self._stations.stripe_count)
        self._finish(done, self._stations.metadata_latency_ns)
        return fd

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        nbytes = sum(buffer.nbytes for buffer in buffers)
        done = self._join_data(self._servers_of[fd], nbytes, offset)
        got = os.preadv(fd, buffers, offset)
        self._finish(done, self._stations.latency_ns)
        return got

    def pwrite(self, fd: int, data: memoryview, offset: int, /) -> int:
        """Costs what a read of as many bytes costs, unless the tier has rates of writing; as in simulations."""
        done = self._join_data(self._servers_of[fd], data.nbytes, offset, writes=True)
        wrote = os.pwrite(fd, data, offset)
        self._finish(done, self._stations.latency_ns)
        return wrote

    def sync(self, _fd: int, /) -> None:
        """One way there and back: what was written has had its time, and the disk underneath must not make any."""
        self._shares.clear()
        self._finish(_now() if self._stations.latency_ns else 0, self._stations.latency_ns)

    def _join_data(self, servers: tuple[Station, ...], nbytes: int, offset: int, writes: bool = False) -> int:
        """Data streams through all of them at once."""
        self._shares.clear()
        done = _now() if self._stations.latency_ns else 0
        if self._stations.stream_ns:
            done = _now() + round(nbytes * self._stations.stream_ns)
        if len(servers) == 1:
            done = max(done, self._join(servers[0], nbytes, writes))
        elif servers:
            parts = stripes(offset, nbytes, len(servers), self._stations.stripe_size)
            for server, part in zip(servers, parts, strict=True):
                if part:
                    done = max(done, self._join(server, part, writes))
        for link in self._stations.links:
            done = max(done, self._join(link, nbytes, writes))
        return done

    def close(self, fd: int, /) -> None:
        self._servers_of.pop(fd, None)
        os.close(fd)

    # A folder is opened to be synced, a name is given as part of a close, and caches are nobody's work: none takes time of its own.
    open_folder = staticmethod(open_folder)
    size = staticmethod(size)
    evict = staticmethod(cold.evict)
    resident = staticmethod(cold.resident)
    rename = staticmethod(os.replace)
    remove = staticmethod(os.unlink)

    def leave(self) -> None:
        self.queues.close()

    def stat(self, path: str, /) -> os.stat_result:
        done = self._join_metadata(file_number(path))
        result = os.stat(path)
        self._finish(done, self._stations.metadata_latency_ns)
        return result


def sharpen_sleep() -> None:
    """Let this process's sleeps end when they should: Linux may otherwise add 50 µs to each."""
    import ctypes  # noqa: PLC0415  (only ranks need it)

    set_timer_slack = 29
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_timer_slack, 1, 0, 0, 0)
