"""The page of `tierscope require`: one HTML file that needs nothing else, with the terminal's tables and the figures. It has no script."""

from collections.abc import Iterable, Sequence
from string import Template

from tierscope.analysis.wording import Finding
from tierscope.arch.networks import shown
from tierscope.arch.requirements import Requirements
from tierscope.report.drawn.view import Figure
from tierscope.report.markup import Html, css, escaped, figure_of, join, named, policy, read_asset, table, tag
from tierscope.report.parts import Column
from tierscope.report.requirements import (
    how,
    largest_sentence,
    layer_columns,
    memory_columns,
    memory_title,
    movement_sentences,
    network_sentences,
    scaling_columns,
    scaling_title,
    storage_sentence,
)


def requirements_page(found: Requirements, findings: Sequence[Finding], drawn: Sequence[Figure]) -> bytes:
    """`drawn`: those of `report/drawn/requirements.py`."""
    figures = {figure.name: figure_of(figure) for figure in drawn}
    about, for_each, bound = network_sentences(found)
    name = f"{found.network.name} on {found.machine.name}"
    parts = {
        "policy": escaped(policy(())),
        "title": escaped(f"{name} – Tierscope"),
        "css": css(),
        "header": _header(found, name),
        "verdict": _paragraphs([storage_sentence(found), largest_sentence(found), bound]),
        "memory": join([_columns(memory_title(found), memory_columns(found)), figures["memory"]]),
        "bounds": join([_paragraphs([about, for_each]), figures["roofline"], _layers(found)]),
        "movement": join([_paragraphs(movement_sentences(found)), _side_by_side(figures, "movement", "decomposition")]),
        "scaling": join([_columns(scaling_title(found), scaling_columns(found)), figures["scaling"]]),
        "findings": _findings(findings),
    }
    return Template(read_asset("requirements.html")).substitute(parts).encode("utf-8", "replace")


def _header(found: Requirements, name: str) -> Html:
    badges = [
        tag("li", "modelled: nothing was run, times are lower bounds", class_="emulated"),
        tag("li", how(found.wish)),
        tag("li", f"sample {shown(found.network.input_shape)}"),
        tag("li", f"{'weak' if found.wish.weak else 'strong'} scaling"),
    ]
    lead = tag("p", "What training this network demands of this system, from its layers alone.", class_="lead")
    return join([tag("h1", named(name)), lead, tag("ul", *badges, class_="badges")])


def _paragraphs(sentences: Iterable[str]) -> Html:
    return join(tag("p", sentence) for sentence in sentences)


def _columns(caption: str, columns: Sequence[Column]) -> Html:
    """The first column is what the others are about."""
    rows = []
    for first, *others in zip(*(column.cells for column in columns), strict=True):
        cells = (
            tag("td", named(cell.plain), **({} if column.right else {"class_": "words"}))
            for column, cell in zip(columns[1:], others, strict=True)
        )
        rows.append(tag("tr", tag("th", named(first.plain), scope="row"), *cells))
    return table(caption, [column.header for column in columns], rows)


def _side_by_side(figures: dict[str, Html], *names: str) -> Html:
    return tag("div", *(figures[name] for name in names), class_="drawn")


def _layers(found: Requirements) -> Html:
    rows = _columns("Operations and bytes of every layer, for one sample", layer_columns(found))
    return tag("details", tag("summary", f"Layers ({len(found.costs)} rows)"), rows)


def _findings(findings: Sequence[Finding]) -> Html:
    items = (tag("li", one.text, tag("span", f" → {one.suggestion}", class_="suggestion")) for one in findings)
    return tag("ul", *items, class_="findings")
