"""A directory whose operations take as long as the configured queues would make them.

Every station is a FIFO queue in virtual time: one number, the time when it will be free. An operation moves that number
on by its service time, does its real work, and sleeps until its turn has passed. All ranks of the host share
the numbers through one anonymous file in memory. Nothing is left behind when processes are killed.

With the native library a number is moved by compare-and-swap, as the library's own readers move it. Without it each number
is guarded by a byte-range lock that belongs to an open file description (so that threads exclude each other too); every
thread opens its own. The two know nothing of each other and must not meet on one board: which it is depends only on
whether the library can be loaded, and all processes of a board are of one host and one installation.
"""

import contextlib
import fcntl
import mmap
import os
import re
import struct
import time
import zlib
from collections.abc import Sequence

from tierscope.native import queues as native_queues
from tierscope.tiers.access import Punctuality
from tierscope.tiers.stations import Station, TierStations

_SLOT = struct.Struct("=q")
_FLOCK = struct.Struct("@hhqqi4x")  # struct flock of 64-bit Linux
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
        self._swap = native_queues.swap_of(self._slots) if native_queues.available() else None
        self._locks = [self._range(fcntl.F_WRLCK, slot) for slot in range(size // _SLOT.size)]
        self._unlocks = [self._range(fcntl.F_UNLCK, slot) for slot in range(size // _SLOT.size)]

    @staticmethod
    def _range(kind: int, slot: int) -> bytes:
        return _FLOCK.pack(kind, os.SEEK_SET, slot * _SLOT.size, _SLOT.size, 0)

    def join(self, station: Station, nbytes: int) -> int:
        """Queue up for a service; the time (monotonic ns) at which it will be over."""
        service = station.service_ns(nbytes)
        number = station.number
        if self._swap is not None:
            return self._swap(number, _now(), service)
        fcntl.fcntl(self._fd, fcntl.F_OFD_SETLKW, self._locks[number])
        try:
            free: int = _SLOT.unpack_from(self._slots, number * _SLOT.size)[0]
            done = max(_now(), free) + service
            _SLOT.pack_into(self._slots, number * _SLOT.size, done)
        finally:
            fcntl.fcntl(self._fd, fcntl.F_OFD_SETLK, self._unlocks[number])
        return done

    def close(self) -> None:
        self._swap = None  # it holds on to the memory
        self._slots.close()
        os.close(self._fd)


def server_index(path: str, servers: int) -> int:
    """The object server that holds a file: its number in turn, or a hash for a name without a number."""
    digits = re.search(r"([0-9]+)[^0-9]*$", os.path.basename(path))
    return (int(digits[1]) if digits else zlib.crc32(os.fsencode(path))) % servers


class Emulated:
    """One thread's access to an emulated tier, as one node sees it."""

    def __init__(self, stations: TierStations, queues: Queues) -> None:
        self.punctuality = Punctuality()
        self._stations = stations
        self.queues = queues
        self._server_of: dict[int, Station | None] = {}

    def _sleep_until(self, done: int) -> None:
        """`done` is 0 for an operation that no rate limits."""
        if not done:
            return
        self.punctuality.limited_ops += 1
        left = done - _now()
        if left > 0:
            time.sleep(left / 1e9)
        else:
            self.punctuality.late_ops += 1
            self.punctuality.late_ns -= left

    def open(self, path: str, flags: int, /) -> int:
        done = self._join_metadata()
        fd = os.open(path, flags)
        servers = self._stations.servers
        self._server_of[fd] = servers[server_index(path, len(servers))]
        self._sleep_until(done)
        return fd

    def preadv(self, fd: int, buffers: Sequence[memoryview], offset: int, /) -> int:
        nbytes = sum(buffer.nbytes for buffer in buffers)
        arrived = _now()
        done = max(
            (self.queues.join(station, nbytes) for station in (self._server_of[fd], self._stations.gateway) if station),
            default=arrived if self._stations.latency_ns else 0,
        )
        got = os.preadv(fd, buffers, offset)
        self._sleep_until(done + self._stations.latency_ns)
        return got

    def close(self, fd: int, /) -> None:
        self._server_of.pop(fd, None)
        os.close(fd)

    def stat(self, path: str, /) -> os.stat_result:
        done = self._join_metadata()
        result = os.stat(path)
        self._sleep_until(done)
        return result

    def _join_metadata(self) -> int:
        return self.queues.join(self._stations.metadata, 0) if self._stations.metadata else 0


def sharpen_sleep() -> None:
    """Let this process's sleeps end when they should: Linux may otherwise add 50 µs to each."""
    import ctypes  # noqa: PLC0415  (only ranks need it)

    set_timer_slack = 29
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(set_timer_slack, 1, 0, 0, 0)
