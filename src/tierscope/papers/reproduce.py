"""A study's rows, each with its verdict: what was published, what Tierscope gets, and whether they agree."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tierscope import __version__
from tierscope.errors import UserError
from tierscope.papers.rows import PaperRow, rows_of
from tierscope.papers.section import PaperFigure, PaperTable, Section
from tierscope.papers.sections import FOLLOWS, STUDIES, PaperStudy, SectionEntry
from tierscope.papers.verdict import Outcome, Verdict
from tierscope.watch import Watch

OUTCOMES: tuple[Outcome, ...] = ("holds", "does not hold", "beside", "not available here", "listed")
NOT_MADE = "not made yet: no part of this version covers the row"
_NEAREST, _FEW = 3, 6  # names in a hint; all of them, where there are so few


@dataclass(frozen=True, slots=True)
class JudgedRow:
    row: PaperRow
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Reproduction:
    """`rows` in the order of the study's table. `is_short`: fewer seeds and sizes, for a quick look. `is_whole`: all rows, not some by ID."""

    study: PaperStudy
    rows: tuple[JudgedRow, ...]
    figures: tuple[PaperFigure, ...]
    tables: tuple[PaperTable, ...]
    is_short: bool
    is_whole: bool
    version: str = __version__

    def with_outcome(self, outcome: Outcome) -> list[JudgedRow]:
        return [judged for judged in self.rows if judged.verdict.outcome == outcome]

    @property
    def command(self) -> str:
        rows = "" if self.is_whole else "".join(f" --row {judged.row.id}" for judged in self.rows)
        return f"tierscope reproduce {self.study.name}{rows}{' --short' if self.is_short else ''}"


def check_names(name: str, wanted: Sequence[str]) -> str:
    """The study's name as it is listed; refuses an unknown study or row in one line."""
    study = _study(name)
    for text in wanted:
        _row_id(study, text)
    return study.name


def reproduce(name: str, wanted: Sequence[str], short: bool, watch: Watch) -> Reproduction:
    """`wanted`: IDs of rows; none: all of them. What cannot be found is refused before anything is computed."""
    study = _study(name)
    rows = rows_of(study.name)
    asked = list(dict.fromkeys(_row_id(study, text) for text in wanted)) or list(rows)
    needed = [*asked, *(base for row_id in asked for base in FOLLOWS.get(row_id, ()))]
    entries = [entry for entry in study.sections if any(entry.makes(row_id) for row_id in needed)]
    watch.phase(study.title, len(entries), "parts")
    sections: list[Section] = []
    for entry in entries:
        sections.append(_made(study, entry, short))
        watch.advance(1)
    verdicts = {verdict.id: verdict for section in sections for verdict in section.verdicts}
    judged = tuple(JudgedRow(rows[row_id], _verdict(rows[row_id], verdicts)) for row_id in asked)
    return Reproduction(
        study,
        judged,
        tuple(figure for section in sections for figure in section.figures if not wanted or figure.id in asked),
        tuple(table for section in sections for table in section.tables if not wanted or table.id in asked),
        short,
        not wanted,
    )


def _verdict(row: PaperRow, verdicts: dict[str, Verdict]) -> Verdict:
    if row.id in verdicts:
        return verdicts[row.id]
    if row.id in FOLLOWS:
        return followed(row.id, [verdicts.get(base) for base in FOLLOWS[row.id]])
    return Verdict(row.id, "–", "not available here", why=NOT_MADE) if row.is_judged else Verdict(row.id, "", "listed")


def followed(row_id: str, bases: Sequence[Verdict | None]) -> Verdict:
    """A headline holds where all rows that it is drawn from hold; where any of them is missing, nothing is known."""
    names = " and ".join(FOLLOWS[row_id])
    known = [base for base in bases if base is not None]
    if len(known) < len(bases) or any(base.outcome in ("not available here", "beside") for base in known):
        return Verdict(row_id, "–", "not available here", why=f"follows from {names}, which is not available here")
    holds = all(base.outcome == "holds" for base in known)
    return Verdict(
        row_id,
        "; ".join(base.ours for base in known),
        "holds" if holds else "does not hold",
        known[0].source,
        f"as {names}",
        max(base.made for base in known),
    )


def _made(study: PaperStudy, entry: SectionEntry, short: bool) -> Section:
    """A section that leaves out a row that it should make, or makes another one, is a mistake in Tierscope."""
    section = entry.maker()(short)
    check_section(study.name, entry, section.verdicts)
    return section


def check_section(study: str, entry: SectionEntry, verdicts: Iterable[Verdict]) -> None:
    ids = [verdict.id for verdict in verdicts]
    rows = rows_of(study)
    expected = {row.id for row in rows.values() if row.is_judged and entry.makes(row.id)}
    listed = {row.id for row in rows.values() if not row.is_judged}
    if missing := sorted(expected - set(ids)):
        raise ValueError(f"{entry.module} gives no verdict on {', '.join(missing)}")
    if strange := sorted({row_id for row_id in ids if ids.count(row_id) > 1} | (set(ids) - expected - listed)):
        raise ValueError(f"{entry.module} gives verdicts that are not its own, or twice: {', '.join(strange)}")


def _study(name: str) -> PaperStudy:
    study = STUDIES.get(name.strip().lower())
    if study is not None:
        return study
    row_id = name.strip().upper()
    if owner := _owner(row_id):
        raise UserError(f"'{name}' is a row of {owner}, not a study; use 'tierscope reproduce {owner} --row {row_id}'")
    raise UserError(f"'{name}' is not a study that can be reproduced; {_hint(name.lower(), list(STUDIES))}")


def _owner(row_id: str) -> str | None:
    """The study that has the row."""
    return next((name for name in STUDIES if row_id in rows_of(name)), None)


def _row_id(study: PaperStudy, text: str) -> str:
    rows = rows_of(study.name)
    row_id = text.strip().upper()
    if row_id in rows:
        return row_id
    if owner := _owner(row_id):
        raise UserError(f"--row {text}: is a row of {owner}; use 'tierscope reproduce {owner} --row {row_id}'")
    several = [part for part in row_id.replace(",", " ").split() if part in rows]
    if len(several) > 1:
        raise UserError(f"--row {text}: is several rows; use {' '.join(f'--row {part}' for part in several)}")
    raise UserError(f"--row {text}: {study.title} has no such row; {_hint(row_id, list(rows))}")


def _hint(text: str, known: Sequence[str]) -> str:
    """The nearest names, or what names are like."""
    nearest = difflib.get_close_matches(text, known, n=_NEAREST, cutoff=0.6)
    if nearest:
        return f"did you mean {' or '.join(nearest)}?"
    shown = known if len(known) <= _FEW else known[:_NEAREST]
    return f"known: {', '.join(shown)}{', …' if len(known) > len(shown) else ''}"
