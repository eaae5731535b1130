"""A job's Darshan logs as one import: sums of what its ranks did, and what is worth saying about the logs.

Which log is of which rank and epoch is `darshan_job`'s business, what ranks have of a file that all of them used `darshan_shared`'s.
"""

import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import structs

from tierscope.imports.apart import PathNotes, apart_sums, sort_sums
from tierscope.imports.darshan_habits import HabitCounter, share_no_files
from tierscope.imports.darshan_job import CLOCK_SECONDS, Placed, place_logs, steps_of
from tierscope.imports.darshan_library import MPI_IO
from tierscope.imports.darshan_reader import MOST_COUNTED, MOST_SECONDS, DarshanLog, FileRecords, processes_of
from tierscope.imports.darshan_rows import (
    SHARED,
    LogTiers,
    columns_of,
    counted_records,
    rows_of,
    seen_by_posix,
    split_rows,
    with_shared,
)
from tierscope.imports.gathered import SUMS, GatheredLogs, ImportedEpoch
from tierscope.imports.paths import APART, STREAMS, UNKNOWN, TierRules
from tierscope.trace.described_logs import LogDoubts, LogFacts, LongMeta, SharedFiles, SpawnedWorkers

MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class DarshanOptions:
    epoch_gap_seconds: float | None = None
    shared: bool = True  # count records of files that all ranks used
    traced_reads: bool = False  # take reads from extended tracing (DXT), and nothing else


def import_logs(logs: Sequence[DarshanLog], rules: TierRules, options: DarshanOptions) -> GatheredLogs:
    gap = None if options.traced_reads else options.epoch_gap_seconds
    placed = list(place_logs(logs, gap))
    gathering = _Gathering(rules, options)
    for placed_log in placed:
        if options.traced_reads:
            gathering.add_traced(placed_log)
        else:
            gathering.add(placed_log)
    gathered = gathering.gathered(placed)
    if gap is None or not share_no_files(gathering.files_of_epochs()):
        return gathered
    whole = import_logs(logs, rules, replace(options, epoch_gap_seconds=None))
    return replace(whole, facts=structs.replace(whole.facts, own_files=True))


