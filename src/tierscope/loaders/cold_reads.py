"""Files that are cold when their reading begins, and leave nothing behind: evicted through the descriptor that reads them, right after its
open and before its close, apart from READ and META. What that takes, and what is in the page cache all the same, is kept."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tierscope.plan.uses import COUNT, FIRST, LAST, FileUses
from tierscope.storage.access import Access, Directory
from tierscope.storage.cold import MAX_CHECKED, own_descriptors

_DESCRIPTOR = Directory()
_now = time.monotonic_ns


@dataclass(slots=True)
class ColdTally:
    """Of one tier: files and bytes that were looked at when their reading began, those of the bytes that were cached; time of evicting and looking.

    `resident_bytes` None: no way to tell.
    """

    files: int = 0
    checked_bytes: int = 0
    resident_bytes: int | None = 0
    nanoseconds: int = 0

    def look(self, nbytes: int, cached: int | None) -> None:
        self.files += 1
        self.checked_bytes += nbytes
        known = self.resident_bytes
        self.resident_bytes = None if cached is None or known is None else known + cached

    def add(self, other: "ColdTally") -> None:
        self.look(other.checked_bytes, other.resident_bytes)
        self.files += other.files - 1
        self.nanoseconds += other.nanoseconds


@dataclass(frozen=True, slots=True)
class ColdTier:
    """`evicts`: its storage can take files out of caches. `looks`: it has a page cache to look at; an emulated one is left alone."""

    evicts: bool
    looks: bool


class Uses(Protocol):
    """Which opens and closes of files are the first and the last."""

    def opened(self, file: int, /) -> bool: ...
    def closing(self, file: int, reads: int, /) -> bool: ...


class OnlyUse:
    """Files that are opened once in an epoch."""

    def opened(self, _file: int, /) -> bool:
        return True

    def closing(self, _file: int, _reads: int, /) -> bool:
        return True


class CountedUses:
    """Files that a rank, or a node's ranks, read again and again (plan/uses.py). Whichever of the threads is done with one last closes it last."""

    def __init__(self, left: FileUses) -> None:
        self.left = left
        self._lock = threading.Lock()

    def opened(self, file: int, /) -> bool:
        with self._lock:
            was = int(self.left[file])
            self.left[file] = was & ~FIRST
        return bool(was & FIRST)

    def closing(self, file: int, reads: int, /) -> bool:
        with self._lock:
            was = int(self.left[file])
            now = was - min(reads, was & COUNT)
            self.left[file] = now
        return bool(now & LAST) and not now & COUNT


class ColdReads:
    """One rank's, for all its epochs; its threads share it."""

    def __init__(self, tiers: Sequence[ColdTier], size_of: Callable[[int], int | None]) -> None:
        """`size_of`: a file's bytes, where they are known; None: the file is asked."""
        self.tiers, self._size_of = tuple(tiers), size_of
        self.uses: Uses = OnlyUse()
        self.tallies = [ColdTally() for _ in tiers]
        self._lock = threading.Lock()

    def begin(self, uses: Uses) -> None:
        """Another epoch."""
        self.uses, self.tallies = uses, [ColdTally() for _ in self.tiers]

    def opened(self, access: Access, fd: int, tier: int, file: int) -> None:
        """Before the first read through this descriptor."""
        if not self.tiers[tier].looks or not self.uses.opened(file):
            return
        start, tally = _now(), self.tallies[tier]
        if self.tiers[tier].evicts:
            access.evict(fd)
        with self._lock:
            looks = tally.files < MAX_CHECKED
            if looks:
                size = self._size_of(file)
                nbytes = access.size(fd) if size is None else size
                tally.look(nbytes, access.resident(fd, nbytes))
            tally.nanoseconds += _now() - start

    def closing(self, access: Access, fd: int, tier: int, file: int, reads: int) -> None:
        """After the last read through this descriptor; so many there were."""
        if self.tiers[tier].evicts and self.uses.closing(file, reads):
            start = _now()
            access.evict(fd)
            with self._lock:
                self.tallies[tier].nanoseconds += _now() - start

    def opened_by_library(self, path: str, tier: int, file: int) -> None:
        """The same for a file that a library opened, by its path, in this process."""
        for fd in own_descriptors(path)[:1] if self.tiers[tier].looks else ():
            self.opened(_DESCRIPTOR, fd, tier, file)

    def closing_by_library(self, path: str, tier: int, file: int, reads: int) -> None:
        for fd in own_descriptors(path)[:1] if self.tiers[tier].evicts else ():
            self.closing(_DESCRIPTOR, fd, tier, file, reads)

    def add(self, tallies: Sequence[ColdTally]) -> None:
        """What somebody else counted, who reads without accesses of Python."""
        with self._lock:
            for own, other in zip(self.tallies, tallies, strict=True):
                own.add(other)
