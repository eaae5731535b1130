"""A checkpoint read back by the ranks that wrote it, and compared with what is written down about it: what a recovery takes.

No epoch's lane sees these reads.
"""

import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tierscope.errors import AWAY, SHORT, DamagedDataError, TierscopeError
from tierscope.output.disk_errors import said, unreadable
from tierscope.output.documents import within
from tierscope.plain_json import parse_json
from tierscope.plan.checkpoints import CheckpointFile
from tierscope.storage.access import READ_FLAGS, Access
from tierscope.storage.base import Storage

_now = time.monotonic_ns
_MOST_BYTES = 1 << 28  # of what is written down: a line for every file of every rank
_ADVICE = "check the tier's storage before you trust it with checkpoints"


@dataclass(slots=True)
class ReadBack:
    """Seconds of opening, reading and closing, without checking and evicting; bytes, and those in a cache when their reading began (None: cannot be told)."""

    seconds: float = 0.0
    nbytes: int = 0
    resident_bytes: int | None = None


def read_back(
    storage: Storage,
    folder: str,
    parts: tuple[CheckpointFile, ...],
    described_in: str,
    access: Access,
    piece_bytes: int,
    cools: bool,
) -> ReadBack:
    """`cools`: files are taken out of caches when they are open, as far as that goes. They must be on the device."""
    known = _described(storage, f"{folder}/{described_in}")
    buffer = memoryview(bytearray(piece_bytes))
    busy_ns, done = 0, ReadBack(resident_bytes=0 if cools else None)

    def cool(nbytes: int, fd: int) -> None:
        if storage.abilities.evict:
            access.evict(fd)
        there, before = access.resident(fd, nbytes), done.resident_bytes
        done.resident_bytes = None if there is None or before is None else before + there

    for part in parts:
        path = f"{folder}/{part.name}"
        spent, size, checksum = _read_file(path, buffer, access, partial(cool, part.nbytes) if cools else None)
        if known.get(part.name) != {"bytes": size, "crc32": f"{checksum:08x}"} or size != part.nbytes:
            told = known.get(part.name, {})
            raise DamagedDataError(
                f"{path}: {size} bytes with checksum {checksum:08x} came back, but {described_in} says "
                f"{told.get('bytes')} with {told.get('crc32')}; {_ADVICE}"
            )
        busy_ns, done.nbytes = busy_ns + spent, done.nbytes + size
    done.seconds = busy_ns / 1e9
    return done


def _read_file(
    path: str, buffer: memoryview, access: Access, opened: Callable[[int], None] | None
) -> tuple[int, int, int]:
    """Nanoseconds of reading, bytes, checksum."""
    offset = checksum = checking = 0
    start = _now()
    try:
        fd = access.open(path, READ_FLAGS)
        try:
            between = _now()
            if opened:
                opened(fd)
            checking += _now() - between
            while got := access.preadv(fd, (buffer,), offset):
                read = _now()
                checksum = zlib.crc32(buffer[:got], checksum)
                offset += got
                checking += _now() - read
        finally:
            access.close(fd)
    except OSError as error:
        raise _unread(error, path) from None
    return _now() - start - checking, offset, checksum


def _unread(error: OSError, path: str) -> TierscopeError:
    """Storage that is away and limits that are met say nothing about what was written."""
    if error.errno in AWAY or error.errno in SHORT:
        return unreadable(error, path)
    return DamagedDataError(f"{path}: cannot be read back: {said(error)}; {_ADVICE}")


def _described(storage: Storage, path: str) -> dict[str, dict[str, Any]]:
    try:
        whole = parse_json(within(storage.read_document(path, _MOST_BYTES + 1), _MOST_BYTES))
    except OSError as error:
        raise _unread(error, path) from None
    except ValueError:
        whole = None
    files = whole.get("files") if isinstance(whole, dict) else None
    if not isinstance(files, dict) or not all(isinstance(said, dict) for said in files.values()):
        raise DamagedDataError(f"{path}: no longer describes what was written; {_ADVICE}")
    return files
