"""A reproduction as documents: the page that puts published and ours side by side, as Markdown and HTML; the rows as CSV and JSON."""

import csv
import io
import re
from collections.abc import Iterator, Sequence

from tierscope.jsonable import JsonObject
from tierscope.papers.reproduce import OUTCOMES, JudgedRow, Reproduction
from tierscope.papers.section import PaperFigure, PaperTable
from tierscope.report.drawn.view import Figure
from tierscope.report.figures import standalone
from tierscope.report.markup import Html, css, escaped, join, policy, table, tag, void
from tierscope.report.svg import Size
from tierscope.units import counted

SCHEMA_VERSION = 1
_MOST_IDS = 12
_MOST_LINES = 30  # of a table on a page; longer ones are files only
FIGURES, TABLES = "figures", "tables"
_MARKS = {"holds": "holds", "does not hold": "**does not hold**"}
_COLUMNS = ("ID", "published", "ours", "outcome", "from", "why, or under which condition")


def headline(made: Reproduction) -> str:
    """What a reader in a hurry must not miss: how many rows hold, which of them by fitting, and which do not."""
    judged = [judged for judged in made.rows if judged.verdict.outcome != "listed"]
    if not judged:
        return f"{made.study.title}: none of these rows is judged; {ids(made.rows)} only listed."
    holding, failing = made.with_outcome("holds"), made.with_outcome("does not hold")
    fitted = sum(row.verdict.source == "fitted" for row in holding)
    given = sum(row.verdict.source == "input" for row in holding)
    derived = sum("-X-" in row.row.id for row in holding)
    about = [
        f"{count} {how}"
        for count, how in (
            (fitted, "with rates fitted to the study's own figures"),
            (given, "inputs taken from it"),
            (derived, "our arithmetic on its figures"),
        )
        if count
    ]
    by_fit = f" (of them {', '.join(about)})" if about else ""
    verbs = ["holds" if len(holding) == 1 else "hold", "does not" if len(failing) == 1 else "do not"]
    parts = [
        f"{len(holding)} {verbs[0]}{by_fit}",
        f"{len(failing)} {verbs[1]}{f' ({ids(failing)})' if failing else ''}",
    ]
    if beside := made.with_outcome("beside"):
        parts.append(f"{len(beside)} printed beside the published figure, not judged")
    if absent := made.with_outcome("not available here"):
        parts.append(f"{len(absent)} not available here ({ids(absent)})")
    return f"{made.study.title}: of {counted(len(judged), 'row')}, {', '.join(parts)}."


def ids(rows: Sequence[JudgedRow]) -> str:
    """As many as a sentence can hold."""
    named = ", ".join(judged.row.id for judged in rows[:_MOST_IDS])
    return named if len(rows) <= _MOST_IDS else f"{named} and {len(rows) - _MOST_IDS} others"


def made_by(made: Reproduction) -> str:
    return f"Made by `{made.command}`, Tierscope {made.version}."


def file_stem(made: Reproduction, name: str) -> str:
    """Of a figure or a table: names of a study begin with it."""
    return name if name.startswith(f"{made.study.name}-") else f"{made.study.name}-{name}"


def whole_svg(figure: PaperFigure) -> bytes:
    """A file of its own; how its numbers came about stands below the drawing."""
    if "<style" in figure.svg:
        return figure.svg.encode()
    size = _size(figure)
    return standalone(Figure(figure.name, "", figure.caption, figure.svg, note=figure.source, size=size))


def width_of(figure: PaperFigure) -> float:
    return _size(figure).width


def _size(figure: PaperFigure) -> Size:
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', figure.svg)
    return Size(float(box[1]), float(box[2])) if box else Size()


# Markdown


