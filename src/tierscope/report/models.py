"""What the station model says, for the terminal: calibrations, their errors, better what-ifs, systems that nobody built."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.breakdown import sweep_text, value_text
from tierscope.predict.calibrate import Calibration, FittedKey, LeftOut
from tierscope.predict.exploration import Combination, SimulatedExploration
from tierscope.predict.modelled import ModelAnswer
from tierscope.predict.propose import Proposal
from tierscope.predict.rates import NEGLIGIBLE, PLAIN, Serving
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.spec.goal import AU, EPOCH, Goal
from tierscope.spec.sweep import CASE
from tierscope.units import about_seconds, counted, format_bandwidth, format_rate, format_seconds

MOST_OPTIONS = 12


@dataclass(frozen=True, slots=True)
class CalibrationView:
    """What was fitted, how well it is known, and what to measure next."""

    name: str
    found: Calibration
    proposals: Sequence[Proposal]
    epochs: int

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        found = self.found
        yield Text(f"{self.name}: rates fitted to {counted(self.epochs, 'epoch')}, per class and process", style="bold")
        columns = [
            Column("", [Text(each.parameter.path.removeprefix("tiers.")) for each in found.estimates], right=False),
            Column("fitted", [Text(estimate_text(each)) for each in found.estimates], "bold"),
            Column("90 %", [Text(_range(each)) for each in found.estimates], "dim", drop=2),
            Column("I/O if 10 % more", [Text(f"{each.sensitivity:+.1f} %") for each in found.estimates], drop=1),
        ]
        yield table(fitting(columns, options.max_width))
        yield Text(
            f"Residual {100 * found.fit.loss:.1f} % of the I/O time; model error {100 * found.model_error:.1f} % "
            f"({'at points that were left out' if found.left_out else 'of the fit itself: too few points to leave one out'})."
        )
        if found.fit.serving != PLAIN:
            yield Text(_serving_text(found.fit.serving))
        if found.one_size:
            yield Text(
                "Files of one size only: an operation's own time and its bytes cannot be told apart, all of it is bandwidth here."
            )
        if self.proposals:
            yield Text("What would tell most if measured next:", style="bold")
        for each in self.proposals:
            unknown = " (nothing is known of a tier that it reads from)"
            differ = f" (predictions differ by {each.spread_percent:.0f} %)" if each.spread_percent else ""
            doubt = unknown if each.spread_percent is None else differ
            yield Text(f"• {each.what}{doubt}")


def _serving_text(serving: Serving) -> str:
    how = "one after another" if serving.discipline == "fifo" else "all at once, each slower,"
    return f"Servers that serve {how} with services that vary by {100 * serving.variation:.0f} % fit better than steady ones in turn."


def estimate_text(each: FittedKey) -> str:
    if not each.parameter.is_rate and each.value <= NEGLIGIBLE:
        return "none seen"
    value = each.low if each.kind == "at_least" else each.value
    return ("at least " if each.kind == "at_least" else "") + _value(each.parameter.key, value)


def _range(each: FittedKey) -> str:
    if each.high is None:
        return "not determined above"
    if not each.parameter.is_rate and each.value <= NEGLIGIBLE:
        return f"at most {_value(each.parameter.key, each.high)}"
    return f"{_value(each.parameter.key, each.low)} – {_value(each.parameter.key, each.high)}"


def _value(key: str, value: float) -> str:
    value = float(f"{value:.4g}")
    if key.endswith("bandwidth"):
        return format_bandwidth(float(round(value)))
    return format_rate(value) if key.endswith("_ops") else format_seconds(value)


@dataclass(frozen=True, slots=True)
class ValidationView:
    """Every point predicted from all the others."""

    name: str
    left_out: Sequence[LeftOut]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        rows = self.left_out
        time = Unit.of(max(row.measured_seconds for row in rows))
        yield Text(f"{self.name}: each point predicted from a fit to all the others", style="bold")
        columns = [
            Column("left out", [Text(row.name) for row in rows], right=False),
            Column(f"was {time.name}", [time.text(row.measured_seconds) for row in rows]),
            Column(f"predicted {time.name}", [time.text(row.predicted_seconds) for row in rows], "bold"),
            Column("error", [Text(f"{100 * row.error:+.1f} %") for row in rows]),
            Column("bottleneck", [Text("as measured" if row.bottleneck_right else "another") for row in rows], drop=1),
        ]
        yield table(fitting(columns, options.max_width))
        errors = [abs(100 * row.error) for row in rows]
        yield Text(
            f"Median error {statistics.median(errors):.1f} %, largest {max(errors):.1f} %, n={len(errors)}.",
            style="bold",
        )


@dataclass(frozen=True, slots=True)
class ModelAnswerView:
    """The simple scaling and the model side by side."""

    found: ModelAnswer

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        found = self.found
        time = Unit.of(max(point.measured_seconds for point in found.points))
        yield Text("By the station model, beside the simple scaling", style="bold")
        points = found.points
        columns = [
            Column("", [Text(sweep_text(point.sweep)) for point in points], right=False),
            Column(f"before {time.name}", [time.text(point.measured_seconds) for point in points], drop=1),
            Column(f"scaling {time.name}", [time.text(point.simple_seconds) for point in points]),
            Column(f"model {time.name}", [time.text(point.model_seconds) for point in points], "bold"),
            Column("scaling is off by", [Text(f"{point.simple_off_percent:+.1f} %") for point in points]),
            Column("bottleneck then", [Text(point.bottleneck_after) for point in points], right=False, drop=2),
        ]
        yield table(fitting(columns, options.max_width))
        best = found.best_model if found.shown == "model" else found.best_simple
        seconds = best.model_seconds if found.shown == "model" else best.simple_seconds
        why = "the bottleneck moves, so the model's is the one to believe" if found.moved else "the bottleneck stays"
        yield Text(
            f"Best: {about_seconds(seconds)} at {sweep_text(best.sweep)} (by the {found.shown}: {why}); "
            f"the simple scaling's best is off by {found.simple_off_percent:+.1f} %.",
            style="bold",
        )


def _cases_without(found: SimulatedExploration) -> list[str]:
    """Cases that no combination meets the goal in."""
    cases = dict.fromkeys(str(each.settings[CASE]) for each in found.combinations if CASE in each.settings)
    meeting = {str(each.settings.get(CASE)) for each in found.combinations if each.met}
    return [case for case in cases if case not in meeting]


@dataclass(frozen=True, slots=True)
class SimulatedExplorationView:
    name: str
    found: SimulatedExploration

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        found = self.found
        goal = found.goal
        yield Text(f"{self.name}: {goal.text} · simulated ({found.method})", style="bold")
        met = [each for each in found.combinations if each.met]
        if not met:
            nearest = min(found.combinations, key=lambda each: each.shortfall(goal))
            shortest = "highest" if goal.kind == AU else "shortest"
            yield Text(
                f"{goal.short} cannot be met by these: the {shortest} is {goal.shown(nearest.value(goal.kind))}, with {_settings(nearest)} "
                f"at cache_rate {value_text('cache_rate', nearest.cache_rate)}; {nearest.bottleneck} is the bottleneck there.",
                style="bold",
            )
            return
        by = "cheapest" if found.pareto[0].cost is not None else "smallest"
        yield Text(
            f"{len(met)} of {counted(len(found.combinations), 'combination')} meet it; the {by} first:", style="bold"
        )
        shown = found.pareto[:MOST_OPTIONS]
        time = Unit.of(max(each.io_seconds for each in shown))
        columns = [
            Column(name, [Text(value_text(name, each.settings[name])) for each in shown]) for name in shown[0].settings
        ]
        columns += [
            Column("cache rate", [Text(value_text("cache_rate", each.cache_rate)) for each in shown]),
            Column(f"I/O {time.name}", [time.text(each.io_seconds) for each in shown], "bold"),
            Column(
                "90 %",
                [Text(f"{time.text(each.low_seconds)}–{time.text(each.high_seconds)}") for each in shown],
                "dim",
                drop=2,
            ),
            *_goal_columns(goal, shown),
            Column("bottleneck", [Text(each.bottleneck) for each in shown], right=False, drop=1),
            Column("staging pays after", [Text(_pays(each)) for each in shown], drop=3),
        ]
        if shown[0].cost is not None:
            columns.append(Column("cost", [Text(f"{each.cost:,.6g}") for each in shown], "bold"))
        yield table(fitting(columns, options.max_width))
        if missing := _cases_without(found):
            yield Text(f"Nothing here meets it in case {' and '.join(missing)}.", style="bold")
        if len(found.pareto) > MOST_OPTIONS:
            yield Text(
                f"and {len(found.pareto) - MOST_OPTIONS} more, each less of one and more of another: see --json",
                style="dim",
            )


def _goal_columns(goal: Goal, shown: Sequence[Combination]) -> list[Column]:
    """What the goal is about, where it is not the I/O time."""
    if goal.kind == EPOCH:
        time = Unit.of(max(each.epoch_seconds for each in shown))
        return [Column(f"epoch {time.name}", [time.text(each.epoch_seconds) for each in shown], "bold")]
    return [Column("AU %", [Text(f"{100 * each.value(AU):.1f}") for each in shown], "bold")] if goal.kind == AU else []


def _pays(each: Combination) -> str:
    if each.break_even_epochs is None:
        return "never" if each.compared and each.cache_rate else "–"
    return counted(each.break_even_epochs, "epoch")


def _settings(each: Combination) -> str:
    return (
        ", ".join(f"{name} {value_text(name, value)}" for name, value in each.settings.items()) or "the study as it is"
    )
