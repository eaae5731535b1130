"""The tables of numbers on the report page."""

from collections.abc import Iterable

from tierscope.analysis.beside import Beside, BesidePoint
from tierscope.analysis.breakdown import Breakdown, EpochPoint, SweepPoint, value_text
from tierscope.analysis.statistics import Interval
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.totals import totals_of
from tierscope.report.beside import covered_text, error_text, headings, unit_of
from tierscope.report.markup import Html, join, named, table, tag
from tierscope.report.parts import Unit, ranked_groups
from tierscope.report.totals import split_header, totals_rows
from tierscope.trace.description import Imported
from tierscope.units import about_bytes


def beside_table(beside: Beside) -> Html:
    (first, second), unit = headings(beside), unit_of(beside)
    spread, within = ("low – high", "n"), beside.coverage[1] > 0
    headers = [
        *(key.replace("_", " ") for key in beside.sweep_keys),
        *(f"{first} {unit.name}", *spread, f"{second} {unit.name}", *spread, "error"),
        *(["within 90 %"] if within else []),
        *(f"bottleneck, {first}", f"bottleneck, {second}"),
    ]
    caption = f"I/O time of the slowest process in both; error: {second} ÷ {first} − 1" + (
        f"; within 90 %: whether the {first} time lies within the interval of the {second} one" if within else ""
    )
    return table(caption, headers, (_beside_row(beside, point, unit) for point in beside.points))


def _beside_row(beside: Beside, point: BesidePoint, unit: Unit) -> Html:
    names = (tag("th", named(value_text(key, point.sweep[key])), scope="row") for key in beside.sweep_keys)
    times = (
        cell
        for side in (point.first.io, point.second.io)
        for cell in (*_time_cells(unit, [side.median]), tag("td", unit.span(side)), tag("td", _n_text(side)))
    )
    bottlenecks = (tag("td", named(side.bottleneck or "–"), class_="words") for side in (point.first, point.second))
    error = tag("td", tag("strong", error_text(point.error_percent)))
    within = [tag("td", covered_text(point))] if beside.coverage[1] else []
    return tag("tr", *names, *times, error, *within, *bottlenecks)


def totals_table(times: ClassTimes) -> Html:
    """Of imported logs: every class over all ranks, and what is in no class."""
    facts = next((about.facts for about in times.about if isinstance(about, Imported)), None)
    found = list(totals_rows(totals_of(times), facts)) if facts else []
    if facts is None or not found:
        return Html("")
    unit = Unit.of(max(sums.seconds for _, sums, _ in found))
    rows = [
        tag(
            "tr",
            tag("th", named(name), scope="row"),
            *_time_cells(unit, [sums.seconds]),
            tag("td", f"{sums.ops:,}"),
            tag("td", about_bytes(sums.bytes or 0)),
            tag("td", note, class_="words"),
        )
        for name, sums, note in found
    ]
    return table("All ranks and epochs", ["", f"busy {unit.name}", "operations", "bytes", split_header(facts)], rows)


def numbers(breakdown: Breakdown) -> Html:
    unit = Unit.of(max(point.io.median for point in breakdown.summary))
    every = tag(
        "details", tag("summary", f"Every epoch ({len(breakdown.points)} rows)"), _epochs_table(breakdown, unit)
    )
    return join([_summary_table(breakdown, unit), every])


def _sweep_headers(breakdown: Breakdown) -> list[str]:
    return [key.replace("_", " ") for key in breakdown.sweep_keys]


def _sweep_cells(breakdown: Breakdown, point: SweepPoint | EpochPoint) -> list[Html]:
    return [tag("th", named(value_text(key, point.sweep[key])), scope="row") for key in breakdown.sweep_keys]


def _time_cells(unit: Unit, values: Iterable[float | None]) -> list[Html]:
    return [tag("td", unit.text(value).plain) for value in values]


def _n_text(values: Interval) -> str:
    return f"{values.n} ({values.kind})" if values.has_spread else str(values.n)


def _summary_table(breakdown: Breakdown, unit: Unit) -> Html:
    classes = breakdown.classes
    headers = [
        *_sweep_headers(breakdown),
        f"I/O {unit.name}",
        "low – high",
        "n",
        *classes,
        "bottleneck",
        f"epoch {unit.name}",
        f"epoch 1 I/O {unit.name}",
    ]
    rows = [
        tag(
            "tr",
            *_sweep_cells(breakdown, point),
            tag("td", tag("strong", unit.text(point.io.median).plain), _best_mark(breakdown, point)),
            tag("td", unit.span(point.io)),
            tag("td", _n_text(point.io)),
            *_time_cells(unit, (point.classes[name] for name in classes)),
            tag("td", named(point.bottleneck or "–"), class_="words"),
            *_time_cells(unit, (point.epoch_seconds, point.first_epoch_io_seconds)),
            class_="best-row" if _is_best(breakdown, point) else "",
        )
        for point in breakdown.summary
    ]
    return table("The slowest process, median over the epochs that count", headers, rows)


def _is_best(breakdown: Breakdown, point: SweepPoint) -> bool:
    return any(point is group.best for group in ranked_groups(breakdown)) and len(breakdown.summary) > 1


def _best_mark(breakdown: Breakdown, point: SweepPoint) -> Html:
    return tag("span", " best", class_="best-mark") if _is_best(breakdown, point) else Html("")


def _epochs_table(breakdown: Breakdown, unit: Unit) -> Html:
    classes = breakdown.classes
    headers = [
        *_sweep_headers(breakdown),
        "epoch",
        "processes",
        "slowest",
        f"I/O {unit.name}",
        "low – high",
        "n",
        *classes,
        "bottleneck",
        f"epoch {unit.name}",
    ]
    rows = [
        tag(
            "tr",
            *_sweep_cells(breakdown, point),
            *(tag("td", str(number)) for number in (point.epoch, point.ranks, point.slowest_rank)),
            *_time_cells(unit, [point.io_seconds]),
            tag("td", unit.span(point.spread)),
            tag("td", _n_text(point.spread)),
            *_time_cells(unit, (point.classes[name] for name in classes)),
            tag("td", named(point.bottleneck or "–"), class_="words"),
            *_time_cells(unit, [point.epoch_seconds]),
        )
        for point in breakdown.points
    ]
    return table("The slowest process of every epoch, median over repetitions", headers, rows)