def markdown(made: Reproduction) -> str:
    study = made.study
    short = " Short form: fewer seeds and smaller sizes than the whole." if made.is_short else ""
    lines = [
        f"# {study.title}: published and ours",
        "",
        f"{study.reference}; {study.machine}. {made_by(made)}{short}",
        "",
        headline(made),
        "",
        *_WORDS,
        "",
        *_figure_lines(made),
        "## Rows",
        "",
        *_table_lines([judged for judged in made.rows if judged.verdict.outcome != "listed"]),
        "",
    ]
    if tables := made.tables:
        lines += ["## Tables", ""]
        for given in tables:
            lines += [f"### {given.id}: {given.caption}", "", _about(made, given), ""]
            lines += [*(_given_lines(given) if len(given.lines) <= _MOST_LINES else ()), ""]
    if listed := made.with_outcome("listed"):
        lines += ["## Listed, not judged", "", "Setup, left open, quoted from elsewhere, or ambiguous.", ""]
        lines += ["| ID | published | what Tierscope has for it |", "|---|---|---|"]
        lines += [f"| {judged.row.id} | {_cell(judged.row.published)} | {_cell(_both(judged))} |" for judged in listed]
        lines.append("")
    return "\n".join(lines)


_WORDS = (
    "Outcomes: *holds* and *does not hold* are judged by the kind of the row (exact, ratio within 10 % or 3 percentage points, order, trend, claim);",
    "*beside* is an absolute figure of another machine, a figure whose values are not published, or another quantity than the published one (the row says which), printed next to the published one and not judged;",
    "*not available here* says what is missing.",
    "Where the numbers come from: *arithmetic* on published figures, *modelled* (from a network's layers and a machine's peaks, nothing fitted to the study), *input* (a preset written from the published figure), *measured* on real storage or a real accelerator, *emulated* (real reads, throttled tiers), *simulated*,",
    "*fitted* (a simulation whose rates were chosen so that published figures of the same case hold), *conditional* (nothing fitted to the row, but a bound taken from another row of the same case, which is named), *predicted* (a simulation with nothing fitted to the case).",
)


def _figure_lines(made: Reproduction) -> Iterator[str]:
    for figure in made.figures:
        yield f"## {figure.id}"
        yield ""
        yield f"![{_alt(figure.caption)}]({FIGURES}/{file_stem(made, figure.name)}.svg)"
        yield ""
        yield f"*{figure.source.capitalize()}.* {figure.caption}"
        yield ""


def _table_lines(rows: Sequence[JudgedRow]) -> Iterator[str]:
    yield f"| {' | '.join(_COLUMNS)} |"
    yield f"|{'---|' * len(_COLUMNS)}"
    for judged in rows:
        yield f"| {' | '.join(_cell(text) for text in _texts(judged))} |"


def _texts(judged: JudgedRow) -> tuple[str, ...]:
    row, verdict = judged.row, judged.verdict
    outcome = _MARKS.get(verdict.outcome, verdict.outcome)
    dated = f"{verdict.source}, {verdict.made}" if verdict.made else verdict.source
    return row.id, row.published, verdict.ours, outcome, dated, verdict.why


def _given_lines(given: PaperTable) -> Iterator[str]:
    yield f"| {' | '.join(map(_cell, given.columns))} |"
    yield f"|{'---|' * len(given.columns)}"
    for line in given.lines:
        yield f"| {' | '.join(_cell(_number(value)) for value in line)} |"


def _about(made: Reproduction, given: PaperTable) -> str:
    """How its numbers came about, and where they are: beside the page that the command writes, which documents do not have."""
    only = "" if len(given.lines) <= _MOST_LINES else f"{len(given.lines)} lines, not printed here; "
    return f"{given.source}; {only}as CSV in the folder that `{made.command}` writes: `{TABLES}/{file_stem(made, given.name)}.csv`"


def _number(value: str | float) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _both(judged: JudgedRow) -> str:
    return " ".join(text for text in (judged.verdict.ours, judged.verdict.why) if text)


def _cell(text: str) -> str:
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")
    return re.sub(r"(?<=[\w.])\*(?=\w)|[|_]", lambda match: f"\\{match[0]}", plain)


