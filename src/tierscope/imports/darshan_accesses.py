"""What Darshan's own counters tell beside the sums of an import: order of reads, sizes, files and their endings; and with DXT, when."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import polars as pl

from tierscope.analysis.character_metrics import limited
from tierscope.analysis.character_ops import MOST_FILES, Accesses, AccessOrder, FileUse, OpList, in_order, suffix_of
from tierscope.imports.darshan_habits import HabitCounter
from tierscope.imports.darshan_job import Placed, place_logs
from tierscope.imports.darshan_reader import (
    MOST_COUNTED,
    MOST_SECONDS,
    DarshanLog,
    FileRecords,
    processes_of,
    read_logs,
)
from tierscope.imports.darshan_rows import SHARED, LogTiers, counted_records
from tierscope.imports.paths import TierRules
from tierscope.output.op_list import SCHEMA

_ORDERED = "POSIX"  # the module that counts the order and sizes of reads
BASIS = "counters"


def read_accesses(paths: Sequence[str], rules: TierRules, shared: bool = True) -> tuple[Accesses | None, list[OpList]]:
    """Of a job's logs; and where extended tracing was on, its reads as a list of operations, by the calendar's clock. `shared`: as the import counts."""
    logs = [log for log in read_logs(paths, segments=True) if isinstance(log, DarshanLog)]
    counting = _Counting(rules, shared)
    lists: list[pl.DataFrame] = []
    for placed in place_logs(logs, None):
        counting.add(placed.log)
        if (traced := _traced(placed, rules)) is not None:
            lists.append(traced)
    return counting.accesses(), [OpList(pl.concat(lists).lazy())] if lists else []


@dataclass(slots=True)
class _Counting:
    """The same records as those of the import's sums."""

    rules: TierRules
    shared: bool
    order: dict[str, list[int]] = field(default_factory=lambda: {"READS": [0, 0, 0], "WRITES": [0, 0, 0]})
    writes: int = 0
    sizes: HabitCounter = field(default_factory=HabitCounter)
    files: dict[tuple[str, str], list[float]] = field(default_factory=dict)  # ranks, reads, bytes, seconds, written

    def add(self, log: DarshanLog) -> None:
        tiers = LogTiers.of(self.rules, log)
        for module, records in counted_records(log):
            codes = tiers.codes[records.files]
            good = (records.ranks >= 0) & (records.ranks < processes_of(log))
            chosen = ~tiers.apart[codes] & (good | (self.shared & (records.ranks == SHARED)))
            if not chosen.any():
                continue
            if module == _ORDERED:
                self._add_order(records, chosen)
            self.writes += int(records.counter("WRITES")[chosen].sum())
            self.sizes.add(module, records, chosen, log)
            self._add_files(records, chosen, tiers, log)

    def _add_order(self, records: FileRecords, chosen: npt.NDArray[np.bool_]) -> None:
        """As Darshan counts them, but no more than there are."""
        for what, counts in self.order.items():
            most = records.counter(what)[chosen]
            counts[0] += int(most.sum())
            for place, name in ((1, f"SEQ_{what}"), (2, f"CONSEC_{what}")):
                most = np.minimum(records.counter(name)[chosen], most)
                counts[place] += int(most.sum())

    def _add_files(self, records: FileRecords, chosen: npt.NDArray[np.bool_], tiers: LogTiers, log: DarshanLog) -> None:
        moved, written = records.counter("BYTES_READ"), records.counter("BYTES_WRITTEN")
        ranks = np.where(records.ranks == SHARED, processes_of(log), 1)
        columns = (ranks, records.counter("READS"), moved, records.seconds("F_READ_TIME"), written)
        used = (columns[1] > 0) | (records.counter("WRITES") > 0)
        codes = tiers.codes[records.files]
        for place in np.flatnonzero(chosen & used).tolist():
            key = tiers.names[codes[place]], log.paths[records.files[place]]
            sums = self.files.setdefault(key, [0, 0, 0, 0.0, 0])
            for at, column in enumerate(columns):
                sums[at] += column[place].item()

    def accesses(self) -> Accesses | None:
        if not self.files:
            return None
        largest = sorted(self.files.items(), key=lambda pair: (-pair[1][2] - pair[1][4], pair[0]))[:MOST_FILES]
        formats: dict[str, list[float]] = {}
        for (_, path), (_, *sums, _) in self.files.items():
            totals = formats.setdefault(suffix_of(path), [0, 0, 0, 0.0])
            for at, value in enumerate((1, *sums)):
                totals[at] += value
        sized = self.sizes.reads - self.sizes.stdio_reads, self.sizes.read_bytes - self.sizes.stdio_bytes
        return Accesses(
            BASIS,
            AccessOrder(*self.order["READS"]),
            AccessOrder(*self.order["WRITES"]),
            len(self.files),
            tuple(
                FileUse(tier, path, int(ranks), int(reads), int(moved), seconds, int(written))
                for (tier, path), (ranks, reads, moved, seconds, written) in largest
            ),
            tuple(in_order(formats)),
            tuple(limited(dict(self.sizes.counted().sizes or ()))),
            sized=sized,
            all_writes=self.writes,
        )


def _traced(placed: Placed, rules: TierRules) -> pl.DataFrame | None:
    """Reads of extended tracing as a list of operations; starts are by the calendar."""
    segments, log = placed.log.segments, placed.log
    if segments is None or not len(segments.files):
        return None
    known = LogTiers.of(rules, log)
    codes = known.codes[segments.files]
    reads = segments.reads
    spent = reads["end"] - reads["start"]
    good = (spent >= 0) & (spent <= MOST_SECONDS) & (np.abs(reads["start"]) <= MOST_SECONDS) & (segments.ranks >= 0)
    good &= ~known.apart[codes]
    count = int(good.sum())
    if not count:
        return None
    columns = {
        "rank": segments.ranks[good] + placed.first_rank,
        "lane": np.zeros(count, np.int32),
        "epoch": np.full(count, placed.epoch),
        "step": np.full(count, -1),
        "tier": pl.Series(known.names, dtype=pl.String).gather(codes[good]),
        "kind": ["read"] * count,
        "file": segments.files[good],
        "offset": reads["offset"][good],
        "bytes": np.clip(reads["length"][good], 0, MOST_COUNTED),
        "start_seconds": reads["start"][good] + float(log.job["start_seconds"]),
        "seconds": spent[good],
    }
    return pl.DataFrame(columns).select(pl.col(name).cast(dtype) for name, dtype in SCHEMA.items())
