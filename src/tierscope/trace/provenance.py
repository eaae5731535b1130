"""Where a measurement comes from: enough to doubt or repeat it."""

import os
import platform
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

PACKAGES = ("tierscope", "numpy", "polars", "mpi4py")


def provenance(launcher: str, directories: dict[str, str], others: Mapping[str, str] | None = None) -> dict[str, Any]:
    """`directories`: a tier's name → its directory on this host; `others`: tiers that are none → what they are."""
    return {
        "host": socket.gethostname(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "launcher": launcher,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "filesystems": {name: filesystem_of(path) for name, path in directories.items()} | dict(others or {}),
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def filesystem_of(path: str) -> str:
    """The type of the filesystem a path is on (ext4, tmpfs, lustre, …), by the longest mount point."""
    best, kind = "", "unknown"
    real = os.path.realpath(path)
    try:
        with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
            for line in mounts:
                fields = line.split()
                mount = fields[4].replace("\\040", " ")
                inside = real == mount or real.startswith(mount.rstrip("/") + "/")
                if inside and len(mount) >= len(best):
                    best, kind = mount, fields[fields.index("-") + 1]
    except (OSError, ValueError, IndexError):
        pass
    return kind
