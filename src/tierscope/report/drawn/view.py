"""What is drawn against what, the words that figures share, and the axis of seconds."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tierscope.analysis.breakdown import SweepPoint, counted_epochs, sweep_text
from tierscope.analysis.statistics import SIMULATED
from tierscope.jsonable import SweepValues
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import (
    Canvas,
    Frame,
    Scale,
    Size,
    SweptAxis,
    clean,
    draw_y_axis,
    fit,
    label,
    nice_ticks,
    text_width,
)
from tierscope.units import SECOND_UNITS

_NAME = 150.0  # the most room that a class's name gets


MOST_POINTS = 400  # more cannot be told apart in a drawing
JOINT = " × "  # between keys, and values, that change together


@dataclass(frozen=True, slots=True)
class Figure:
    """`svg` is an element to put into a page that has FIGURE_CSS; None where `missing` says why there is none."""

    name: str
    title: str
    caption: str
    svg: str | None
    missing: str = ""
    note: str = ""  # what a drawing that stands alone must say below itself
    panels: tuple[str, ...] = ()  # each by itself, where there are several: a page wraps them
    key: tuple[tuple[str, str], ...] = ()  # of these: a drawing and a text for each entry of the legend
    size: Size = Size()


@dataclass(frozen=True, slots=True)
class View:
    """What is drawn against what. `key` is None where there is but one point; `others` are the keys that are held.

    Keys that only change together (a zip) are one axis, `joint`, with a place for each of their combinations.
    """

    key: str | None
    points: tuple[SweepPoint, ...]
    others: SweepValues
    stride: int = 1  # every so many points are drawn, and the best ones
    joint: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: ReportSource) -> "View":
        """Against the first key, cache rate before all, of which the best point has neighbours that differ in nothing else."""
        breakdown = source.breakdown
        best = breakdown.best.sweep
        for key in sorted(breakdown.sweep_keys, key=lambda key: key != "cache_rate"):
            others = {name: value for name, value in best.items() if name != key}
            points = [point for point in breakdown.summary if all(point.sweep[name] == others[name] for name in others)]
            if len(points) > 1:
                drawn, stride = _thinned(points, (best, source.estimate.after.best.sweep))
                return cls(key, drawn, _held(breakdown.summary, others), stride)
        joint = tuple(key for key in best if any(point.sweep[key] != best[key] for point in breakdown.summary))
        if not joint:
            return cls(None, (breakdown.best,), {})
        drawn, stride = _thinned(breakdown.summary, (best, source.estimate.after.best.sweep))
        return cls(JOINT.join(key.replace("_", " ") for key in joint), drawn, {}, stride, joint)

    @property
    def values(self) -> list[Any]:
        return [self.value_of(point) for point in self.points] if self.key else [""]

    def value_of(self, point: SweepPoint) -> Any:
        """Along the axis."""
        assert self.key is not None
        return JOINT.join(label(key, point.sweep[key]) for key in self.joint) if self.joint else point.sweep[self.key]

    @property
    def where(self) -> str:
        """For a title; empty where nothing is held."""
        return f" ({brief(sweep_text(self.others), 60)})" if self.others else ""

    @property
    def axis_title(self) -> str:
        return self.key.replace("_", " ") if self.key else ""

    def axis(self, frame: Frame, to_scale: bool = False) -> SweptAxis:
        return SweptAxis.of(self.key or "", self.values, frame.left, frame.right, to_scale)

    def texts(self) -> list[str]:
        """What a tooltip says about the place."""
        return [f"{label(self.key, value)}: " if self.key else "" for value in self.values]


def _thinned(points: Sequence[SweepPoint], kept: Sequence[SweepValues]) -> tuple[tuple[SweepPoint, ...], int]:
    """As many as can be told apart, and every how many that is."""
    stride = -(-len(points) // MOST_POINTS)
    return tuple(point for index, point in enumerate(points) if index % stride == 0 or point.sweep in kept), stride


def _held(points: Sequence[SweepPoint], others: SweepValues) -> SweepValues:
    """Those that have other values elsewhere."""
    return {name: value for name, value in others.items() if any(point.sweep[name] != value for point in points)}


def nothing_swept(source: ReportSource) -> str:
    if source.study_yaml is not None and not source.conditions.traced:
        return "only one cache rate, so there is nothing to plot; sweep placement.cache_rate in the study"
    return "nothing was swept, so there is nothing to plot"


def too_little(*tops: float) -> str:
    """Why a drawing of these longest times would show nothing; empty: it would show something."""
    if not all(math.isfinite(top) for top in tops):
        return "the times are too long to plot"
    return "" if max(tops) > 0 else "no time was spent on I/O, so there is nothing to plot"


def brief(text: str, characters: int) -> str:
    text = clean(text)
    return text if len(text) <= characters else f"{text[: characters - 1].rstrip()}…"


def class_text(name: str) -> str:
    """Shortened in its tier: READ and META must stay."""
    tier, _, kind = name.rpartition("-")
    return f"{fit(tier, _NAME - text_width(f'-{kind}'))}-{kind}"


def sentences(source: ReportSource, view: View, *shown: str) -> str:
    """A caption: what is shown, then what holds for all figures."""
    texts = [sentence for sentence in shown if sentence]
    if view.others:
        texts.append(
            f"Several keys were swept; this shows only {brief(sweep_text(view.others), 120)}, where the best point is."
        )
    if view.stride > 1:
        texts.append(f"Only one point in {view.stride} and the best are drawn.")
    if source.conditions.emulated:
        texts.append(f"Emulated tiers: {', '.join(brief(tier, 40) for tier in source.conditions.emulated)}.")
    if source.conditions.simulated:
        texts.append(f"Simulated ({', '.join(source.conditions.simulated)}), not measured.")
    return " ".join(texts)


def kind_text(kind: str) -> str:
    if kind == SIMULATED:
        return "90 % of the simulations"
    return "their range" if kind == "range" else "95 % interval of the median"


def processes_text(source: ReportSource) -> str:
    ranks = sorted({point.ranks for point in source.breakdown.points})
    count = f"{ranks[0]:,}" if len(ranks) == 1 else f"{ranks[0]:,} to {ranks[-1]:,}"
    return f"{count} process{'' if count == '1' else 'es'}"


def epochs_text(epochs: set[int]) -> str:
    ordered = sorted(epochs)
    if len(ordered) == 1:
        return f"epoch {ordered[0]}"
    if ordered[-1] - ordered[0] == len(ordered) - 1:
        return f"epochs {ordered[0]}–{ordered[-1]}"
    return f"{len(ordered)} epochs"


def shown_epochs(source: ReportSource) -> set[int]:
    return counted_epochs(point.epoch for point in source.breakdown.points)


def improvements_text(improvements: Mapping[str, float]) -> str:
    return ", ".join(f"{brief(name, 48)} {percent:+g} %" for name, percent in improvements.items())


@dataclass(frozen=True, slots=True)
class SecondsAxis:
    """A vertical axis of times from zero, in the unit that suits the longest."""

    top: float

    @property
    def unit(self) -> str:
        return next((unit for unit in ("s", "ms", "µs") if self.top >= SECOND_UNITS[unit]), "ns")

    def ticks(self) -> list[tuple[float, str]]:
        factor = SECOND_UNITS[self.unit]
        return [(tick * factor, f"{tick:.6g}") for tick in nice_ticks(self.top / factor)]

    def frame(self, head: float, below: float = 0.0, size: Size = Size()) -> Frame:  # noqa: B008  (frozen)
        widest = max(text_width(text) for _, text in self.ticks())
        return Frame(42 + widest, head, size.width - 24, size.height - 58 - below)

    def draw(self, canvas: Canvas, frame: Frame, title: str) -> Scale:
        scale = Scale(0.0, self.top, frame.bottom, frame.top)
        ticks = [(scale(seconds), text) for seconds, text in self.ticks()]
        draw_y_axis(canvas, frame, ticks, f"{title} ({self.unit})")
        return scale
