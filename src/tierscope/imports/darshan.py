"""A job's Darshan logs as one import: sums of what its ranks did, and what is worth saying about the logs.

Which log is of which rank and epoch is `darshan_job`'s business.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tierscope.imports.darshan_habits import HabitCounter
from tierscope.imports.darshan_job import CLOCK_SECONDS, Placed, place_logs
from tierscope.imports.darshan_reader import MOST_COUNTED, MOST_SECONDS, DarshanLog, FileRecords, processes_of
from tierscope.imports.gathered import SUMS, GatheredLogs, ImportedEpoch
from tierscope.imports.paths import PROGRAM, UNKNOWN, TierRules, common_folder
from tierscope.trace.described_logs import (
    ApartSums,
    LogDoubts,
    LogFacts,
    LongMeta,
    SharedFiles,
    SpawnedWorkers,
    UnknownPaths,
    tallied,
)

SHARED = -1  # the rank of a record that Darshan reduced over all ranks
MOST_NAMED = 5
NAMELESS = "(no path)"
# kind → counters of its operations, counter of its bytes, and its time. Darshan does not tell opens, closes, stats and seeks apart in time.
_KINDS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("read", ("READS",), "BYTES_READ", "F_READ_TIME"),
    ("meta", ("OPENS", "STATS", "SEEKS", "MMAPS"), "", "F_META_TIME"),
    ("write", ("WRITES", "FSYNCS", "FDSYNCS", "FLUSHES"), "BYTES_WRITTEN", "F_WRITE_TIME"),
)


@dataclass(frozen=True, slots=True)
class DarshanOptions:
    epoch_gap_seconds: float | None = None
    split_shared: bool = False  # give every rank an equal part of shared records
    traced_reads: bool = False  # take reads from extended tracing (DXT), and nothing else


def import_logs(logs: Sequence[DarshanLog], rules: TierRules, options: DarshanOptions) -> GatheredLogs:
    gap = None if options.traced_reads else options.epoch_gap_seconds
    placed = list(place_logs(logs, gap))
    gathering = _Gathering(rules, options)
    for each in placed:
        if options.traced_reads:
            gathering.add_traced(each)
        else:
            gathering.add(each)
    return gathering.gathered(placed)


class _Gathering:
    """Sums over all records of all logs, and what is worth saying about them."""

    def __init__(self, rules: TierRules, options: DarshanOptions) -> None:
        self._rules, self._options = rules, options
        self._sums: list[pl.DataFrame] = []
        self._tiers: set[str] = set()
        self._apart = {name: ApartSums() for name in (PROGRAM, UNKNOWN)}
        self._unknown: dict[str, int] = defaultdict(int)  # bytes by folder
        self._shared: list[SharedFiles] = []
        self._negative = 0
        self._strangers = 0
        self._meta_seconds: dict[tuple[int, int], float] = defaultdict(float)
        self._partial: dict[str, int] = defaultdict(int)
        self._long_meta: list[LongMeta] = []
        self._habits: dict[str, HabitCounter] = {}
        self._traced_epochs: set[tuple[int, int]] = set()

    def add(self, placed: Placed) -> None:
        log = placed.log
        names = np.array([*self._rules.of_all(log.paths, log.mounts, set(log.stripes)), ""], dtype=object)
        for module, facts in log.modules.items():
            self._partial[module] += bool(facts["partial"])
        meta = np.zeros(processes_of(log))
        for module, records in log.records.items():
            if not len(records):
                continue
            tiers = names[records.files]
            self._note(module, records, tiers, log)
            good = (records.ranks >= 0) & (records.ranks < processes_of(log))
            self._strangers += int((~good & (records.ranks != SHARED)).sum())
            np.add.at(meta, records.ranks[good], records.seconds("F_META_TIME")[good])
            self._add_sums(placed, records, tiers, records.ranks + placed.first_rank, good)
            self._add_shared(placed, records, tiers)
        self._doubt_meta(placed, meta)

    def add_traced(self, placed: Placed) -> None:
        """Reads of extended tracing: they have times of their own, so a gap between them can begin an epoch."""
        segments = placed.log.segments
        if segments is None or not len(segments.files):
            return
        names = np.array(
            [*self._rules.of_all(placed.log.paths, placed.log.mounts, set(placed.log.stripes)), ""], dtype=object
        )
        tiers = names[segments.files]
        start, spent = segments.reads["start"], segments.reads["end"] - segments.reads["start"]
        good = (spent >= 0) & (spent <= MOST_SECONDS) & np.isfinite(start) & (segments.ranks >= 0)
        good &= segments.ranks < processes_of(placed.log)
        self._negative += int((~good).sum())
        data = good & ~np.isin(tiers, [PROGRAM, UNKNOWN])
        if not data.any():
            return
        self._tiers |= set(tiers[data])
        epochs = _epochs_of_starts(start[data], segments.reads["end"][data], self._options.epoch_gap_seconds)
        self._traced_epochs |= {
            (placed.first_rank + rank, int(epoch))
            for rank in range(processes_of(placed.log))
            for epoch in np.unique(epochs)
        }
        self._sums.append(
            pl.DataFrame(
                {
                    "epoch": epochs + placed.epoch - 1,
                    "rank": segments.ranks[data] + placed.first_rank,
                    "tier": tiers[data].tolist(),
                    "kind": np.full(int(data.sum()), "read").tolist(),
                    "busy_seconds": spent[data],
                    "ops": np.ones(int(data.sum()), np.int64),
                    "bytes": np.clip(segments.reads["length"][data], 0, MOST_COUNTED),
                },
                SUMS,
            )
            .group_by("epoch", "rank", "tier", "kind", maintain_order=True)
            .sum()
        )

    def _note(self, module: str, records: FileRecords, tiers: npt.NDArray[Any], log: DarshanLog) -> None:
        """What goes into findings rather than sums."""
        self._negative += int(records.impossible().sum())
        seconds = records.seconds("F_READ_TIME") + records.seconds("F_WRITE_TIME") + records.seconds("F_META_TIME")
        moved = records.counter("BYTES_READ") + records.counter("BYTES_WRITTEN")
        done = records.counter("OPENS") + records.counter("READS") + records.counter("WRITES")
        for name, apart in self._apart.items():
            chosen = tiers == name
            self._apart[name] = ApartSums(
                ops=tallied(apart.ops + int(done[chosen].sum())),
                bytes=tallied(apart.bytes + int(moved[chosen].sum())),
                seconds=apart.seconds + float(seconds[chosen].sum()),
                files=apart.files + len(np.unique(records.files[chosen])),
            )
        for place in np.flatnonzero(tiers == UNKNOWN):
            self._unknown[os.path.dirname(log.paths[records.files[place]]) or NAMELESS] += int(moved[place])
        for name in sorted(set(tiers) - {PROGRAM, UNKNOWN}):
            self._habits.setdefault(name, HabitCounter()).add(module, records, tiers == name, log)

    def _add_sums(
        self,
        placed: Placed,
        records: FileRecords,
        tiers: npt.NDArray[Any],
        ranks: npt.NDArray[np.int64],
        chosen: npt.NDArray[np.bool_],
    ) -> None:
        """Rows of READ, META and WRITE for the records that are data."""
        data = chosen & ~np.isin(tiers, [PROGRAM, UNKNOWN])
        if not data.any():
            return
        columns: dict[str, Any] = {"rank": ranks[data], "tier": tiers[data].tolist()}
        for kind, counters, moved, seconds in _KINDS:
            columns[f"{kind}_seconds"] = records.seconds(seconds)[data]
            columns[f"{kind}_ops"] = np.sum([records.counter(name)[data] for name in counters], axis=0)
            columns[f"{kind}_bytes"] = records.counter(moved)[data] if moved else np.zeros(int(data.sum()), np.int64)
        summed = pl.DataFrame(columns).group_by("rank", "tier", maintain_order=True).sum()
        self._tiers |= set(summed["tier"])
        for kind, *_ in _KINDS:
            named = {f"{kind}_seconds": "busy_seconds", f"{kind}_ops": "ops", f"{kind}_bytes": "bytes"}
            rows = summed.rename(named).with_columns(epoch=pl.lit(placed.epoch), kind=pl.lit(kind))
            self._sums.append(rows.select(pl.col(name).cast(dtype) for name, dtype in SUMS.items()))

    def _add_shared(self, placed: Placed, records: FileRecords, tiers: npt.NDArray[Any]) -> None:
        """Records that Darshan reduced over all ranks: apart, or an equal part of each for every rank."""
        shared = records.ranks == SHARED
        data = shared & ~np.isin(tiers, [PROGRAM, UNKNOWN])
        if not data.any():
            return
        self._tiers |= set(tiers[data])
        if self._options.split_shared:
            before = len(self._sums)
            self._add_sums(placed, records, tiers, np.zeros(len(records), np.int64), shared)
            self._sums[before:] = [_split(part, placed) for part in self._sums[before:]]
        for name in sorted(set(tiers[data])):
            chosen = data & (tiers == name)
            self._shared.append(
                SharedFiles(
                    tier=name,
                    files=int(chosen.sum()),
                    bytes=tallied(int(records.counter("BYTES_READ")[chosen].sum())),
                    read_seconds=float(records.seconds("F_READ_TIME")[chosen].sum()),
                    meta_seconds=float(records.seconds("F_META_TIME")[chosen].sum()),
                    fastest_seconds=float(records.seconds("F_FASTEST_RANK_TIME")[chosen].min()),
                    slowest_seconds=float(records.seconds("F_SLOWEST_RANK_TIME")[chosen].max()),
                )
            )

    def _doubt_meta(self, placed: Placed, meta: npt.NDArray[np.float64]) -> None:
        """No process can wait for metadata longer than it ran, unless in several threads."""
        ran = placed.log.job["end_seconds"] - placed.log.job["start_seconds"] + CLOCK_SECONDS
        rank = int(meta.argmax())
        if meta[rank] > ran:
            name = os.path.basename(placed.log.path)
            self._long_meta.append(LongMeta(log=name, meta_seconds=float(meta[rank]), run_seconds=float(ran)))

    def gathered(self, placed: Sequence[Placed]) -> GatheredLogs:
        ranks = {
            (each.first_rank + rank, each.epoch): ImportedEpoch(each.first_rank + rank, each.epoch)
            for each in placed
            for rank in range(processes_of(each.log))
        }
        for rank, epoch in sorted(self._traced_epochs):
            ranks.setdefault((rank, epoch), ImportedEpoch(rank, epoch))
        sums = pl.concat(self._sums) if self._sums else pl.DataFrame(schema=SUMS)
        habits = {name: habit.counted() for name, habit in self._habits.items()}
        return GatheredLogs(sums, list(ranks.values()), self._rules.order(self._tiers), self._facts(placed), habits)

    def _facts(self, placed: Sequence[Placed]) -> LogFacts:
        unknown = self._apart[UNKNOWN]
        folders = sorted(self._unknown.items(), key=lambda pair: -pair[1])[:MOST_NAMED]
        return LogFacts(
            source="darshan",
            logs=len(placed),
            process_count=sum({each.process: processes_of(each.log) for each in placed}.values()),
            spawned=SpawnedWorkers(
                by_start=len({each.process for each in placed if each.spawned is True}),
                alone=len({each.process for each in placed if each.spawned is False}),
            ),
            doubts=LogDoubts(
                partial_modules={name: count for name, count in self._partial.items() if count},
                negative_times=self._negative,
                impossible_ranks=self._strangers,
                long_meta=tuple(self._long_meta[:MOST_NAMED]),
            ),
            program=self._apart[PROGRAM],
            unknown=UnknownPaths(
                ops=unknown.ops,
                bytes=unknown.bytes,
                seconds=unknown.seconds,
                files=unknown.files,
                folders=tuple((folder, tallied(size)) for folder, size in folders),
                suggestion=_suggested([folder for folder, _ in folders]),
            ),
            shared=tuple(self._shared[:MOST_NAMED]),
            shared_split=self._options.split_shared,
            traced_reads=self._options.traced_reads,
        )


def _split(summed: pl.DataFrame, placed: Placed) -> pl.DataFrame:
    """An equal part for every rank; what does not divide goes to the first ones."""
    processes = processes_of(placed.log)
    ranks = pl.DataFrame({"rank": np.arange(processes)}, {"rank": pl.Int64})
    even = [
        (pl.col(name) // processes + (pl.col("rank") < pl.col(name) % processes).cast(pl.Int64)).alias(name)
        for name in ("ops", "bytes")
    ]
    return (
        summed.drop("rank")
        .join(ranks, how="cross")
        .with_columns(*even, pl.col("busy_seconds") / processes)
        .with_columns(pl.col("rank") + placed.first_rank)
        .select(pl.col(name).cast(dtype) for name, dtype in SUMS.items())
    )


def _epochs_of_starts(
    starts: npt.NDArray[np.float64], ends: npt.NDArray[np.float64], gap: float | None
) -> npt.NDArray[np.int64]:
    """Which epoch each read is in: a new one begins where nobody has been reading for so long."""
    if gap is None:
        return np.ones(len(starts), np.int64)
    order = np.argsort(starts, kind="stable")
    idle = starts[order][1:] - np.maximum.accumulate(ends[order])[:-1]
    epochs = np.ones(len(starts), np.int64)
    epochs[order[1:]] += np.cumsum(idle > gap)
    return epochs


def _suggested(folders: list[str]) -> str:
    """A path for --tier that covers these folders, or the first of them."""
    absolute = [folder for folder in folders if folder.startswith("/") and folder.strip("/")]
    shared = common_folder(absolute)
    return shared if shared.strip("/") else (absolute or ["/path"])[0]
