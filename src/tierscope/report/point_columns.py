"""Columns that only simulated points have: first batch and AU, what near tiers would have to hold, and what staging takes."""

from collections.abc import Sequence

from rich.text import Text

from tierscope.analysis.breakdown import SweepPoint
from tierscope.report.parts import Column, Unit, room_columns
from tierscope.units import counted


def clock_columns(points: Sequence[SweepPoint]) -> list[Column]:
    """Of simulations of training that computes: when the first batch is there, and AU; mean over ranks, the worst beside it."""
    if not any(point.first_batch and point.au is not None for point in points):
        return []
    time = Unit.of(max(point.first_batch[1] for point in points if point.first_batch))

    def pair(this: str, other: str) -> Text:
        return Text(this if this == other else f"{this} · {other}")

    batches = [
        pair(*(str(time.text(seconds)) for seconds in point.first_batch)) if point.first_batch else Text("–")
        for point in points
    ]
    shares = [
        Text("–") if point.au is None else pair(f"{100 * point.au:.1f}", f"{100 * (point.slowest_au or 0.0):.1f}")
        for point in points
    ]
    return [
        Column(f"first batch {time.name}, mean · max", batches, "dim", drop=2),
        Column("AU %, mean · slowest", shares, drop=3),
    ]


def room_and_staging(points: tuple[SweepPoint, ...]) -> list[Column]:
    """Of a simulation: what near tiers would have to hold, what it takes to put it there, and when that pays."""
    columns = room_columns([point.feasibility for point in points], drop=5)
    if any(point.staging_seconds for point in points):
        time = Unit.of(max(point.staging_seconds or 0.0 for point in points))
        columns.append(Column(f"staging {time.name}", [time.text(point.staging_seconds) for point in points], drop=3))
        columns.append(Column("pays after", [Text(_pays(point)) for point in points], drop=3))
    return columns


def _pays(point: SweepPoint) -> str:
    return counted(point.break_even_epochs, "epoch") if point.break_even_epochs else "–"
