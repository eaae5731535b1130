"""Plans for the terminal: what options hold and leave unsolved, what would fit instead, and how many ranks storage feeds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from tierscope.analysis.breakdown import sweep_text, value_text
from tierscope.analysis.run_command import GivenStudy, run_command
from tierscope.jsonable import SweepValues
from tierscope.predict.exploration import Combination, Remedy, SimulatedExploration
from tierscope.predict.ranked_apart import CombinationGroup
from tierscope.predict.searches import LargestFed
from tierscope.report.parts import Column, Unit, fitting, room_columns, table
from tierscope.spec.feasibility import UNKNOWN
from tierscope.spec.goal import AU, IO, Goal
from tierscope.spec.prices import priced_as
from tierscope.units import about_seconds, counted, format_money

MOST_NEAREST = 5
CACHE_RATE = "placement.cache_rate"


def pays_text(option: Combination) -> str:
    """After how many epochs staging has paid."""
    if option.break_even_epochs is None or not option.cache_rate:
        return "never" if option.compared and option.cache_rate else "–"
    return counted(option.break_even_epochs, "epoch")


def unsolved_text(option: Combination, goal: Goal) -> str:
    """What an option leaves: by how much it misses the goal, now or at the bad end of its interval."""
    better, worse = (not option.missing(goal), not option.missing(goal, worst=True))
    if option.unidentified and not worse and (better or goal.is_met(option.interval(goal.kind)[goal.kind == AU])):
        return "not identified"
    if missing := option.missing(goal):
        return f"misses by {_amount(missing, goal)}"
    worst = option.missing(goal, worst=True)
    return f"may miss by {_amount(worst, goal)}" if worst else "nothing"


def _amount(missing: float, goal: Goal) -> str:
    return f"{100 * missing:.3g} points" if goal.kind == AU else about_seconds(missing)


def doubt_lines(group: CombinationGroup, whose: str = "") -> Iterator[Text]:
    """On top: what does not fit, and what nobody can tell. `whose`: before a sentence about one of several groups."""
    misfits = [option for option in group.combinations if not option.feasibility.is_possible]
    if misfits:
        count = f"{len(misfits)} of {counted(len(group.combinations), 'combination')}"
        yield Text(
            f"{whose}{'not' if whose else 'Not'} recommended, {count}: {misfits[0].feasibility.text}.", style="bold"
        )
    unknown = next((option for option in group.pareto if option.feasibility.fits == UNKNOWN), None)
    if unknown is not None:
        room = unknown.feasibility.doubt
        key = f"; set system.tiers.{room.tier}.capacity" if room else ""
        text = unknown.feasibility.text
        yield Text(f"{whose}{text if whose else _as_sentence(text)}{key}.", style="bold")


def _as_sentence(text: str) -> str:
    """Units keep their letters."""
    return f"{text[:1].upper()}{text[1:]}"


def price_lines(exploration: SimulatedExploration) -> Iterator[Text]:
    if exploration.prices:
        prices = ", ".join(f"{path.removeprefix('system.tiers.')} {text}" for path, text in exploration.prices.items())
        yield Text(f"Cost: in addition to the unchanged study ({prices}).", style="dim")
    options = (*exploration.combinations, *(remedy.option for remedy in exploration.remedies))
    missing = {path: priced_as(option.study, path) for option in options if option.study for path in option.unpriced}
    if missing:
        names = ", ".join(path.removeprefix("system.tiers.") for path in missing)
        costs = " ".join(f"--cost {text}" for text in missing.values())
        yield Text(f"unpriced: {names}; add {costs}.", style="bold")


def lesser_lines(shown: Sequence[Combination]) -> Iterator[Text]:
    """Whoever varies a key downwards, by mistake perhaps, must see it."""
    lesser = dict.fromkeys(path for option in shown for path in option.lesser)
    if lesser:
        count = f"{sum(bool(option.lesser) for option in shown)} of {counted(len(shown), 'listed option')}"
        names = ", ".join(path.removeprefix("system.tiers.") for path in lesser)
        yield Text(f"Less than the unchanged study has, {count}: {names}.", style="bold")


def epoch_lines(options: Sequence[Combination]) -> Iterator[Text]:
    """Why `simulate` has other times of the same point, and perhaps another bottleneck."""
    if any(option.study and option.study.workload.train.epochs > 1 for option in options):
        yield Text(
            "Times are of the second epoch alone. Those of 'tierscope simulate' are medians of all epochs after the first, of other random draws.",
            style="dim",
        )


def cost_text(option: Combination) -> str:
    """What is not in it is named below the table."""
    return f"{format_money(option.cost or 0.0)}{' + unpriced' if option.unpriced else ''}"


def nearest_table(group: CombinationGroup, goal: Goal, width: int, max_price: float | None = None) -> Table:
    """The options that fit, cost no more than they may and come nearest to a goal that nothing meets."""
    shown = sorted(within_reach(group, max_price), key=lambda option: option.shortfall(goal))[:MOST_NEAREST]
    return table(fitting(option_columns(shown, goal), width))


def within_reach(group: CombinationGroup, max_price: float | None = None) -> list[Combination]:
    """What fits and is not too expensive; what fits, where all of that is; all, where nothing fits."""
    possible = [option for option in group.combinations if option.feasibility.is_possible] or list(group.combinations)
    return [option for option in possible if option.costs_at_most(max_price)] or possible


def unidentified_lines(
    shown: Sequence[Combination], given: GivenStudy, whose: str = "", changes: Sequence[SweepValues] = ()
) -> Iterator[Text]:
    """On top: why the calibration says nothing of some of these options, and what to do about it. `changes`: of each, beside its settings."""
    told = [option for option in shown if option.unidentified]
    others = next((some for option, some in zip(shown, changes, strict=False) if option.unidentified), {})
    for number, why in enumerate(dict.fromkeys(why for option in told for why in option.unidentified)):
        count = f"{sum(why in option.unidentified for option in told)} of {counted(len(shown), 'option')}"
        command = run_command({**told[0].settings, CACHE_RATE: told[0].cache_rate, **others}, given)
        todo = (
            f". Its 90 % interval is only a pair of bounds: such an option counts only if the worse bound meets the goal. Measure this point: {command}; "
            "then add its result to 'tierscope calibrate', whose --for STUDY lists the fewest points to measure"
        )
        yield Text(
            f"{whose}{'not' if whose else 'Not'} identified, {count}: {why}{'' if number else todo}.", style="bold"
        )


def option_columns(shown: Sequence[Combination], goal: Goal) -> list[Column]:
    """Settings, time with its interval, what leads, what is left unsolved, what is held, staging, cost."""
    rates = Column("cache rate", [Text(value_text("cache_rate", option.cache_rate)) for option in shown])
    return [*_setting_columns(shown), rates, *result_columns(shown, goal)]


def _setting_columns(shown: Sequence[Combination]) -> list[Column]:
    return [
        Column(name, [Text(value_text(name, option.settings[name])) for option in shown]) for name in shown[0].settings
    ]


def result_columns(shown: Sequence[Combination], goal: Goal) -> list[Column]:
    time = Unit.of(max(option.io_seconds for option in shown))
    columns = [
        Column(f"I/O {time.name}", [time.text(option.io_seconds) for option in shown], "bold"),
        Column(
            "90 %",
            [Text(f"{time.text(option.low_seconds)}–{time.text(option.high_seconds)}") for option in shown],
            "dim",
            drop=2,
        ),
        *_goal_columns(goal, shown),
        Column("bottleneck", [Text(option.bottleneck) for option in shown], right=False, drop=6),
        Column("leaves unsolved", [Text(unsolved_text(option, goal)) for option in shown], right=False, drop=5),
        *room_columns([option.feasibility for option in shown], drop=4),
    ]
    if any(option.staging_seconds for option in shown):
        columns.append(Column("staging", [Text(_staging(option)) for option in shown], drop=1))
    pays = [Text(pays_text(option)) for option in shown]
    if any(option.feasibility.tiers for option in shown):
        columns.append(Column("staging pays off after", pays, drop=3))
    if shown[0].cost is not None:
        columns.append(Column("cost", [Text(cost_text(option)) for option in shown], "bold"))
    return columns


def _staging(option: Combination) -> str:
    return "–" if option.staging_seconds is None else about_seconds(option.staging_seconds)


def _goal_columns(goal: Goal, shown: Sequence[Combination]) -> list[Column]:
    """What the goal is about, where it is not the I/O time."""
    if goal.kind == IO:
        return []
    if goal.kind == AU:
        spans = [option.interval(AU) for option in shown]
        return [
            Column("AU %", [Text(f"{100 * option.value(AU):.1f}") for option in shown], "bold"),
            Column("90 % of AU", [Text(f"{100 * low:.1f}–{100 * high:.1f}") for low, high in spans], "dim", drop=2),
        ]
    time = Unit.of(max(option.epoch_seconds for option in shown))
    return [Column(f"epoch {time.name}", [time.text(option.epoch_seconds) for option in shown], "bold")]


@dataclass(frozen=True, slots=True)
class RemediesView:
    """What would fit, shortest first, each with what it costs in randomness."""

    remedies: Sequence[Remedy]
    goal: Goal | None = None
    title: str = "What would fit instead (simulated):"
    given: GivenStudy = GivenStudy()

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        if not self.remedies:
            return
        yield Text(self.title, style="bold")
        goal = self.goal or Goal(IO, max(remedy.option.io_seconds for remedy in self.remedies))
        shown = [remedy.option for remedy in self.remedies]
        columns = [
            Column("", [Text(remedy.name) for remedy in self.remedies], right=False),
            *_setting_columns(shown),
            Column("cache rate", [Text(value_text("cache_rate", option.cache_rate)) for option in shown], drop=4),
            *(column for column in result_columns(shown, goal) if self.goal or column.header != "leaves unsolved"),
        ]
        yield from unidentified_lines(shown, self.given, changes=[remedy.settings for remedy in self.remedies])
        yield table(fitting(columns, options.max_width))
        for remedy in self.remedies:
            command = run_command({**remedy.option.settings, **remedy.settings}, self.given, "simulate")
            yield Text(f"• {remedy.name}; {remedy.randomness}. Simulated on its own: {command}", style="dim")
        yield Text("For the effect on accuracy, see 'tierscope shuffling' (docs/shuffling.md).", style="dim")


@dataclass(frozen=True, slots=True)
class LargestFedView:
    """The largest number that storage feeds, with its interval, and what stands in the way of more."""

    name: str
    fed: LargestFed
    given: GivenStudy | None = None  # None: as its name says

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        fed = self.fed
        yield Text(f"{self.name}: {fed.goal.text} · simulated ({fed.method})", style="bold")
        given = replace(self.given or GivenStudy(self.name), swept=fed.swept)
        yield Text(_answer(fed, given), style="bold")
        if fed.again is not None:
            yield Text(
                f"Results do not get worse steadily: {fed.again} meets the goal again. The answer is the largest number up to which all tried values did.",
                style="bold",
            )
        if fed.at is not None and fed.at.feasibility.fits == UNKNOWN:
            yield Text(f"{_as_sentence(fed.at.feasibility.text)}.", style="bold")
        shown = list(fed.tried.values())
        if not fed.unidentified:  # else the answer says which point to measure
            yield from unidentified_lines(shown, given, changes=[_as_simulated(option) for option in shown])
        yield table(fitting(list(_fed_columns(shown, fed.goal)), options.max_width))
        yield from epoch_lines(shown)
        if fed.goal.kind != AU:
            yield Text(
                "Every rank reads as many samples as in the study: data grow with the number of ranks.", style="dim"
            )
        if fed.grown_from is not None:
            yield Text(
                f"From {fed.grown_from} on, a larger dataset is simulated so that every rank has enough batches; whether it fits is judged for the study's dataset.",
                style="dim",
            )


def _fed_columns(shown: Sequence[Combination], goal: Goal) -> Iterator[Column]:
    """Without the I/O time where AU is asked for: it is that of some steps, and no epoch's."""
    for column in option_columns(shown, goal):
        if goal.kind != AU or not (column.header.startswith("I/O") or column.header == "90 %"):
            yield column


