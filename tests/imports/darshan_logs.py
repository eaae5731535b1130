"""Darshan logs made by hand, as the reader would hand them over; and where real ones lie."""

import importlib.util
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from tierscope.imports.darshan_library import COUNTERS, FILE_MODULES, TIMES
from tierscope.imports.darshan_reader import DarshanLog, FileRecords, Striped

REAL = Path(__file__).resolve().parents[3] / "shared" / "data" / "darshan"  # beside the project; a clone has none
JOB = 77
HEADER_BYTES = 1 << 11  # of a log; what follows is compressed

needs_library = pytest.mark.skipif(importlib.util.find_spec("darshan") is None, reason="PyDarshan is not installed")
needs_real_logs = pytest.mark.skipif(not REAL.is_dir(), reason="no real logs beside the project (../shared/data)")


class Did(NamedTuple):
    """A record: what a rank did with a file. Names of counters and times are Darshan's."""

    path: str
    rank: int = 0
    counts: Mapping[str, float] = {}
    module: str = "POSIX"


def reading(path: str, rank: int = 0, seconds: float = 1.0, meta: float = 0.5, **counts: Any) -> Did:
    """Opened and read once, 100 bytes."""
    plain: dict[str, Any] = {"OPENS": 1, "READS": 1, "BYTES_READ": 100, "F_READ_TIME": seconds, "F_META_TIME": meta}
    return Did(path, rank, {**plain, **counts})


def made_log(
    records: Sequence[Did] = (),
    *,
    name: str = "",
    pid: int = 1,
    start: float = 100.0,
    seconds: float = 10.0,
    processes: int = 1,
    job_id: int = JOB,
    parent: int | str | None = None,
    mounts: Sequence[tuple[str, str]] = (),
    lustre: Sequence[str] = (),
    stripe_bytes: int = 1 << 20,
    partial: Sequence[str] = (),
    complaints: Sequence[str] = (),
    command: str = "python train.py",
) -> DarshanLog:
    """`parent`: the process that forked it; `lustre`: paths that Lustre told about."""
    paths = list(dict.fromkeys(record.path for record in records))
    job = {
        "start_seconds": start,
        "end_seconds": start + seconds,
        "processes": processes,
        "job_id": job_id,
        "metadata": {} if parent is None else {"fork_parent": str(parent)},
        "command": command,
    }
    modules = {
        module: {"index": place, "version": 4, "partial": module in partial}
        for place, module in enumerate(FILE_MODULES)
    }
    return DarshanLog(
        name or f"me_python_id{job_id}-{pid}_1-1-{start:.0f}-{pid}_1.darshan",
        job,
        list(mounts),
        modules,
        paths,
        {paths.index(path): Striped(stripe_bytes, [0]) for path in lustre},
        {module: _records([each for each in records if each.module == module], paths) for module in FILE_MODULES},
        list(complaints),
    )


def _records(records: Sequence[Did], paths: Sequence[str]) -> FileRecords:
    files = np.array([paths.index(record.path) for record in records], np.intp)
    ranks = np.array([record.rank for record in records], np.int64)
    counters = [[record.counts.get(name, 0) for name in COUNTERS] for record in records]
    times = [[record.counts.get(name, 0.0) for name in TIMES] for record in records]
    return FileRecords(
        files,
        ranks,
        np.array(counters, np.int64).reshape(len(records), len(COUNTERS)),
        np.array(times, np.float64).reshape(len(records), len(TIMES)),
    )


def wheel_logs() -> list[Path]:
    """Those that PyDarshan brings along, each once; none without it."""
    spec = importlib.util.find_spec("darshan")
    if spec is None or not spec.origin:
        return []
    folder = Path(os.path.dirname(spec.origin))
    found = [*(folder / "examples" / "example_logs").glob("*.darshan"), *(folder / "tests" / "input").glob("*.darshan")]
    return sorted({path.name: path for path in found}.values())


def wheel_log(name: str) -> Path:
    found = {path.name: path for path in wheel_logs()}
    if name not in found:
        pytest.skip(f"PyDarshan with its {name} is not installed")
    return found[name]


def real_log(name: str) -> Path:
    path = REAL / name
    if not path.exists():
        pytest.skip(f"no {name} beside the project (../shared/data/darshan)")
    return path


def compressed_parts(log: bytes) -> dict[int, tuple[int, int]]:
    """By where the header tells of them: start and length, in the order of their start. The first are the names of files."""
    found: dict[int, tuple[int, int]] = {}
    for place in range(0, min(HEADER_BYTES, len(log)) - 16, 8):
        start, length = struct.unpack_from("<QQ", log, place)
        if not place + 16 <= start < start + length <= len(log) or length < 16 or log[start] != 0x78:
            continue
        try:
            if len(zlib.decompress(log[start : start + length])) >= 8:
                found[place] = (start, length)
        except zlib.error:
            continue
    return dict(sorted(found.items(), key=lambda pair: pair[1]))
