"""I/O and compute of ranks on one time axis: the table for the terminal, and the figure."""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.merged_timeline import EPOCH_TIME, MARKS, ClockAlignment, MergedRank
from tierscope.analysis.time_spans import TimeSpans
from tierscope.errors import UserError
from tierscope.output.durable import is_stream, writing_named
from tierscope.report.drawn.looks import box
from tierscope.report.drawn.view import Figure
from tierscope.report.figures import standalone
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.report.svg import WIDTH, Canvas, Frame, Legend, LegendEntry, Scale, Size, nice_ticks
from tierscope.units import about_seconds

_MOST_RANKS = 12
_LANE, _APART = 16.0, 12.0  # height of a rank's I/O and of its compute; between ranks
_COLUMNS = 640  # that spans are drawn in


@dataclass(frozen=True, slots=True)
class MergedView:
    ranks: Sequence[MergedRank]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        ranks = self.ranks[:_MOST_RANKS]
        time = Unit.of(max(max(merged.io_ns, merged.compute_ns) for merged in ranks) / 1e9)
        more = f", {len(ranks)} of {len(self.ranks)} ranks" if len(ranks) < len(self.ranks) else ""
        yield Text(f"I/O beside compute, in the profiled stretch{more}", style="bold")
        columns = [
            Column("rank", [Text(str(merged.rank)) for merged in ranks]),
            Column(f"I/O {time.name}", [time.text(merged.io_ns / 1e9) for merged in ranks]),
            Column(f"compute {time.name}", [time.text(merged.compute_ns / 1e9) for merged in ranks]),
            Column(f"hidden {time.name}", [time.text(merged.hidden_ns / 1e9) for merged in ranks]),
            Column("hidden", [Text(share_text(merged)) for merged in ranks], "bold"),
            Column("stretch", [Text(about_seconds(merged.window_ns / 1e9)) for merged in ranks], drop=1),
        ]
        yield table(fitting(columns, options.max_width))
        for sentence in sentences(self.ranks):
            yield Text(sentence)


def share_text(merged: MergedRank) -> str:
    """With its range, where the alignment leaves one."""
    if merged.share is None:
        return "–"
    low, high = (100 * nanoseconds / merged.io_ns for nanoseconds in (merged.low_ns, merged.high_ns))
    within = f" ({low:.1f}–{high:.1f})" if high - low >= 0.1 else ""
    return f"{100 * merged.share:.1f} %{within}"


def sentences(ranks: Sequence[MergedRank]) -> Iterator[str]:
    """How clocks were aligned, what was compute, and I/O that nobody can judge."""
    for alignment in {merged.alignment.by: merged.alignment for merged in ranks}.values():
        worst = max(merged.alignment.uncertainty_ns for merged in ranks if merged.alignment.by == alignment.by)
        yield _aligned(alignment, worst)
    yield f"Compute: {', '.join(sorted({merged.compute_basis for merged in ranks}))}."
    outside, inside = sum(merged.io_outside_ns for merged in ranks), sum(merged.io_ns for merged in ranks)
    if outside:
        percent = 100 * outside / (outside + inside)
        yield f"{percent:.1f} % of these ranks' I/O time ({about_seconds(outside / 1e9)}) lies outside the profiled stretch and is not counted."


def _aligned(alignment: ClockAlignment, worst_ns: int) -> str:
    within = f"within ±{about_seconds(worst_ns / 1e9)}"
    if alignment.by == MARKS:
        count = f"{alignment.marks} mark{'s' if alignment.marks > 1 else ''}"
        return f"Clocks aligned by {count} that both recorded, {within}."
    if alignment.by == EPOCH_TIME:
        return f"Clocks aligned by epoch time, assumed {within}; nothing checks that: tierscope.mark_clock would."
    return "I/O and compute are by the same clock."


def merged_figure(ranks: Sequence[MergedRank], name: str) -> Figure:
    shown = ranks[:_MOST_RANKS]
    title = "I/O and compute on one time axis"
    caption = f"{name}: when each rank did I/O and computed, in the stretch that was profiled. " + " ".join(
        sentences(ranks)
    )
    legend = Legend([LegendEntry(box("bar tier0"), "I/O"), LegendEntry(box("bar tier2"), "compute")])
    height = legend.height + 8 + len(shown) * (2 * _LANE + _APART) + 58
    canvas = Canvas("merged-timeline", title, caption, Size(WIDTH, height))
    frame = Frame(96.0, legend.height + 8, WIDTH - 24, height - 58)
    start = min(merged.start_ns for merged in shown)
    seconds = (max(merged.start_ns + merged.window_ns for merged in shown) - start) / 1e9
    along = Scale(0.0, seconds, frame.left, frame.right)
    top = frame.top
    for merged in shown:
        canvas.text(frame.left - 8, top + _LANE - 2, f"rank {merged.rank}", "tick end")
        hidden = "no I/O" if merged.share is None else f"{100 * merged.share:.1f} % hidden"
        canvas.text(frame.left - 8, top + 2 * _LANE - 2, hidden, "tick end")
        for lane, (spans, css) in enumerate(((merged.io, "bar tier0"), (merged.compute, "bar tier2"))):
            for first, last in _boxes(spans, start, seconds):
                canvas.rect(along(first), top + lane * _LANE, max(along(last) - along(first), 0.5), _LANE - 2, css)
        top += 2 * _LANE + _APART
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), "axis")
    for tick in nice_ticks(seconds):
        canvas.line((along(tick), frame.bottom), (along(tick), frame.bottom + 4), "axis")
        canvas.text(along(tick), frame.bottom + 20, f"{tick:.6g}", "tick middle")
    canvas.text((frame.left + frame.right) / 2, height - 9, "time (s)", "middle")
    legend.draw(canvas)
    return Figure("merged-timeline", title, caption, canvas.to_text(), size=Size(WIDTH, height))


def _boxes(spans: TimeSpans, start: int, seconds: float) -> Iterator[tuple[float, float]]:
    """Stretches of columns in which anything is under way: never more than there are columns."""
    edges = start + np.round(np.linspace(0, seconds * 1e9, _COLUMNS + 1)).astype(np.int64)
    busy = np.diff(spans.covered_before(edges)) > 0
    changes = np.flatnonzero(np.diff(np.concatenate([[False], busy, [False]]).astype(np.int8)))
    for first, last in changes.reshape(-1, 2).tolist():
        yield first * seconds / _COLUMNS, last * seconds / _COLUMNS


def draw_to_file(ranks: Sequence[MergedRank], name: str, path: str) -> None:
    if not ranks:
        raise UserError("--figure: it is not known when these logs' ranks computed; add --timeline FILE")
    if not path.endswith(".svg"):
        raise UserError(f"{path}: figures are drawn as SVG; choose a name that ends in .svg")
    if os.path.exists(path) and not is_stream(path):
        raise UserError(f"{path}: already exists; choose another name, or remove it first")
    try:
        with writing_named(path) as file:
            file.write(standalone(merged_figure(ranks, name)))
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; choose another name") from None
