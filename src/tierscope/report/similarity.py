"""How alike two runs read: the sentences, and the table for the terminal.

Who reads one line only must not take a high cosine for alike runs: that line also names what differs twofold or more.
"""

import math
from dataclasses import dataclass
from itertools import groupby

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.character_metrics import METRICS, WRITE_METRICS
from tierscope.analysis.similarity import FAR, Compared, RunScale, Similarity, UncomparedMetric
from tierscope.report.character import NAMES, value_text
from tierscope.report.parts import Column, fitting, table
from tierscope.units import about_number

_MOST_NAMED = 3
_UNITS = METRICS | WRITE_METRICS
_HIGH = 0.9  # DLIO's own limit for an emulation that is like its application


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of two that are compared: what the user called it, and which run it is."""

    path: str
    name: str
    where: str
    label: str = ""  # emulated or simulated

    @property
    def text(self) -> str:
        where = f", {self.where}" if self.where else ""
        return f"{self.path} ({self.name}{where}){self.label}"


@dataclass(frozen=True, slots=True)
class SimilarityView:
    sides: tuple[ComparedRun, ComparedRun]
    similarity: Similarity

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        similarity = self.similarity
        for letter, side in zip("AB", self.sides, strict=True):
            yield Text(f"{letter}: {side.text}")
        if similarity.metrics or similarity.writes:
            yield table(fitting(_similarity_columns(similarity), options.max_width))
        yield Text(cosine_sentence(similarity), style="bold")
        for sentence in (scale_sentence(similarity), insensitive_sentence(similarity), held_down_sentence(similarity)):
            if sentence:
                yield Text(sentence)
        if similarity.largest is not None and similarity.largest.difference:
            yield Text(largest_sentence(similarity.largest))
        if similarity.writes:
            yield Text("Writes are compared beside the cosine, which is of DLIO's metrics.", style="dim")
        if any(metric.at_least for metric in similarity.metrics):
            yield Text("≥: one of the two is known only within bounds; the difference is at least that.", style="dim")
        for reason, metrics in groupby(sorted(similarity.left_out, key=_reason), _reason):
            names = ", ".join(NAMES[metric.name] for metric in metrics)
            yield Text(f"Not compared: {names} ({reason}).", style="dim")


def _reason(metric: UncomparedMetric) -> str:
    return metric.reason


def cosine_sentence(similarity: Similarity) -> str:
    if similarity.cosine is None:
        return "No metric is known for both, so there is no similarity."
    n, far = len(similarity.metrics), similarity.far_apart
    start = f"Cosine similarity {similarity.cosine:.4f} (n={n} of {len(METRICS)} metrics)"
    if not far:
        return f"{start}; no metric differs {FAR:g}× or more."
    named = ", ".join(f"{NAMES[metric.name]} ({ratio_text(metric)})" for metric in far[:_MOST_NAMED])
    more = f" and {len(far) - _MOST_NAMED} more" if len(far) > _MOST_NAMED else ""
    verb = "metric differs" if len(far) == 1 else "metrics differ"
    link = ", but" if similarity.cosine >= _HIGH else ";"
    return f"{start}{link} {len(far)} {verb} {FAR:g}× or more: {named}{more}."


def ratio_text(metric: Compared) -> str:
    if math.isinf(metric.ratio):
        return f"0 in {'A' if metric.first == 0 else 'B'}"
    return f"{'≥ ' if metric.at_least else ''}{about_number(metric.ratio)}×"


def scale_sentence(similarity: Similarity) -> str:
    """Which differences are of scale, and the cosine without them."""
    if similarity.same_scale or similarity.cosine is None:
        return ""
    first, second = map(_scale_text, similarity.scales)
    what = f"A has {first}, B has {second}" if first != second else f"both have {first}, but not the same bytes"
    habits = similarity.cosine_of_habits
    without = "" if habits is None else f"; without them the cosine is {habits:.4f} (n={len(similarity.habits)})"
    return f"Different scale: {what}. I/O time, bytes and files grow with scale{without}."


def _scale_text(scale: RunScale) -> str:
    ranks, epochs = ("" if count == 1 else "s" for count in (scale.ranks, scale.epochs))
    return f"{scale.ranks:,} rank{ranks} × {scale.epochs:,} epoch{epochs}"


def insensitive_sentence(similarity: Similarity) -> str:
    """A high cosine beside metrics that are far apart."""
    far = [metric for metric in similarity.far_apart if metric.name in METRICS]
    if not far or similarity.cosine is None or similarity.cosine < _HIGH:
        return ""
    if len(far) > len(similarity.metrics) / 2:
        return "A high cosine does not mean alike here: it is also 1 where all metrics of one run are the same multiple of the other's."
    least = similarity.least_for_one
    return f"A high cosine does not mean alike here: one metric alone cannot lower it below {least:.4f}, however much it differs."


def held_down_sentence(similarity: Similarity) -> str:
    lowering = similarity.held_down_by[:_MOST_NAMED]
    if not lowering:
        return ""
    parts = [
        f"{NAMES[metric.name]} ({metric.cosine_without:.4f} without it, {similarity.rise(metric):+.4f})"
        for metric in lowering
    ]
    return f"Held down by: {', '.join(parts)}."


def largest_sentence(largest: Compared) -> str:
    unit = _UNITS[largest.name]
    pair = f"{value_text(unit, largest.first)} and {value_text(unit, largest.second)}"
    return f"Largest difference: {NAMES[largest.name]}, {difference_text(largest)} ({pair})."


def difference_text(metric: Compared) -> str:
    percent = 100 * metric.difference
    text = "0.0 %" if abs(percent) < 0.05 else f"{percent:+.1f} %".replace("-", "−")
    return (
        f"≥ {text.lstrip('+')}"
        if metric.at_least and metric.difference > 0
        else f"≤ {text}"
        if metric.at_least and metric.difference < 0
        else text
    )


def _similarity_columns(similarity: Similarity) -> list[Column]:
    metrics = (*similarity.metrics, *similarity.writes)
    return [
        Column("metric", [Text(NAMES[metric.name]) for metric in metrics], right=False),
        Column("A", [Text(value_text(_UNITS[metric.name], metric.first)) for metric in metrics]),
        Column("B", [Text(value_text(_UNITS[metric.name], metric.second)) for metric in metrics]),
        Column("(A − B) ÷ larger", [Text(difference_text(metric)) for metric in metrics], "bold"),
        Column(
            "",
            [Text("◀ largest" if metric is similarity.largest and metric.difference else "") for metric in metrics],
            right=False,
            drop=1,
        ),
    ]
