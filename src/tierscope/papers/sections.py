"""Which modules of this room make which rows of a study. A row is made by one of them; rows that are only listed are made by none.

Each module has `make(short) -> Section`. It is loaded when one of its rows is asked for: `--row` of a cheap row costs no simulation.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from tierscope.papers.rows import rows_of

if TYPE_CHECKING:
    from tierscope.papers.section import SectionMaker


@dataclass(frozen=True, slots=True)
class SectionEntry:
    """`rows`: IDs, or patterns of them such as H-X-*."""

    module: str
    rows: tuple[str, ...]

    def makes(self, row_id: str) -> bool:
        return any(fnmatchcase(row_id, pattern) for pattern in self.rows)

    def maker(self) -> "SectionMaker":
        make: SectionMaker = importlib.import_module(f"{__package__}.{self.module}").make
        return make


@dataclass(frozen=True, slots=True)
class PaperStudy:
    """A study by the name that `reproduce` knows it by. `letter`: of its rows' IDs."""

    name: str
    letter: str
    title: str
    reference: str
    machine: str
    sections: tuple[SectionEntry, ...]

    def section_of(self, row_id: str) -> SectionEntry | None:
        return next((entry for entry in self.sections if entry.makes(row_id)), None)


def _rows_of_figures(*numbers: int) -> tuple[str, ...]:
    """The figures themselves, and what is stated about them."""
    return tuple(pattern for number in numbers for pattern in (f"D-F{number}", f"D-F{number}-*"))


def _numbered(start: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{start}-{number}" for number in numbers)


_CASES = (
    *("H-E-5", "H-F1", "H-F2", "H-F3", "H-F4", "H-F1-*", "H-F3-*", "H-F4-*", "H-D-6", "H-D-7"),
    *_numbered("H-F2", 1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 14),
)

STUDIES: Mapping[str, PaperStudy] = {
    study.name: study
    for study in (
        PaperStudy(
            "hierarchy",
            "H",
            "Hierarchy study",
            "Fukai, Sato, Hirofuchi, PDCAT 2022",
            "Fugaku, 768 nodes",
            (
                SectionEntry("hierarchy_arithmetic", (*_numbered("H-E", 1, 2, 3, 4, 6), "H-F2-8", "H-X-*")),
                SectionEntry("hierarchy_cases", _CASES),
                SectionEntry("hierarchy_estimates", ("H-D-1", "H-D-4")),
                SectionEntry("hierarchy_policies", ("H-D-2",)),
                SectionEntry("hierarchy_shuffles", ("H-D-3", "H-D-9")),
                SectionEntry("hierarchy_accesses", ("H-D-8",)),
                SectionEntry("hierarchy_open", ("H-D-5", "H-W-*")),
            ),
        ),
        PaperStudy(
            "dlio",
            "D",
            "DLIO",
            "Devarajan, Zheng, Kougkas, Sun, Vishwanath, CCGrid 2021",
            "Theta, 8 to 2,048 nodes",
            (
                SectionEntry("dlio_basics", ("D-E-*", "D-F7", "D-G-*", "D-W-*")),
                SectionEntry(
                    "dlio_workloads", (*_rows_of_figures(1, 2, 3, 4, 5, 6, 14, 15), "D-A-*", "D-A7-*", "D-A8-*")
                ),
                SectionEntry("dlio_similarity", (*_rows_of_figures(8), "D-X-1")),
                SectionEntry("dlio_tuning", _rows_of_figures(9, 10, 11, 12)),
                SectionEntry("dlio_applied", _rows_of_figures(13)),
            ),
        ),
        PaperStudy(
            "architecture",
            "A",
            "Architecture study",
            "Ibrahim et al., PMBS 2021",
            "Cori GPU, 1 to 64 V100",
            (
                SectionEntry("architecture_basics", ("A-E-*", "A-T1", "A-T1-*")),
                SectionEntry("architecture_memory", ("A-F1", "A-F1-*", "A-D-1", "A-D-6")),
                SectionEntry(
                    "architecture_intensity",
                    ("A-T2", "A-T2-*", "A-F2", "A-F2-*", *_numbered("A-X", 1, 2, 3), *_numbered("A-D", 7, 8, 9)),
                ),
                SectionEntry("architecture_kernels", ("A-F3", "A-F3-*")),
                SectionEntry("architecture_movement", ("A-F4", "A-F4-*", "A-X-4", "A-D-3", "A-D-4", "A-I-2")),
                SectionEntry(
                    "architecture_node",
                    (
                        *("A-F5", "A-F6", "A-F7", "A-F6-*", "A-D-10"),
                        *_numbered("A-F5", 1, 2, 5),
                        *_numbered("A-F7", 1, 2, 3, 4),
                    ),
                ),
                SectionEntry("architecture_waits", ("A-F5-6", "A-F7-5")),
                SectionEntry(
                    "architecture_scaling",
                    (
                        *("A-F8", "A-F8-*", "A-F9", "A-F9-*", "A-F5-3", "A-F5-4", "A-F7-6", "A-X-5"),
                        *("A-D-2", "A-D-5", "A-I-3"),
                    ),
                ),
                SectionEntry("architecture_open", ("A-D-11", "A-D-12", "A-I-5", "A-W-*")),
            ),
        ),
        PaperStudy(
            "training",
            "T",
            "Training study",
            "Han et al., CLUSTER 2019",
            "Summitdev, 1 to 128 P100",
            (
                SectionEntry(
                    "training_basics",
                    (
                        *("T-E-*", "T-T1", "T-T1-*", "T-T2", "T-T2-*", "T-F1", "T-F2", "T-F3", "T-X-1"),
                        *("T-F4-7", "T-F4-8", "T-D-6", "T-D-7", "T-W-*"),
                    ),
                ),
                SectionEntry("training_links", ("T-T3", "T-T3-*", "T-F7", "T-F7-*")),
                SectionEntry(
                    "training_node",
                    (
                        *("T-F4", *_numbered("T-F4", 1, 2, 3, 4, 5, 6, 9, 10), "T-F5", "T-F5-*", "T-F6", "T-F6-*"),
                        *("T-F11", "T-F11-*", "T-F12", "T-F12-*", *_numbered("T-D", 1, 2, 5)),
                    ),
                ),
                SectionEntry(
                    "training_workers",
                    (
                        *("T-F8", "T-F9", "T-F13", "T-F13-1", *_numbered("T-D", 3, 4)),
                        *(*_numbered("T-F8", 1, 2, 3, 4, 5, 6), *_numbered("T-F9", 1, 2, 3)),
                    ),
                ),
                SectionEntry("training_formats", ("T-F10", "T-F10-*")),
                SectionEntry("training_accuracy", ("T-F8-7", "T-F9-4", "T-F13-2")),
            ),
        ),
    )
}

# Headlines that a study draws from its own figures: they hold where these rows do, and no section makes them.
FOLLOWS: Mapping[str, tuple[str, ...]] = {
    "D-I-1": ("D-F11-7",),  # the only 6.7× that a figure shows (D-C-5)
    "D-I-2": ("D-F11-4", "D-F12-2"),
    "D-I-3": ("D-F15-1", "D-F15-2"),
    "A-I-1": ("A-F1-2", "A-F1-4"),
    "A-I-4": ("A-F2-5", "A-X-1"),
}


def unmade_rows(study: str) -> list[str]:
    """Judged rows that no section makes, and that follow from no others."""
    made = STUDIES[study].section_of
    return [
        row.id for row in rows_of(study).values() if row.is_judged and made(row.id) is None and row.id not in FOLLOWS
    ]
