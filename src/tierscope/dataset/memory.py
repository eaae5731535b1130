"""Is there memory for it? Asked before it is filled."""

import contextlib
import os
import re

from tierscope.errors import UserError
from tierscope.spec.study import Workload
from tierscope.units import about_bytes

_SHARE = 0.8  # of what is free


def check_memory(needed: int, workload: Workload) -> None:
    """Refuse a dataset that all ranks together cannot hold in this host's free memory."""
    free = free_memory()
    if needed <= _SHARE * free:
        return
    key, fix = "workload.reader.read_ahead = all", "read_ahead: batches"
    if workload.reader.read_ahead != "all":
        key, fix = f"workload.model.data = {workload.model.data}", "data: tiers"
    local = "" if workload.reader.shuffle == "local" else "shuffle: local, "
    raise UserError(
        f"{key}; the ranks' samples take {about_bytes(needed)} of memory, more than {100 * _SHARE:.0f} % of the {about_bytes(free)} that are free; "
        f"use fewer ranks or samples, {local}or {fix}"
    )


def free_memory(meminfo: str = "/proc/meminfo") -> int:
    """With what the page cache would give up: it is full of the files that were just written."""
    with contextlib.suppress(OSError), open(meminfo, encoding="ascii") as text:
        if match := re.search(r"^MemAvailable: +(\d+) kB$", text.read(), re.MULTILINE):
            return int(match[1]) * 1024
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
