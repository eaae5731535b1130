"""`python -m validation SECTION… --document`: tables of docs/validation.md, as they were just printed, and the list of goals that any of its tables misses.

A table stands between `<!-- printed: SECTION -->` and `<!-- end -->`; the list between `<!-- goals -->` and `<!-- end -->`. The text around them is written by hand and names no measured number.
"""

import datetime
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from validation.table import MET, Row, as_markdown

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "validation.md"
_END = "<!-- end -->"
_TABLE = re.compile(rf"<!-- printed: (\w+) -->\n.*?{_END}", re.DOTALL)
_GOALS = re.compile(rf"<!-- goals -->\n.*?{_END}", re.DOTALL)


def sections_of(text: str) -> list[str]:
    """Those that have a table in the document."""
    return _TABLE.findall(text)


def with_sections(text: str, printed: Mapping[str, Sequence[Row]], when: str) -> str:
    """The document with these tables in place of its own; a section that it has no place for is left out."""

    def table(block: re.Match[str]) -> str:
        name = block.group(1)
        if name not in printed:
            return block.group()
        return f"<!-- printed: {name} -->\n{when}\n\n{as_markdown(printed[name])}\n{_END}"

    text = _TABLE.sub(table, text)
    return _GOALS.sub(lambda _: f"<!-- goals -->\n{_goals(text)}\n{_END}", text)


def _goals(text: str) -> str:
    """How many goals the tables have, and each that is missed."""
    judged = [cells for line in text.splitlines() if (cells := _cells(line)) and cells[4] in MET.values() and cells[4]]
    missed = [cells for cells in judged if cells[4] == MET[False]]
    head = f"{len(judged)} goals, {len(judged) - len(missed)} met, {len(missed)} missed" + (":" if missed else ".")
    rows = [f"- {section}, {what}: {value}; goal {goal}" for section, what, value, goal, _, _ in missed]
    return "\n".join([head, "", *rows]) if rows else head


def _cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in line.strip("|").split(" | ", 5)] if line.startswith("| ") else []
    return cells if len(cells) == 6 else []


def made_now(load: float) -> str:
    """Where and when a table was printed; `load`: of the machine, when measuring began."""
    return f"Printed {datetime.datetime.now(datetime.UTC):%Y-%m-%d} on {os.cpu_count()} cores, load average {load:.1f} at the start."


def write(printed: Mapping[str, Sequence[Row]], when: str) -> None:
    DOCUMENT.write_text(with_sections(DOCUMENT.read_text(), printed, when))
