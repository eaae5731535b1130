"""How a deep-learning program uses its storage, where that costs time: from sums over a trace and what an import tells beside them.

Thresholds stand in one table. Data first: every finding carries the numbers that it is made of.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from tierscope.analysis.breakdown import Breakdown
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.wording import Finding

THRESHOLDS: dict[str, float] = {
    "small_file_bytes": 1 << 20,  # smaller ones cost an open each for little data
    "many_files": 1000,
    "metadata_share": 0.5,  # of the slowest process's I/O time
    "small_request_bytes": 128 << 10,  # the mean request, where files are read in several
    "requests_per_open": 4,
    "skew": 1.5,  # slowest process ÷ median process
    "skew_ranks": 4,
    "node_skew": 1.3,  # slowest node ÷ median node
    "tier_imbalance": 0.4,  # share of the time − share of the bytes
    "stdio_share": 0.1,  # of reads
    "random_share": 0.5,  # of reads
    "again_share": 0.1,  # of files that were read
}


def about_habits(times: ClassTimes, breakdown: Breakdown, habits: dict[str, Any]) -> Iterator[Finding]:
    """`habits`: by tier, what an importer counted (trace/imports); empty where there is only the trace."""
    if not breakdown.best.io.median:
        return
    yield from _metadata(breakdown)
    yield from _skew(times)
    yield from _tiers(times, breakdown)
    for tier, habit in habits.items():
        yield from _files(tier, habit)
        yield from _requests(tier, habit)
        yield from _servers(tier, habit)
        if (
            times.table["epoch"].n_unique() > 1
            and habit["again_files"] > THRESHOLDS["again_share"] * habit["read_files"]
        ):
            yield Finding("read_again", {"tier": tier, "files": habit["again_files"], "of": habit["read_files"]})


def _metadata(breakdown: Breakdown) -> Iterator[Finding]:
    best = breakdown.best
    meta = sum(seconds for name, seconds in best.classes.items() if name.endswith("-META"))
    if meta > THRESHOLDS["metadata_share"] * best.io.median:
        yield Finding("metadata_dominated", {"percent": 100 * meta / best.io.median, "meta_seconds": meta})


def _skew(times: ClassTimes) -> Iterator[Finding]:
    """One process, or all of one node, far slower than the others."""
    io = times.table.filter(pl.col("class").is_in(times.io_classes))
    by_rank = io.group_by([*times.keys, "node", "rank"]).agg(pl.col("seconds").sum())
    last = by_rank.filter(pl.col("epoch") == pl.col("epoch").max())
    seconds = last["seconds"].to_numpy()
    if len(seconds) < THRESHOLDS["skew_ranks"] or not np.median(seconds):
        return
    ratio = float(seconds.max() / np.median(seconds))
    if ratio <= THRESHOLDS["skew"]:
        return
    nodes = last.drop_nulls("node").group_by("node").agg(pl.col("seconds").mean()).sort("seconds")
    slow = float(nodes["seconds"][-1] / nodes["seconds"].median()) if len(nodes) > 1 else 1.0
    slowest = last.sort("seconds", descending=True).row(0, named=True)
    if slow > THRESHOLDS["node_skew"]:
        yield Finding("slow_node", {"node": nodes["node"][-1], "times": slow, "nodes": len(nodes)})
    else:
        median = float(np.median(seconds))
        evidence = {
            "rank": slowest["rank"],
            "times": ratio,
            "slowest_seconds": slowest["seconds"],
            "median_seconds": median,
        }
        yield Finding("slow_process", evidence)


def _tiers(times: ClassTimes, breakdown: Breakdown) -> Iterator[Finding]:
    """A tier that takes far more of the time than it gives of the bytes; a near tier that gives none."""
    reads = times.table.filter(pl.col("class").str.ends_with("-READ"))
    moved = {
        name.removesuffix("-READ"): nbytes or 0
        for name, nbytes in reads.group_by("class").agg(pl.col("bytes").sum()).rows()
    }
    total = sum(moved.values())
    if len(moved) < 2 or not total:
        return
    best = breakdown.best
    for tier, nbytes in sorted(moved.items()):
        time = sum(best.classes.get(f"{tier}-{kind}", 0.0) for kind in ("READ", "META")) / best.io.median
        if nbytes and time - nbytes / total > THRESHOLDS["tier_imbalance"]:
            yield Finding(
                "unbalanced_tiers",
                {"tier": tier.lower(), "time_percent": 100 * time, "bytes_percent": 100 * nbytes / total},
            )
        if not nbytes:
            yield Finding("tier_not_used", {"tier": tier.lower(), "bytes": total})


def _files(tier: str, habit: dict[str, Any]) -> Iterator[Finding]:
    files, nbytes = habit["files"], habit["read_bytes"]
    if files >= THRESHOLDS["many_files"] and nbytes / files < THRESHOLDS["small_file_bytes"]:
        yield Finding("small_files", {"tier": tier, "files": files, "mean_bytes": nbytes / files})
    if habit["stdio_reads"] > THRESHOLDS["stdio_share"] * habit["reads"]:
        yield Finding("stdio_reads", {"tier": tier, "percent": 100 * habit["stdio_reads"] / habit["reads"]})


def _requests(tier: str, habit: dict[str, Any]) -> Iterator[Finding]:
    reads, opens = habit["reads"], habit["opens"]
    if not reads:
        return
    mean = habit["read_bytes"] / reads
    if reads > THRESHOLDS["requests_per_open"] * opens and mean < THRESHOLDS["small_request_bytes"]:
        yield Finding("small_requests", {"tier": tier, "reads": reads, "mean_bytes": mean})
    if habit["random_reads"] > THRESHOLDS["random_share"] * reads:
        yield Finding("random_reads", {"tier": tier, "percent": 100 * habit["random_reads"] / reads})


def _servers(tier: str, habit: dict[str, Any]) -> Iterator[Finding]:
    """Where Lustre said on which object servers files lie."""
    if habit["striped_files"] > 1 and habit["servers"] == 1:
        yield Finding("one_server", {"tier": tier, "files": habit["striped_files"]})
    elif habit["striped_large_on_one"]:
        yield Finding("large_on_one_server", {"tier": tier, "files": habit["striped_large_on_one"]})
