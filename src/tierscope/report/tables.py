"""The breakdown as a table and a verdict for the terminal."""

from collections.abc import Iterator
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tierscope.analysis.breakdown import Breakdown, SweepPoint
from tierscope.analysis.findings import Finding
from tierscope.trace.ops import IO_CATEGORIES
from tierscope.units import about_seconds, format_fraction

_COLOURS = ("blue", "cyan", "yellow", "magenta", "green", "red")  # by class, in the order of the breakdown
_BAR = 24


def breakdown_view(name: str, breakdown: Breakdown, findings: list[Finding], emulated: list[str]) -> RenderableType:
    """Title, table, verdict and findings."""
    ranks = max(point.ranks for point in breakdown.points)
    label = f" · emulated tiers: {', '.join(emulated)}" if emulated else ""
    title = Text(f"{name}: I/O seconds of the slowest of {ranks} processes ({breakdown.basis}){label}", style="bold")
    return Group(title, _table(breakdown), *verdict(breakdown), *_finding_lines(findings))


def value_text(name: str, value: Any) -> str:
    """A sweep value as people write it."""
    if name.rpartition(".")[2] == "cache_rate" and isinstance(value, int | float):
        return format_fraction(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def where_text(point: SweepPoint) -> str:
    return ", ".join(f"{name} {value_text(name, value)}" for name, value in point.sweep.items()) or "the only point"


def _table(breakdown: Breakdown) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for key in breakdown.sweep_keys:
        table.add_column(Text(key.replace("_", " ")), justify="right")
    n = breakdown.best.io.n
    kind = breakdown.best.io.kind
    table.add_column("I/O s", justify="right", style="bold")
    table.add_column(f"{kind}, n={n}", justify="right", style="dim")
    for index, name in enumerate(breakdown.classes):
        table.add_column(Text(name), justify="right", style=_COLOURS[index % len(_COLOURS)])
    table.add_column("bottleneck")
    table.add_column("epoch s", justify="right")
    table.add_column("1st I/O s", justify="right", style="dim")
    table.add_column("")
    longest = max(point.io.median for point in breakdown.summary) or 1.0
    for point in breakdown.summary:
        row = [Text(value_text(name, value)) for name, value in point.sweep.items()]
        row += [_seconds(point.io.median), Text(f"{point.io.low:.3f}–{point.io.high:.3f}")]
        row += [_seconds(point.classes[name]) for name in breakdown.classes]
        row += [
            Text(point.bottleneck or "–"),
            _seconds(point.epoch_seconds),
            _seconds(point.first_epoch_io_seconds),
        ]
        table.add_row(*row, _bar(point, breakdown, longest))
    return table


def _seconds(value: float | None) -> Text:
    return Text("–" if value is None else f"{value:.3f}")


def _bar(point: SweepPoint, breakdown: Breakdown, longest: float) -> Text:
    """The parts of the I/O time; writes are no part of it."""
    bar = Text()
    for index, name in enumerate(breakdown.classes):
        if name.rpartition("-")[2] in IO_CATEGORIES:
            bar.append("█" * round(_BAR * point.classes[name] / longest), style=_COLOURS[index % len(_COLOURS)])
    if point is breakdown.best:
        bar.append(" ◀ best", style="bold")
    return bar


def verdict(breakdown: Breakdown) -> Iterator[Text]:
    best = breakdown.best
    spread = f"{best.io.low:.3f}–{best.io.high:.3f} s, {best.io.kind}, n={best.io.n}"
    yield Text(f"Best: {where_text(best)} with {best.io.median:.3f} s of I/O per epoch ({spread}).", style="bold")
    equal = breakdown.smallest_equal
    if equal is not None and equal is not best:
        yield Text(f"The smallest that cannot be told from it: {where_text(equal)} ({equal.io.median:.3f} s).")
    moves = list(_bottleneck_moves(breakdown))
    if moves:
        yield Text(f"Bottleneck: {'; '.join(moves)}.")
    rest = [point.epoch_seconds - point.io.median for point in breakdown.summary if point.epoch_seconds is not None]
    if rest:
        low, high = min(rest), max(rest)
        yield Text(f"Epoch time is that I/O time plus {_signed(low)} to {_signed(high)}.")


def _signed(seconds: float) -> str:
    return f"-{about_seconds(-seconds)}" if seconds < 0 else about_seconds(seconds)


def _bottleneck_moves(breakdown: Breakdown) -> Iterator[str]:
    """Stretches of the sweep with the same bottleneck; for a sweep over one key."""
    if len(breakdown.sweep_keys) != 1 or len(breakdown.summary) < 2:
        return
    name = breakdown.sweep_keys[0]
    stretch: list[SweepPoint] = []
    for point in [*breakdown.summary, None]:
        if stretch and (point is None or point.bottleneck != stretch[0].bottleneck):
            first, last = (value_text(name, end.sweep[name]) for end in (stretch[0], stretch[-1]))
            span = f"at {first}" if first == last else f"from {first} to {last}"
            yield f"{stretch[0].bottleneck or 'no I/O'} {span}"
            stretch = []
        if point is not None:
            stretch.append(point)


def _finding_lines(findings: list[Finding]) -> Iterator[Text]:
    for finding in findings:
        line = Text("• ", style="dim")
        line.append(finding.text)
        line.append(f" → {finding.suggestion}", style="dim")
        yield line
