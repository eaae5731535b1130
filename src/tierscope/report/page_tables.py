"""The tables of numbers on the report page."""

from collections.abc import Iterable, Sequence

from tierscope.analysis.beside import Beside, BesidePoint
from tierscope.analysis.breakdown import Breakdown, EpochPoint, SweepPoint, value_text
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.statistics import Interval
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.totals import totals_of
from tierscope.predict.exploration import Combination, Remedy
from tierscope.report.beside import covered_text, error_text, faster_text, headings, unit_of, what_of
from tierscope.report.markup import Html, join, named, table, tag
from tierscope.report.parts import Unit, ranked_groups
from tierscope.report.plans import pays_text
from tierscope.report.totals import split_header, totals_rows
from tierscope.trace.description import Imported
from tierscope.units import about_bytes, about_seconds, counted


def beside_table(beside: Beside) -> Html:
    (first, second), unit = headings(beside), unit_of(beside)
    spread, within = ("low – high", "n"), beside.coverage[1] > 0
    headers = [
        *(key.replace("_", " ") for key in beside.sweep_keys),
        *(f"{first} {unit.name}", *spread, f"{second} {unit.name}", *spread, what_of(beside)),
        *([] if beside.is_prediction else ["faster"]),
        *(["within 90 %"] if within else []),
        *(f"bottleneck, {first}", f"bottleneck, {second}"),
    ]
    caption = f"I/O time of the slowest process in both; {what_of(beside)}: {second} ÷ {first} − 1" + (
        f"; within 90 %: whether the {first} time is within the {second} interval" if within else ""
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
    faster = [] if beside.is_prediction else [tag("td", named(faster_text(beside, point)), class_="words")]
    within = [tag("td", covered_text(point))] if beside.coverage[1] else []
    return tag("tr", *names, *times, error, *faster, *within, *bottlenecks)


def totals_table(times: ClassTimes) -> Html:
    """Of imported logs: every class over all ranks, and what is in no class."""
    facts = next((about.facts for about in times.about if isinstance(about, Imported)), None)
    sums_rows = list(totals_rows(totals_of(times), facts)) if facts else []
    if facts is None or not sums_rows:
        return Html("")
    unit = Unit.of(max(sums.seconds for _, sums, _ in sums_rows))
    rows = [
        tag(
            "tr",
            tag("th", named(name), scope="row"),
            *_time_cells(unit, [sums.seconds]),
            tag("td", f"{sums.ops:,}"),
            tag("td", about_bytes(sums.bytes or 0)),
            tag("td", note, class_="words"),
        )
        for name, sums, note in sums_rows
    ]
    return table("All ranks and epochs", ["", f"busy {unit.name}", "operations", "bytes", split_header(facts)], rows)


def remedies_table(remedies: Sequence[Remedy]) -> Html:
    """What would fit instead, shortest first; nothing where the best point fits."""
    if not remedies:
        return Html("")
    unit = Unit.of(max(remedy.option.io_seconds for remedy in remedies))
    headers = ["", "cache rate", f"I/O {unit.name}", "low – high", "takes", "staging", "pays after", "randomness"]
    rows = [
        tag(
            "tr",
            tag("th", remedy.name, scope="row"),
            tag("td", value_text("cache_rate", remedy.option.cache_rate)),
            *_time_cells(unit, [remedy.option.io_seconds]),
            tag("td", f"{unit.text(remedy.option.low_seconds)} – {unit.text(remedy.option.high_seconds)}"),
            tag("td", _held_text(remedy.option)),
            tag("td", "–" if remedy.option.staging_seconds is None else about_seconds(remedy.option.staging_seconds)),
            tag("td", pays_text(remedy.option)),
            tag("td", remedy.randomness, class_="words"),
        )
        for remedy in remedies
    ]
    return table("What would fit instead (simulated)", headers, rows)


def _held_text(option: Combination) -> str:
    rooms = [f"{about_bytes(room.needed)} on {room.tier} {room.where}" for room in option.feasibility.tiers]
    return ", ".join(rooms) or "–"


def numbers(breakdown: Breakdown, given: Conditions) -> Html:
    unit = Unit.of(max(point.io.median for point in breakdown.summary))
    every = tag(
        "details",
        tag("summary", f"Every epoch ({counted(len(breakdown.points), 'row')})"),
        _epochs_table(breakdown, unit),
    )
    return join([_summary_table(breakdown, given, unit), every])


def _sweep_headers(breakdown: Breakdown) -> list[str]:
    return [key.replace("_", " ") for key in breakdown.sweep_keys]


def _sweep_cells(breakdown: Breakdown, point: SweepPoint | EpochPoint) -> list[Html]:
    return [tag("th", named(value_text(key, point.sweep[key])), scope="row") for key in breakdown.sweep_keys]


def _time_cells(unit: Unit, values: Iterable[float | None]) -> list[Html]:
    return [tag("td", unit.text(value).plain) for value in values]


def _n_text(values: Interval) -> str:
    return f"{values.n} ({values.kind})" if values.has_spread else str(values.n)


def _summary_table(breakdown: Breakdown, given: Conditions, unit: Unit) -> Html:
    bests = [group.best for group in ranked_groups(breakdown, given)] if len(breakdown.summary) > 1 else []
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
        *_room_headers(breakdown),
    ]
    rows = [
        tag(
            "tr",
            *_sweep_cells(breakdown, point),
            tag("td", tag("strong", unit.text(point.io.median).plain), _best_mark(point, bests)),
            tag("td", unit.span(point.io)),
            tag("td", _n_text(point.io)),
            *_time_cells(unit, (point.classes[name] for name in classes)),
            tag("td", named(point.bottleneck or "–"), class_="words"),
            *_time_cells(unit, (point.epoch_seconds, point.first_epoch_io_seconds)),
            *(tag("td", text) for text in _room_texts(breakdown, point)),
            class_="best-row" if _is_among(point, bests) else "",
        )
        for point in breakdown.summary
    ]
    return table("The slowest process, median over the counted epochs", headers, rows)


