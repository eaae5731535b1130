"""Rows of the table, and how they are printed."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """`met` None: printed for comparison, with no goal. `known`: why a miss of this goal is no fault of a change; it counts, and fails nothing. `unjudged`: why a goal is neither met nor missed, though it was asked for."""

    section: str
    what: str
    value: str
    goal: str = ""
    met: bool | None = None
    note: str = ""
    known: str = ""
    unjudged: str = ""


MET = {None: "", True: "yes", False: "**no**"}


def as_markdown(rows: Sequence[Row]) -> str:
    lines = ["| section | what | measured | goal | met | note |", "|---|---|---|---|---|---|"]
    for row in rows:
        note = "; ".join(text for text in (row.unjudged, row.note, row.known if row.met is False else "") if text)
        lines.append(f"| {row.section} | {row.what} | {row.value} | {row.goal} | {MET[row.met]} | {note} |")
    return "\n".join(lines)
