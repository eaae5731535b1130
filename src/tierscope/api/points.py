"""Points of a result or an estimate, as callers see them: plain numbers in base units, and the same as a frame."""

from dataclasses import dataclass

import polars as pl

from tierscope.analysis.breakdown import Breakdown, SweepPoint
from tierscope.analysis.groups import group_names
from tierscope.jsonable import SweepValues


@dataclass(frozen=True, slots=True)
class ResultPoint:
    """The slowest process at one combination of swept values: the median over epochs after the first and repetitions. Read it from `Result.points`; holds numbers only.

    `values`: of the swept keys. `io_low`, `io_high`: what `interval` says ("range" of n values, "95%", or "simulated"). `classes`: seconds by class, which
    add up to `io_seconds`. `fits`: False where its files are known not to fit. `is_best`: of its `group`, in which all points read the same data.
    None: not known.
    """

    values: SweepValues
    io_seconds: float
    io_low: float
    io_high: float
    interval: str
    n: int
    classes: dict[str, float]
    bottleneck: str | None
    epoch_seconds: float | None
    compute_seconds: float | None
    first_epoch_io_seconds: float | None
    stall_share: float | None
    au: float | None
    hit_rate: float | None
    fits: bool
    is_best: bool
    group: str


def points_of(breakdown: Breakdown) -> tuple[ResultPoint, ...]:
    groups = dict(zip((id(group) for group in breakdown.groups), group_names(breakdown), strict=True))
    names = {id(point): groups[id(group)] for group in breakdown.groups for point in group.points}
    bests = {id(group.best) for group in breakdown.groups if group.best.is_possible}
    return tuple(_point(point, names.get(id(point), ""), id(point) in bests, breakdown) for point in breakdown.summary)


def _point(point: SweepPoint, group: str, is_best: bool, breakdown: Breakdown) -> ResultPoint:
    return ResultPoint(
        values=dict(point.sweep),
        io_seconds=point.io.median,
        io_low=point.io.low,
        io_high=point.io.high,
        interval=point.io.kind,
        n=point.io.n,
        classes={name: point.classes[name] for name in breakdown.classes},
        bottleneck=point.bottleneck,
        epoch_seconds=point.epoch_seconds,
        compute_seconds=point.compute_seconds,
        first_epoch_io_seconds=point.first_epoch_io_seconds,
        stall_share=point.stall_share,
        au=point.au,
        hit_rate=point.hit_rate,
        fits=point.is_possible,
        is_best=is_best,
        group=group,
    )


_FIELDS = (
    *("io_seconds", "io_low", "io_high", "interval", "n"),
    *("bottleneck", "epoch_seconds", "compute_seconds", "first_epoch_io_seconds", "stall_share", "au", "hit_rate"),
    *("fits", "is_best", "group"),
)
_FLOATS = ("epoch_seconds", "compute_seconds", "first_epoch_io_seconds", "stall_share", "au", "hit_rate")


def swept_name(key: str) -> str:
    """The column of a swept key: those of a CSV may be called anything, and none may stand in for a column of ours."""
    return f"swept {key}" if key in (*_FIELDS, "source") else key


def point_frame(breakdown: Breakdown, source: str) -> pl.DataFrame:
    """A row per point; `source` in every row, so that it survives what is joined and stacked."""
    points = points_of(breakdown)
    columns = {swept_name(key): [point.values[key] for point in points] for key in breakdown.sweep_keys}
    columns |= {name: [getattr(point, name) for point in points] for name in _FIELDS}
    columns |= {name: [point.classes[name] for point in points] for name in breakdown.classes}
    frame = pl.DataFrame(columns, strict=False).with_columns(pl.lit(source).alias("source"))
    return frame.with_columns(pl.col(name).cast(pl.Float64) for name in _FLOATS)
