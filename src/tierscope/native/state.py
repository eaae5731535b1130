"""The files through which a recorded process and `tierscope trace` talk (c/state.h): config and board are written, states read.

Nothing in a state file is trusted. Its process may have been killed, may still run, or the disk may have been full: what
can be read is given, what cannot is named.
"""

import errno
import os
import stat
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tierscope.errors import ResultError
from tierscope.native.lanes import BINS, KINDS, NativeLane, lane_bytes, read_lane
from tierscope.native.usage import USAGE, ProcessUsage, read_usage
from tierscope.plain_files import plain_descriptor, refuse_for_now

VERSION = 1
MAX_TIERS = 8
MAX_PREFIXES = 64
MAX_STATIONS = 4096
HEAD_BYTES = 4096
PATH = 4096
PHASES = 8
LIST_ROWS = 512
ROW_BYTES = 60  # OP_ROW of trace/ops.py

OPTION_OPS, OPTION_REREADS, OPTION_EVICT = 1, 2, 4
CONFIG_MAGIC, STATE_MAGIC = b"TSCONF01", b"TSSTAT01"
LANE_MAGIC, EPOCH_MAGIC, LIST_MAGIC = 0x454E414C, 0x434F5045, 0x5453494C

HEAD = np.dtype(
    [
        ("magic", "S8"),
        ("crc", "<u4"),
        ("unused", "<u4"),
        ("version", "<u4"),
        ("tiers", "<u4"),
        ("kinds", "<u4"),
        ("bins", "<u4"),
        ("pid", "<u4"),
        ("parent", "<u4"),
        ("start_ns", "<u8"),
        ("start_realtime_ns", "<u8"),
        ("host", "S64"),
        ("boot", "S40"),
        ("command", "S256"),
        ("variables", "S1024"),
        *((name, "<u8") for name in ("used", "lost_ops", "mapped_ops", "unemulated", "lost_rows", "shares_clock")),
        ("usage", USAGE),
    ]
)
PHASE = np.dtype([("name", "S24"), ("ns", "<u8"), ("count", "<u8")])
EPOCH = np.dtype(
    [
        ("magic", "<u4"),
        ("bytes", "<u4"),
        ("epoch", "<i4"),
        ("unused", "<u4"),
        ("begin_ns", "<u8"),
        ("end_ns", "<u8"),
        ("last_ns", "<u8"),
        ("phases", PHASE, PHASES),
    ]
)
LIST = np.dtype(
    [
        ("magic", "<u4"),
        ("bytes", "<u4"),
        ("owner", "<u4"),
        ("block", "<u4"),
        ("used", "<u8"),
        ("rows", f"V{ROW_BYTES}", LIST_ROWS),
    ]
)

NOT_PLAIN = "is not a regular file"
_LOST = struct.Struct("<QQ")
_CHUNK = struct.Struct("<II")
_NAME = struct.Struct("<QI")
_LIST_START = LIST.itemsize - LIST_ROWS * ROW_BYTES
_RETRIES = 20  # of a lane that is being written to
_LARGEST = 1 << 62  # no count or time is as large
_BLOCK = 1 << 20


def open_plain(path: str) -> int:
    """A descriptor for reading a regular file. A program may have put anything in its place: a pipe to wait on, a link to elsewhere."""
    try:
        return plain_descriptor(path)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.EINVAL):  # a link, or no file
            raise OSError(errno.EINVAL, NOT_PLAIN) from None
        raise


