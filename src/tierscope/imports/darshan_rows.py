"""Records of a Darshan log as rows of sums: whose they are, on which tier, and which of them count.

POSIX and STDIO are layers of their own: Darshan sees a call in one of them, so both count. MPI-IO calls POSIX: its records are the same bytes
again, and count only of files that POSIX has no record of.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tierscope.imports.darshan_job import Placed
from tierscope.imports.darshan_library import MPI_IO
from tierscope.imports.darshan_reader import DarshanLog, FileRecords, processes_of
from tierscope.imports.darshan_shared import NamedRank, SharedSums, split_over_ranks
from tierscope.imports.gathered import SUMS
from tierscope.imports.paths import APART, UNKNOWN, TierRules
from tierscope.trace.described_logs import SharedFiles, tallied

SHARED = -1  # the rank of a record that Darshan reduced over all ranks
# kind → counters of its operations, counter of its bytes, and its time. Darshan does not tell opens, closes, stats and seeks apart in time.
_KINDS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    ("read", ("READS",), "BYTES_READ", "F_READ_TIME"),
    ("meta", ("OPENS", "STATS", "SEEKS", "MMAPS"), "", "F_META_TIME"),
    ("write", ("WRITES", "FSYNCS", "FDSYNCS", "FLUSHES"), "BYTES_WRITTEN", "F_WRITE_TIME"),
)


@dataclass(frozen=True, slots=True)
class LogTiers:
    """Tiers of a log's paths as numbers: places among `names`, which are tiers, that of what matches none, or APART."""

    names: list[str]
    codes: npt.NDArray[np.intp]  # of every path, and one more for records without
    apart: npt.NDArray[np.bool_]  # of every name

    @classmethod
    def of(cls, rules: TierRules, log: DarshanLog) -> "LogTiers":
        tiers = rules.of_all(log.paths, log.mounts, set(log.stripes))
        places: dict[str, int] = {}
        codes = [places.setdefault(name, len(places)) for name in [*tiers, UNKNOWN]]
        names = [rules.other if name == UNKNOWN else name for name in places]
        return cls(names, np.array(codes, np.intp), np.array([name in APART for name in names]))

    def code(self, name: str) -> int:
        return self.names.index(name)

    def names_in(self, codes: npt.NDArray[np.intp]) -> set[str]:
        return {self.names[code] for code in np.flatnonzero(np.bincount(codes)).tolist()}


def counted_records(log: DarshanLog) -> Iterator[tuple[str, FileRecords]]:
    """By module, what counts: of MPI-IO only files that POSIX has no record of."""
    for module, every in log.records.items():
        records = every.chosen(~seen_by_posix(log)) if module == MPI_IO and len(every) else every
        if len(records):
            yield module, records


def seen_by_posix(log: DarshanLog) -> npt.NDArray[np.bool_]:
    """Which records of MPI-IO are of files that POSIX has a record of too."""
    return np.isin(log.records[MPI_IO].files, log.records["POSIX"].files)


def columns_of(
    records: FileRecords,
) -> list[tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """For each of the kinds: seconds, operations, bytes."""
    nothing = np.zeros(len(records), np.int64)
    return [
        (
            records.seconds(seconds),
            np.sum([records.counter(name) for name in counters], axis=0),
            records.counter(moved) if moved else nothing,
        )
        for _, counters, moved, seconds in _KINDS
    ]


def rows_of(
    placed: Placed, records: FileRecords, codes: npt.NDArray[np.intp], names: Sequence[str]
) -> list[pl.DataFrame]:
    """Rows of READ, META and WRITE, summed up by rank and tier; `codes` are places of the records' tiers among the names."""
    if not len(records):
        return []
    columns: dict[str, Any] = {"rank": records.ranks + placed.first_rank, "code": codes}
    for (kind, *_), (seconds, ops, moved) in zip(_KINDS, columns_of(records), strict=True):
        columns |= {f"{kind}_seconds": seconds, f"{kind}_ops": ops, f"{kind}_bytes": moved}
    summed = pl.DataFrame(columns).group_by("rank", "code", maintain_order=True).sum()
    named = summed.with_columns(pl.Series("tier", names, pl.String).gather(summed["code"]))
    tables = []
    for kind, *_ in _KINDS:
        renamed = {f"{kind}_seconds": "busy_seconds", f"{kind}_ops": "ops", f"{kind}_bytes": "bytes"}
        rows = named.rename(renamed).with_columns(epoch=pl.lit(placed.epoch), kind=pl.lit(kind))
        tables.append(rows.select(pl.col(name).cast(dtype) for name, dtype in SUMS.items()))
    return tables


def split_rows(placed: Placed, shared: FileRecords, tier: str) -> pl.DataFrame:
    """Shared records of a tier as rows of every rank."""
    seconds, ops, moved = (np.stack(parts) for parts in zip(*columns_of(shared), strict=True))
    slowest, fastest = (
        NamedRank(
            shared.counters_as_they_are(f"{which}_RANK"),
            shared.seconds(f"F_{which}_RANK_TIME"),
            shared.counter(f"{which}_RANK_BYTES"),
        )
        for which in ("SLOWEST", "FASTEST")
    )
    processes = processes_of(placed.log)
    of_ranks = split_over_ranks(SharedSums(seconds, ops, moved, slowest, fastest), processes)
    kinds = [kind for kind, *_ in _KINDS]
    rows = pl.DataFrame(
        {
            "rank": np.tile(np.arange(processes) + placed.first_rank, len(kinds)),
            "kind": np.repeat(np.arange(len(kinds)), processes),
            "busy_seconds": of_ranks.seconds.ravel(),
            "ops": of_ranks.ops.ravel(),
            "bytes": of_ranks.moved.ravel(),
        }
    ).filter((pl.col("ops") > 0) | (pl.col("busy_seconds") > 0) | (pl.col("bytes") > 0))
    named = rows.with_columns(
        pl.Series("kind", kinds, pl.String).gather(rows["kind"]), epoch=pl.lit(placed.epoch), tier=pl.lit(tier)
    )
    return named.select(pl.col(name).cast(dtype) for name, dtype in SUMS.items())


def with_shared(before: SharedFiles | None, tier: str, shared: FileRecords) -> SharedFiles:
    """`before`: what other logs and modules have of this tier."""
    fastest, slowest = shared.seconds("F_FASTEST_RANK_TIME").min(), shared.seconds("F_SLOWEST_RANK_TIME").max()
    earlier = before or SharedFiles(
        tier=tier,
        files=0,
        bytes=0,
        read_seconds=0.0,
        meta_seconds=0.0,
        fastest_seconds=float(fastest),
        slowest_seconds=0.0,
    )
    return SharedFiles(
        tier=tier,
        files=earlier.files + len(np.unique(shared.files)),
        bytes=tallied(earlier.bytes + int(shared.counter("BYTES_READ").sum())),
        read_seconds=earlier.read_seconds + float(shared.seconds("F_READ_TIME").sum()),
        meta_seconds=earlier.meta_seconds + float(shared.seconds("F_META_TIME").sum()),
        fastest_seconds=min(earlier.fastest_seconds, float(fastest)),
        slowest_seconds=max(earlier.slowest_seconds, float(slowest)),
        write_seconds=earlier.write_seconds + float(shared.seconds("F_WRITE_TIME").sum()),
        written_bytes=tallied(earlier.written_bytes + int(shared.counter("BYTES_WRITTEN").sum())),
    )