def _as_simulated(option: Combination | None) -> SweepValues:
    """What a search changes beside the number that it looks for; nothing of what it did not simulate."""
    if option is None or option.study is None:
        return {}
    return {"workload.dataset.num_files_train": option.study.workload.dataset.num_files_train}


def _answer(fed: LargestFed, given: GivenStudy) -> str:
    """In one sentence, for whoever reads no more: what to rely on, and what ends it."""
    if fed.unidentified:
        return _unidentified_answer(fed, given)
    what, goal = fed.key.replace("_", " "), fed.goal
    if fed.at is None:
        return f"{_not_one(fed)}."
    safe = fed.safe
    if safe is None:
        text = f"No number of {what} meets the goal at the low end of its interval; {_may_do(fed, fed.at)}"
    else:
        text = f"Largest {what}: {fed.sure:,}, with {_with_interval(safe, goal)}{_at_point(safe, fed)}"
        text += "" if fed.sure == fed.value else f"; {_may_do(fed, fed.at)}"
    if fed.beyond is None:
        return f"{text}. The upper limit of {fed.limit:,} ({fed.limit_why}) was reached before the goal was missed: raise it with --most {fed.key}=N, if it can be raised."
    ends = fed.beyond.feasibility.text if not fed.beyond.missing(goal) else f"{_shown(fed.beyond, goal)}{_at_point(fed.beyond, fed)}, {fed.beyond.bottleneck} is the bottleneck"  # fmt: skip
    return f"{text}. Beyond: {fed.value + 1:,} has {ends}."


