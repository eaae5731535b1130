"""What the tables of the terminal share."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table
from rich.text import Text

from tierscope.jsonable import SweepValues
from tierscope.units import about_bytes, about_seconds, counted

if TYPE_CHECKING:  # they come with a table library, which not every table needs
    from tierscope.analysis.breakdown import Breakdown, PointGroup, SweepPoint
    from tierscope.analysis.conditions import Conditions
    from tierscope.analysis.statistics import Interval
    from tierscope.predict.whatif import Sensitivity
    from tierscope.spec.feasibility import Feasibility

_COLOURS = ("blue", "cyan", "yellow", "magenta", "green", "red")  # by class, in the order of the breakdown
_GAP = 3  # between columns
UNIDENTIFIED = "not identified within these bounds"  # of an interval that no decision can be taken on
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
        if seconds is None:
            return Text("–")
        shown = round(seconds * self.factor, self.digits)
        least = "<" if seconds > 0 and not shown else ""  # what is too short to show is not nothing
        return Text(f"{least}{shown or (10**-self.digits if least else 0):,.{self.digits}f}")

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
    """Which seconds a title is about, and of which epoch or classes where some were asked for."""
    only = "" if breakdown.epoch is None else f" of epoch {breakdown.epoch}"
    return f"{breakdown.basis} seconds{only}{_classes_note(breakdown)}"


def basis_note(breakdown: "Breakdown") -> str:
    """In a headline: what is not on the clock says so, and what is not all of the I/O."""
    return (" in busy seconds" if breakdown.basis == "busy" else "") + _classes_note(breakdown)


def _classes_note(breakdown: "Breakdown") -> str:
    """Which classes count, where fewer were asked for than there are."""
    counted_names = _categories(breakdown.io_classes)
    return f", {' and '.join(counted_names)} only" if len(breakdown.io_classes) < len(breakdown.classes) else ""


def _categories(classes: Iterable[str]) -> list[str]:
    from tierscope.analysis.times import category_of  # noqa: PLC0415

    return list(dict.fromkeys(map(category_of, classes)))


def led_by(point: "SweepPoint") -> str:
    """In a headline: the class that takes longest, and its share."""
    if point.bottleneck is None or not point.io.median:
        return ""
    return f", {100 * point.classes[point.bottleneck] / point.io.median:.0f} % of it {point.bottleneck}"


def has_effect(breakdown: "Breakdown", given: "Conditions") -> bool:
    """Whether there is a best point: not where all that was swept is inert."""
    return not breakdown.sweep_keys or not given.inert.keys() >= set(breakdown.sweep_keys)


def without_io(breakdown: "Breakdown", shared_left_out: bool = False) -> str:
    """Where later epochs read nothing: that all of it was in the first, or that there was none. `shared_left_out`: of files of a single rank."""
    best = breakdown.best
    if first := best.first_epoch_io_seconds:
        return f"All I/O was in epoch 1 ({about_seconds(first)}); later epochs had none. "
    is_part = len(breakdown.io_classes) < len(breakdown.classes)
    what = " or ".join(_categories(breakdown.io_classes)) if is_part else "I/O"
    where = "of files of single ranks was recorded" if shared_left_out else "on these tiers was recorded"
    return f"No {what} {where}; other files do not count. "


def group_text(breakdown: "Breakdown", group: "PointGroup") -> str:
    """Before a sentence about one of several groups of points; empty: there is only one."""
    if len(breakdown.groups) < 2:
        return ""
    alike = [other for other in breakdown.groups if other.case == group.case]
    if group.case is not None and len(alike) == 1:
        return f"Case {group.case}: "
    of_case = "" if group.case is None else f" in case {group.case}"
    return f"Points{of_case} that read {group.amount_text} per epoch ({len(group.points)}): "


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


def ranked_groups(breakdown: "Breakdown", given: "Conditions") -> "list[PointGroup]":
    """Those that have a best point, which fits; where there are several groups, only those of several points. None where all that was swept is inert."""
    if not has_effect(breakdown, given):
        return []
    several = len(breakdown.groups) > 1
    return [
        group
        for group in breakdown.groups
        if group.best.is_possible and (len(group.points) > 1 or not several) and not is_flat(breakdown, group)
    ]


def is_flat(breakdown: "Breakdown", group: "PointGroup") -> bool:
    """Whether all points take exactly the same time, as happens in simulations: then none of them is the best."""
    from tierscope.analysis.breakdown import measure_of  # noqa: PLC0415
    from tierscope.analysis.statistics import settled  # noqa: PLC0415

    times = {
        (settled(measure_of(point, breakdown.ranked_by).median), settled(point.io.median)) for point in group.possible
    }
    return len(group.possible) > 1 and len(times) == 1


def flat_sentences(breakdown: "Breakdown", given: "Conditions") -> Iterator[str]:
    """Of groups without a best point; nothing of inert keys, which a finding names with the reason."""
    for group in breakdown.groups if has_effect(breakdown, given) else ():
        if is_flat(breakdown, group):
            which = f"All {len(group.possible)} points" + ("" if group.possible == group.points else " that fit")
            io = group.best.io
            seconds = about_seconds(io.median)
            if not group.best.is_usable:
                seconds = f"{about_seconds(io.low)} to {about_seconds(io.high)} ({UNIDENTIFIED}; {seconds} with rates as simulated)"
            time = f"{seconds} of I/O per epoch{basis_note(breakdown)}"
            yield f"{group_text(breakdown, group)}{which} take the same time, {time}: the sweep changes nothing."


def are_single_cases(breakdown: "Breakdown") -> bool:
    """Whether there are cases, and a single point in each: then there was no sweep."""
    groups = breakdown.groups
    return (
        len(groups) > 1
        and groups[0].case is not None
        and len({group.case for group in groups}) == len(breakdown.summary)
    )


def unranked_sentence(breakdown: "Breakdown") -> str:
    """About points that nothing can be ranked against; empty: there are none."""
    several = len(breakdown.groups) > 1 and not are_single_cases(breakdown)
    count = sum(len(group.points) == 1 for group in breakdown.groups) if several else 0
    if count and breakdown.groups[0].case is not None:
        which = "Every point is" if count == len(breakdown.summary) else f"{counted(count, 'point')} of the cases stand"
        return f"{which} alone: no other point of its case reads the same amount, so it is not ranked."
    whose = "each of these points" if count == len(breakdown.summary) else counted(count, "point")
    verb = "reads" if count in (1, len(breakdown.summary)) else "read"
    text = f"{whose} {verb} a different amount of data, so {'it is' if count == 1 else 'they are'} not ranked."
    return f"{text[0].upper()}{text[1:]}" if count else ""


def room_columns(options: "Sequence[Feasibility | None]", drop: int) -> list[Column]:
    """Bytes on every tier whose room is asked about; a mark where they do not fit, or nobody can tell."""
    wheres = {room.tier: room.where for feasibility in options if feasibility for room in feasibility.tiers}
    return [
        Column(f"{tier} {where}", [Text(_room_text(feasibility, tier)) for feasibility in options], drop=drop)
        for tier, where in wheres.items()
    ]


def _room_text(option: "Feasibility | None", tier: str) -> str:
    room = option.on(tier) if option else None
    if room is None:
        return "–"
    mark = {"no": " does not fit", "unknown": " ?"}.get(room.fits, "")
    return f"{about_bytes(room.needed)}{mark}"


def title_label(given: "Conditions") -> str:
    """Behind a title: what nobody may overlook."""
    emulated = f" · emulated tiers: {', '.join(given.emulated)}" if given.emulated else ""
    emulated += f" · simulated ({', '.join(given.simulated)})" if given.simulated else ""
    emulated += " · without checkpoints" if given.checkpoints_left_out else ""
    return emulated + (f" · measured with {', '.join(given.profilers)}" if given.profilers else "")


def wasted_sentence(sensitivities: "Iterable[Sensitivity]") -> str:
    """Which classes no money should go to; empty: none."""
    sensitivities = list(sensitivities)
    if not any(sensitivity.limit_percent for sensitivity in sensitivities):
        was_none = sensitivities[0].measure != "epoch" or all(
            sensitivity.limit_is_nothing for sensitivity in sensitivities
        )
        why = "There was no I/O at the best point" if was_none else "I/O is hidden behind compute at the best point"
        return f"{why}, so nothing would change."
    wasted = [sensitivity.class_name for sensitivity in sensitivities if -sensitivity.limit_percent < WASTED_PERCENT]
    what = f"even infinite speed gains less than {WASTED_PERCENT:g} %"
    return f"Do not spend on {' or '.join(wasted)} alone: {what}." if wasted else ""


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


def bottleneck_sentences(breakdown: "Breakdown", given: "Conditions") -> Iterator[str]:
    """Where along a sweep which class takes longest, for every case; without places where the swept key is inert."""
    for whose, view in case_views(breakdown):
        names = list(dict.fromkeys(point.bottleneck or "no I/O" for point in view.summary))
        moves = list(bottleneck_stretches(view)) if has_effect(breakdown, given) else names
        if moves:
            yield f"{whose}Bottleneck: {'; '.join(moves)}."


def _span(key: str, stretch: "list[SweepPoint]") -> str:
    from tierscope.analysis.breakdown import value_text  # noqa: PLC0415

    values = [value_text(key, point.sweep[key]) for point in stretch]
    is_ordered = all(isinstance(point.sweep[key], int | float) for point in stretch) and len(values) > 1
    return f"from {values[0]} to {values[-1]}" if is_ordered else f"at {', '.join(values)}"