def _alt(text: str) -> str:
    return re.sub(r"[\[\]]", "", text)[:120]


# HTML


def page(made: Reproduction) -> bytes:
    """One file that needs nothing else."""
    title = f"{made.study.title}: published and ours"
    parts = [
        tag("p", f"{made.study.reference}; {made.study.machine}. {made_by(made).replace('`', '')}"),
        tag("p", " ".join(_WORDS).replace("*", "")),
        *(_html_figure(figure) for figure in made.figures),
        _html_rows(f"Rows of the {made.study.title}", [row for row in made.rows if row.verdict.outcome != "listed"]),
        *(_html_table(given) for given in made.tables),
        _html_rows("Listed, not judged", made.with_outcome("listed")),
    ]
    header = tag("header", tag("h1", title), tag("p", headline(made), class_="lead"))
    head = tag(
        "head",
        void("meta", charset="utf-8"),
        void("meta", http_equiv="Content-Security-Policy", content=policy(())),
        void("meta", name_="viewport", content="width=device-width"),
        tag("title", f"{title} – Tierscope"),
        tag("style", css()),
    )
    return f"<!doctype html>\n{tag('html', head, tag('body', header, tag('main', join(parts))), lang='en')}\n".encode()


def _html_figure(figure: PaperFigure) -> Html:
    drawing = re.sub(r"<\?xml.*?\?>|<style.*?</style>", "", figure.svg, flags=re.DOTALL)
    words = tag("figcaption", f"{figure.source.capitalize()}. {figure.caption}")
    wide = width_of(figure) > Size().width
    return tag(
        "figure", tag("h3", figure.id), tag("div", Html(drawing), class_="drawing") if wide else Html(drawing), words
    )


def _html_rows(caption: str, rows: Sequence[JudgedRow]) -> Html:
    if not rows:
        return Html("")
    return table(
        caption,
        _COLUMNS,
        (tag("tr", *(tag("td", text.replace("**", ""), class_="words") for text in _texts(judged))) for judged in rows),
    )


def _html_table(given: PaperTable) -> Html:
    lines = (tag("tr", *(tag("td", _number(value)) for value in line)) for line in given.lines)
    return table(f"{given.id}: {given.caption} ({given.source})", [escaped(name) for name in given.columns], lines)


# Data


def rows_csv(made: Reproduction) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("id", "kind", "by", "published", "ours", "outcome", "source", "why", "made"))
    for judged in made.rows:
        row, verdict = judged.row, judged.verdict
        writer.writerow(
            (row.id, row.kind, row.by, row.published, verdict.ours, verdict.outcome, verdict.source, verdict.why, verdict.made)
        )  # fmt: skip
    return out.getvalue()


def table_csv(given: PaperTable) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(given.columns)
    writer.writerows(given.lines)
    return out.getvalue()


def reproduction_json(made: Reproduction) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "reproduction",
        "study": made.study.name,
        "reference": made.study.reference,
        "made_by": {"command": made.command, "version": made.version},
        "short": made.is_short,
        "outcomes": {outcome: len(made.with_outcome(outcome)) for outcome in OUTCOMES},
        "rows": [_row_json(judged) for judged in made.rows],
        "figures": [
            {"id": figure.id, "name": file_stem(made, figure.name), "source": figure.source, "caption": figure.caption}
            for figure in made.figures
        ],
        "tables": [
            {"id": given.id, "name": file_stem(made, given.name), "source": given.source, "caption": given.caption}
            for given in made.tables
        ],
    }


def _row_json(judged: JudgedRow) -> JsonObject:
    row, verdict = judged.row, judged.verdict
    return {
        "id": row.id,
        "kind": row.kind,
        "by": row.by,
        "published": row.published,
        "ours": verdict.ours,
        "outcome": verdict.outcome,
        "source": verdict.source or None,
        "why": verdict.why,
        "made": verdict.made or None,
    }
