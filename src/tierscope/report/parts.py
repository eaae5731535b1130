"""What the tables of the terminal share."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from tierscope.analysis.wording import Finding
from tierscope.jsonable import SweepValues
from tierscope.units import about_bytes, counted

if TYPE_CHECKING:  # they come with a table library, which not every table needs
    from tierscope.analysis.breakdown import Breakdown, PointGroup, SweepPoint
    from tierscope.analysis.conditions import Conditions
    from tierscope.analysis.statistics import Interval
    from tierscope.predict.whatif import Sensitivity

_COLOURS = ("blue", "cyan", "yellow", "magenta", "green", "red")  # by class, in the order of the breakdown
_GAP = 3  # between columns
WASTED_PERCENT = 1.0  # a class that gains less, however fast, is not worth money


@dataclass(frozen=True, slots=True)
class Column:
    """`drop` is the turn in which it goes when there is no room; 0: never."""

    header: str
    cells: list[Text]
    style: str = ""
    drop: int = 0
    right: bool = True

    @property
    def width(self) -> int:
        return max(cell_len(self.header), *(cell.cell_len for cell in self.cells)) + _GAP


@dataclass(frozen=True, slots=True)
class Unit:
    """Seconds, or what keeps the digits that matter."""

    name: str
    factor: float
    digits: int = 3

    @classmethod
    def of(cls, longest: float) -> "Unit":
        if longest < 1e-4:
            return cls("µs", 1e6)
        return cls("ms", 1000.0) if longest < 0.1 else cls("s", 1.0, 3 if longest < 1000 else 0)

    def text(self, seconds: float | None) -> Text:
        return Text("–" if seconds is None else f"{seconds * self.factor:,.{self.digits}f}")

    def span(self, values: "Interval") -> str:
        return f"{self.text(values.low)}–{self.text(values.high)}"


def fitting(columns: list[Column], width: int) -> list[Column]:
    for turn in sorted({column.drop for column in columns if column.drop}):
        if sum(column.width for column in columns) <= width:
            break
        columns = [column for column in columns if column.drop != turn]
    return columns


def table(columns: list[Column]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for column in columns:
        table.add_column(Text(column.header), justify="right" if column.right else "left", style=column.style)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return table


def colour(index: int) -> str:
    return _COLOURS[index % len(_COLOURS)]


def basis_text(breakdown: "Breakdown") -> str:
    """Which seconds a title is about, and of which epoch where one was asked for."""
    only = "" if breakdown.epoch is None else f" of epoch {breakdown.epoch}"
    return f"{breakdown.basis} seconds{only}"


def basis_note(breakdown: "Breakdown") -> str:
    """In a headline: what is not on the clock says so."""
    return " in busy seconds" if breakdown.basis == "busy" else ""


def group_text(breakdown: "Breakdown", group: "PointGroup") -> str:
    """Before a sentence about one of several groups of points; empty: there is only one."""
    if len(breakdown.groups) < 2:
        return ""
    alike = [other for other in breakdown.groups if other.case == group.case]
    if group.case is not None and len(alike) == 1:
        return f"Case {group.case}: "
    of_case = "" if group.case is None else f" in case {group.case}"
    amount = "another amount of data" if group.amount is None else about_bytes(group.amount)
    return f"Points{of_case} that read {amount} per epoch ({len(group.points)}): "


def point_text(breakdown: "Breakdown", sweep: SweepValues) -> str:
    """Where a point is, in a sentence that group_text begins: that has said the case."""
    from tierscope.analysis.breakdown import sweep_text  # noqa: PLC0415
    from tierscope.analysis.cases import without_case  # noqa: PLC0415

    return sweep_text(without_case(sweep) if len(breakdown.groups) > 1 else sweep)


def case_views(breakdown: "Breakdown") -> "Iterator[tuple[str, Breakdown]]":
    """What a sentence about each case begins with, and the case as a breakdown of its own; one of all where there are no cases."""
    from tierscope.analysis.cases import without_case  # noqa: PLC0415

    if breakdown.groups[0].case is None or len(breakdown.groups) < 2:
        yield "", breakdown
        return
    for group in breakdown.groups:
        keys = tuple(key for key in breakdown.sweep_keys if key in without_case(group.best.sweep))
        alone = replace(breakdown, sweep_keys=keys, summary=group.points, best=group.best, groups=(group,))
        yield group_text(breakdown, group), alone


def ranked_groups(breakdown: "Breakdown") -> "list[PointGroup]":
    """Those that have a best point: where there are several, only those of several points."""
    return [group for group in breakdown.groups if len(group.points) > 1 or len(breakdown.groups) == 1]


def unranked_sentence(breakdown: "Breakdown") -> str:
    """About points that nothing can be ranked against; empty: there are none."""
    count = len(breakdown.groups) - len(ranked_groups(breakdown))
    if count and breakdown.groups[0].case is not None:
        which = "Every point is" if count == len(breakdown.summary) else f"{counted(count, 'point')} of the cases stand"
        return f"{which} alone: nothing else in its case reads as much, so there is nothing to rank it against."
    whose = "each of these points" if count == len(breakdown.summary) else counted(count, "point")
    verb = "reads" if count in (1, len(breakdown.summary)) else "read"
    text = f"{whose} {verb} an amount of data of its own, so there is nothing to rank it against."
    return f"{text[0].upper()}{text[1:]}" if count else ""


def finding_lines(findings: Iterable[Finding]) -> Iterator[Text]:
    for finding in findings:
        line = Text("• ", style="dim")
        line.append(finding.text)
        line.append(f" → {finding.suggestion}", style="dim")
        yield line


def title_label(given: "Conditions") -> str:
    """Behind a title: what nobody may overlook."""
    emulated = f" · emulated tiers: {', '.join(given.emulated)}" if given.emulated else ""
    emulated += f" · simulated ({', '.join(given.simulated)})" if given.simulated else ""
    emulated += " · without its checkpoints" if given.checkpoints_left_out else ""
    return emulated + (f" · measured with {', '.join(given.profilers)}" if given.profilers else "")


def wasted_sentence(each: "Iterable[Sensitivity]") -> str:
    """Which classes no money should go to; empty: none."""
    each = list(each)
    if not any(one.limit_percent for one in each):
        was_none = each[0].measure != "epoch" or all(one.limit_is_nothing for one in each)
        why = "There was no I/O at the best point" if was_none else "I/O is hidden behind compute at the best point"
        return f"{why}, so nothing would change."
    wasted = [one.class_name for one in each if -one.limit_percent < WASTED_PERCENT]
    what = f"it gains less than {WASTED_PERCENT:g} %, however fast"
    return f"Money spent on {' or '.join(wasted)} alone is wasted: {what}." if wasted else ""


def bottleneck_stretches(breakdown: "Breakdown") -> Iterator[str]:
    """Stretches of a sweep over one key that have the same bottleneck."""
    if len(breakdown.sweep_keys) != 1 or len(breakdown.summary) < 2:
        return
    key = breakdown.sweep_keys[0]
    stretch: list[SweepPoint] = []
    for point in [*breakdown.summary, None]:
        if stretch and (point is None or point.bottleneck != stretch[0].bottleneck):
            yield f"{stretch[0].bottleneck or 'no I/O'} {_span(key, stretch)}"
            stretch = []
        if point is not None:
            stretch.append(point)


def _span(key: str, stretch: "list[SweepPoint]") -> str:
    from tierscope.analysis.breakdown import value_text  # noqa: PLC0415

    values = [value_text(key, point.sweep[key]) for point in stretch]
    is_ordered = all(isinstance(point.sweep[key], int | float) for point in stretch) and len(values) > 1
    return f"from {values[0]} to {values[-1]}" if is_ordered else f"at {', '.join(values)}"
