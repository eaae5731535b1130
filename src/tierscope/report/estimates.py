"""An estimate, and an exploration of a goal, for the terminal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from tierscope.analysis.breakdown import sweep_text, value_text
from tierscope.analysis.cases import without_case
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.goals import GOAL_KINDS
from tierscope.analysis.wording import Finding
from tierscope.predict.by_group import EstimatedGroups, ExploredGroup, ExploredGroups
from tierscope.predict.explore import Exploration, Option
from tierscope.predict.whatif import LITTLE, Estimate, Sensitivity
from tierscope.report.estimate_sentence import estimate_sentence, improvements_text, where_text
from tierscope.report.findings import finding_lines, labelled_lines, result_findings_line
from tierscope.report.parts import (
    Column,
    Unit,
    basis_text,
    colour,
    fitting,
    room_columns,
    table,
    title_label,
    wasted_sentence,
)
from tierscope.spec.goal import AU, EPOCH, Goal
from tierscope.units import about_seconds, counted, format_money

MOST_OPTIONS = 12
_CELL = 5  # of the grid
_MOST_ROWS = 25


@dataclass(frozen=True, slots=True)
class EstimateView:
    """Before and after, the sentence that says it, when not to believe it, and where more would help; of each case, where there are several."""

    name: str
    groups: EstimatedGroups
    findings: list[Finding]
    given: Conditions
    show_all: bool = False

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        groups = self.groups
        title = f"{self.name}: estimate by scaling ({basis_text(groups.before)}){title_label(self.given)}"
        yield Text(title, style="bold")
        if any(groups.improvements.values()):
            shown = (
                _before_and_after(groups.parts[0], self.given)
                if len(groups.parts) == 1
                else _by_case(groups, self.given)
            )
            yield table(fitting(shown, options.max_width))
            for whose, estimate in _named(groups):
                yield Text(f"{whose}{estimate_sentence(estimate)}", style="bold")
        yield Text("")
        yield from _sensitivity(groups, self.given)
        if groups.left_out:
            yield Text(left_out_text(groups.left_out), style="dim")
        improved = any(groups.improvements.values())
        warnings = {whose: estimate.warnings for whose, estimate in _named(groups)} if improved else {}
        yield from _own_findings(self.findings, warnings, self.show_all)


def left_out_text(groups: int) -> str:
    return f"{counted(groups, 'more group')} of points that read other amounts of data not shown: sweep fewer of them."


def _named(groups: EstimatedGroups) -> Iterator[tuple[str, Estimate]]:
    """What a sentence about each begins with; nothing where there is only one."""
    for name, estimate in zip(groups.names, groups.parts, strict=True):
        yield f"{name}: " if name else "", estimate


def _before_and_after(estimate: Estimate, given: Conditions) -> list[Column]:
    before, after = estimate.before.best, estimate.after.best
    time = Unit.of(max(before.io.median, after.io.median))
    rows = [(given.came, before), (improvements_text(estimate.improvements), after)]
    spread = [Text(f"{time.span(point.io)}, {point.io.kind}, n={point.io.n}") for _, point in rows]
    columns = [
        Column("", [Text(name) for name, _ in rows], right=False),
        Column("best at", [Text(where_text(point.sweep)) for _, point in rows]),
        Column(f"I/O {time.name}", [time.text(point.io.median) for _, point in rows], "bold"),
    ]
    if before.io.has_spread:
        columns.append(Column("", spread, "dim", drop=2))
    columns += [
        Column(name, [time.text(point.classes[name]) for _, point in rows], colour(index), drop=3)
        for index, name in enumerate(estimate.before.classes)
    ]
    columns.append(Column("bottleneck", [Text(point.bottleneck or "–") for _, point in rows], right=False))
    return columns


def _by_case(groups: EstimatedGroups, given: Conditions) -> list[Column]:
    """A row for each case: its own best, before and after."""
    pairs = [(estimate.before.best, estimate.after.best) for estimate in groups.parts]
    time = Unit.of(max(point.io.median for pair in pairs for point in pair))
    changes = [Text(f"{estimate.change_percent:+.1f} %") for estimate in groups.parts]
    return [
        Column("", [Text(name) for name in groups.names], right=False),
        Column(f"best {given.came}", [Text(where_text(before.sweep)) for before, _ in pairs], drop=2),
        Column(f"I/O {time.name}", [time.text(before.io.median) for before, _ in pairs]),
        Column("best then", [Text(where_text(after.sweep)) for _, after in pairs], drop=2),
        Column(f"I/O {time.name}", [time.text(after.io.median) for _, after in pairs], "bold"),
        Column("change", changes, "bold"),
        Column("bottleneck then", [Text(after.bottleneck or "–") for _, after in pairs], right=False, drop=1),
    ]


def _sensitivity(groups: EstimatedGroups, given: Conditions) -> Iterator[Text | Table]:
    named = [(name, row) for name, part in zip(groups.names, groups.parts, strict=True) for row in part.sensitivity]
    classes = [row for _, row in named]
    what = "epoch" if classes[0].measure == "epoch" else "I/O time"
    of_case = " of each" if len(groups.parts) > 1 else ""
    yield Text(f"Change of the best {given.came} {what}{of_case} if only one class had more throughput:", style="bold")
    steps = list(classes[0].change_percent)
    columns = [Column("", [Text(row.class_name) for row in classes], right=False)]
    if of_case:
        names = ["", *(name for name, _ in named)]
        new = [Text(name if name != before else "") for before, name in pairwise(names)]
        columns.insert(0, Column("", new, right=False))
    columns += [Column(f"{step:+g} %", [_change(row.change_percent[step]) for row in classes]) for step in steps]
    columns.append(Column("at most", [_change(row.limit_percent) for row in classes], "bold"))
    if any(row.limit_sweep is not None or row.limit_is_nothing for row in classes):
        columns.append(Column("then", [Text(limit_text(row)) for row in classes], "dim", right=False))
    yield table(columns)
    yield Text("At most: if the class took no time.", style="dim")
    for whose, estimate in _named(groups):
        if wasted := wasted_sentence(estimate.sensitivity):
            yield Text(f"{whose}{wasted}")


def limit_text(sensitivity: Sensitivity) -> str:
    """What becomes of the best point if a class took no time at all: it moves, or its I/O goes."""
    if sensitivity.limit_sweep is not None:
        return f"the best moves to {sweep_text(without_case(sensitivity.limit_sweep))}"
    return "no I/O is left" if sensitivity.limit_is_nothing else ""


def _change(percent: float) -> Text:
    return Text(f"{percent:.1f} %" if abs(percent) >= 0.05 else "0 %", style="dim" if -percent < 100 * LITTLE else "")


@dataclass(frozen=True, slots=True)
class ExplorationView:
    """What meets the goal: the cheapest combinations, and the grid where two classes vary; of each case by itself, where there are several."""

    name: str
    explored: ExploredGroups
    findings: list[Finding]
    given: Conditions
    epoch: int | None = None  # the only one that was taken
    show_all: bool = False

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        exploration = self.explored.first
        per = "per epoch" if self.epoch is None else f"in epoch {self.epoch}"
        fixed = f", with {improvements_text(exploration.fixed)}" if any(exploration.fixed.values()) else ""
        goal = exploration.goal.text.replace("per epoch", per)
        yield Text(
            f"{self.name}: {goal}, estimated by scaling{fixed}{title_label(self.given)}",
            style="bold",
        )
        for number, part in enumerate(self.explored.parts):
            if number:
                yield Text("")
            yield from _explored(part, options.max_width)
        if self.explored.left_out:
            yield Text(left_out_text(self.explored.left_out), style="dim")
        warnings = {label: findings for part in self.explored.parts for label, findings in _warnings(part)}
        yield from _own_findings(self.findings, warnings, self.show_all)


def _own_findings(
    findings: Sequence[Finding], warnings: Mapping[str, Sequence[Finding]], show_all: bool
) -> Iterator[Text]:
    """Those about the answer, and how many there are about the result that it builds on."""
    about_goal = [finding for finding in findings if finding.kind in GOAL_KINDS]
    about_result = [finding for finding in findings if finding.kind not in GOAL_KINDS]
    yield from labelled_lines({**warnings, "": [*about_goal, *warnings.get("", ())]}, show_all)
    yield from finding_lines(about_result, True) if show_all else result_findings_line(about_result)


def _warnings(part: ExploredGroup) -> Iterator[tuple[str, Sequence[Finding]]]:
    """About an exploration and about its first option; none where nothing is recommended."""
    exploration, whose = part.exploration, f"{part.name}: " * bool(part.name)
    if exploration.options and (exploration.met_without is None or exploration.options[0].cost is not None):
        yield whose, exploration.warnings
        yield f"{whose}first option: ", exploration.options[0].warnings


def _explored(part: ExploredGroup, width: int) -> Iterator[Text | Table]:
    exploration = part.exploration
    if len(exploration.vary) == 2 and exploration.met_without is None and exploration.options:
        if part.name:
            yield Text(part.name, style="bold")
        yield from _grid(exploration, width)
    yield Text(f"{part.name}: " * bool(part.name) + exploration_sentence(exploration), style="bold")
    if exploration.options and (exploration.met_without is None or exploration.options[0].cost is not None):
        yield table(fitting(_option_columns(exploration.options[:MOST_OPTIONS], exploration.goal.kind), width))
        if len(exploration.options) > MOST_OPTIONS:
            yield Text(
                f"and {len(exploration.options) - MOST_OPTIONS} more that trade one class for another: see --json",
                style="dim",
            )


def exploration_sentence(exploration: Exploration) -> str:
    goal = exploration.goal.short
    met = int((exploration.chosen >= 0).sum())
    meeting = meeting_text(met, len(exploration.chosen))
    if met and not exploration.options:
        return f"{meeting}, but all exceed the maximum price."
    if exploration.met_without is not None:
        return _met_already(exploration, exploration.met_without)
    if not met:
        nearest = exploration.nearest
        shortest = "highest" if exploration.goal.kind == AU else "shortest"
        return (
            f"{goal} cannot be met by these combinations: the {shortest} is {exploration.goal.shown(float(exploration.values[nearest]))}, "
            f"with {improvements_text(exploration.combination(nearest))}."
        )
    by = "cheapest" if exploration.options[0].cost is not None else "smallest total"
    return f"{meeting}; the {by}: {_option_text(exploration.options[0], exploration.goal)}."


def meeting_text(met: int, combinations: int) -> str:
    """`1 of 9 combinations meets it`."""
    return f"{met:,} of {counted(combinations, 'combination', grouped=True)} meet{'s' if met == 1 else ''} it"


def _met_already(exploration: Exploration, point: int) -> str:
    """An option that costs nothing is no option to buy: the goal is met."""
    already = f"The goal of {exploration.goal.short} is already met without"
    cheapest = exploration.options[0] if exploration.options else None
    if cheapest is not None and cheapest.cost == 0:
        return f"{already} buying anything, at {_where_and_value(cheapest, exploration.goal)}."
    improved = f"{already} any improvement, at {where_text(exploration.sweeps[point])}"
    if cheapest is None or cheapest.cost is None:
        return f"{improved}."
    if not any(cheapest.improve.values()):
        return f"{improved}; cheapest at {_where_and_value(cheapest, exploration.goal)}, for {format_money(cheapest.cost)}."
    return f"{improved}; the cheapest: {_option_text(cheapest, exploration.goal)}."


def _where_and_value(option: Option, goal: Goal) -> str:
    value = {EPOCH: option.epoch_seconds, AU: option.au}.get(goal.kind)
    return f"{where_text(option.sweep)} ({goal.shown(option.io_seconds if value is None else value)})"


def _option_text(option: Option, goal: Goal) -> str:
    price = "" if option.cost is None else f", for {format_money(option.cost)}"
    return f"{improvements_text(option.improve)} at {_where_and_value(option, goal)}{price}{_if_not(option)}"


def _if_not(option: Option) -> str:
    """What it takes if a class that was busy cannot serve more than it ever did."""
    doubt = next((warning.evidence for warning in option.warnings if warning.kind.startswith("beyond")), None)
    if doubt is None:
        return ""
    return f"; if {doubt['class']} cannot exceed its highest measured rate, {about_seconds(doubt['implied_seconds'])}"


def _option_columns(options: tuple[Option, ...], kind: str) -> list[Column]:
    time = Unit.of(max(option.io_seconds for option in options))
    columns = [
        Column(name, [Text(f"{option.improve[name]:+g} %") for option in options]) for name in options[0].improve
    ]
    columns += [
        Column(key.replace("_", " "), [Text(value_text(key, option.sweep[key])) for option in options])
        for key in options[0].sweep
    ]
    columns.append(Column(f"I/O {time.name}", [time.text(option.io_seconds) for option in options], "bold"))
    if kind == EPOCH:
        whole = Unit.of(max(option.epoch_seconds or 0.0 for option in options))
        cells = [whole.text(option.epoch_seconds) for option in options]
        columns.append(Column(f"epoch {whole.name}", cells, "bold"))
    if kind == AU:
        columns.append(Column("AU %", [Text(f"{100 * (option.au or 0.0):.1f}") for option in options], "bold"))
    columns += room_columns([option.feasibility for option in options], drop=2)
    if options[0].cost is not None:
        columns.append(Column("cost", [Text(format_money(option.cost or 0.0)) for option in options], "bold"))
    doubts = [Text("beyond measured rates" if _doubtful(option) else "") for option in options]
    return [*columns, Column("", doubts, "dim", drop=1, right=False)]


def _doubtful(option: Option) -> bool:
    return any(warning.kind.startswith("beyond") for warning in option.warnings)


def _grid(exploration: Exploration, width: int) -> Iterator[Text]:
    """The smallest cache rate for every pair, in percent; a dot where there is none. Values that do not fit are left out."""
    (across, columns), (down, rows) = exploration.vary.items()
    chosen = exploration.chosen.reshape(len(columns), len(rows))
    room = max(1, (width - 10) // _CELL)
    shown = range(0, len(columns), -(-len(columns) // room))
    below = range(0, len(rows), -(-len(rows) // _MOST_ROWS))
    what = (
        "smallest cache rate in %" if any("cache_rate" in sweep for sweep in exploration.sweeps) else "✓ meets the goal"
    )
    part = (
        ""
        if (shown.step, below.step) == (1, 1)
        else f"; every {_nth(shown.step)} and {_nth(below.step)} value is shown"
    )
    yield Text(f"{what}: {down} in % down, {across} in % across; · not met{part}", style="dim")
    yield Text(" " * 8 + "".join(f"{columns[column]:>{_CELL}g}" for column in shown), style="dim")
    for row in below:
        line = Text(f"{rows[row]:>+7g} ", style="dim")
        for column in shown:
            line.append(_cell(exploration, int(chosen[column, row])))
        yield line


def _nth(step: int) -> str:
    return {1: "one", 2: "2nd", 3: "3rd"}.get(step, f"{step}th")


def _cell(exploration: Exploration, point: int) -> Text:
    if point < 0:
        return Text("·".rjust(_CELL), style="dim")
    rate: Any = exploration.sweeps[point].get("cache_rate")
    return Text(("✓" if rate is None else f"{100 * rate:.3g}").rjust(_CELL), style="green")
