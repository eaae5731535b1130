"""How a deep-learning program uses its storage, where that costs time: from sums over a trace and what an import tells beside them.

Thresholds stand in one table. Data first: every finding carries the numbers that it is made of.
"""

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import polars as pl
from msgspec import structs

from tierscope.analysis.breakdown import Breakdown
from tierscope.analysis.times import ClassTimes, category_of
from tierscope.analysis.wording import Finding
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.trace.described_logs import Habit
from tierscope.trace.description import Imported, StudyRun, Traced
from tierscope.trace.ops import CATEGORIES

THRESHOLDS: dict[str, float] = {
    "worth_share": 0.05,  # of all I/O seconds: what is said of a tier's reads is about so much at least
    "small_file_bytes": 1 << 20,  # smaller ones cost an open each for little data
    "many_files": 1000,
    "metadata_share": 0.5,  # of the slowest process's I/O time
    "small_request_bytes": 128 << 10,  # the mean request, where files are read in several
    "many_requests": 100,
    "requests_per_open": 4,
    "small_share": 0.5,  # of reads, where a few large ones make the mean large
    "large_request_bytes": 1 << 20,  # a typical storage transfer, where nothing better is known
    "skew": 1.5,  # slowest process ÷ median process
    "skew_ranks": 4,
    "node_skew": 1.3,  # slowest node ÷ median node
    "tier_imbalance": 0.4,  # share of the time − share of the bytes
    "stdio_share": 0.1,  # of reads
    "random_share": 0.5,  # of reads
    "again_share": 0.1,  # of files that were read
}


def about_habits(times: ClassTimes, breakdown: Breakdown, habits: Mapping[str, Habit]) -> Iterator[Finding]:
    """Of a stranger's program. `habits`: by tier, what an importer counted (trace/imports) or a trace's sums tell (own_habits)."""
    if not breakdown.best.io.median:
        return
    yield from _metadata(breakdown)
    yield from _skew(times)
    yield from _tiers(times, breakdown)
    spent = _seconds(times)
    for tier, habit in habits.items():
        if _is_worth(spent, tier, CATEGORIES):
            yield from _servers(tier, habit)
        if not _is_worth(spent, tier, ("READ", "META")):
            continue
        yield from _files(tier, habit)
        yield from _requests(tier, habit)
        again = habit.again_files, habit.read_files
        if times.table["epoch"].n_unique() > 1 and _exceeds(*again, "again_share"):
            yield Finding("read_again", {"tier": tier, "files": habit.again_files, "of": habit.read_files})


def _seconds(times: ClassTimes) -> dict[str, float]:
    """Of every class that counts, over all processes and epochs."""
    counted = times.table.filter(pl.col("class").is_in(times.io_classes))
    return dict(counted.group_by("class").agg(pl.col("seconds").sum()).rows())


def _is_worth(spent: Mapping[str, float], tier: str, categories: Iterable[str]) -> bool:
    """Whether advice about a tier can change the I/O time at all: what takes 4 ms of 13 s is not worth a word."""
    there = sum(spent.get(f"{tier.upper()}-{category}", 0.0) for category in categories)
    return there >= THRESHOLDS["worth_share"] * sum(spent.values())


def about_study(times: ClassTimes, breakdown: Breakdown) -> Iterator[Finding]:
    """Of our own benchmark. Where its time goes is what its sweep shows; said is what the study may not have meant, at the best point.

    All its tiers hold the same files and are read by the same loader, so one of them speaks for all: the one that is read most.
    """
    at_best = next((run for run in times.runs if run.about.sweep == breakdown.best.sweep), None)
    if at_best is None or not isinstance(at_best.about, StudyRun) or at_best.about.study is None:
        return
    study = parse_study(at_best.about.study, "the study of a run")
    yield from _unused(times, study)
    tier, habit = max(at_best.habits.items(), key=lambda pair: pair[1].reads, default=("", None))
    if habit is None:
        return
    files = study.workload.dataset.num_files_train
    alone = study.workload.dataset.num_samples_per_file == 1  # where opens are told: Darshan does not
    yield from _files(tier, structs.replace(habit, files=habit.opens) if alone and habit.opens is not None else habit)
    yield from _requests(tier, structs.replace(habit, transfer_bytes=study.workload.reader.transfer_size))
    for defined in study.system.tiers:
        if defined.emulate and defined.name in at_best.habits and files * defined.stripe_count < defined.servers:
            evidence = {
                "tier": defined.name,
                "files": files,
                "stripe_count": defined.stripe_count,
                "servers": defined.servers,
            }
            yield Finding("idle_servers", evidence)


def _exceeds(part: int | None, whole: int | None, share: str) -> bool:
    """Whether the part is known to be more of the whole than the threshold of that name."""
    return part is not None and whole is not None and part > THRESHOLDS[share] * whole


def _metadata(breakdown: Breakdown) -> Iterator[Finding]:
    """Where it takes most of all classes, also of those that were not asked for: the words compare it with reads and writes."""
    best = breakdown.best
    if "META" not in map(category_of, breakdown.io_classes):
        return
    read, meta, written = (
        sum(seconds for name, seconds in best.classes.items() if category_of(name) == category)
        for category in CATEGORIES
    )
    if meta > THRESHOLDS["metadata_share"] * max(best.io.median, read + meta + written):
        kind = "metadata_of_writes" if written >= read else "metadata_dominated"  # there are no samples to pack
        yield Finding(kind, {"percent": 100 * meta / best.io.median, "meta_seconds": meta})


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
        unplaced = any(isinstance(about, Imported) and about.facts.spawned.alone for about in times.about)
        yield (
            Finding("slow_unplaced", {"process": evidence.pop("rank"), **evidence})
            if unplaced
            else Finding("slow_process", evidence)
        )


