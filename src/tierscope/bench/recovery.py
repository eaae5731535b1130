"""A checkpoint read back by the ranks that wrote it, and compared with what is written down about it: what a recovery takes.

No epoch's lane sees these reads.
"""

import time
import zlib
from typing import Any

from tierscope.dataset.checkpoints import CheckpointFile
from tierscope.errors import AWAY, SHORT, DamagedDataError, TierscopeError
from tierscope.output.disk_errors import said, unreadable
from tierscope.output.documents import parse_json, within
from tierscope.storage.access import READ_FLAGS, Access
from tierscope.storage.base import Storage

_now = time.monotonic_ns
_MOST_BYTES = 1 << 28  # of what is written down: a line for every file of every rank
_ADVICE = "check the tier's storage before you trust it with checkpoints"


def cool(storage: Storage, access: Access, paths: list[str]) -> int | None:
    """Take files out of caches, as far as that goes; the bytes that are still there, None: cannot be told."""
    for path in paths:
        try:
            fd = access.open(path, READ_FLAGS)
        except OSError:
            continue  # its reader will name it
        try:
            access.sync(fd)  # pages that are not on the device yet cannot be evicted
        finally:
            access.close(fd)
    if storage.abilities.evict:
        storage.evict(paths)
    return storage.resident(paths)[1]


def read_back(
    storage: Storage,
    folder: str,
    parts: tuple[CheckpointFile, ...],
    described_in: str,
    access: Access,
    piece_bytes: int,
) -> tuple[float, int]:
    """Seconds of opening, reading and closing, without checking; and bytes."""
    known = _described(storage, f"{folder}/{described_in}")
    buffer = memoryview(bytearray(piece_bytes))
    busy_ns = nbytes = 0
    for part in parts:
        path = f"{folder}/{part.name}"
        spent, size, checksum = _read_file(path, buffer, access)
        if known.get(part.name) != {"bytes": size, "crc32": f"{checksum:08x}"} or size != part.nbytes:
            told = known.get(part.name, {})
            raise DamagedDataError(
                f"{path}: {size} bytes with checksum {checksum:08x} came back, but {described_in} says "
                f"{told.get('bytes')} with {told.get('crc32')}; {_ADVICE}"
            )
        busy_ns, nbytes = busy_ns + spent, nbytes + size
    return busy_ns / 1e9, nbytes


def _read_file(path: str, buffer: memoryview, access: Access) -> tuple[int, int, int]:
    """Nanoseconds of reading, bytes, checksum."""
    offset = checksum = checking = 0
    start = _now()
    try:
        fd = access.open(path, READ_FLAGS)
        try:
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
        raise DamagedDataError(f"{path}: does not say any more what was written; {_ADVICE}")
    return files