def _not_one(fed: LargestFed) -> str:
    single = "rank per node" if fed.key == "ranks_per_node" else "node"
    if fed.beyond is None:
        return f"Not even 1 {single} meets the goal"
    if fed.beyond.feasibility.text:
        return f"Not even 1 {single} meets the goal: {fed.beyond.feasibility.text}"
    return f"Not even 1 {single} meets the goal: it has {_with_interval(fed.beyond, fed.goal)}{_at_point(fed.beyond, fed)}, {fed.beyond.bottleneck} is the bottleneck"


def _may_do(fed: LargestFed, option: Combination) -> str:
    return f"{fed.value:,} may do, with {_with_interval(option, fed.goal)}{_at_point(option, fed)}"


def _at_point(option: Combination, fed: LargestFed) -> str:
    """Of a study that sweeps: where of its sweep. The best point of each number is another."""
    if not fed.swept:
        return ""
    others = {name: value for name, value in option.settings.items() if name != fed.key}
    return f" at {sweep_text({'cache_rate': option.cache_rate, **others})}"


def _unidentified_answer(fed: LargestFed, given: GivenStudy) -> str:
    """What is known for certain, and which point to measure."""
    what, option = fed.key.replace("_", " "), fed.at or fed.beyond
    assert option is not None
    safe = f"{fed.sure:,} {what} are" if fed.sure else f"no number of {what} is"
    simulated = max(1, fed.value)
    number = min(simulated, 2 * fed.sure) if fed.is_limited and fed.sure else simulated  # a limit may be far off
    others = {name: value for name, value in option.settings.items() if name != fed.key}
    point = {
        **others,
        f"system.{fed.key}": number,
        CACHE_RATE: option.cache_rate,
        **_as_simulated(fed.tried.get(number)),
    }
    return (
        f"Not identified: {safe} certain to meet the goal. With rates as simulated, {simulated:,} {'does' if fed.value else 'does not'}: {_with_interval(option, fed.goal)}. "
        f"Measure this point: {run_command(point, given)}; then 'tierscope calibrate' with its result. 'tierscope probe' measures the rates alone."
    )


def _with_interval(option: Combination, goal: Goal) -> str:
    low, high = option.interval(goal.kind)
    span = f"{100 * low:.1f}–{100 * high:.1f} %" if goal.kind == AU else f"{about_seconds(low)}–{about_seconds(high)}"
    return f"{_shown(option, goal)} (90 %: {span})"


def _shown(option: Combination, goal: Goal) -> str:
    if goal.kind == AU:
        return f"{100 * option.value(AU):.1f} % AU"
    return f"{about_seconds(option.value(goal.kind))} {'of I/O per epoch' if goal.kind == IO else 'per epoch'}"
