"""What only single operations tell: exact sizes, sequential and consecutive reads, files, and bytes over time.

A list of operations may be far larger than memory. It is read in pieces and by Polars' streaming engine; memory grows with the number of files
and of distinct sizes, not with that of operations.

A read *follows* another where the same thread read the same file before and has neither opened nor closed it since; it is *sequential* if it begins at
or behind the end of that one, and *consecutive* if it begins right there. A first read is neither, as in Darshan's counters. Shares are of all reads
(METHOD: DLIO's). The same of writes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tierscope.analysis.character_time import Floats, TimeBins

MOST_FILES = 20  # that are told one by one
_ROWS = 500_000
_STREAM = ("rank", "lane", "tier", "file")
NO_SUFFIX = "(none)"


@dataclass(frozen=True, slots=True)
class FileUse:
    tier: str
    name: str
    ranks: int  # that read it
    reads: int
    read_bytes: int
    seconds: float
    write_bytes: int = 0


@dataclass(frozen=True, slots=True)
class FormatUse:
    """By the ending of file names, or by the study's format. None: not known."""

    name: str
    files: int | None
    reads: int
    read_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Reads of at least `low` and less than `high` bytes; None: no limit."""

    low: int
    high: int | None
    reads: int


@dataclass(frozen=True, slots=True)
class AccessOrder:
    """Of so many reads, or writes: how many go on behind the one before, and right behind it."""

    count: int
    sequential: int
    consecutive: int


@dataclass(frozen=True, slots=True)
class Accesses:
    """What somebody knows who saw single accesses, or counted them by file. None: not known.

    `sized`: how many reads `sizes` are of, and their bytes; None: all that there are.
    """

    basis: str
    reads: AccessOrder
    writes: AccessOrder
    files: int
    largest: tuple[FileUse, ...]  # by bytes, MOST_FILES at most
    formats: tuple[FormatUse, ...]
    sizes: tuple[SizeBin, ...]
    exact: tuple[float, float, float] | None = None  # smallest, median and largest read
    sized: tuple[int, int] | None = None
    all_writes: int | None = None  # also those whose order nobody counted; None: what the sums say


@dataclass(frozen=True, slots=True)
class OpList:
    """Operations of one node; their starts are by one clock. `rows` has the columns of trace/op_list."""

    rows: pl.LazyFrame

    def pieces(self, *columns: str) -> Iterator[pl.DataFrame]:
        rows = self.rows.select(columns)
        count = rows.select(pl.len()).collect(engine="streaming").item()
        for start in range(0, count, _ROWS):
            yield rows.slice(start, _ROWS).collect()


def accesses(lists: Sequence[OpList], names: Mapping[int, str] | None, form: str | None) -> Accesses | None:
    """`names`: of files, by number, where they have paths; `form`: the format of all of them. None: nobody read."""
    reads = pl.concat([op_list.rows for op_list in lists]).filter(_is("read"))
    by_size = _collect(reads.group_by("bytes").agg(pl.len().cast(pl.Int64).alias("reads")).sort("bytes"))
    if by_size.is_empty():
        return None
    by_file = _collect(
        reads.group_by("tier", "file").agg(
            pl.len().cast(pl.Int64).alias("reads"),
            pl.col("bytes").sum().alias("read_bytes"),
            ((pl.col("seconds") * 1e9).round().cast(pl.Int64).sum() / 1e9).alias("seconds"),  # the same in any order
            pl.col("rank").n_unique().alias("ranks"),
        )
    )
    return Accesses(
        "operations",
        _order_of("read", lists),
        _order_of("write", lists),
        by_file.drop_nulls("file").height,
        tuple(_largest(by_file, names)),
        tuple(_formats(by_file, names, form)),
        tuple(_bins(by_size)),
        _exact(by_size),
    )


def _is(kind: str) -> pl.Expr:
    return (pl.col("kind") == kind) & pl.col("rank").is_not_null()


def _collect(rows: pl.LazyFrame) -> pl.DataFrame:
    return rows.collect(engine="streaming")


def _exact(by_size: pl.DataFrame) -> tuple[float, float, float]:
    """Of an even number, the median is between two."""
    sizes, upto = by_size["bytes"].to_numpy(), by_size["reads"].cum_sum().to_numpy()
    low, high = (int(sizes[np.searchsorted(upto, rank, side="right")]) for rank in ((upto[-1] - 1) // 2, upto[-1] // 2))
    return float(sizes[0]), (low + high) / 2, float(sizes[-1])


def _bins(by_size: pl.DataFrame) -> Iterator[SizeBin]:
    counts: dict[int, int] = {}
    for size, reads in by_size.iter_rows():
        counts[int(size).bit_length()] = counts.get(int(size).bit_length(), 0) + reads
    for place in sorted(counts):
        yield log2_bin(place, counts[place])


def log2_bin(place: int, reads: int) -> SizeBin:
    """As in trace/ops: bin 0 counts zeros."""
    return SizeBin(1 << (place - 1) if place else 0, 1 << place, reads)


def _largest(by_file: pl.DataFrame, names: Mapping[int, str] | None) -> Iterator[FileUse]:
    first = by_file.sort("read_bytes", "tier", "file", descending=[True, False, False], nulls_last=True)
    for row in first.head(MOST_FILES).iter_rows(named=True):
        number = row["file"]
        name = "(not known)" if number is None else (names or {}).get(number, str(number))
        yield FileUse(row["tier"], name, row["ranks"], row["reads"], row["read_bytes"], row["seconds"])


def _formats(by_file: pl.DataFrame, names: Mapping[int, str] | None, form: str | None) -> Iterator[FormatUse]:
    if form is None and names is None:
        return
    sums: dict[str, list[float]] = {}
    for row in by_file.iter_rows(named=True):
        name = form or suffix_of((names or {}).get(row["file"], ""))
        totals = sums.setdefault(name, [0, 0, 0, 0.0])
        for place, value in enumerate((1, row["reads"], row["read_bytes"], row["seconds"])):
            totals[place] += value
    yield from in_order(sums)


def suffix_of(path: str) -> str:
    """What a file's name ends in: `.gz` with what stands before it."""
    parts = path.rpartition("/")[2].lower().lstrip(".").split(".")
    ending = parts[-2:] if len(parts) > 2 and parts[-1] in ("gz", "bz2", "xz", "zst") else parts[-1:]
    return ".".join(ending) if len(parts) > 1 and len(ending[-1]) <= 12 else NO_SUFFIX