def _held_tiers(breakdown: Breakdown) -> dict[str, str]:
    """Tiers whose bytes are known, with whose they are."""
    feasibilities = [point.feasibility for point in breakdown.summary if point.feasibility]
    return {room.tier: room.where for feasibility in feasibilities for room in feasibility.tiers}


def _is_staged(breakdown: Breakdown) -> bool:
    return any(point.staging_seconds is not None for point in breakdown.summary)


def _room_headers(breakdown: Breakdown) -> list[str]:
    held = [f"{tier} {where} (capacity)" for tier, where in _held_tiers(breakdown).items()]
    return [*held, *(["staging", "pays off after epochs"] if _is_staged(breakdown) else [])]


def _room_texts(breakdown: Breakdown, point: SweepPoint) -> list[str]:
    rooms = [point.feasibility.on(tier) if point.feasibility else None for tier in _held_tiers(breakdown)]
    texts = [
        f"{about_bytes(room.needed)} ({'not set' if room.capacity is None else about_bytes(room.capacity)})"
        if room
        else "–"
        for room in rooms
    ]
    if not _is_staged(breakdown):
        return texts
    staging = "–" if point.staging_seconds is None else about_seconds(point.staging_seconds)
    return [*texts, staging, "–" if point.break_even_epochs is None else str(point.break_even_epochs)]


def _is_among(point: SweepPoint, bests: Sequence[SweepPoint]) -> bool:
    return any(point is best for best in bests)


def _best_mark(point: SweepPoint, bests: Sequence[SweepPoint]) -> Html:
    if not point.is_possible:
        return tag("span", " does not fit", class_="best-mark")
    return tag("span", " best", class_="best-mark") if _is_among(point, bests) else Html("")


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
