"""The report page: one HTML file that needs nothing else, for reading and for trying what faster storage would give.

Names and values come from files of strangers, so all text goes through `_tag`, which escapes it; the browser runs no script but ours,
whose hashes are in the page's policy.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterable, Sequence
from importlib import resources
from string import Template
from typing import Any

from tierscope.analysis.beside import Beside, BesidePoint
from tierscope.analysis.breakdown import Breakdown, EpochPoint, SweepPoint, value_text
from tierscope.analysis.characterise import Character
from tierscope.analysis.statistics import Interval
from tierscope.analysis.training import Training
from tierscope.predict.processes import LIMITS
from tierscope.predict.whatif import Sensitivity
from tierscope.report.beside import covered_text, error_text, headings, side_lines, summary_sentences, unit_of
from tierscope.report.character import fact_rows
from tierscope.report.drawn.character import NAMES as CHARACTER_FIGURES
from tierscope.report.drawn.training import NAMES as TRAINING_FIGURES
from tierscope.report.figures import FIGURE_CSS, LIGHT, Figure, class_marks
from tierscope.report.origins import provenance
from tierscope.report.page_data import SLIDER, live_data
from tierscope.report.parts import WASTED_PERCENT, Unit, wasted_sentence
from tierscope.report.source import Source
from tierscope.report.training import (
    has_memory,
    interval_text,
    memory_texts,
    percent,
    rate_digits,
    rows_of,
    shown_phases,
    stall_sentences,
    subtitle,
    variability_text,
)
from tierscope.report.training import sentences as training_sentences
from tierscope.report.verdict import verdict
from tierscope.units import about_bytes, about_seconds

_SCRIPTS = ("whatif.js", "drawing.js", "page.js")
_LIVE = ("estimate", "goal")  # figures that are drawn in the browser
_BESIDE = "beside"
_TURNS_TEXT = re.compile("[\u202a-\u202e\u2066-\u2069]")
_JSON_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


_BASES = {
    "busy": "sums of the times of operations; several at once may add up to more than has passed",
    "wall": "every instant is shared equally by the operations then active",
}


class _Html(str):
    """Markup that is made here; any other text is a stranger's."""


def page(source: Source, drawn: list[Figure]) -> bytes:
    scripts = [_read(name) for name in _SCRIPTS]
    live = live_data(source)
    parts = {
        "came": _text(source.conditions.came),
        "policy": _text(_policy(scripts)),
        "title": _text(f"{source.name} – Tierscope"),
        "css": _css(),
        "header": _header(source),
        "verdict": _join(_tag("p", sentence.replace(" %", "\u00a0%")) for sentence in verdict(source)),
        "without_script": _join(_figure(figure) for figure in drawn if figure.name in _LIVE),
        "sliders": _join(_slider(*mark) for mark in class_marks(source.processes.classes)),
        "slice": _slice(live["slices"]),
        "key": _key(source.processes.classes),
        "goal_caption": _goal_caption(live["has_rates"]),
        "at": _text(_place_name(source.breakdown)),
        "options": _join(_tag("option", name, value=name) for name in source.processes.classes),
        "sensitivity": _sensitivity(source),
        "figures": _join(
            _figure(figure)
            for figure in drawn
            if figure.name not in (*_LIVE, _BESIDE, *CHARACTER_FIGURES, *TRAINING_FIGURES)
        ),
        "training": _training(source.training, drawn) if source.training else _Html(""),
        "character": _character(source, source.character, drawn) if source.character else _Html(""),
        "beside": _beside(source.beside, drawn) if source.beside else _Html(""),
        "numbers": _numbers(source.breakdown),
        "findings": _findings(source),
        "provenance": _provenance(source),
        "data": embedded(live),
        "scripts": _join(_Html(f"<script>{script}</script>") for script in scripts),
    }
    # File names may hold what is no Unicode.
    return Template(_read("page.html")).substitute(parts).encode("utf-8", "replace")


