"""Keeping a core busy for a given time without holding the interpreter's lock.

A busy wait in Python would slow the reading threads beside it, and so measure itself. Checksumming a large buffer
releases the lock.
"""

import time
import zlib

_now = time.monotonic_ns
_BUFFER = memoryview(bytes(1 << 20))
_UNLOCKED = 8192  # zlib holds the lock for buffers of up to 5 KiB


class Busy:
    """Seconds of work on one core, the lock released."""

    def __init__(self) -> None:
        start = _now()
        zlib.crc32(_BUFFER)
        self._bytes_per_ns = len(_BUFFER) / max(1, _now() - start)

    def __call__(self, seconds: float) -> None:
        end = _now() + round(seconds * 1e9)
        while (left := end - _now()) > 0:
            size = int(left * self._bytes_per_ns * 0.9)
            zlib.crc32(_BUFFER[: max(_UNLOCKED, min(size, len(_BUFFER)))])
