"""Rows of the table, and how they are printed."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """`met` None: printed for comparison, with no goal."""

    section: str
    what: str
    value: str
    goal: str = ""
    met: bool | None = None
    note: str = ""


def as_markdown(rows: Sequence[Row]) -> str:
    lines = ["| section | what | measured | goal | met | note |", "|---|---|---|---|---|---|"]
    for row in rows:
        met = {None: "", True: "yes", False: "**no**"}[row.met]
        lines.append(f"| {row.section} | {row.what} | {row.value} | {row.goal} | {met} | {row.note} |")
    return "\n".join(lines)
