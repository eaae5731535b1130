"""The probe's own folder on a tier: made, marked, locked, and removed at the end with nothing but our files in it.

    PATH/tierscope-probe-HOST/tierscope.json   says that it is ours
    PATH/tierscope-probe-HOST/lock             held while a probe runs
    PATH/tierscope-probe-HOST/4096/000017.bin  a file of 4 KiB

What a killed probe left there is removed by the next one on the same host. Everything else stays as it is.
"""

import contextlib
import errno
import os
import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tierscope.dataset.memory import free_memory
from tierscope.errors import ForeignDirectoryError, UserError
from tierscope.mounts import IN_MEMORY, filesystem_of
from tierscope.output import manifest
from tierscope.output.durable import lock_file
from tierscope.output.folders import enter_directory
from tierscope.output.ours import MARK, PROBE, Rules
from tierscope.output.walk import remove_ours
from tierscope.signals import undisturbed
from tierscope.units import about_bytes, counted

KIND = "probe"
_LOCK = "lock"
_BLOCK = 4096  # what the smallest file takes up
_WISHED_BYTES = 1 << 30  # of a size
_WISHED_FILES = 4000
_SHARE_OF_FREE = 0.5
_SHARE_OF_MEMORY = 0.25
LEAST_FILES = 2  # of a size


@dataclass(frozen=True, slots=True)
class FreeSpace:
    """What is free on a tier, and how much of it we would take."""

    free_bytes: int
    usable_bytes: int
    usable_files: int


@contextmanager
def own_folder(path: str, tier: str) -> Iterator[str]:
    """The folder, ours until the block ends; then it is removed, come what may."""
    if not os.path.isdir(path):
        raise UserError(f"--tier {tier}={path}: is a file, not a directory; choose a directory")
    folder = os.path.join(path, f"tierscope-probe-{_host()}")
    if os.path.islink(folder):
        raise ForeignDirectoryError(f"{folder}: is a symbolic link; replace it by a directory or remove it")
    lock: int | None = None
    try:
        manifest.claim(folder, KIND)
        lock = _lock(folder)
        _remove_files(folder)
        yield folder
    finally:
        with undisturbed():
            if lock is not None:
                with contextlib.suppress(OSError):
                    _remove(folder)
                os.close(lock)


def _host() -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "_", socket.gethostname()) or "here"


def _lock(folder: str) -> int:
    try:
        return lock_file(os.path.join(folder, _LOCK))
    except BlockingIOError:
        raise UserError(f"{folder}: in use by another probe; wait for it to finish") from None
    except OSError as error:
        raise UserError(f"{folder}: cannot be used: {error.strerror}; check the directory") from None


def _remove(folder: str) -> None:
    """All that is ours. With something else in it, the folder stays, and its mark too."""
    _remove_files(folder)
    if set(os.listdir(folder)) <= {_LOCK, manifest.NAME}:
        remove_ours(enter_directory(folder), Rules(rf"{MARK}|{_LOCK}"))
        os.rmdir(folder)


def _remove_files(folder: str) -> None:
    remove_ours(enter_directory(folder), PROBE)


def strangers(folder: str) -> str | None:
    """What is in our folder and not ours: the first of it, for a finding; None where there is none."""
    if not os.path.isdir(folder):
        return None
    for entry in sorted(os.listdir(folder)):
        if entry not in (_LOCK, manifest.NAME):
            return os.path.join(folder, entry)
    return None


def room_in(folder: str) -> FreeSpace:
    disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    usable = int(free * _SHARE_OF_FREE)
    if filesystem_of(folder) in IN_MEMORY:
        usable = min(usable, int(free_memory() * _SHARE_OF_MEMORY))
    return FreeSpace(free, usable, int(disk.f_favail * _SHARE_OF_FREE) if disk.f_files else 1 << 30)


def files_wished(sizes: Sequence[int], room: FreeSpace, processes: int) -> dict[int, int]:
    """How many files of each size; fewer than LEAST_FILES: there is no room for that size."""
    counts = {}
    for size in sizes:
        on_disk = -(-size // _BLOCK) * _BLOCK
        wished = min(_WISHED_FILES, max(4 * processes, _WISHED_BYTES // size))
        fitting = room.usable_bytes // len(sizes) // on_disk
        counts[size] = min(wished, fitting, room.usable_files // len(sizes))
    return counts


def refuse_too_small(tier: str, path: str, room: FreeSpace, wished: dict[int, int]) -> None:
    if all(count < LEAST_FILES for count in wished.values()):
        least = LEAST_FILES * len(wished) * max(_BLOCK, min(wished))
        raise UserError(
            f"--tier {tier}={path}: {about_bytes(room.free_bytes)} and {counted(room.usable_files * 2, 'file', grouped=True)} are free, too little to probe "
            f"(at least {about_bytes(least / _SHARE_OF_FREE)}); free some space, or choose another directory or a smaller --size"
        )


def make_size_folder(folder: str, nbytes: int) -> None:
    try:
        os.mkdir(os.path.join(folder, str(nbytes)), 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        reason = "no space left" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
        raise UserError(f"{folder}: cannot be written to: {reason}; choose another directory") from None
