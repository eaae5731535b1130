"""The report page: one HTML file that needs nothing else, for reading and for trying what faster storage would give.

Names and values come from files of strangers, so all text goes through `tag` of `report/markup.py`, which escapes it; the browser runs no
script but ours, whose hashes are in the page's policy.
"""

import json
from collections.abc import Sequence
from string import Template
from typing import Any

from tierscope.analysis.beside import Beside
from tierscope.analysis.characterise import Character
from tierscope.analysis.latency import NOTE as LATENCY_NOTE
from tierscope.analysis.training import Training, limits_of
from tierscope.report.beside import headings, side_lines, summary_sentences
from tierscope.report.character import fact_rows
from tierscope.report.drawn.character import NAMES as CHARACTER_FIGURES
from tierscope.report.drawn.training import NAMES as TRAINING_FIGURES
from tierscope.report.figures import Figure, class_marks
from tierscope.report.glossary import GLOSSARY
from tierscope.report.latency import latency_headers, latency_missing, latency_rows
from tierscope.report.markup import (
    Html,
    css,
    escaped,
    figure_of,
    findings_list,
    join,
    named,
    policy,
    read_asset,
    table,
    tag,
)
from tierscope.report.origins import provenance
from tierscope.report.page_data import live_data
from tierscope.report.page_tables import beside_table, numbers, remedies_table, totals_table
from tierscope.report.page_whatif import (
    case_chooser,
    class_key,
    goal_caption,
    place_name,
    room_prices,
    sensitivity_tables,
    slice_chooser,
    slider,
)
from tierscope.report.parts import basis_text
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
from tierscope.units import about_bytes, about_seconds, counted

_SCRIPTS = ("whatif.js", "drawing.js", "aids.js", "page.js")
_LIVE = ("breakdown", "estimate", "goal")  # figures that are drawn in the browser
_BESIDE = "beside"
_GOAL_KINDS = {IO: "I/O per epoch at most", EPOCH: "epoch at most", AU: "accelerator utilisation at least"}
_JSON_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})


_BASES = {
    "busy": "sum of the times of all operations; concurrent operations can add up to more than the elapsed time",
    "wall": "elapsed time, shared equally by the operations active at each instant",
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
        "verdict": join(
            [
                *(tag("p", sentence.replace(" %", "\u00a0%")) for sentence in verdict(source)),
                remedies_table(source.remedies),
            ]
        ),
        "without_script": join(figure_of(figure) for figure in drawn if figure.name in _LIVE),
        "sliders": join(slider(*mark) for mark in class_marks(source.processes.classes)),
        "cases": case_chooser(source),
        "slice": slice_chooser(live["parts"]),
        "key": class_key(source.processes.classes),
        "goal_kinds": join(tag("option", _GOAL_KINDS[kind], value=kind) for kind in live["goal"]["kinds"]),
        "room_prices": room_prices(live["priced_tiers"], live["price_units"]),
        "glossary": _glossary(),
        "goal_caption": goal_caption(any(part["has_rates"] for part in live["parts"])),
        "at": escaped(place_name(source.breakdown)),
        "options": join(tag("option", name, value=name) for name in source.processes.classes),
        "sensitivity": sensitivity_tables(source),
        "figures": join(
            figure_of(figure)
            for figure in drawn
            if figure.name not in (*_LIVE, _BESIDE, *CHARACTER_FIGURES, *TRAINING_FIGURES)
        ),
        "training": _training(source.training, drawn) if source.training else Html(""),
        "character": _character(source, source.character, drawn) if source.character else Html(""),
        "beside": _besides(source.besides, drawn) if source.besides else Html(""),
        "numbers": join([numbers(source.breakdown, source.conditions), totals_table(source.times)]),
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
        tag("li", basis_text(source.breakdown), title=_BASES[source.breakdown.basis], tabindex="0"),
    ]
    workload = [tag("p", line, class_="lead") for line in source.workload.splitlines()]
    return join([tag("h1", source.name), *workload, tag("ul", *badges, class_="badges")])


