"""Names and inodes out of this host's caches (`reader.evict: metadata`): for everybody on the machine, so only where it is asked for and allowed.

The kernel drops what nobody uses (drop_caches), then the block devices below the tiers their own blocks, in which inodes lie. A Lustre client keeps names for as long as
it holds locks: those go too. What a file system's own daemon caches, and its servers, is unknown.
"""

import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Iterable, Sequence

from tierscope.errors import UserError
from tierscope.mounts import filesystem_of, mount_of
from tierscope.output.durable import sync_filesystem

_DROP = "/proc/sys/vm/drop_caches"
_NAMES_AND_INODES = b"2\n"
_LOCKS = ("lctl", "set_param", "-n", "ldlm.namespaces.*.lru_size=clear")
_LOCK_SECONDS = 120
_KEY = "workload.reader.evict = metadata"
_OTHERWISE = "or set evict: true, whose META may be warm"


def check_metadata(roots: Iterable[str]) -> None:
    """Refuse what cannot be done on this host for files below these directories."""
    for root in roots:
        if not os.access(_DROP, os.W_OK):
            raise UserError(
                f"{_KEY} drops caches of the whole machine, which needs root and a writable {_DROP}; run as root, {_OTHERWISE}"
            )
        if filesystem_of(root) == "lustre" and shutil.which(_LOCKS[0]) is None:
            raise UserError(
                f"{_KEY}, but {root} is on Lustre, whose client keeps names while it holds locks, and lctl, which releases them, is not installed; "
                f"install it, {_OTHERWISE}"
            )


def drop_metadata(roots: Sequence[str]) -> None:
    """Of files below these directories, and all others. What is not on the device yet is written first: it cannot be dropped."""
    check_metadata(roots)
    if not roots:
        return
    if "lustre" in map(filesystem_of, roots):
        _release_locks()
    for root in roots:
        sync_filesystem(root)
    try:
        fd = os.open(_DROP, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, _NAMES_AND_INODES)
        finally:
            os.close(fd)
    except OSError as error:
        raise UserError(
            f"{_KEY}: writing to {_DROP} failed: {error.strerror}; run as root outside a container, {_OTHERWISE}"
        ) from None
    for device in {device for root in roots if (device := _block_device(root))}:
        _drop_blocks(device)


def _release_locks() -> None:
    try:
        subprocess.run(_LOCKS, check=True, capture_output=True, timeout=_LOCK_SECONDS)
    except (OSError, subprocess.SubprocessError):
        raise UserError(f"{_KEY}: '{' '.join(_LOCKS)}' failed; run as root, {_OTHERWISE}") from None


def _block_device(path: str) -> str | None:
    """Below a file system on a disk of this host; None: there is none, or it has no name here."""
    mount = mount_of(path)
    with contextlib.suppress(OSError):
        about = os.stat(mount.source) if mount and mount.source.startswith("/dev/") else None
        if mount and about and stat.S_ISBLK(about.st_mode) and about.st_rdev == os.stat(path).st_dev:
            return mount.source
    return None


def _drop_blocks(device: str) -> None:
    with contextlib.suppress(OSError):
        fd = os.open(device, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(fd)
