"""What the station model says, for the terminal: calibrations, their errors, better what-ifs, systems that nobody built."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from tierscope.analysis.breakdown import sweep_text, value_text
from tierscope.analysis.run_command import GivenStudy
from tierscope.predict.calibrate import Calibration, FittedKey, LeftOut
from tierscope.predict.exploration import Combination, SimulatedExploration
from tierscope.predict.modelled import ModelAnswer
from tierscope.predict.propose import Proposal
from tierscope.predict.ranked_apart import CombinationGroup, groups_apart
from tierscope.predict.rates import NEGLIGIBLE, PLAIN, Serving, Terms
from tierscope.report.estimates import meeting_text
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.report.plans import (
    RemediesView,
    doubt_lines,
    epoch_lines,
    lesser_lines,
    nearest_table,
    option_columns,
    price_lines,
    unidentified_lines,
    unsolved_text,
    within_reach,
)
from tierscope.spec.goal import AU, Goal
from tierscope.units import (
    about_seconds,
    counted,
    format_bandwidth,
    format_bytes,
    format_money,
    format_rate,
    format_seconds,
)

MOST_OPTIONS = 12
MOST_LISTS = 12


@dataclass(frozen=True, slots=True)
class CalibrationView:
    """What was fitted, how well it is known, and what to measure next."""

    name: str
    calibration: Calibration
    proposals: Sequence[Proposal]
    epochs: int

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        calibration = self.calibration
        yield Text(f"{self.name}: rates fitted to {counted(self.epochs, 'epoch')}, per class and process", style="bold")
        columns = [
            Column(
                "",
                [Text(estimate.parameter.path.removeprefix("tiers.")) for estimate in calibration.estimates],
                right=False,
            ),
            Column("fitted", [Text(estimate_text(estimate)) for estimate in calibration.estimates], "bold"),
            Column("90 %", [Text(_range(estimate)) for estimate in calibration.estimates], "dim", drop=2),
            Column(
                "I/O if 10 % more",
                [Text(f"{estimate.sensitivity:+.1f} %") for estimate in calibration.estimates],
                drop=1,
            ),
        ]
        yield table(fitting(columns, options.max_width))
        yield Text(
            f"Residual {100 * calibration.fit.loss:.1f} % of the I/O time; model error {100 * calibration.model_error:.1f} % "
            f"({'at left-out points' if calibration.left_out else 'of the fit itself: no point was left out'})."
        )
        if calibration.fit.serving != PLAIN:
            yield Text(_serving_text(calibration.fit.serving))
        yield from (Text(line) for line in _terms_lines(calibration.fit.terms))
        if calibration.one_size:
            yield Text(
                "Only one file size: a server's time per read and per byte cannot be separated, so all of it counts as bandwidth."
            )
        if self.proposals:
            yield Text("Most informative points to measure next:", style="bold")
        for proposal in self.proposals:
            unknown = " (nothing is known about a tier that it reads from)"
            differ = f" (predictions differ by {proposal.spread_percent:.0f} %)" if proposal.spread_percent else ""
            doubt = unknown if proposal.spread_percent is None else differ
            yield Text(f"• {proposal.what}{doubt}")


def _serving_text(serving: Serving) -> str:
    how = "one operation at a time" if serving.discipline == "fifo" else "all operations at once"
    return f"Servers that serve {how} with services that vary by {100 * serving.variation:.0f} % fit better than constant, sequential ones."


def _terms_lines(terms: Terms) -> list[str]:
    said = (
        (terms.credit, "servers that make up for idle time, as token buckets and caches do, fit better"),
        (terms.quotas, "servers that hand out what they allow in portions, as throttled devices do, fit better"),
        (terms.linked, "opens that queue with the reads fit better than a separate metadata server"),
        (terms.streams, "a limit per stream fits better than none"),
        (terms.hashed, "files placed on servers at random fit better than round robin"),
    )
    return [f"{', '.join(tiers)}: {text}." for tiers, text in said if tiers]


def estimate_text(estimate: FittedKey) -> str:
    if not estimate.parameter.is_rate and estimate.value <= NEGLIGIBLE:
        return "none seen"
    value = estimate.low if estimate.kind == "at_least" else estimate.value
    return ("at least " if estimate.kind == "at_least" else "") + _value(estimate.parameter.key, value)


def _range(estimate: FittedKey) -> str:
    if estimate.high is None:
        return "no upper bound"
    if not estimate.parameter.is_rate and estimate.value <= NEGLIGIBLE:
        return f"at most {_value(estimate.parameter.key, estimate.high)}"
    return f"{_value(estimate.parameter.key, estimate.low)} – {_value(estimate.parameter.key, estimate.high)}"


def _value(key: str, value: float) -> str:
    value = float(f"{value:.4g}")
    if key.endswith("bandwidth"):
        return format_bandwidth(float(round(value)))
    if key == "open_bytes":
        return format_bytes(round(value))
    return format_rate(value) if key.endswith("_ops") else format_seconds(value)


@dataclass(frozen=True, slots=True)
class ValidationView:
    """Every point predicted from all the others."""

    name: str
    left_out: Sequence[LeftOut]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        rows = self.left_out
        time = Unit.of(max(row.measured_seconds for row in rows))
        yield Text(f"{self.name}: each point predicted from a fit to all others", style="bold")
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
    """The simple scaling and the model side by side. `name`: of a case, where there are several."""

    answer: ModelAnswer
    name: str = ""

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        answer = self.answer
        time = Unit.of(max(point.measured_seconds for point in answer.points))
        whose = f"{self.name}: " if self.name else ""
        yield Text(f"{whose}{'b' if whose else 'B'}y the station model, compared with simple scaling", style="bold")
        points = answer.points
        columns = [
            Column("", [Text(sweep_text(point.sweep)) for point in points], right=False),
            Column(f"before {time.name}", [time.text(point.measured_seconds) for point in points], drop=1),
            Column(f"scaling {time.name}", [time.text(point.simple_seconds) for point in points]),
            Column(f"model {time.name}", [time.text(point.model_seconds) for point in points], "bold"),
            Column("scaling error", [Text(f"{point.simple_off_percent:+.1f} %") for point in points]),
            Column("bottleneck then", [Text(point.bottleneck_after) for point in points], right=False, drop=2),
        ]
        yield table(fitting(columns, options.max_width))
        best = answer.best_model if answer.shown == "model" else answer.best_simple
        yield from _unidentified(answer, whose)
        if best.unidentified:
            low, high = about_seconds(best.low_seconds), about_seconds(best.high_seconds)
            yield Text(
                f"At {sweep_text(best.sweep)}: between {low} and {high}; the calibration cannot narrow it further.",
                style="bold",
            )
            return
        seconds = best.model_seconds if answer.shown == "model" else best.simple_seconds
        why = "the bottleneck moves, so trust the model" if answer.moved else "the bottleneck stays"
        yield Text(
            f"Best: {about_seconds(seconds)} at {sweep_text(best.sweep)} (by the {answer.shown}: {why}); "
            f"the error of simple scaling is {answer.simple_off_percent:+.1f} %.",
            style="bold",
        )


def _unidentified(answer: ModelAnswer, whose: str) -> Iterator[Text]:
    """Why the calibration does not tell, and of which points."""
    for why in dict.fromkeys(why for point in answer.points for why in point.unidentified):
        where = [sweep_text(point.sweep) for point in answer.points if why in point.unidentified]
        yield Text(
            f"{whose}{'not' if whose else 'Not'} identified at {', '.join(where)}: {why}. To do: measure a system that is faster there, and calibrate with that result too.",
            style="bold",
        )


@dataclass(frozen=True, slots=True)
class SimulatedExplorationView:
    """A list of options; where combinations are of several cases, or read different amounts of data, one for each: they are ranked separately."""

    name: str
    exploration: SimulatedExploration
    given: GivenStudy | None = None  # None: as its name says

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        exploration = self.exploration
        yield Text(f"{self.name}: {exploration.goal.text} · simulated ({exploration.method})", style="bold")
        groups = groups_apart(exploration)
        given = replace(self.given or GivenStudy(self.name), swept=exploration.swept)
        for group in groups[:MOST_LISTS]:
            yield from _group_lines(
                exploration, group, given, f"{group.name}: " if len(groups) > 1 else "", options.max_width
            )
        yield from price_lines(exploration)
        yield from epoch_lines(exploration.combinations)
        if len(groups) > MOST_LISTS:
            yield Text(f"and {len(groups) - MOST_LISTS} more groups: see --json", style="dim")
        if len(groups) > len({group.case for group in groups}):
            yield Text("Combinations that read different amounts of data are ranked separately.", style="dim")


def _group_lines(
    exploration: SimulatedExploration, group: CombinationGroup, given: GivenStudy, whose: str, width: int
) -> Iterator[Text | Table | RemediesView]:
    goal = exploration.goal
    yield from doubt_lines(group, whose)
    yield from unidentified_lines(group.combinations, given, whose)
    met = [combination for combination in group.combinations if combination.is_recommended]
    if not met:
        limit = exploration.max_price
        yield Text(f"{whose}{_missed_sentence(group, goal, limit)}", style="bold")
        yield nearest_table(group, goal, width, limit)
        instead = "would fit instead" if exploration.short_of_room else "would do better"
        yield RemediesView(group.remedies, goal, f"{whose}{'w' if whose else 'W'}hat {instead}, simulated:", given)
        return
    meeting = meeting_text(len(met), len(group.combinations)) + _beaten_text(group, met, exploration.max_price)
    if not group.pareto:
        most = format_money(exploration.max_price or 0.0)
        yield Text(f"{whose}{meeting}, none within {most}: {_cheapest_text(met)}.", style="bold")
        return
    yield Text(f"{whose}{_met_sentence(group, meeting)}", style="bold")
    yield table(fitting(option_columns(group.pareto[:MOST_OPTIONS], goal), width))
    yield from lesser_lines(group.pareto[:MOST_OPTIONS])
    if len(group.pareto) > MOST_OPTIONS:
        yield Text(
            f"and {len(group.pareto) - MOST_OPTIONS} more that trade one key for another: see --json",
            style="dim",
        )


def _cheapest_text(met: Sequence[Combination]) -> str:
    """What has no price for a part of it may cost anything."""
    if costs := [option.cost or 0.0 for option in met if not option.unpriced]:
        return f"the cheapest costs {format_money(min(costs))}"
    missing = dict.fromkeys(path.removeprefix("system.tiers.") for option in met for path in option.unpriced)
    return f"what they cost is not known without a price for {', '.join(missing)}"


def _beaten_text(group: CombinationGroup, met: Sequence[Combination], limit: float | None) -> str:
    """Why of those that meet the goal some have no line."""
    settings = [option.settings for option in group.pareto]
    others = [option for option in met if option.settings not in settings]
    if not group.pareto or not others:
        return ""
    beaten = sum(option.costs_at_most(limit) for option in others)
    unpriced = [option for option in others if option.unpriced and not option.costs_at_most(limit)]
    dear = len(others) - beaten - len(unpriced)
    names = ", ".join(
        dict.fromkeys(path.removeprefix("system.tiers.") for option in unpriced for path in option.unpriced)
    )
    why = {
        f"{'needs' if beaten == 1 else 'need'} at least as much of every key as a listed one": beaten,
        f"no price for {names}": len(unpriced),
        f"{'costs' if dear == 1 else 'cost'} over {format_money(limit or 0.0)}": dear,
    }
    return f" ({'; '.join(f'{count:,} not listed: {text}' for text, count in why.items() if count)})"


def _met_sentence(group: CombinationGroup, meeting: str) -> str:
    first = group.pareto[0]
    if first.cost == 0 and not first.unpriced:
        verb = "can be" if first.is_changed else "is already"
        return f"The goal {verb} met without buying anything; {meeting}:"
    order = "smallest increase over the study first, then the smallest cache rate"
    return f"{meeting}; the {order if first.cost is None else 'cheapest first'}:"


def _missed_sentence(group: CombinationGroup, goal: Goal, max_price: float | None) -> str:
    possible = within_reach(group, max_price)
    if not any(combination.feasibility.is_possible for combination in possible):
        return f"{goal.short} cannot be met by these combinations: none fits."
    nearest = min(possible, key=lambda combination: combination.shortfall(goal))
    if maybe := [
        combination
        for combination in possible
        if combination.unidentified and goal.is_met(combination.interval(goal.kind)[goal.kind == AU])
    ]:
        low, high = (goal.shown(end) for end in maybe[0].interval(goal.kind))
        return f"Whether {goal.short} can be met by these is not identified: {_settings(maybe[0])} may have {low} to {high}."
    shortest = "highest" if goal.kind == AU else "shortest"
    return (
        f"{goal.short} cannot be met by these combinations: the {shortest} is {goal.shown(nearest.value(goal.kind))} ({unsolved_text(nearest, goal)}), with {_settings(nearest)} "
        f"at cache_rate {value_text('cache_rate', nearest.cache_rate)}; {nearest.bottleneck} is the bottleneck there."
    )


def _settings(combination: Combination) -> str:
    return (
        ", ".join(f"{name} {value_text(name, value)}" for name, value in combination.settings.items())
        or "the unchanged study"
    )
