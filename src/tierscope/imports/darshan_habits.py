"""How a job uses a tier, as far as Darshan's counters tell: sizes of files and requests, reads again, object servers.

A first read at the beginning of a file is neither sequential nor random, whatever Darshan calls it: a file that is read as a whole is not read at random.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tierscope.imports.darshan_library import COUNTERS
from tierscope.imports.darshan_reader import DarshanLog, FileRecords, Striped
from tierscope.trace.described_logs import Habit, tallied

LARGE_FILE_BYTES = 1 << 30
_SIZES = [name for name in COUNTERS if name.startswith("SIZE_READ_")]
_SIZE_LIMITS = (100, 1 << 10, 10 << 10, 100 << 10, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30, None)
_AGAIN = 1.5  # a file of which so many times its length was read, was read again
_SHARED = 1.5  # readers of a file on average: fewer, and most files have one


def share_no_files(readers: Iterable[set[str]]) -> bool:
    """Whether these read mostly different files, as workers do with a part of the data each: another epoch reads the same ones again."""
    read = [files for files in readers if files]
    return len(read) > 1 and sum(map(len, read)) < _SHARED * len(set().union(*read))


@dataclass(slots=True)
class HabitCounter:
    """Sums over the records of one tier."""

    files: set[str] = field(default_factory=set)
    opens: int = 0
    reads: int = 0
    read_bytes: int = 0
    stdio_reads: int = 0
    stdio_bytes: int = 0
    random_reads: int = 0
    again_files: int = 0
    read_files: int = 0
    sizes: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(len(_SIZES), np.int64))
    servers: Counter[int] = field(default_factory=Counter)  # files by object server
    stripe_bytes: Counter[int] = field(default_factory=Counter)  # files by stripe size
    striped: dict[str, int] = field(default_factory=lambda: {"files": 0, "on_one": 0, "large_on_one": 0})

    def add(self, module: str, records: FileRecords, chosen: npt.NDArray[np.bool_], log: DarshanLog) -> None:
        reads, opens = records.counter("READS")[chosen], records.counter("OPENS")[chosen]
        moved, extent = records.counter("BYTES_READ")[chosen], records.counter("MAX_BYTE_READ")[chosen] + 1
        self.opens += int(opens.sum())
        self.reads += int(reads.sum())
        self.read_bytes += int(moved.sum())
        if module == "STDIO":
            self.stdio_reads += int(reads.sum())
            self.stdio_bytes += int(moved.sum())
        else:
            self.sizes += np.array([records.counter(name)[chosen].sum() for name in _SIZES])
        if module == "POSIX":  # MPI-IO does not tell
            jumps = reads - opens - records.counter("SEQ_READS")[chosen]
            self.random_reads += int(np.maximum(jumps, 0).sum())
        self.read_files += int((moved > 0).sum())
        self.again_files += int((moved > _AGAIN * extent).sum())
        for file, length in (
            zip(*map(np.ndarray.tolist, (records.files[chosen], extent)), strict=True) if log.stripes else ()
        ):
            if log.paths[file] not in self.files and file in log.stripes:
                self._add_striped(log.stripes[file], length)
                self.files.add(log.paths[file])
        self.files.update(map(log.paths.__getitem__, np.unique(records.files[chosen]).tolist()))

    def _add_striped(self, striped: Striped, length: int) -> None:
        single_server = len(striped.servers) == 1
        self.servers.update(set(striped.servers))
        self.stripe_bytes[striped.stripe_bytes] += 1
        self.striped["files"] += 1
        self.striped["on_one"] += single_server
        self.striped["large_on_one"] += single_server and length >= LARGE_FILE_BYTES

    def counted(self) -> Habit:
        return Habit(
            files=len(self.files),
            opens=tallied(self.opens),
            reads=tallied(self.reads),
            read_bytes=tallied(self.read_bytes),
            stdio_reads=tallied(self.stdio_reads),
            stdio_bytes=tallied(self.stdio_bytes),
            random_reads=tallied(self.random_reads),
            read_files=self.read_files,
            again_files=self.again_files,
            sizes=tuple((limit, tallied(int(count))) for limit, count in zip(_SIZE_LIMITS, self.sizes, strict=True)),
            servers=len(self.servers),
            stripe_bytes=self.stripe_bytes.most_common(1)[0][0] if self.stripe_bytes else None,
            striped_files=self.striped["files"],
            striped_on_one=self.striped["on_one"],
            striped_large_on_one=self.striped["large_on_one"],
        )
