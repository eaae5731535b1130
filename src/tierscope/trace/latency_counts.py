"""Histograms of latency added up: how many operations of a class and kind lie in each bin."""

from collections.abc import Sequence

import polars as pl

from tierscope.trace.ops import CATEGORY


def latency_counts(io: pl.DataFrame, keys: Sequence[str] = ()) -> pl.DataFrame:
    """`io`: rows of a trace. Columns: keys, class, kind, bin, count; bin is null for operations that no histogram tells of.

    A histogram that does not count all operations of its row tells of none of them.
    """
    category = pl.col("kind").replace_strict(CATEGORY, return_dtype=pl.String)
    histogram = pl.col("latency_histogram")
    told = histogram.list.sum() == pl.col("ops")  # null where there is none
    return (
        io.filter(pl.col("ops") > 0)
        .select(
            *keys,
            (pl.col("tier").str.to_uppercase() + "-" + category).alias("class"),
            "kind",
            pl.when(told).then(histogram).otherwise(pl.concat_list("ops")).alias("count"),
            pl.when(told).then(pl.int_ranges(histogram.list.len())).otherwise(None).alias("bin"),
        )
        .with_columns(pl.col("bin").fill_null(pl.lit([None], pl.List(pl.Int64))))
        .explode("count", "bin")
        .filter(pl.col("count") > 0)
        .group_by(*keys, "class", "kind", "bin")
        .agg(pl.col("count").sum())
    )
