"""The report page: one HTML file that needs nothing else, for reading and for trying what faster storage would give.

Names and values come from files of strangers, so all text goes through `tag` of `report/markup.py`, which escapes it; the browser runs no
script but ours, whose hashes are in the page's policy.
"""

import json
from collections.abc import Sequence
from string import Template
from typing import Any

from tierscope.analysis.beside import Beside
from tierscope.analysis.breakdown import Breakdown
from tierscope.analysis.characterise import Character
from tierscope.analysis.training import Training
from tierscope.predict.processes import LIMITS
from tierscope.predict.whatif import Sensitivity
from tierscope.report.beside import headings, side_lines, summary_sentences
from tierscope.report.character import fact_rows
from tierscope.report.drawn.character import NAMES as CHARACTER_FIGURES
from tierscope.report.drawn.training import NAMES as TRAINING_FIGURES
from tierscope.report.estimates import limit_text
from tierscope.report.figures import Figure, class_marks
from tierscope.report.markup import Html, css, escaped, figure_of, join, named, policy, read_asset, table, tag, void
from tierscope.report.origins import provenance
from tierscope.report.page_data import SLIDER, live_data
from tierscope.report.page_tables import _sweep_headers, beside_table, numbers, totals_table
from tierscope.report.parts import WASTED_PERCENT, basis_text, wasted_sentence
from tierscope.report.report_source import ReportSource
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
from tierscope.spec.goal import AU, EPOCH, IO
from tierscope.units import about_bytes, about_seconds

_SCRIPTS = ("whatif.js", "drawing.js", "page.js")
_LIVE = ("estimate", "goal")  # figures that are drawn in the browser
_BESIDE = "beside"
_GOAL_KINDS = {IO: "I/O per epoch at most", EPOCH: "epoch at most", AU: "accelerator utilisation at least"}
_JSON_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


_BASES = {
    "busy": "sums of the times of operations; several at once may add up to more than has passed",
    "wall": "every instant is shared equally by the operations then active",
}


def page(source: ReportSource, drawn: list[Figure]) -> bytes:
    scripts = [read_asset(name) for name in _SCRIPTS]
    live = live_data(source)
    parts = {
        "came": escaped(source.conditions.came),
        "policy": escaped(policy(scripts)),
        "title": escaped(f"{source.name} – Tierscope"),
        "css": css(),
        "header": _header(source),
        "verdict": join(tag("p", sentence.replace(" %", "\u00a0%")) for sentence in verdict(source)),
        "without_script": join(figure_of(figure) for figure in drawn if figure.name in _LIVE),
        "sliders": join(_slider(*mark) for mark in class_marks(source.processes.classes)),
        "slice": _slice(live["slices"]),
        "key": _key(source.processes.classes),
        "goal_kinds": join(tag("option", _GOAL_KINDS[kind], value=kind) for kind in live["goal"]["kinds"]),
        "goal_caption": _goal_caption(live["has_rates"]),
        "at": escaped(_place_name(source.breakdown)),
        "options": join(tag("option", name, value=name) for name in source.processes.classes),
        "sensitivity": _sensitivity(source),
        "figures": join(
            figure_of(figure)
            for figure in drawn
            if figure.name not in (*_LIVE, _BESIDE, *CHARACTER_FIGURES, *TRAINING_FIGURES)
        ),
        "training": _training(source.training, drawn) if source.training else Html(""),
        "character": _character(source, source.character, drawn) if source.character else Html(""),
        "beside": _beside(source.beside, drawn) if source.beside else Html(""),
        "numbers": join([numbers(source.breakdown), totals_table(source.times)]),
        "findings": _findings(source),
        "provenance": _provenance(source),
        "data": embedded(live),
        "scripts": join(Html(f"<script>{script}</script>") for script in scripts),
    }
    # File names may hold what is no Unicode.
    return Template(read_asset("page.html")).substitute(parts).encode("utf-8", "replace")


def embedded(data: Any) -> Html:
    """JSON that cannot end the element it stands in."""
    return Html(json.dumps(data, allow_nan=False, separators=(",", ":")).translate(_JSON_ESCAPES))


# The parts of the page, from top to bottom