def in_order(sums: Mapping[str, Sequence[float]]) -> Iterator[FormatUse]:
    """Most bytes first. `sums`: files, reads, bytes, seconds."""
    for name, (files, reads, read_bytes, seconds) in sorted(sums.items(), key=lambda pair: (-pair[1][2], pair[0])):
        yield FormatUse(name, int(files), int(reads), int(read_bytes), seconds)


def _order_of(kind: str, lists: Sequence[OpList]) -> AccessOrder:
    rows = pl.concat([op_list.rows for op_list in lists]).filter(_is(kind))
    count = int(_collect(rows.select(pl.len())).item())
    if not count:
        return AccessOrder(0, 0, 0)
    sequential, consecutive = (
        sum(counts) for counts in zip(*(_order(op_list, kind) for op_list in lists), strict=True)
    )
    return AccessOrder(count, sequential, consecutive)


def _order(ops: OpList, of: str) -> tuple[int, int]:
    """Those that are sequential, and that are consecutive. Files open from one piece to the next are carried over."""
    ordered = np.zeros(2, np.int64)
    carried: pl.DataFrame | None = None
    wanted = pl.col("rank").is_not_null() & pl.col("file").is_not_null() & pl.col("kind").is_in(("open", of, "close"))
    new_stream = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in _STREAM)
    is_last = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(-1)) for name in _STREAM)
    for piece in ops.pieces(*_STREAM, "kind", "offset", "bytes", "start_seconds"):
        rows = piece.filter(wanted).select(
            *_STREAM,
            "offset",
            "start_seconds",
            end=pl.when(_is(of)).then(pl.col("offset") + pl.col("bytes")),  # of others null
            new=pl.lit(1, pl.Int8),
        )
        rows = rows if carried is None else pl.concat([carried, rows])
        rows = rows.sort(*_STREAM, "start_seconds", maintain_order=True)
        rows = rows.with_columns(before=pl.when(~new_stream).then(pl.col("end").shift(1)), last=is_last)
        known = (pl.col("new") == 1) & pl.col("end").is_not_null() & (pl.col("offset") >= 0)
        at_or_behind = known & (pl.col("offset") >= pl.col("before"))
        right_there = known & (pl.col("offset") == pl.col("before"))
        counts = rows.select(
            at_or_behind.sum().alias("sequential"),
            right_there.sum().alias("consecutive"),
        )
        ordered += counts.row(0)
        carried = (
            rows.filter("last", pl.col("end").is_not_null()).drop("before", "last").with_columns(new=pl.lit(0, pl.Int8))
        )
    return int(ordered[0]), int(ordered[1])


def op_lengths(lists: Sequence[OpList]) -> dict[int, float]:
    """Seconds of every epoch, from a node's first operation in it to the last."""
    lengths: dict[int, float] = {}
    for op_list in lists:
        for epoch, (first, last) in _spans(op_list).items():
            lengths[epoch] = max(lengths.get(epoch, 0.0), last - first)
    return lengths


def _spans(ops: OpList) -> dict[int, tuple[float, float]]:
    rows = ops.rows.filter(pl.col("rank").is_not_null()).group_by("epoch")
    ends = pl.col("start_seconds") + pl.col("seconds")
    spans = _collect(rows.agg(pl.col("start_seconds").min().alias("first"), ends.max().alias("last")))
    return {int(epoch): (first, last) for epoch, first, last in spans.iter_rows()}


def ops_over(axis: TimeBins, lists: Sequence[OpList]) -> tuple[Floats, Floats]:
    """By bin: bytes that were read, and seconds of operations."""
    moved, busy = axis.spread(*np.zeros((3, 0))), axis.spread(*np.zeros((3, 0)))
    for op_list in lists:
        shifts = {epoch: axis.starts[epoch] - first for epoch, (first, _) in _spans(op_list).items()}
        shift = pl.col("epoch").replace_strict(shifts, return_dtype=pl.Float64)
        for piece in op_list.pieces("rank", "epoch", "kind", "bytes", "start_seconds", "seconds"):
            rows = piece.filter(pl.col("rank").is_not_null()).with_columns(pl.col("start_seconds") + shift)
            start, seconds = rows["start_seconds"].to_numpy(), rows["seconds"].to_numpy()
            is_read = (rows["kind"] == "read").to_numpy()
            moved += axis.spread(start, start + seconds, rows["bytes"].to_numpy() * is_read.astype(np.float64))
            busy += axis.spread(start, start + seconds, seconds)
    return moved, busy
