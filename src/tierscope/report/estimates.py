"""An estimate, and an exploration of a goal, for the terminal."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from tierscope.analysis.breakdown import SweepPoint, sweep_text, value_text
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.wording import Finding
from tierscope.predict.explore import Exploration, Option
from tierscope.predict.whatif import LITTLE, Estimate, Sensitivity
from tierscope.report.parts import (
    Column,
    Unit,
    basis_text,
    colour,
    finding_lines,
    fitting,
    table,
    title_label,
    wasted_sentence,
)
from tierscope.spec.goal import AU, EPOCH, Goal
from tierscope.units import about_seconds, counted

MOST_OPTIONS = 12
_CELL = 5  # of the grid
_MOST_ROWS = 25


def improvements_text(improvements: Mapping[str, float]) -> str:
    shown = [f"{name} {percent:+g} %" for name, percent in improvements.items() if percent]
    return ", ".join(shown) or "no improvement"


@dataclass(frozen=True, slots=True)
class EstimateView:
    """Before and after, the sentence that says it, when not to believe it, and where more would help."""

    name: str
    estimate: Estimate
    findings: list[Finding]
    given: Conditions

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        estimate = self.estimate
        title = f"{self.name}: estimate by scaling ({basis_text(estimate.before)}){title_label(self.given)}"
        yield Text(title, style="bold")
        if any(estimate.improvements.values()):
            yield table(fitting(_before_and_after(estimate, self.given), options.max_width))
            yield Text(estimate_sentence(estimate), style="bold")
            yield from finding_lines(estimate.warnings)
        yield Text("")
        yield from _sensitivity(estimate, self.given)
        yield from finding_lines(self.findings)


def _before_and_after(estimate: Estimate, given: Conditions) -> list[Column]:
    before, after = estimate.before.best, estimate.after.best
    time = Unit.of(max(before.io.median, after.io.median))
    rows = [(given.came, before), (improvements_text(estimate.improvements), after)]
    spread = [Text(f"{time.span(point.io)}, {point.io.kind}, n={point.io.n}") for _, point in rows]
    columns = [
        Column("", [Text(name) for name, _ in rows], right=False),
        Column("best at", [Text(_where(point)) for _, point in rows]),
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


def _where(point: SweepPoint) -> str:
    return sweep_text(point.sweep)


def estimate_sentence(estimate: Estimate) -> str:
    before, after = estimate.before.best, estimate.after.best
    moved = "" if _where(before) == _where(after) else f" instead of {_where(before)}"
    rank = ", in another process" if estimate.slowest_rank_changed else ""
    if abs(estimate.change_percent) < 0.05 and before.sweep == after.sweep:
        io = about_seconds(after.io.median)
        return (
            f"{improvements_text(estimate.improvements)} changes nothing: the best is still {io}, at {_where(after)}."
        )
    bottleneck = f"; {after.bottleneck} is the bottleneck then{rank}" if after.bottleneck else ""
    bottleneck += _epoch_text(estimate)
    return (
        f"With {improvements_text(estimate.improvements)}: {about_seconds(after.io.median)} of I/O per epoch instead of "
        f"{about_seconds(before.io.median)} ({estimate.change_percent:+.1f} %), at {_where(after)}{moved}{bottleneck}."
    )


def _epoch_text(estimate: Estimate) -> str:
    """What becomes of the epoch, where there is compute that may hide the I/O."""
    before, after = estimate.before.best.epoch_seconds, estimate.after.best.epoch_seconds
    if estimate.before.ranked_by != EPOCH or before is None or after is None:
        return ""
    change = f"{estimate.epoch_change_percent:+.1f} %"
    slower = ", if none of the longer I/O is hidden" if after > before else ""
    return f". The epoch would take about {about_seconds(after)} instead of {about_seconds(before)} ({change}){slower}"


def _sensitivity(estimate: Estimate, given: Conditions) -> Iterator[Text | Table]:
    each = estimate.sensitivity
    what = "epoch" if each[0].measure == "epoch" else "I/O time"
    yield Text(f"If one class alone had more throughput, the best {given.came} {what} would change by", style="bold")
    steps = list(each[0].change_percent)
    columns = [Column("", [Text(one.class_name) for one in each], right=False)]
    columns += [Column(f"{step:+g} %", [_change(one.change_percent[step]) for one in each]) for step in steps]
    columns.append(Column("at most", [_change(one.limit_percent) for one in each], "bold"))
    if any(one.limit_sweep is not None or one.limit_is_nothing for one in each):
        columns.append(Column("then", [Text(limit_text(one)) for one in each], "dim", right=False))
    yield table(columns)
    yield Text("At most: if the class took no time at all.", style="dim")
    if wasted := wasted_sentence(each):
        yield Text(wasted)


def limit_text(one: Sensitivity) -> str:
    """What becomes of the best point if a class took no time at all: it moves, or its I/O goes."""
    if one.limit_sweep is not None:
        return f"the best moves to {sweep_text(one.limit_sweep)}"
    return "no I/O is left there" if one.limit_is_nothing else ""


def _change(percent: float) -> Text:
    return Text(f"{percent:.1f} %" if abs(percent) >= 0.05 else "0 %", style="dim" if -percent < 100 * LITTLE else "")


@dataclass(frozen=True, slots=True)
class ExplorationView:
    """What meets the goal: the cheapest combinations, and the grid where two classes vary."""

    name: str
    found: Exploration
    findings: list[Finding]
    given: Conditions
    epoch: int | None = None  # the only one that was taken

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        found = self.found
        per = "per epoch" if self.epoch is None else f"in epoch {self.epoch}"
        fixed = f", with {improvements_text(found.fixed)}" if any(found.fixed.values()) else ""
        goal = found.goal.text.replace("per epoch", per)
        yield Text(
            f"{self.name}: {goal}, estimated by scaling{fixed}{title_label(self.given)}",
            style="bold",
        )
        if len(found.vary) == 2 and found.met_without is None and found.options:
            yield from _grid(found, options.max_width)
        yield Text(exploration_sentence(found), style="bold")
        if found.options and (found.met_without is None or found.options[0].cost is not None):
            yield table(fitting(_option_columns(found.options[:MOST_OPTIONS], found.goal.kind), options.max_width))
            if len(found.options) > MOST_OPTIONS:
                yield Text(
                    f"and {len(found.options) - MOST_OPTIONS} more, each less of one and more of another: see --json",
                    style="dim",
                )
            yield from finding_lines(found.warnings)
            if found.options[0].warnings:
                yield Text("Of the first of them:", style="dim")
                yield from finding_lines(found.options[0].warnings)
        yield from finding_lines(self.findings)


def exploration_sentence(found: Exploration) -> str:
    goal = found.goal.short
    met = int((found.chosen >= 0).sum())
    if found.met_without is not None:
        already = f"The goal of {goal} is already met without any improvement, at {sweep_text(found.sweeps[found.met_without])}"
        if not found.options or found.options[0].cost is None:
            return f"{already}."
        return f"{already}; the cheapest: {_option_text(found.options[0], found.goal)}."
    if not met:
        nearest = found.nearest
        shortest = "highest" if found.goal.kind == AU else "shortest"
        return (
            f"{goal} cannot be met by these: the {shortest} is {found.goal.shown(float(found.values[nearest]))}, "
            f"with {improvements_text(found.combination(nearest))}."
        )
    by = "cheapest" if found.options[0].cost is not None else "smallest in sum"
    return f"{met:,} of {counted(len(found.chosen), 'combination', grouped=True)} meet it; the {by}: {_option_text(found.options[0], found.goal)}."


def _option_text(option: Option, goal: Goal) -> str:
    price = "" if option.cost is None else f", for {option.cost:,.6g}"
    value = {EPOCH: option.epoch_seconds, AU: option.au}.get(goal.kind)
    where = f"{sweep_text(option.sweep)} ({goal.shown(option.io_seconds if value is None else value)})"
    return f"{improvements_text(option.improve)} at {where}{price}{_if_not(option)}"


def _if_not(option: Option) -> str:
    """What it takes if a class that was busy cannot serve more than it ever did."""
    doubt = next((warning.evidence for warning in option.warnings if warning.kind.startswith("beyond")), None)
    if doubt is None:
        return ""
    return f"; if {doubt['class']} cannot serve more than it ever did, {about_seconds(doubt['implied_seconds'])}"


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
    if options[0].cost is not None:
        columns.append(Column("cost", [Text(f"{option.cost:,.6g}") for option in options], "bold"))
    doubts = [Text("beyond what was seen" if _doubtful(option) else "") for option in options]
    return [*columns, Column("", doubts, "dim", drop=1, right=False)]


def _doubtful(option: Option) -> bool:
    return any(warning.kind.startswith("beyond") for warning in option.warnings)


def _grid(found: Exploration, width: int) -> Iterator[Text]:
    """The smallest cache rate for every pair, in percent; a dot where there is none. Values that do not fit are left out."""
    (across, columns), (down, rows) = found.vary.items()
    chosen = found.chosen.reshape(len(columns), len(rows))
    room = max(1, (width - 10) // _CELL)
    shown = range(0, len(columns), -(-len(columns) // room))
    below = range(0, len(rows), -(-len(rows) // _MOST_ROWS))
    what = "smallest cache rate in %" if any("cache_rate" in sweep for sweep in found.sweeps) else "✓ meets the goal"
    part = (
        ""
        if (shown.step, below.step) == (1, 1)
        else f"; every {_nth(shown.step)} and {_nth(below.step)} value is shown"
    )
    yield Text(f"{what}: {down} in % downwards, {across} to the right; · cannot be met{part}", style="dim")
    yield Text(" " * 8 + "".join(f"{columns[column]:>{_CELL}g}" for column in shown), style="dim")
    for row in below:
        line = Text(f"{rows[row]:>+7g} ", style="dim")
        for column in shown:
            line.append(_cell(found, int(chosen[column, row])))
        yield line


def _nth(step: int) -> str:
    return {1: "one", 2: "2nd", 3: "3rd"}.get(step, f"{step}th")


def _cell(found: Exploration, point: int) -> Text:
    if point < 0:
        return Text("·".rjust(_CELL), style="dim")
    rate: Any = found.sweeps[point].get("cache_rate")
    return Text(("✓" if rate is None else f"{100 * rate:.3g}").rjust(_CELL), style="green")
