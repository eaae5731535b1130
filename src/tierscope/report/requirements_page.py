"""The page of `tierscope require`: one HTML file that needs nothing else, with the terminal's tables and the figures. It has no script."""

from collections.abc import Iterable, Sequence
from string import Template

from tierscope.analysis.wording import Finding
from tierscope.arch.networks import shown
from tierscope.arch.requirements import Requirements
from tierscope.report.drawn.view import Figure
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
from tierscope.report.parts import Column
from tierscope.report.requirements import (
    how,
    largest_sentence,
    layer_columns,
    memory_columns,
    memory_title,
    movement_sentences,
    network_sentences,
    rate_sentence,
    scaling_columns,
    scaling_title,
    step_sentence,
)
from tierscope.report.storage_verdict import fit_sentence, storage_sentence
from tierscope.units import counted


def requirements_page(requirements: Requirements, findings: Sequence[Finding], drawn: Sequence[Figure]) -> bytes:
    """`drawn`: those of `report/drawn/requirements.py`."""
    figures = {figure.name: figure_of(figure) for figure in drawn}
    about, for_each, bound = network_sentences(requirements)
    name = f"{requirements.network.name} on {requirements.machine.name}"
    parts = {
        "policy": escaped(policy(())),
        "title": escaped(f"{name} – Tierscope"),
        "css": css(),
        "header": _header(requirements, name),
        "verdict": _paragraphs([*_verdict(requirements), largest_sentence(requirements), bound]),
        "memory": join([_columns(memory_title(requirements), memory_columns(requirements)), figures["memory"]]),
        "bounds": join([_paragraphs([about, for_each]), figures["roofline"], _layers(requirements)]),
        "movement": join(
            [_paragraphs(movement_sentences(requirements)), _side_by_side(figures, "movement", "decomposition")]
        ),
        "scaling": join([_columns(scaling_title(requirements), scaling_columns(requirements)), figures["scaling"]]),
        "findings": findings_list(findings),
    }
    return Template(read_asset("requirements.html")).substitute(parts).encode("utf-8", "replace")


def _verdict(requirements: Requirements) -> Iterable[str]:
    doubt = fit_sentence(requirements)
    if doubt is not None:
        return [doubt]
    return [storage_sentence(requirements), rate_sentence(requirements), step_sentence(requirements)]


def _header(requirements: Requirements, name: str) -> Html:
    badges = [
        tag("li", "modelled, not measured: times are lower bounds", class_="emulated"),
        tag("li", how(requirements.wish)),
        tag("li", f"sample {shown(requirements.network.input_shape)}"),
        tag("li", f"{'weak' if requirements.wish.weak else 'strong'} scaling"),
    ]
    lead = tag("p", "What training this network requires of this system, from its layers alone.", class_="lead")
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


def _layers(requirements: Requirements) -> Html:
    rows = _columns("Operations and bytes of every layer, for one sample", layer_columns(requirements))
    return tag("details", tag("summary", f"Layers ({counted(len(requirements.costs), 'row')})"), rows)