def _character(source: ReportSource, character: Character, drawn: Sequence[Figure]) -> Html:
    """The whole section: it is not there where no trace is at hand."""
    where = f"Shown: {source.character_where}." if source.character_where else "All ranks and epochs together."
    names = [tag("th", name, scope="row") for name, _, _ in fact_rows(character)]
    rows = [
        tag("tr", name, tag("td", value), tag("td", note, class_="words"))
        for name, (_, value, note) in zip(names, fact_rows(character), strict=True)
    ]
    files = [
        tag(
            "tr",
            tag("th", named(file.name), scope="row"),
            *(tag("td", named(text)) for text in (file.tier, f"{file.ranks:,}", f"{file.reads:,}")),
            tag("td", about_bytes(file.read_bytes)),
            tag("td", about_seconds(file.seconds)),
        )
        for file in character.files
    ]
    formats = [
        tag(
            "tr",
            tag("th", named(use.name), scope="row"),
            *(tag("td", "–" if number is None else f"{number:,}") for number in (use.files, use.reads)),
            tag("td", about_bytes(use.read_bytes)),
            tag("td", about_seconds(use.seconds)),
        )
        for use in character.formats
    ]
    sums = ("reads", "bytes read", "READ")
    missing = {**character.missing, **latency_missing(character.latency)}
    parts = [
        tag("h2", "I/O characteristics", id="reads-title"),
        tag("p", where, class_="lead"),
        table("I/O characteristics of one run", ["", "value", ""], rows),
        tag("div", *(figure_of(figure) for figure in drawn if figure.name in CHARACTER_FIGURES), class_="drawn"),
        *_latency(character),
        *([table("By format", ["format", "files", *sums], formats)] if formats else []),
        *(
            [
                tag(
                    "details",
                    tag("summary", f"Files with the most bytes ({counted(len(files), 'row')})"),
                    table(
                        "Files with the most bytes, over all ranks and epochs", ["file", "tier", "ranks", *sums], files
                    ),
                )
            ]
            if files
            else []
        ),
        *(tag("p", f"No {part}: {reason}.", class_="missing") for part, reason in missing.items()),
    ]
    return tag("section", *parts, id="reads", aria_labelledby="reads-title")


def _latency(character: Character) -> list[Html]:
    rows = [
        tag("tr", tag("th", named(row.name), scope="row"), *(tag("td", text) for text in row.cells))
        for row in latency_rows(character.latency)
    ]
    return [table(LATENCY_NOTE, latency_headers(), rows)] if rows else []


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
        *(tag("p", limit.text, class_="lead") for limit in limits_of([training])),
        *(tag("p", sentence) for sentence in stall_sentences(training)),
        table("Throughput, and where the time goes", headers, body),
        *(tag("p", sentence, class_="hint") for sentence in training_sentences(training)),
        tag("div", *(figure_of(figure) for figure in drawn if figure.name in TRAINING_FIGURES), class_="drawn"),
    ]
    return tag("section", *parts, id="training", aria_labelledby="training-title")


def _glossary() -> Html:
    pairs = (tag("div", tag("dt", term.name), tag("dd", term.text), id=f"term-{term.key}") for term in GLOSSARY)
    return tag("dl", *pairs)


def _besides(besides: Sequence[Beside], drawn: Sequence[Figure]) -> Html:
    """The whole section: it is not there where nothing is laid beside."""
    several = len(besides) > 1
    title = "Comparison with other results" if several else _capital("{} versus {}".format(*headings(besides[0])))
    parts = [tag("h2", title, id="beside-title")]
    parts += [figure_of(figure) for figure in drawn if figure.name == _BESIDE] if several else []
    for beside in besides:
        parts += [
            *([tag("h3", "{} versus {}".format(*headings(beside)))] if several else []),
            *(tag("p", line, class_="lead") for line in side_lines(beside)),
            *(tag("p", sentence) for sentence in summary_sentences(beside)),
            *(figure_of(figure) for figure in drawn if figure.name == _BESIDE and not several),
            beside_table(beside),
        ]
    return tag("section", *parts, id="beside", aria_labelledby="beside-title")


def _capital(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}"


def _findings(source: ReportSource) -> Html:
    if not source.findings:
        return tag("p", "None.")
    return findings_list(source.findings)


def _provenance(source: ReportSource) -> Html:
    facts = provenance(source)
    pairs = (tag("div", tag("dt", name), tag("dd", value)) for name, value in facts)
    parts = [tag("dl", *pairs)] if facts else [tag("p", "Only the times are known.")]
    if source.study_yaml is not None:
        parts.append(tag("details", tag("summary", "The complete study"), tag("pre", source.study_yaml, tabindex="0")))
    return join(parts)
