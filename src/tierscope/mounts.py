"""What is mounted here, as the system tells it."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

IN_MEMORY = ("tmpfs", "ramfs")  # file systems whose pages are the files
_TABLE = "/proc/self/mountinfo"


@dataclass(frozen=True, slots=True)
class Mount:
    """Where, which kind of file system (ext4, tmpfs, lustre, …), and of what: a device or a server."""

    place: str
    kind: str
    source: str


def mounts(table: str = _TABLE) -> Iterator[Mount]:
    """In the order of mounting; nothing where it cannot be told."""
    try:
        with open(table, encoding="utf-8", errors="surrogateescape") as lines:
            for line in lines:
                before, dash, behind = line.partition(" - ")
                places, about = before.split(), behind.split()
                if dash and len(places) > 4 and len(about) > 1:
                    yield Mount(_plain(places[4]), about[0], _plain(about[1]))
    except OSError:
        return


def _plain(text: str) -> str:
    """Spaces and the like are written as \\040."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def mount_of(path: str) -> Mount | None:
    """What a path is on, by the longest mount point; None, where it cannot be told."""
    best: Mount | None = None
    real = os.path.realpath(path)
    for mount in mounts():
        inside = real == mount.place or real.startswith(mount.place.rstrip("/") + "/")
        if inside and (best is None or len(mount.place) >= len(best.place)):
            best = mount
    return best


def filesystem_of(path: str) -> str:
    """The kind of file system a path is on; unknown, where it cannot be told."""
    mount = mount_of(path)
    return mount.kind if mount else "unknown"
