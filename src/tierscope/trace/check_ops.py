"""What a list of operations may hold: each row by itself, and all of them beside the sums in the table of their run.

Ranks of ours list every operation that they sum up. A stranger's process that was killed may have lost rows of its list, and never of its sums: so
a traced list has no more than the table, and a measured one has just as much.
"""

from collections.abc import Iterator

import polars as pl

from tierscope.trace.description import Measured
from tierscope.trace.limits import LARGEST, MOST_COUNTED, MOST_SECONDS
from tierscope.trace.ops import KINDS
from tierscope.trace.trace import Trace

_KEY = ("epoch", "rank", "tier", "kind")
_LIMITS: dict[str, tuple[float, float]] = {
    "rank": (0, LARGEST),
    "lane": (0, LARGEST),
    "epoch": (0, LARGEST),
    "step": (-1, MOST_COUNTED),
    "offset": (-1, 2**63 - 1),
    "bytes": (0, MOST_COUNTED),
    "start_seconds": (-MOST_SECONDS, MOST_SECONDS),
    "seconds": (0, MOST_SECONDS),
}
_KNOWN = ("epoch", "tier", "kind", "bytes", "start_seconds", "seconds")  # everywhere
_TOLERANCE = 1e-6  # of sums, whose order differs


def wrong_in_ops(rows: pl.LazyFrame, trace: Trace) -> str | None:
    """The first thing that cannot be. One pass over the list, in bounded memory."""
    looks = {
        **{f"null {name}": pl.col(name).is_null().any() for name in _KNOWN},
        **{f"nan {name}": pl.col(name).is_nan().any() for name in ("start_seconds", "seconds")},
        **{f"least {name}": pl.col(name).min() for name in _LIMITS},
        **{f"most {name}": pl.col(name).max() for name in _LIMITS},
        "kinds": pl.col("kind").is_in(list(KINDS)).all(),
        "tiers": pl.col("tier").is_in(trace.about.tier_names).all(),
    }
    answers = rows.select(**looks).collect(engine="streaming").row(0, named=True)
    return next(_wrong_rows(answers), None) or next(_wrong_sums(rows, trace), None)


def _wrong_rows(answers: dict[str, object]) -> Iterator[str]:
    for name in _KNOWN:
        if answers[f"null {name}"]:
            yield f"{name} is not known everywhere"
    for name, (low, high) in _LIMITS.items():
        least, most = answers[f"least {name}"], answers[f"most {name}"]
        if answers.get(f"nan {name}") or (least is not None and not (low <= least and most <= high)):  # type: ignore[operator]
            yield f"{name} has an invalid value"
    if not answers["kinds"]:
        yield "has an unknown kind of operation"
    if not answers["tiers"]:
        yield "has a tier that the description of its run does not name"


def _wrong_sums(rows: pl.LazyFrame, trace: Trace) -> Iterator[str]:
    """By epoch, rank, tier and kind."""
    listed = (
        rows.with_columns(pl.col("epoch").clip(1))
        .group_by(_KEY)
        .agg(pl.len().cast(pl.Int64).alias("ops"), pl.col("bytes").sum(), pl.col("seconds").sum())
        .collect(engine="streaming")
    )
    there = pl.struct(pl.col("rank")).is_in(listed.select(pl.struct("rank").unique()).to_series().implode())
    summed = trace.io.filter(there).group_by(_KEY).agg(pl.col("ops", "bytes", "busy_seconds").sum())
    beside = listed.join(summed, on=_KEY, how="left", nulls_equal=True, suffix="_summed")
    if beside["ops_summed"].has_nulls():
        yield "lists operations of an epoch, rank, tier or kind that the table of its run does not have"
    for name, of, unit in (("ops", "ops_summed", 0), ("bytes", "bytes_summed", 0), ("seconds", "busy_seconds", 1e-9)):
        more = pl.col(name) > pl.col(of) * (1 + _TOLERANCE) + unit * pl.col("ops")
        if not beside.filter(more).is_empty():
            yield f"lists more {name} than the table of its run has"
    if isinstance(trace.about, Measured) and (
        len(listed) < len(summed)
        or (beside["ops"] != beside["ops_summed"]).any()
        or (beside["bytes"] != beside["bytes_summed"]).any()
    ):
        yield "lists fewer operations or bytes than the table of its run has"
