"""Two results side by side: the words for it, and the table for the terminal."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.beside import Beside, BesidePoint
from tierscope.analysis.breakdown import sweep_text, value_text
from tierscope.analysis.statistics import Interval
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.units import counted

ORDINALS = ("first", "second")
_MOST_KEYS = 4  # that are named where studies differ


def headings(beside: Beside) -> tuple[str, str]:
    """What the columns of either are called: as short as tells them apart."""
    first, second = beside.first, beside.second
    if first.word != second.word:
        return first.word, second.word
    return (first.label, second.label) if first.label != second.label else ORDINALS


def full_names(beside: Beside) -> tuple[str, str]:
    """For a legend: where the times come from, and which is which where that is the same."""
    first, second = beside.first, beside.second
    if first.label != second.label:
        return first.label, second.label
    names = (first.name, second.name) if first.name != second.name else ORDINALS
    return f"{names[0]}: {first.label}", f"{names[1]}: {second.label}"


def title_of(beside: Beside) -> str:
    return "I/O time of the slowest process, {} beside {}".format(*headings(beside))


def side_lines(beside: Beside) -> list[str]:
    """Which is which."""
    return [
        f"{heading}: {side.name} in {side.where}" + (f", {side.label}" if side.label != heading else "")
        for heading, side in zip(headings(beside), (beside.first, beside.second), strict=True)
    ]


def error_text(percent: float | None) -> str:
    if percent is None:
        return "–"
    text = f"{percent:+,.1f}" if abs(percent) < 1000 else f"{percent:+,.0f}"
    return f"{'0.0' if abs(percent) < 0.05 else text.replace('-', '−')} %"


def covered_text(point: BesidePoint) -> str:
    return "–" if point.covered is None else "yes" if point.covered else "no"


def summary_sentences(beside: Beside) -> list[str]:
    """Errors, bottlenecks and coverage in one; then what was left out and what else differs."""
    return [text for text in (_summary(beside), _left_out(beside), _differing(beside)) if text]


def _summary(beside: Beside) -> str:
    n, worst = len(beside.errors), beside.worst
    alike = sum(point.same_bottleneck for point in beside.points)
    parts = ["No error can be given, since there was no I/O in the first"]
    if worst is not None and beside.median_error is not None:
        at = f" at {sweep_text(worst.sweep)}" if n > 1 else ""
        parts = [
            f"Median error {beside.median_error:,.1f} %, largest {error_text(worst.error_percent)}{at} (n={n} {'point' if n == 1 else 'points'})"
        ]
    parts.append(f"the same bottleneck at {alike} of {len(beside.points)}")
    covered, known = beside.coverage
    if known:
        first, second = headings(beside)
        parts.append(f"{first} time within the 90 % interval of the {second} one at {covered} of {known}")
    return f"{'; '.join(parts)}."


def _left_out(beside: Beside) -> str:
    amounts = zip(beside.left_out, headings(beside), strict=True)
    parts = [f"{counted(amount, 'point')} only of the {name} sweep" for amount, name in amounts if amount]
    return f"Left out: {' and '.join(parts)}." if parts else ""


def _differing(beside: Beside) -> str:
    keys = beside.differing
    if not keys:
        return ""
    more = f" and {len(keys) - _MOST_KEYS} more" if len(keys) > _MOST_KEYS else ""
    return f"Their studies also differ in {', '.join(keys[:_MOST_KEYS])}{more}: part of the error may come from that."


@dataclass(frozen=True, slots=True)
class BesideView:
    """Title, table and summary; columns of less weight go when the terminal is narrow."""

    beside: Beside

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        beside = self.beside
        yield Text(title_of(beside), style="bold")
        for line in side_lines(beside):
            yield Text(line)
        yield table(fitting(_columns(beside), options.max_width))
        for number, sentence in enumerate(summary_sentences(beside)):
            yield Text(sentence, style="" if number else "bold")


def unit_of(beside: Beside) -> Unit:
    return Unit.of(max(max(point.first.io.median, point.second.io.median) for point in beside.points))


def _columns(beside: Beside) -> list[Column]:
    points, time = beside.points, unit_of(beside)
    columns = [
        Column(key.replace("_", " "), [Text(value_text(key, point.sweep[key])) for point in points])
        for key in beside.sweep_keys
    ]
    times = ([point.first.io for point in points], [point.second.io for point in points])
    for drop, (name, each) in enumerate(zip(headings(beside), times, strict=True), start=1):
        columns.append(Column(f"{name} {time.name}", [time.text(one.median) for one in each], "bold"))
        if any(one.has_spread for one in each):
            columns.append(_interval_column(each, time, drop))
    columns.append(Column("error", [Text(error_text(point.error_percent)) for point in points], "bold"))
    if beside.coverage[1]:
        columns.append(Column("within 90 %", [Text(covered_text(point)) for point in points], drop=3))
    columns.append(Column("bottleneck", [Text(_bottlenecks(point)) for point in points], drop=4, right=False))
    return columns


def _interval_column(values: Sequence[Interval], time: Unit, drop: int) -> Column:
    kinds = {(one.kind, one.n) for one in values}
    if len(kinds) == 1:
        kind, n = kinds.pop()
        return Column(f"{kind}, n={n}", [Text(time.span(one)) for one in values], "dim", drop)
    return Column("interval", [Text(f"{time.span(one)} ({one.kind}, n={one.n})") for one in values], "dim", drop)


def _bottlenecks(point: BesidePoint) -> str:
    first, second = point.first.bottleneck or "no I/O", point.second.bottleneck or "no I/O"
    return first if first == second else f"{first} ≠ {second}"
