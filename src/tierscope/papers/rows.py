"""What the studies published: one row per figure, table, equation and statement, by ID, from the tables that ship with the package."""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

# How a row is judged. Rows of the other kinds (setup, left open, quoted, ambiguity) are listed, not judged.
JUDGED = ("exact", "arith", "ratio", "order", "trend", "value", "claim", "artefact")


@dataclass(frozen=True, slots=True)
class PaperRow:
    """`by`: the cheapest way to a fair equivalent (CALC, SIM, BENCH, …, SITE: only on the machine of the study)."""

    id: str
    kind: str
    by: str
    published: str

    @property
    def is_judged(self) -> bool:
        return self.kind in JUDGED


@cache
def rows_of(study: str) -> Mapping[str, PaperRow]:
    """All rows of a study, in the order of the table."""
    table = resources.files(__package__) / "tables" / f"{study}.csv"
    lines = table.read_text(encoding="utf-8").splitlines()
    return {line["id"]: PaperRow(**line) for line in csv.DictReader(lines)}