class _Gathering:
    """Sums over all records of all logs, and what is worth saying about them."""

    def __init__(self, rules: TierRules, options: DarshanOptions) -> None:
        self._rules, self._options = rules, options
        self._sums: list[pl.DataFrame] = []
        self._left_out: list[pl.DataFrame] = []  # shared records, where they do not count
        self._mpiio: list[pl.DataFrame] = []
        self._tiers: set[str] = set()
        self._notes = PathNotes()
        self._shared: dict[str, SharedFiles] = {}
        self._negative = 0
        self._strangers = 0
        self._partial: dict[str, int] = defaultdict(int)
        self._long_meta: list[LongMeta] = []
        self._habits: dict[str, HabitCounter] = {}
        self._traced_epochs: set[tuple[int, int]] = set()
        self.read_files: dict[tuple[int, int], set[str]] = defaultdict(set)  # by epoch and program

    def add(self, placed: Placed) -> None:
        log = placed.log
        tiers = LogTiers.of(self._rules, log)
        for module, facts in log.modules.items():
            self._partial[module] += bool(facts["partial"])
        meta = np.zeros(processes_of(log))
        for module, records in counted_records(log):
            of_records = tiers.codes[records.files]
            shared = records.ranks == SHARED
            good = (records.ranks >= 0) & (records.ranks < processes_of(log))
            counts = good | shared if self._options.shared else good
            self._note(module, records, tiers, counts, log)
            self._strangers += int((~good & ~shared).sum())
            np.add.at(meta, records.ranks[good], records.seconds("F_META_TIME")[good])
            self._sums += rows_of(placed, records.chosen(good), of_records[good], tiers.names)
            self._add_shared(placed, records, tiers, shared)
            read = counts & (records.counter("BYTES_READ") > 0) & ~tiers.apart[of_records]
            self.read_files[placed.epoch, placed.first_rank].update(
                map(log.paths.__getitem__, np.unique(records.files[read]).tolist())
            )
        self._doubt_meta(placed, meta)
        if MPI_IO in log.records and len(log.records[MPI_IO]):
            again = _of_nobody(log.records[MPI_IO].chosen(seen_by_posix(log)))
            self._mpiio += rows_of(placed, again, tiers.codes[again.files], tiers.names)

    def add_traced(self, placed: Placed) -> None:
        """Reads of extended tracing: they have times of their own, so a gap between them can begin an epoch."""
        segments = placed.log.segments
        if segments is None or not len(segments.files):
            return
        known = LogTiers.of(self._rules, placed.log)
        tiers = known.codes[segments.files]
        start, spent = segments.reads["start"], segments.reads["end"] - segments.reads["start"]
        good = (spent >= 0) & (spent <= MOST_SECONDS) & np.isfinite(start) & (segments.ranks >= 0)
        good &= segments.ranks < processes_of(placed.log)
        self._negative += int((~good).sum())
        data = good & ~known.apart[tiers]
        if not data.any():
            return
        self._tiers |= known.names_in(tiers[data])
        self._note_traced(placed.log, segments.files, data & (tiers == known.code(self._rules.other)), spent)
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
                    "tier": pl.Series(known.names, dtype=pl.String).gather(tiers[data]),
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

    def _note_traced(
        self,
        log: DarshanLog,
        files: npt.NDArray[np.intp],
        unknown: npt.NDArray[np.bool_],
        spent: npt.NDArray[np.float64],
    ) -> None:
        assert log.segments is not None
        moved = np.clip(log.segments.reads["length"], 0, MOST_COUNTED)
        self._note_paths(UNKNOWN, log, files, unknown, (np.ones(len(files), np.int64), moved, spent))

    def _note(
        self, module: str, records: FileRecords, tiers: LogTiers, counts: npt.NDArray[np.bool_], log: DarshanLog
    ) -> None:
        """What goes into findings rather than sums."""
        self._negative += int(records.impossible().sum())
        codes = tiers.codes[records.files]
        names = tiers.names_in(codes[counts])
        for name in (*APART, UNKNOWN):
            shown = self._rules.other if name == UNKNOWN else name
            if shown in names:
                chosen = counts & (codes == tiers.code(shown))
                seconds, ops, moved = (np.sum(parts, axis=0) for parts in zip(*columns_of(records), strict=True))
                self._note_paths(name, log, records.files, chosen, (ops, moved, seconds))
        self._tiers |= names - set(APART)
        for name in sorted(names - set(APART)):
            self._habits.setdefault(name, HabitCounter()).add(
                module, records, counts & (codes == tiers.code(name)), log
            )

    def _note_paths(
        self,
        name: str,
        log: DarshanLog,
        files: npt.NDArray[np.intp],
        chosen: npt.NDArray[np.bool_],
        columns: tuple[npt.NDArray[Any], ...],
    ) -> None:
        """`columns`: operations, bytes and seconds of every record."""
        distinct, places = np.unique(files[chosen], return_inverse=True)
        sums = [np.zeros(len(distinct), column.dtype) for column in columns]
        for summed, column in zip(sums, columns, strict=True):
            np.add.at(summed, places, column[chosen])
        weights = self._notes.weights[name]
        self._notes.files[name] += len(distinct)
        for file, *values in zip(distinct.tolist(), *(summed.tolist() for summed in sums), strict=True):
            path = log.paths[file] if file < len(log.paths) else ""
            weights.add(path if name == STREAMS else os.path.dirname(path), *values)

    def _add_shared(self, placed: Placed, records: FileRecords, tiers: LogTiers, shared: npt.NDArray[np.bool_]) -> None:
        """Records that Darshan reduced over all ranks: a part of them for every rank, or apart."""
        if not shared.any():
            return
        codes = tiers.codes[records.files]
        if not self._options.shared:
            self._left_out += rows_of(placed, _of_nobody(records.chosen(shared)), codes[shared], tiers.names)
        for name in sorted(tiers.names_in(codes[shared])):
            of_tier = records.chosen(shared & (codes == tiers.code(name)))
            if name not in APART:
                self._tiers.add(name)
                self._shared[name] = with_shared(self._shared.get(name), name, of_tier)
            if self._options.shared:
                self._sums.append(split_rows(placed, of_tier, name))

    def _doubt_meta(self, placed: Placed, meta: npt.NDArray[np.float64]) -> None:
        """No process can wait for metadata longer than it ran, unless in several threads."""
        ran = placed.log.job["end_seconds"] - placed.log.job["start_seconds"] + CLOCK_SECONDS
        rank = int(meta.argmax())
        if meta[rank] > ran:
            name = os.path.basename(placed.log.path)
            self._long_meta.append(LongMeta(log=name, meta_seconds=float(meta[rank]), run_seconds=float(ran)))

    def files_of_epochs(self) -> list[set[str]]:
        epochs: dict[int, set[str]] = defaultdict(set)
        for (epoch, _), files in self.read_files.items():
            epochs[epoch] |= files
        return list(epochs.values())

    def gathered(self, placed: Sequence[Placed]) -> GatheredLogs:
        ranks = {
            (placed_log.first_rank + rank, placed_log.epoch): ImportedEpoch(
                placed_log.first_rank + rank, placed_log.epoch
            )
            for placed_log in placed
            for rank in range(processes_of(placed_log.log))
        }
        for rank, epoch in sorted(self._traced_epochs):
            ranks.setdefault((rank, epoch), ImportedEpoch(rank, epoch))
        left_out = _together(self._left_out)
        sorted_sums = sort_sums(_together(self._sums), self._rules, self._tiers, self._notes, left_out=left_out)
        habits = {name: habit.counted() for name, habit in self._habits.items()}
        facts = LogFacts(
            source="darshan",
            logs=len(placed),
            process_count=sum({placed_log.process: processes_of(placed_log.log) for placed_log in placed}.values()),
            spawned=SpawnedWorkers(
                by_start=len({placed_log.process for placed_log in placed if placed_log.spawned is True}),
                alone=len({placed_log.process for placed_log in placed if placed_log.spawned is False}),
            ),
            doubts=LogDoubts(
                partial_modules={name: count for name, count in self._partial.items() if count},
                negative_times=self._negative,
                impossible_ranks=self._strangers,
                long_meta=tuple(self._long_meta[:MOST_NAMED]),
            ),
            program=sorted_sums.program,
            streams=sorted_sums.streams,
            unknown=sorted_sums.unknown,
            shared=tuple(self._shared[name] for name in sorted(self._shared)),
            shared_split=self._options.shared and bool(self._shared),
            left_out=apart_sums(left_out),
            mpiio=apart_sums(_together(self._mpiio)),
            traced_reads=self._options.traced_reads,
            steps=steps_of(placed),
            own_files=share_no_files(self.read_files.values()),
        )
        return GatheredLogs(sorted_sums.sums, list(ranks.values()), sorted_sums.tiers, facts, habits)


def _of_nobody(records: FileRecords) -> FileRecords:
    """Of which only the sums matter."""
    return replace(records, ranks=np.zeros_like(records.ranks))


def _together(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts) if parts else pl.DataFrame(schema=SUMS)


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
