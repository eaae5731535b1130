"""Where a measurement comes from: enough to doubt or repeat it."""

import os
import platform
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib import metadata

from tierscope.mounts import filesystem_of

PACKAGES = ("tierscope", "numpy", "polars", "mpi4py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """None: not known, in runs of early versions. A plain dataclass: ranks make one where there is no decoder."""

    host: str | None = None
    system: str | None = None
    cores: int | None = None
    memory_bytes: int | None = None
    python: str | None = None
    packages: Mapping[str, str] = field(default_factory=dict)  # name → version
    launcher: str | None = None
    time: str | None = None  # ISO 8601
    filesystems: Mapping[str, str] = field(default_factory=dict)  # a tier's name → its kind

    def __post_init__(self) -> None:
        for name in ("cores", "memory_bytes"):
            if not 0 <= (getattr(self, name) or 0) < 2**63:
                raise ValueError(f"{name} must be within 0 – 2^63")
        if self.time is not None and datetime.fromisoformat(self.time).tzinfo is None:
            raise ValueError("time must have a time zone")


def provenance(launcher: str, directories: Mapping[str, str], others: Mapping[str, str] | None = None) -> Provenance:
    """`directories`: a tier's name → its directory on this host; `others`: tiers that are none → what they are."""
    return Provenance(
        host=socket.gethostname(),
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGESIZE") * os.sysconf("SC_PHYS_PAGES"),
        python=platform.python_version(),
        packages={name: version for name in PACKAGES if (version := _version(name))},
        launcher=launcher,
        time=datetime.now(UTC).isoformat(timespec="seconds"),
        filesystems={name: filesystem_of(path) for name, path in directories.items()} | dict(others or {}),
    )


@cache
def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