def is_plain(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """Processes that could make no state file, and what they did to tiers nevertheless."""

    processes: int = 0
    ops: int = 0


def read_unrecorded(folder: str) -> Unrecorded:
    """What is missing or cannot be is 0."""
    try:
        with open(open_plain(os.path.join(folder, "lost")), "rb") as file:
            content = file.read(_LOST.size)
    except OSError:
        return Unrecorded()
    if len(content) < _LOST.size:
        return Unrecorded()
    return Unrecorded(*(number if number < _LARGEST else 0 for number in _LOST.unpack(content)))


@dataclass(frozen=True, slots=True)
class StateHead:
    """Who wrote a state file, and what it could not record."""

    path: str
    tiers: int
    pid: int
    parent: int
    start_ns: int
    start_realtime_ns: int
    host: str
    boot: str
    command: str
    variables: Mapping[str, str]
    used: int
    lost_ops: int
    lost_rows: int  # of the operation list
    mapped_ops: int
    unemulated: bool
    shares_clock: bool  # all its operations are in the clock of its rank on its host
    usage: ProcessUsage | None = None  # None: it ended too soon

    @property
    def clock(self) -> str:
        """Readings of the monotonic clock can be compared where this is the same."""
        return self.boot or self.host


@dataclass(frozen=True, slots=True)
class MarkedEpoch:
    """An epoch that the program marked. `end_ns` 0: it lasted until the last operation, or its last phase (`last_ns`)."""

    epoch: int
    start_ns: int
    end_ns: int
    last_ns: int
    phases: tuple[tuple[str, int, int], ...]  # name, nanoseconds, how often


@dataclass(frozen=True, slots=True)
class WaitingRows:
    """Rows of the operation list that were not yet written to the .ops file, or (`block`) may be there in part only."""

    rows: bytes
    block: int | None = None  # of LIST_ROWS rows in the .ops file, in whose place these are


@dataclass(frozen=True, slots=True)
class StateDamage:
    """Something in the file cannot be what it should be; it is left out."""

    reason: str


Chunk = NativeLane | MarkedEpoch | WaitingRows | StateDamage


def read_head(path: str, tiers: int) -> StateHead | None:
    """None: its process was ended before it had recorded anything. ResultError: nothing in the file can be used."""
    try:
        with open(open_plain(path), "rb") as file:
            page = file.read(HEAD_BYTES)
    except OSError as error:
        raise ResultError(f"{path}: {_reason(error, path)}") from None
    if not page.strip(b"\0"):
        return None
    if len(page) < HEAD_BYTES:
        raise ResultError(f"{path}: is truncated")
    head = np.frombuffer(page, HEAD, 1)[0]
    if head["magic"] != STATE_MAGIC:
        raise ResultError(f"{path}: is not a state file of a recorded process")
    if head["version"] != VERSION:
        raise ResultError(f"{path}: version {head['version']} is not supported by this Tierscope ({VERSION})")
    if zlib.crc32(page[_offset("version") : _offset("used")]) != head["crc"]:
        raise ResultError(f"{path}: checksum mismatch")
    if (head["tiers"], head["kinds"], head["bins"]) != (tiers, KINDS, BINS):
        raise ResultError(f"{path}: has other tiers or kinds of operation than this trace")
    return StateHead(
        path=path,
        tiers=tiers,
        pid=int(head["pid"]),
        parent=int(head["parent"]),
        start_ns=int(head["start_ns"]),
        start_realtime_ns=int(head["start_realtime_ns"]),
        host=_text(head["host"]),
        boot=_text(head["boot"]),
        command=_text(head["command"]),
        variables=_variables(_text(head["variables"])),
        used=max(int(head["used"]), HEAD_BYTES),
        lost_ops=min(int(head["lost_ops"]), _LARGEST),
        lost_rows=min(int(head["lost_rows"]), _LARGEST),
        mapped_ops=min(int(head["mapped_ops"]), _LARGEST),
        unemulated=bool(head["unemulated"]),
        shares_clock=bool(head["shares_clock"]),
        usage=read_usage(head["usage"], int(head["start_ns"])),
    )


def _reason(error: OSError, path: str) -> str:
    refuse_for_now(error, path)
    return NOT_PLAIN if error.strerror == NOT_PLAIN else f"cannot be read: {error.strerror}"


def _offset(name: str) -> int:
    return int(HEAD.fields[name][1])  # type: ignore[index]


def _text(value: bytes) -> str:
    return bytes(value).partition(b"\0")[0].decode("utf-8", "replace")


def _variables(lines: str) -> dict[str, str]:
    return {name: value for name, is_set, value in (line.partition("=") for line in lines.split("\n")) if is_set}


def read_chunks(head: StateHead) -> Iterator[Chunk]:
    """All that the process recorded, one chunk after another in bounded memory. Damage does not end it if it can be stepped over."""
    try:
        fd = open_plain(head.path)
    except OSError as error:
        yield StateDamage(_reason(error, head.path))
        return
    try:
        size = os.fstat(fd).st_size
        if head.used > size:
            yield StateDamage(f"holds {size} bytes of {head.used}")
        yield from _walk(fd, min(head.used, size), head.tiers)
    except OSError as error:
        yield StateDamage(_reason(error, head.path))
    finally:
        os.close(fd)


def _walk(fd: int, end: int, tiers: int) -> Iterator[Chunk]:
    sizes = {LANE_MAGIC: lane_bytes(tiers), EPOCH_MAGIC: EPOCH.itemsize, LIST_MAGIC: LIST.itemsize}
    place = HEAD_BYTES
    while place + _CHUNK.size <= end:
        magic, nbytes = _CHUNK.unpack(os.pread(fd, _CHUNK.size, place).ljust(_CHUNK.size, b"\0"))
        if sizes.get(magic) != nbytes or place + nbytes > end:
            yield StateDamage(f"cannot be read from byte {place} on")
            return
        yield _chunk(fd, place, magic, nbytes, tiers)
        place += nbytes


def _chunk(fd: int, place: int, magic: int, nbytes: int, tiers: int) -> Chunk:
    if magic == LANE_MAGIC:
        return _lane(fd, place, nbytes, tiers)
    content = os.pread(fd, nbytes, place)
    if len(content) < nbytes:
        return StateDamage(f"is truncated at byte {place}")
    return _epoch(content, place) if magic == EPOCH_MAGIC else _waiting(content, place)


def _lane(fd: int, place: int, nbytes: int, tiers: int) -> NativeLane | StateDamage:
    """A lane that is just being written to is looked at again."""
    lane = None
    for _ in range(_RETRIES):
        lane = read_lane(os.pread(fd, nbytes, place), 0, tiers)
        if lane is None or lane.whole:
            break
    if lane is None or not _plausible(lane):
        return StateDamage(f"has impossible numbers at byte {place}")
    return lane


def _plausible(lane: NativeLane) -> bool:
    """What one thread can have done. Of a lane whose checksum does not fit more is asked than that no number is absurd.

    A thread that was killed while it recorded leaves counters that differ by one. Its operations took no longer than what passed; but
    a copy counts as a read and a write.
    """
    cells = lane.cells
    numbers = cells.view("<i8").reshape(len(cells), -1)
    counts = (lane.limited_ops, lane.late_ops, lane.late_ns, lane.first_ns, lane.last_ns, lane.epoch)
    if min(counts) < 0 or max(counts) >= _LARGEST or numbers.min() < 0 or numbers.max() >= _LARGEST:
        return False
    slack = 0 if lane.whole else 1
    for name in ("sizes", "latencies"):
        missing = np.abs(cells["ops"].astype(float) - cells[name].sum(axis=1, dtype=float))
        if missing.max(initial=0) > slack:
            return False
    passed = max(0, lane.last_ns - lane.first_ns)
    return lane.whole or float(cells["busy_ns"].sum(dtype=float)) <= 4.0 * passed + 1e9


def _epoch(content: bytes, place: int) -> MarkedEpoch | StateDamage:
    record = np.frombuffer(content, EPOCH, 1)[0]
    phases = tuple((_text(row["name"]), int(row["ns"]), int(row["count"])) for row in record["phases"] if row["name"])
    marked = MarkedEpoch(
        int(record["epoch"]), int(record["begin_ns"]), int(record["end_ns"]), int(record["last_ns"]), phases
    )
    numbers = [marked.start_ns, marked.end_ns, marked.last_ns, *(number for _, *both in phases for number in both)]
    if marked.epoch < 0 or max(numbers) >= _LARGEST:
        return StateDamage(f"has impossible numbers at byte {place}")
    return marked


def _waiting(content: bytes, place: int) -> WaitingRows | StateDamage:
    head = np.frombuffer(content, LIST, 1)[0]
    used, block = int(head["used"]), int(head["block"])
    if used > LIST_ROWS:
        return StateDamage(f"has impossible numbers at byte {place}")
    if block:
        return WaitingRows(content[_LIST_START:], block - 1)
    return WaitingRows(content[_LIST_START : _LIST_START + used * ROW_BYTES])


def read_names(path: str) -> Iterator[tuple[int, str]]:
    """File number → path, of a .names file, as far as it can be read."""
    try:
        file = open(open_plain(path), "rb", buffering=_BLOCK)  # noqa: SIM115
    except OSError:
        return
    with file:
        while len(start := file.read(_NAME.size)) == _NAME.size:
            number, length = _NAME.unpack(start)
            name = file.read(length) if length < PATH else b""
            if not name or len(name) < length or number >= 1 << 63:
                return
            yield number, name.decode("utf-8", "replace")
