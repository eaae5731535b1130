"""A part of a study's page: verdicts on rows, and figures."""

from dataclasses import dataclass
from typing import Protocol

from tierscope.papers.verdict import Source, Verdict


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """The counterpart of a published figure. `id`: its row; `name`: of its file, without suffix: small letters, digits and hyphens. `svg`: as a Canvas gives it."""

    id: str
    name: str
    svg: str
    source: Source
    caption: str


@dataclass(frozen=True, slots=True)
class PaperTable:
    """Numbers behind a row or a figure, as a CSV. `id`: its row; `name`: as of a figure."""

    id: str
    name: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str | float | int, ...], ...]
    source: Source
    caption: str


@dataclass(frozen=True, slots=True)
class PaperSection:
    verdicts: tuple[Verdict, ...]
    figures: tuple[PaperFigure, ...] = ()
    tables: tuple[PaperTable, ...] = ()


Section = PaperSection  # as the modules of this room call it


class SectionMaker(Protocol):
    """`make` of a module in this room. `short`: fewer seeds and smaller sizes, for CI."""

    def __call__(self, short: bool) -> PaperSection: ...
