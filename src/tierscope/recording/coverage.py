"""What was seen of a traced command, beside what the kernel counted of all its processes."""

from collections.abc import Collection
from dataclasses import replace

import polars as pl
from msgspec import structs

from tierscope.native.seen import read_seen
from tierscope.output.durable import boot_id
from tierscope.recording.collect import Collected
from tierscope.trace.coverage import Coverage, RealReads, coverage
from tierscope.trace.kernel_io import KernelIo
from tierscope.trace.limits import MOST_COUNTED


def coverage_of(
    folder: str, collected: Collected, kernel: KernelIo | None, emulated: Collection[str]
) -> Coverage | None:
    """`emulated`: tiers. `kernel`: counted while the command ran, of it and of all processes that were waited for. None: nobody counted what was seen."""
    elsewhere = read_seen(folder)
    if elsewhere is None:
        return None
    on_tiers = collected.table.filter(pl.col("record") == "io")
    read, written = (int(on_tiers.filter(pl.col("kind") == kind)["bytes"].sum()) for kind in ("read", "write"))
    real = on_tiers.filter(pl.col("kind") == "read", ~pl.col("tier").is_in(list(emulated)))
    sums = real.select(pl.col("bytes", "ops", "busy_seconds").sum()).row(0)
    records = collected.records
    elsewhere_hosts = sum(process.head.boot != boot_id() for process in collected.processes)
    if kernel is not None:
        kernel = replace(
            kernel,
            faults=max(0, kernel.faults - elsewhere.early_faults),
            written_bytes=max(0, kernel.written_bytes - elsewhere.own_written_bytes),
        )
    mapped = sum(sums.bytes for sums in records.mapped.values())
    counted = coverage(
        kernel,
        (read + elsewhere.read_bytes, written + elsewhere.written_bytes),
        RealReads(*sums),
        mapped_bytes=mapped,
        processes=elsewhere.processes,
        unknown=elsewhere_hosts + records.still_running,
        rings=elsewhere.rings,
    )
    return structs.replace(counted, mapped_writable_bytes=min(mapped, elsewhere.writable_bytes, MOST_COUNTED))
