"""What Darshan's own counters tell beside the sums of an import: order of reads, sizes, files and their endings; and with DXT, when."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from tierscope.analysis.character_metrics import limited
from tierscope.analysis.character_ops import MOST_FILES, Accesses, FileUse, OpList, in_order, suffix_of
from tierscope.imports.darshan_habits import HabitCounter
from tierscope.imports.darshan_job import Placed, place_logs
from tierscope.imports.darshan_reader import MOST_COUNTED, MOST_SECONDS, DarshanLog, FileRecords, read_logs
from tierscope.imports.paths import PROGRAM, UNKNOWN, TierRules
from tierscope.output.op_list import SCHEMA

_ORDERED = "POSIX"  # the module that counts the order and sizes of reads
BASIS = "counters"


def read_accesses(paths: Sequence[str], rules: TierRules) -> tuple[Accesses | None, list[OpList]]:
    """Of a job's logs; and where extended tracing was on, its reads as a list of operations, by the calendar's clock."""
    logs = [log for log in read_logs(paths, segments=True) if isinstance(log, DarshanLog)]
    counting = _Counting(rules)
    lists: list[pl.DataFrame] = []
    for placed in place_logs(logs, None):
        counting.add(placed.log)
        if (traced := _traced(placed, rules)) is not None:
            lists.append(traced)
    return counting.accesses(), [OpList(pl.concat(lists).lazy())] if lists else []


@dataclass(slots=True)
class _Counting:
    rules: TierRules
    following: int = 0
    sequential: int = 0
    consecutive: int = 0
    sizes: HabitCounter = field(default_factory=HabitCounter)
    files: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # ranks, reads, bytes, seconds

    def add(self, log: DarshanLog) -> None:
        tiers = np.array([*_tiers(self.rules, log), UNKNOWN], dtype=object)
        for module, records in log.records.items():
            of_record = tiers[records.files]
            chosen = ~np.isin(of_record, [PROGRAM, UNKNOWN])
            if not chosen.any():
                continue
            if module == _ORDERED:
                self._add_order(records, chosen)
                self.sizes.add(module, records, chosen, log)
            self._add_files(records, chosen, of_record, log)

    def _add_order(self, records: FileRecords, chosen: npt.NDArray[np.bool_]) -> None:
        """A first read after an open follows none; where Darshan calls it sequential (it began behind the start), it is no more than others."""
        following = np.maximum(records.counter("READS") - records.counter("OPENS"), 0)[chosen]
        sequential = np.minimum(records.counter("SEQ_READS")[chosen], following)
        self.following += int(following.sum())
        self.sequential += int(sequential.sum())
        self.consecutive += int(np.minimum(records.counter("CONSEC_READS")[chosen], sequential).sum())

    def _add_files(
        self, records: FileRecords, chosen: npt.NDArray[np.bool_], tiers: npt.NDArray[np.object_], log: DarshanLog
    ) -> None:
        columns = (records.counter("READS"), records.counter("BYTES_READ"), records.seconds("F_READ_TIME"))
        for place in np.flatnonzero(chosen & (columns[0] > 0)).tolist():
            found = self.files.setdefault((tiers[place], log.paths[records.files[place]]), [0, 0, 0, 0.0])
            for at, value in enumerate((1, *(column[place].item() for column in columns))):
                found[at] += value

    def accesses(self) -> Accesses | None:
        if not self.files:
            return None
        largest = sorted(self.files.items(), key=lambda pair: (-pair[1][2], pair[0]))[:MOST_FILES]
        formats: dict[str, list[float]] = {}
        for (_, path), (_, *sums) in self.files.items():
            found = formats.setdefault(suffix_of(path), [0, 0, 0, 0.0])
            for at, value in enumerate((1, *sums)):
                found[at] += value
        return Accesses(
            BASIS,
            self.following,
            self.sequential,
            self.consecutive,
            len(self.files),
            tuple(
                FileUse(tier, path, int(ranks), int(reads), int(moved), seconds)
                for (tier, path), (ranks, reads, moved, seconds) in largest
            ),
            tuple(in_order(formats)),
            tuple(limited(dict(self.sizes.counted().sizes or ()))),
        )


def _tiers(rules: TierRules, log: DarshanLog) -> list[str]:
    return rules.of_all(log.paths, log.mounts, set(log.stripes))


def _traced(placed: Placed, rules: TierRules) -> pl.DataFrame | None:
    """Reads of extended tracing as a list of operations; starts are by the calendar."""
    segments, log = placed.log.segments, placed.log
    if segments is None or not len(segments.files):
        return None
    tiers = np.array([*_tiers(rules, log), UNKNOWN], dtype=object)[segments.files]
    reads = segments.reads
    spent = reads["end"] - reads["start"]
    good = (spent >= 0) & (spent <= MOST_SECONDS) & (np.abs(reads["start"]) <= MOST_SECONDS) & (segments.ranks >= 0)
    good &= ~np.isin(tiers, [PROGRAM, UNKNOWN])
    count = int(good.sum())
    if not count:
        return None
    columns = {
        "rank": segments.ranks[good] + placed.first_rank,
        "lane": np.zeros(count, np.int32),
        "epoch": np.full(count, placed.epoch),
        "step": np.full(count, -1),
        "tier": tiers[good].tolist(),
        "kind": ["read"] * count,
        "file": segments.files[good],
        "offset": reads["offset"][good],
        "bytes": np.clip(reads["length"][good], 0, MOST_COUNTED),
        "start_seconds": reads["start"][good] + float(log.job["start_seconds"]),
        "seconds": spent[good],
    }
    return pl.DataFrame(columns).select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())


def logs_in(folder: str, suffixes: Sequence[str]) -> list[str]:
    """Logs that lie in a directory, by their names."""
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(tuple(suffixes)))