def embedded(data: Any) -> _Html:
    """JSON that cannot end the element it stands in."""
    return _Html(json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_JSON_ESCAPES))


def _read(name: str) -> str:
    return (resources.files("tierscope.report") / "assets" / name).read_text(encoding="utf-8")


def _policy(scripts: Iterable[str]) -> str:
    """Nothing is fetched, and only these scripts run."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def _css() -> _Html:
    colours = "".join(f"{name}:{colour};" for name, colour in LIGHT.items())
    return _Html(f":root{{{colours}}}\n{_read('page.css')}\n{FIGURE_CSS}")


# Markup


def _text(text: str) -> _Html:
    """Escaped; what turns the direction of the text around it is made visible."""
    return _Html(html.escape(_TURNS_TEXT.sub("\ufffd", text)))


def _join(parts: Iterable[_Html]) -> _Html:
    return _Html("\n".join(parts))


def _tag(name: str, *children: str, **attributes: str) -> _Html:
    """Attributes are written as `class_` and `data_class`. An attribute keeps its value as it is, so that it can be compared."""
    given = "".join(f' {key.rstrip("_").replace("_", "-")}="{html.escape(value)}"' for key, value in attributes.items())
    inside = "".join(child if isinstance(child, _Html) else _text(child) for child in children)
    return _Html(f"<{name}{given}>{inside}</{name}>")


def _void(name: str, **attributes: str) -> _Html:
    return _Html(_tag(name, **attributes).removesuffix(f"</{name}>"))


def _named(name: str) -> _Html:
    """A name of unknown writing direction."""
    return _tag("bdi", name)


def _table(caption: str, headers: Sequence[str], rows: Iterable[_Html]) -> _Html:
    head = _tag("tr", *(_tag("th", _named(header), scope="col") for header in headers))
    body = _tag("tbody", *rows)
    table = _tag("table", _tag("caption", caption), _tag("thead", head), body)
    return _tag("div", table, class_="scroll", tabindex="0", role="region", aria_label=caption)


# The parts of the page, from top to bottom


def _header(source: Source) -> _Html:
    emulated, simulated = source.conditions.emulated, source.conditions.simulated
    badges = [
        *([_tag("li", f"emulated: {', '.join(emulated)}", class_="emulated")] if emulated else []),
        *([_tag("li", f"simulated ({', '.join(simulated)})", class_="emulated")] if simulated else []),
        _tag("li", f"{source.breakdown.basis} seconds", title=_BASES[source.breakdown.basis]),
    ]
    workload = [_tag("p", source.workload, class_="lead")] if source.workload else []
    return _join([_tag("h1", source.name), *workload, _tag("ul", *badges, class_="badges")])


def _swatch(tier: int, hatched: bool) -> _Html:
    return _tag("span", class_=f"swatch hue{tier}{' hatched' if hatched else ''}", aria_hidden="true")


def _slider(name: str, tier: int, hatched: bool) -> _Html:
    slider = _void(
        "input",
        type="range",
        min=str(SLIDER["low"]),
        max=str(SLIDER["high"]),
        step=str(SLIDER["step"]),
        value="0",
        class_=f"hue{tier}",
        data_class=name,
        aria_label=f"{name}, percent more throughput",
    )
    box = _void(
        "input",
        type="number",
        min=f"{LIMITS[0]:g}",
        max=f"{LIMITS[1]:.0f}",
        step="any",
        value="0",
        data_box="",
        data_class=name,
        aria_label=f"{name}, percent more throughput, as a number",
    )
    label = _tag("span", _swatch(tier, hatched), _named(name), class_="name")
    return _tag("div", label, slider, _tag("span", box, " %", class_="percent"), class_="slider")


def _slice(slices: Sequence[dict[str, Any]]) -> _Html:
    """A choice among the combinations of the keys that do not run along the axis."""
    if len(slices) < 2:
        return _Html("")
    options = (_tag("option", part["text"], value=str(index)) for index, part in enumerate(slices))
    return _tag("p", _tag("label", "slice", for_="slice"), " ", _tag("select", *options, id="slice"))


def _key(classes: tuple[str, ...]) -> _Html:
    entries = (_tag("li", _swatch(tier, hatched), _named(name)) for name, tier, hatched in class_marks(classes))
    return _tag("ul", *entries, class_="key")


def _goal_caption(has_rates: bool) -> _Html:
    colour = ", coloured by the smallest cache rate that does" if has_rates else ""
    return _text(f"Dots: combinations of more throughput in two classes that meet the goal{colour}.")


def _place_name(breakdown: Breakdown) -> str:
    """What a point of the sweep is called, where its values stand under it."""
    return "at" if len(breakdown.sweep_keys) > 1 else "".join(_sweep_headers(breakdown))


def _sensitivity(source: Source) -> _Html:
    each = source.estimate.sensitivity
    steps = list(each[0].change_percent)
    marks = {name: (tier, hatched) for name, tier, hatched in class_marks(source.processes.classes)}
    headers = ["class", *(f"{step:+g} %" for step in steps), "at most"]
    rows = [_sensitivity_row(one, _swatch(*marks[one.class_name])) for one in each]
    caption = (
        f"Change of the best {source.conditions.came} I/O time, by scaling, if one class alone had more throughput; "
        "at most: if it took no time at all"
    )
    wasted = wasted_sentence(each)
    return _join([_table(caption, headers, rows), *([_tag("p", wasted)] if wasted else [])])


def _sensitivity_row(one: Sensitivity, swatch: _Html) -> _Html:
    changes = [*one.change_percent.values(), one.limit_percent]
    cells = (_tag("td", _bar(-change), _change(change), class_="bar-cell") for change in changes)
    name = _tag("th", swatch, _named(one.class_name), scope="row")
    return _tag("tr", name, *cells, class_="wasted" if -one.limit_percent < WASTED_PERCENT else "")


def _bar(percent: float) -> _Html:
    return _tag("span", class_="bar", style=f"width:{min(max(percent, 0.0), 100.0):.1f}%", aria_hidden="true")


def _change(percent: float) -> _Html:
    return _tag("span", f"−{-percent:.1f} %" if percent <= -0.05 else "0 %")


def _figure(figure: Figure) -> _Html:
    drawing = _tag("p", f"Not drawn: {figure.missing}.", class_="missing") if figure.svg is None else _Html(figure.svg)
    caption = [_tag("figcaption", figure.caption)] if figure.caption else []
    return _tag("figure", _tag("h3", figure.title), drawing, *caption, id=f"figure-{figure.name}")


def _character(source: Source, character: Character, drawn: Sequence[Figure]) -> _Html:
    """The whole section: it is not there where no trace is at hand."""
    where = f"Shown is {source.character_where}." if source.character_where else "All ranks and epochs together."
    names = [_tag("th", name, scope="row") for name, _, _ in fact_rows(character)]
    rows = [
        _tag("tr", name, _tag("td", value), _tag("td", note, class_="words"))
        for name, (_, value, note) in zip(names, fact_rows(character), strict=True)
    ]
    files = [
        _tag(
            "tr",
            _tag("th", _named(one.name), scope="row"),
            *(_tag("td", _named(text)) for text in (one.tier, f"{one.ranks:,}", f"{one.reads:,}")),
            _tag("td", about_bytes(one.read_bytes)),
            _tag("td", about_seconds(one.seconds)),
        )
        for one in character.files
    ]
    formats = [
        _tag(
            "tr",
            _tag("th", _named(one.name), scope="row"),
            *(_tag("td", "–" if number is None else f"{number:,}") for number in (one.files, one.reads)),
            _tag("td", about_bytes(one.read_bytes)),
            _tag("td", about_seconds(one.seconds)),
        )
        for one in character.formats
    ]
    sums = ("reads", "bytes read", "READ")
    parts = [
        _tag("h2", "How it reads", id="reads-title"),
        _tag("p", where, class_="lead"),
        _table("What one run reads, and how", ["", "value", ""], rows),
        _tag("div", *(_figure(figure) for figure in drawn if figure.name in CHARACTER_FIGURES), class_="drawn"),
        *([_table("By format", ["format", "files", *sums], formats)] if formats else []),
        *(
            [
                _tag(
                    "details",
                    _tag("summary", f"Files with most bytes ({len(files)} rows)"),
                    _table("Files with most bytes, over all ranks and epochs", ["file", "tier", "ranks", *sums], files),
                )
            ]
            if files
            else []
        ),
        *(_tag("p", f"No {part}: {reason}.", class_="missing") for part, reason in character.missing.items()),
    ]
    return _tag("section", *parts, id="reads", aria_labelledby="reads-title")


def _training(training: Training, drawn: Sequence[Figure]) -> _Html:
    """The whole section: it is not there where compute was emulated."""
    names, rows = rows_of([(None, training)])
    points = training.points
    phases, digits, memory = shown_phases(points), rate_digits(points), has_memory(points)
    headers = [*names, "samples/s", "95 % interval", "n", "variability", *phases, "busy"]
    headers += ["memory", "predicted", "error"] if memory else []
    body = [
        _tag(
            "tr",
            *(_tag("th", _named(text), scope="row") for text in row.at),
            _tag("td", _tag("strong", f"{row.point.samples_per_second.value:,.{digits}f}")),
            *(
                _tag("td", text)
                for text in (
                    interval_text(row.point.samples_per_second, digits),
                    str(row.point.n),
                    variability_text(row.point),
                    *(percent(row.point.share(name)) for name in phases),
                    percent(row.point.utilisation),
                    *(memory_texts(row.point) if memory else ()),
                )
            ),
        )
        for row in rows
    ]
    parts = [
        _tag("h2", "Training", id="training-title"),
        _tag("p", f"{subtitle(training)}.", class_="lead"),
        *(_tag("p", sentence) for sentence in stall_sentences(training)),
        _table("Throughput, and where the time of an epoch goes", headers, body),
        *(_tag("p", sentence, class_="hint") for sentence in training_sentences(training)),
        _tag("div", *(_figure(figure) for figure in drawn if figure.name in TRAINING_FIGURES), class_="drawn"),
    ]
    return _tag("section", *parts, id="training", aria_labelledby="training-title")


def _beside(beside: Beside, drawn: Sequence[Figure]) -> _Html:
    """The whole section: it is not there where nothing is laid beside."""
    title = "{} beside {}".format(*headings(beside))
    parts = [
        _tag("h2", f"{title[0].upper()}{title[1:]}", id="beside-title"),
        *(_tag("p", line, class_="lead") for line in side_lines(beside)),
        *(_tag("p", sentence) for sentence in summary_sentences(beside)),
        *(_figure(figure) for figure in drawn if figure.name == _BESIDE),
        _beside_table(beside),
    ]
    return _tag("section", *parts, id="beside", aria_labelledby="beside-title")


def _beside_table(beside: Beside) -> _Html:
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
    return _table(caption, headers, (_beside_row(beside, point, unit) for point in beside.points))


def _beside_row(beside: Beside, point: BesidePoint, unit: Unit) -> _Html:
    names = (_tag("th", _named(value_text(key, point.sweep[key])), scope="row") for key in beside.sweep_keys)
    times = (
        cell
        for side in (point.first.io, point.second.io)
        for cell in (*_time_cells(unit, [side.median]), _tag("td", unit.span(side)), _tag("td", _n_text(side)))
    )
    bottlenecks = (_tag("td", _named(side.bottleneck or "–"), class_="words") for side in (point.first, point.second))
    error = _tag("td", _tag("strong", error_text(point.error_percent)))
    within = [_tag("td", covered_text(point))] if beside.coverage[1] else []
    return _tag("tr", *names, *times, error, *within, *bottlenecks)


def _numbers(breakdown: Breakdown) -> _Html:
    unit = Unit.of(max(point.io.median for point in breakdown.summary))
    every = _tag(
        "details", _tag("summary", f"Every epoch ({len(breakdown.points)} rows)"), _epochs_table(breakdown, unit)
    )
    return _join([_summary_table(breakdown, unit), every])


def _sweep_headers(breakdown: Breakdown) -> list[str]:
    return [key.replace("_", " ") for key in breakdown.sweep_keys]


def _sweep_cells(breakdown: Breakdown, point: SweepPoint | EpochPoint) -> list[_Html]:
    return [_tag("th", _named(value_text(key, point.sweep[key])), scope="row") for key in breakdown.sweep_keys]


def _time_cells(unit: Unit, values: Iterable[float | None]) -> list[_Html]:
    return [_tag("td", unit.text(value).plain) for value in values]


def _n_text(values: Interval) -> str:
    return f"{values.n} ({values.kind})" if values.has_spread else str(values.n)


def _summary_table(breakdown: Breakdown, unit: Unit) -> _Html:
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
        _tag(
            "tr",
            *_sweep_cells(breakdown, point),
            _tag("td", _tag("strong", unit.text(point.io.median).plain), _best_mark(breakdown, point)),
            _tag("td", unit.span(point.io)),
            _tag("td", _n_text(point.io)),
            *_time_cells(unit, (point.classes[name] for name in classes)),
            _tag("td", _named(point.bottleneck or "–"), class_="words"),
            *_time_cells(unit, (point.epoch_seconds, point.first_epoch_io_seconds)),
            class_="best-row" if _is_best(breakdown, point) else "",
        )
        for point in breakdown.summary
    ]
    return _table("The slowest process, median over the epochs that count", headers, rows)


def _is_best(breakdown: Breakdown, point: SweepPoint) -> bool:
    return point is breakdown.best and len(breakdown.summary) > 1


def _best_mark(breakdown: Breakdown, point: SweepPoint) -> _Html:
    return _tag("span", " best", class_="best-mark") if _is_best(breakdown, point) else _Html("")


def _epochs_table(breakdown: Breakdown, unit: Unit) -> _Html:
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
        _tag(
            "tr",
            *_sweep_cells(breakdown, point),
            *(_tag("td", str(number)) for number in (point.epoch, point.ranks, point.slowest_rank)),
            *_time_cells(unit, [point.io_seconds]),
            _tag("td", unit.span(point.spread)),
            _tag("td", _n_text(point.spread)),
            *_time_cells(unit, (point.classes[name] for name in classes)),
            _tag("td", _named(point.bottleneck or "–"), class_="words"),
            *_time_cells(unit, [point.epoch_seconds]),
        )
        for point in breakdown.points
    ]
    return _table("The slowest process of every epoch, median over repetitions", headers, rows)


def _findings(source: Source) -> _Html:
    if not source.findings:
        return _tag("p", "None.")
    items = (
        _tag("li", finding.text, _tag("span", f" → {finding.suggestion}", class_="suggestion"))
        for finding in source.findings
    )
    return _tag("ul", *items, class_="findings")


def _provenance(source: Source) -> _Html:
    facts = provenance(source)
    pairs = (_tag("div", _tag("dt", name), _tag("dd", value)) for name, value in facts)
    found = [_tag("dl", *pairs)] if facts else [_tag("p", "Nothing is known but the times themselves.")]
    if source.study_yaml is not None:
        found.append(
            _tag(
                "details", _tag("summary", "The study as it was resolved"), _tag("pre", source.study_yaml, tabindex="0")
            )
        )
    return _join(found)