def _tiers(times: ClassTimes, breakdown: Breakdown) -> Iterator[Finding]:
    """A tier that takes far more of the time than it gives of the bytes; one that was named and never used."""
    moved = _moved(times.table, "READ")
    total = sum(moved.values())
    if len(moved) < 2 or not total:
        return
    best = breakdown.best
    written = _moved(times.table, "WRITE")
    mapped = {
        tier for about in times.about if isinstance(about, Traced) for tier in about.records.mapped
    }  # what is read there is not seen
    untiered = {about.facts.unknown.tier for about in times.about if isinstance(about, Imported)}
    for tier, nbytes in sorted(moved.items()):
        if tier in untiered:
            continue  # a row for what matches no tier: nobody can move data to it or away
        of_tier = {f"{tier.upper()}-{kind}" for kind in ("READ", "META")}
        time = sum(best.classes[name] for name in breakdown.io_classes if name in of_tier) / best.io.median
        if nbytes and time - nbytes / total > THRESHOLDS["tier_imbalance"]:
            yield Finding(
                "unbalanced_tiers", {"tier": tier, "time_percent": 100 * time, "bytes_percent": 100 * nbytes / total}
            )
        if not nbytes and not written.get(tier) and tier not in mapped:
            yield Finding("tier_not_used", {"tier": tier, "bytes": total})


def _unused(times: ClassTimes, study: Study) -> Iterator[Finding]:
    """Near tiers that hold no file at any cache rate above zero."""
    table = times.table
    if "cache_rate" in times.sweep:
        table = table.filter(pl.col("cache_rate") > 0)
    elif not study.placement.cache_rate:
        return
    moved = _moved(table, "READ")
    for tier in study.system.tiers[:-1]:
        if sum(moved.values()) and not moved.get(tier.name):
            yield Finding("tier_not_used", {"tier": tier.name, "bytes": sum(moved.values())})


def _moved(table: pl.DataFrame, category: str) -> dict[str, int]:
    """Bytes by tier."""
    chosen = table.filter(pl.col("class").str.ends_with(f"-{category}"))
    sums = chosen.group_by("class").agg(pl.col("bytes").sum()).rows()
    return {name.removesuffix(f"-{category}").lower(): nbytes or 0 for name, nbytes in sums}


def _files(tier: str, habit: Habit) -> Iterator[Finding]:
    """Where nobody counted files, opens tell as much about their cost."""
    known = habit.files is not None
    kind, counted = ("small_files", "files") if known else ("small_opens", "opens")
    count = (habit.files if known else habit.opens) or 0
    if count >= THRESHOLDS["many_files"] and habit.read_bytes / count < THRESHOLDS["small_file_bytes"]:
        yield Finding(kind, {"tier": tier, counted: count, "mean_bytes": habit.read_bytes / count})
    if habit.stdio_reads and _exceeds(habit.stdio_reads, habit.reads, "stdio_share"):
        yield Finding("stdio_reads", {"tier": tier, "percent": 100 * habit.stdio_reads / habit.reads})


def _requests(tier: str, habit: Habit) -> Iterator[Finding]:
    if habit.random_reads and _exceeds(habit.random_reads, habit.reads, "random_share"):
        yield Finding("random_reads", {"tier": tier, "percent": 100 * habit.random_reads / habit.reads})
    reads, small = habit.reads, int(THRESHOLDS["small_request_bytes"])
    if reads < THRESHOLDS["many_requests"] or not _exceeds(reads, habit.opens, "requests_per_open"):
        return
    mean = habit.read_bytes / reads
    evidence = {"tier": tier, "reads": reads, "mean_bytes": mean}
    transfer = habit.transfer_bytes
    smaller = sum(count for limit, count in habit.sizes or () if limit is not None and limit <= small)
    if mean < small and transfer is not None and transfer < small and mean > transfer / 2:
        yield Finding("small_transfers", {**evidence, "transfer_bytes": transfer})
    elif mean < small:
        yield Finding("small_requests", {**evidence, **_limit(habit)})
    elif smaller > THRESHOLDS["small_share"] * reads:
        percent = 100 * smaller / reads
        yield Finding("mostly_small", {"tier": tier, "reads": reads, "percent": percent, "limit_bytes": small})


def _limit(habit: Habit) -> dict[str, str | int]:
    """What a request could be as large as, in words and bytes."""
    for nbytes, words in ((habit.transfer_bytes, "the transfer size"), (habit.stripe_bytes, "the stripe size")):
        if nbytes:
            return {"limit": words, "limit_bytes": nbytes}
    return {"limit": "a typical storage transfer", "limit_bytes": int(THRESHOLDS["large_request_bytes"])}


def _servers(tier: str, habit: Habit) -> Iterator[Finding]:
    """Where Lustre said on which object servers files lie."""
    if habit.striped_files > 1 and habit.servers == 1:
        yield Finding("one_server", {"tier": tier, "files": habit.striped_files})
    elif habit.striped_large_on_one:
        yield Finding("large_on_one_server", {"tier": tier, "files": habit.striped_large_on_one})
