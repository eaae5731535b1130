"""Two results side by side: the words for it, and the table for the terminal."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.beside import Beside, BesidePoint, ComparedResult
from tierscope.analysis.breakdown import SweepPoint, sweep_text, value_text
from tierscope.analysis.statistics import Interval
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.units import counted

ORDINALS = ("first", "second")


def headings(beside: Beside) -> tuple[str, str]:
    """What the columns of either are called: as short as tells them apart."""
    if beside.called is not None:
        return beside.called
    first, second = names_of([beside.first, beside.second])
    return first, second


def names_of(sides: Sequence[ComparedResult]) -> list[str]:
    """By the first of these that tells all of them apart: how times came about, in short or in full, study, place; else by number."""
    for of in (_word, _label, _study, _place):
        names = [of(side) for side in sides]
        if len(set(names)) == len(names):
            return names
    return [ORDINALS[number] if len(sides) == 2 else f"{number + 1}" for number in range(len(sides))]


def _word(side: ComparedResult) -> str:
    return side.word


def _label(side: ComparedResult) -> str:
    return side.label


def _study(side: ComparedResult) -> str:
    return side.name


def _place(side: ComparedResult) -> str:
    return os.path.basename(os.path.normpath(side.where))


def full_names(sides: Sequence[ComparedResult]) -> list[str]:
    """For a legend: where the times come from, and which is which where that is the same."""
    labels = [side.label for side in sides]
    if len(set(labels)) == len(labels):
        return labels
    return [
        name if name in labels else f"{name}: {side.label}" for name, side in zip(names_of(sides), sides, strict=True)
    ]


def title_of(beside: Beside) -> str:
    return "I/O time of the slowest process, {} versus {}".format(*headings(beside))


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


def faster_text(beside: Beside, point: BesidePoint) -> str:
    if point.apart:
        return "not comparable"
    first, second = headings(beside)
    return "unclear" if not point.is_told else second if point.gap_seconds < 0 else first


def covered_text(point: BesidePoint) -> str:
    return "–" if point.covered is None else "yes" if point.covered else "no"


def what_of(beside: Beside) -> str:
    """What a point is off by."""
    return "error" if beside.is_prediction else "difference"


def summary_sentences(beside: Beside) -> list[str]:
    """Errors or differences, bottlenecks and coverage in one; then what cannot be compared, what was left out and what else differs."""
    texts = (_summary(beside), _apart(beside), _left_out(beside), _differing(beside))
    return [text for text in texts if text]


def _summary(beside: Beside) -> str:
    if not beside.compared:
        return ""
    alike = sum(point.same_bottleneck for point in beside.compared)
    parts = [_errors(beside) if beside.is_prediction else _differences(beside)]
    parts.append(f"the same bottleneck at {alike} of {len(beside.compared)}")
    covered, known = beside.coverage
    if known:
        first, second = headings(beside)
        parts.append(f"{first} time within the 90 % interval of the {second} one at {covered} of {known}")
    return f"{'; '.join(parts)}."


def _errors(beside: Beside) -> str:
    n, worst = len(beside.errors), beside.worst
    if worst is None or beside.median_error is None:
        return "No error: the first has no I/O"
    at = f" at {sweep_text(worst.sweep)}" if n > 1 else ""
    return f"Median error {beside.median_error:,.1f} %, largest {error_text(worst.error_percent)}{at} (n={n} {'point' if n == 1 else 'points'})"


def _differences(beside: Beside) -> str:
    """Which is faster, where that can be told, and by how much."""
    first, second = headings(beside)
    told = [point for point in beside.compared if point.is_told]
    less, more = ([point for point in told if point.gap_seconds * sign > 0] for sign in (-1, 1))
    count, n = len(beside.compared), _n_text(beside)
    parts = [
        f"I/O of {second} takes {word} time than that of {first} at {len(points)} of {counted(count, 'point')} ({_span(points)}, {n})"
        for points, word in ((less, "less"), (more, "more"))
        if points
    ]
    unclear = [point for point in beside.compared if not point.is_told]
    if unclear:
        single = any(not side.has_spread for point in unclear for side in (point.first.io, point.second.io))
        why = "a single value has no interval" if single else "their intervals overlap"
        where = (
            ""
            if len(unclear) == count
            else f" at the other {len(unclear)}"
            if parts
            else f" at {len(unclear)} of {count}"
        )
        parts.append(f"{'which takes less' if parts else 'Which takes less'} I/O time is unclear{where}: {why} ({n})")
    return "; ".join(parts)


def _span(points: Sequence[BesidePoint]) -> str:
    known = sorted((point.error_percent for point in points if point.error_percent is not None), key=abs)
    ends = list(dict.fromkeys(error_text(end) for end in (*known[:1], *known[-1:])))
    return " to ".join(ends) or "from no time"


def _n_text(beside: Beside) -> str:
    counts = [sorted({side(point).io.n for point in beside.compared}) for side in (_first, _second)]
    return "n = {} and {}".format(
        *(f"{values[0]}" if len(values) == 1 else f"{values[0]} to {values[-1]}" for values in counts)
    )


def _first(point: BesidePoint) -> SweepPoint:
    return point.first


def _second(point: BesidePoint) -> SweepPoint:
    return point.second


def _apart(beside: Beside) -> str:
    """What must not be ranked."""
    apart = [point for point in beside.points if point.apart]
    if not apart:
        return ""
    reason = apart[0].apart
    if len(apart) == len(beside.points) and all(point.apart == reason for point in apart):
        return f"Not comparable: {reason}, so which is faster is unknown."
    return f"Not comparable at {len(apart)} of {counted(len(beside.points), 'point')}: {reason} at {sweep_text(apart[0].sweep)}."


def _left_out(beside: Beside) -> str:
    amounts = zip(beside.left_out, headings(beside), strict=True)
    parts = [f"{counted(amount, 'point')} only of the {name} sweep" for amount, name in amounts if amount]
    return f"Not compared: {' and '.join(parts)}." if parts else ""


def _differing(beside: Beside) -> str:
    """All keys: one that is not named would be taken for equal."""
    if not beside.differing:
        return ""
    return f"Their studies differ in {'; '.join(beside.differing)}, which may explain part of the {what_of(beside)}."


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
    for drop, (name, intervals) in enumerate(zip(headings(beside), times, strict=True), start=1):
        columns.append(Column(f"{name} {time.name}", [time.text(interval.median) for interval in intervals], "bold"))
        if any(interval.has_spread for interval in intervals):
            columns.append(_interval_column(intervals, time, drop))
    columns.append(Column(what_of(beside), [Text(error_text(point.error_percent)) for point in points], "bold"))
    if not beside.is_prediction:
        columns.append(Column("faster", [Text(faster_text(beside, point)) for point in points], right=False))
    if beside.coverage[1]:
        columns.append(Column("within 90 %", [Text(covered_text(point)) for point in points], drop=3))
    columns.append(Column("bottleneck", [Text(_bottlenecks(point)) for point in points], drop=4, right=False))
    return columns


def _interval_column(values: Sequence[Interval], time: Unit, drop: int) -> Column:
    kinds = {(value.kind, value.n) for value in values}
    if len(kinds) == 1:
        kind, n = kinds.pop()
        return Column(f"{kind}, n={n}", [Text(time.span(value)) for value in values], "dim", drop)
    return Column(
        "interval", [Text(f"{time.span(value)} ({value.kind}, n={value.n})") for value in values], "dim", drop
    )


def _bottlenecks(point: BesidePoint) -> str:
    first, second = point.first.bottleneck or "no I/O", point.second.bottleneck or "no I/O"
    return first if first == second else f"{first} ≠ {second}"