def _header(source: ReportSource) -> Html:
    emulated, simulated = source.conditions.emulated, source.conditions.simulated
    badges = [
        *([tag("li", f"emulated: {', '.join(emulated)}", class_="emulated")] if emulated else []),
        *([tag("li", f"simulated ({', '.join(simulated)})", class_="emulated")] if simulated else []),
        tag("li", basis_text(source.breakdown), title=_BASES[source.breakdown.basis]),
    ]
    workload = [tag("p", source.workload, class_="lead")] if source.workload else []
    return join([tag("h1", source.name), *workload, tag("ul", *badges, class_="badges")])


def _swatch(tier: int, hatched: bool) -> Html:
    return tag("span", class_=f"swatch hue{tier}{' hatched' if hatched else ''}", aria_hidden="true")


def _slider(name: str, tier: int, hatched: bool) -> Html:
    slider = void(
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
    box = void(
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
    label = tag("span", _swatch(tier, hatched), named(name), class_="name")
    return tag("div", label, slider, tag("span", box, " %", class_="percent"), class_="slider")


def _slice(slices: Sequence[dict[str, Any]]) -> Html:
    """A choice among the combinations of the keys that do not run along the axis."""
    if len(slices) < 2:
        return Html("")
    options = (tag("option", part["text"], value=str(index)) for index, part in enumerate(slices))
    return tag("p", tag("label", "slice", for_="slice"), " ", tag("select", *options, id="slice"))


def _key(classes: tuple[str, ...]) -> Html:
    entries = (tag("li", _swatch(tier, hatched), named(name)) for name, tier, hatched in class_marks(classes))
    return tag("ul", *entries, class_="key")


def _goal_caption(has_rates: bool) -> Html:
    colour = ", coloured by the smallest cache rate that does" if has_rates else ""
    return escaped(f"Dots: combinations of more throughput in two classes that meet the goal{colour}.")


def _place_name(breakdown: Breakdown) -> str:
    """What a point of the sweep is called, where its values stand under it."""
    return "at" if len(breakdown.sweep_keys) > 1 else "".join(_sweep_headers(breakdown))


def _sensitivity(source: ReportSource) -> Html:
    each = source.estimate.sensitivity
    steps = list(each[0].change_percent)
    marks = {name: (tier, hatched) for name, tier, hatched in class_marks(source.processes.classes)}
    headers = ["class", *(f"{step:+g} %" for step in steps), "at most"]
    what = "epoch" if each[0].measure == "epoch" else "I/O time"
    moves = any(one.limit_sweep is not None or one.limit_is_nothing for one in each)
    headers += ["then"] if moves else []
    rows = [_sensitivity_row(one, _swatch(*marks[one.class_name]), moves) for one in each]
    caption = (
        f"Change of the best {source.conditions.came} {what}, by scaling, if one class alone had more throughput; "
        "at most: if it took no time at all"
    )
    wasted = wasted_sentence(each)
    return join([table(caption, headers, rows), *([tag("p", wasted)] if wasted else [])])


def _sensitivity_row(one: Sensitivity, swatch: Html, moves: bool) -> Html:
    changes = [*one.change_percent.values(), one.limit_percent]
    cells = (tag("td", _bar(-change), _change(change), class_="bar-cell") for change in changes)
    name = tag("th", swatch, named(one.class_name), scope="row")
    then = [tag("td", limit_text(one), class_="words")] if moves else []
    return tag("tr", name, *cells, *then, class_="wasted" if -one.limit_percent < WASTED_PERCENT else "")


def _bar(percent: float) -> Html:
    return tag("span", class_="bar", style=f"width:{min(max(percent, 0.0), 100.0):.1f}%", aria_hidden="true")


def _change(percent: float) -> Html:
    return tag("span", f"−{-percent:.1f} %" if percent <= -0.05 else "0 %")


def _character(source: ReportSource, character: Character, drawn: Sequence[Figure]) -> Html:
    """The whole section: it is not there where no trace is at hand."""
    where = f"Shown is {source.character_where}." if source.character_where else "All ranks and epochs together."
    names = [tag("th", name, scope="row") for name, _, _ in fact_rows(character)]
    rows = [
        tag("tr", name, tag("td", value), tag("td", note, class_="words"))
        for name, (_, value, note) in zip(names, fact_rows(character), strict=True)
    ]
    files = [
        tag(
            "tr",
            tag("th", named(one.name), scope="row"),
            *(tag("td", named(text)) for text in (one.tier, f"{one.ranks:,}", f"{one.reads:,}")),
            tag("td", about_bytes(one.read_bytes)),
            tag("td", about_seconds(one.seconds)),
        )
        for one in character.files
    ]
    formats = [
        tag(
            "tr",
            tag("th", named(one.name), scope="row"),
            *(tag("td", "–" if number is None else f"{number:,}") for number in (one.files, one.reads)),
            tag("td", about_bytes(one.read_bytes)),
            tag("td", about_seconds(one.seconds)),
        )
        for one in character.formats
    ]
    sums = ("reads", "bytes read", "READ")
    parts = [
        tag("h2", "How it reads", id="reads-title"),
        tag("p", where, class_="lead"),
        table("What one run reads, and how", ["", "value", ""], rows),
        tag("div", *(figure_of(figure) for figure in drawn if figure.name in CHARACTER_FIGURES), class_="drawn"),
        *([table("By format", ["format", "files", *sums], formats)] if formats else []),
        *(
            [
                tag(
                    "details",
                    tag("summary", f"Files with most bytes ({len(files)} rows)"),
                    table("Files with most bytes, over all ranks and epochs", ["file", "tier", "ranks", *sums], files),
                )
            ]
            if files
            else []
        ),
        *(tag("p", f"No {part}: {reason}.", class_="missing") for part, reason in character.missing.items()),
    ]
    return tag("section", *parts, id="reads", aria_labelledby="reads-title")


def _training(training: Training, drawn: Sequence[Figure]) -> Html:
    """The whole section: it is not there where compute was emulated."""
    names, rows = rows_of([(None, training)])
    points = training.points
    phases, digits, memory = shown_phases(points), rate_digits(points), has_memory(points)
    headers = [*names, "samples/s", "95 % interval", "n", "variability", *phases, "busy"]
    headers += ["memory", "predicted", "error"] if memory else []
    body = [
        tag(
            "tr",
            *(tag("th", named(text), scope="row") for text in row.at),
            tag("td", tag("strong", f"{row.point.samples_per_second.value:,.{digits}f}")),
            *(
                tag("td", text)
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
        tag("h2", "Training", id="training-title"),
        tag("p", f"{subtitle(training)}.", class_="lead"),
        *(tag("p", sentence) for sentence in stall_sentences(training)),
        table("Throughput, and where the time of an epoch goes", headers, body),
        *(tag("p", sentence, class_="hint") for sentence in training_sentences(training)),
        tag("div", *(figure_of(figure) for figure in drawn if figure.name in TRAINING_FIGURES), class_="drawn"),
    ]
    return tag("section", *parts, id="training", aria_labelledby="training-title")


def _beside(beside: Beside, drawn: Sequence[Figure]) -> Html:
    """The whole section: it is not there where nothing is laid beside."""
    title = "{} beside {}".format(*headings(beside))
    parts = [
        tag("h2", f"{title[0].upper()}{title[1:]}", id="beside-title"),
        *(tag("p", line, class_="lead") for line in side_lines(beside)),
        *(tag("p", sentence) for sentence in summary_sentences(beside)),
        *(figure_of(figure) for figure in drawn if figure.name == _BESIDE),
        beside_table(beside),
    ]
    return tag("section", *parts, id="beside", aria_labelledby="beside-title")


def _findings(source: ReportSource) -> Html:
    if not source.findings:
        return tag("p", "None.")
    items = (
        tag("li", finding.text, tag("span", f" → {finding.suggestion}", class_="suggestion"))
        for finding in source.findings
    )
    return tag("ul", *items, class_="findings")


def _provenance(source: ReportSource) -> Html:
    facts = provenance(source)
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts)
    found = [tag("dl", *pairs)] if facts else [tag("p", "Nothing is known but the times themselves.")]
    if source.study_yaml is not None:
        found.append(
            tag("details", tag("summary", "The study as it was resolved"), tag("pre", source.study_yaml, tabindex="0"))
        )
    return join(found)
