"""What would faster classes change, and which of them meet a goal, at which price."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import Breakdown, sweep_text
from tierscope.analysis.wording import Finding
from tierscope.commands.estimate import without_goal
from tierscope.errors import UserError
from tierscope.measure.first_touch import check_policies
from tierscope.output import manifest
from tierscope.output.disk_errors import explained, plain
from tierscope.output.result import locked
from tierscope.predict.by_group import MOST_GROUPS, ExploredGroup, ExploredGroups, explore_groups
from tierscope.predict.ceilings import KnownCeilings
from tierscope.predict.exploration import Combination, SimulatedExploration
from tierscope.predict.explore import GIB, MOST_COMBINATIONS, MOST_TIMES, Exploration, Prices, explore
from tierscope.predict.goals import MOST_AU_CELLS, refuse_untold
from tierscope.predict.processes import Processes
from tierscope.predict.ranked_apart import groups_apart
from tierscope.predict.whatif import classes_by_gain
from tierscope.report.tender import KIND as TENDER
from tierscope.report.tender import NAMES as TENDER_NAMES
from tierscope.report.tender import tender_files, tendered_study
from tierscope.spec.feasibility import Feasibility
from tierscope.spec.goal import AU, GOAL_HINT, Goal
from tierscope.spec.prices import CAPACITY, read_class_prices, read_limit
from tierscope.spec.whatif import read_goal, read_improvements, read_variations
from tierscope.units import format_money


def explored(
    analysis: Analysis,
    goal: str | None,
    vary: Sequence[str],
    improve: Sequence[str],
    cost: Sequence[str],
    max_price: str | None = None,
) -> tuple[ExploredGroups, list[Finding]]:
    """Like `estimated`: of each case."""
    classes = analysis.times.io_classes
    variations = read_variations(vary, classes)
    if not variations:
        helping = classes_by_gain(Processes.of(analysis.times, analysis.breakdown.ranked_by), analysis.breakdown)[:2]
        example = " ".join(f"--vary {name}=0:200:10" for name in helping)
        raise UserError(f"nothing varies; add the classes and percentages to try, e.g. {example}")
    combinations = math.prod(len(values) for values in variations.values())
    groups = min(len(analysis.breakdown.groups), MOST_GROUPS)  # a grid of each is kept
    most = min(MOST_COMBINATIONS // groups, MOST_TIMES // len(analysis.breakdown.summary))
    if combinations > most:
        raise UserError(f"--vary makes {combinations:,} combinations; at most {most:,} here: use larger steps")
    fixed = read_improvements(improve, classes)
    if both := [name for name in fixed if name in variations]:
        raise UserError(f"--improve {both[0]}: is already in --vary; remove one of them")
    wanted = read_goal(goal) if goal is not None else analysis.goal
    if wanted is None:
        raise UserError(f"no goal; {GOAL_HINT}")
    refuse_untold(analysis.times, wanted)
    processes = Processes.of(analysis.times, analysis.breakdown.ranked_by)
    ranks = sum(len(times.ranks) for point in processes.points for times in point.epochs)
    if wanted.kind == AU and combinations * ranks > MOST_AU_CELLS:
        raise UserError(
            f"--vary makes {combinations:,} combinations; at most {MOST_AU_CELLS // ranks:,} here for an AU goal: use larger steps"
        )
    limit = None if max_price is None else read_limit(max_price)
    if limit is not None and not _prices(analysis, processes, cost, list(variations)):
        raise UserError(f"--max-price {max_price}: nothing has a price; add --cost, e.g. {next(iter(variations))}=3/%")
    possible = fitting_groups(analysis)
    known = KnownCeilings()

    def explore_group(group: Processes) -> Exploration:
        prices = _prices(analysis, group.comparable(), cost, list(variations))
        return _described(explore(group, wanted, variations, fixed, prices, known), analysis)

    explored_groups = explore_groups(possible, processes, explore_group)
    return _within(explored_groups, limit, max_price or ""), without_goal(analysis.findings)


def _described(exploration: Exploration, analysis: Analysis) -> Exploration:
    """Options with what their files take."""
    points = {tuple(point.sweep.values()): point for point in analysis.breakdown.summary}
    options = []
    for option in exploration.options:
        point = points[tuple(option.sweep.values())]
        takes = {name: getattr(point, name) for name in ("feasibility", "staging_seconds", "break_even_epochs")}
        options.append(replace(option, **takes))
    return replace(exploration, options=tuple(options))


def fitting_groups(analysis: Analysis) -> Breakdown:
    """Without groups of which no point fits, for nothing there can be recommended; one line where none is left."""
    breakdown = analysis.breakdown
    kept = tuple(group for group in breakdown.groups if group.best.is_possible)
    if kept:
        return breakdown if len(kept) == len(breakdown.groups) else replace(breakdown, groups=kept)
    best = breakdown.groups[0].best
    assert best.feasibility is not None
    raise UserError(
        f"{analysis.name}: no point fits, so none can be recommended: at {sweep_text(best.sweep)}, {best.feasibility.text}; "
        "simulate smaller cache rates, or raise the capacity if the tier has more space"
    )


def _within(groups: ExploredGroups, limit: float | None, text: str) -> ExploredGroups:
    """Only what the money is enough for."""
    meeting = [option for part in groups.parts for option in part.exploration.options]
    if limit is None or not meeting:
        return groups
    cheapest = min(meeting, key=lambda option: option.cost or 0.0)
    if (cheapest.cost or 0.0) > limit:
        improved = ", ".join(f"{name} {percent:+g} %" for name, percent in cheapest.improve.items() if percent) or "no improvement"  # fmt: skip
        raise UserError(
            f"--max-price {text}: the cheapest option that fits and meets the goal costs {format_money(cheapest.cost or 0.0)} ({improved} at {sweep_text(cheapest.sweep)}); "
            "raise the limit, lower the goal, or vary other classes"
        )
    return replace(groups, parts=tuple(_affordable(part, limit) for part in groups.parts))


def _affordable(part: ExploredGroup, limit: float) -> ExploredGroup:
    kept = tuple(option for option in part.exploration.options if (option.cost or 0.0) <= limit)
    return replace(part, exploration=replace(part.exploration, options=kept))


def _prices(analysis: Analysis, processes: Processes, cost: Sequence[str], varied: list[str]) -> Prices:
    study = analysis.study
    near = [tier.name for tier in study.system.tiers[:-1]] if study else []
    priced = [text for text in cost if text.partition("=")[0].strip().lower().endswith(("-gib", f".{CAPACITY}"))]
    if study is None and priced:
        raise UserError(
            f"--cost {priced[0]}: the number of cached bytes is known only for results of a study; remove it"
        )
    by_class, by_tier = read_class_prices(cost, varied, near)
    percent = {name: price.amount for name, price in by_class.items()}
    gib = {tier: price.of(GIB, GIB) for tier, price in by_tier.items()}
    known = analysis.times.feasibility
    rooms = [known.get(tuple(point.sweep.values()), Feasibility()) for point in processes.points]
    held = [{tier: room.bytes_in_all if (room := feasibility.on(tier)) else 0 for tier in gib} for feasibility in rooms]
    return Prices(percent, gib, held)


def check_tender(folder: str) -> None:
    """Refuse what could not be written, before anything takes long."""
    if folder == "":
        raise UserError("--tender is empty; name a directory")
    manifest.check(os.path.abspath(folder), TENDER)
    manifest.check_writable(os.path.abspath(folder))
    manifest.refuse_strangers(os.path.abspath(folder), TENDER_NAMES)


def one_option(folder: str, exploration: SimulatedExploration) -> Combination | None:
    """The first that meets the goal at the bad end of its interval too, or the first at all; refused where several lists have a first one each."""
    groups = groups_apart(exploration)
    if len(groups) < 2:
        certain = (option for option in exploration.pareto if not option.missing(exploration.goal, worst=True))
        return next(certain, exploration.pareto[0] if exploration.pareto else None)
    if groups[0].case is not None:
        refuse_cases(folder, [group.case for group in groups])
    raise UserError(
        f"--tender {folder}: options that read different amounts of data cannot be ranked; do not vary the amount of data"
    )


def refuse_cases(folder: str, names: Sequence[str | None]) -> None:
    """Every case has a first option of its own."""
    if len(set(names)) > 1:
        raise UserError(f"--tender {folder}: the study has several cases; choose one with --set case={names[0]}")


def write_tender(folder: str, option: Combination | None, goal: Goal) -> str:
    """An option's study, the figures that it needs and its acceptance test, into a directory that is new or ours; where. None: there is no option."""
    if option is None or option.study is None:
        raise UserError(f"--tender {folder}: no option fits and meets the goal; vary more, or lower the goal")
    study = tendered_study(option.study, goal)
    check_policies([study])
    target = os.path.abspath(folder)
    manifest.claim(target, TENDER)
    taken = "another command is writing there; wait for it to finish or choose another --tender"
    with locked(target, taken), explained(target, plain("choose another --tender"), by_name=True):
        manifest.put(target, tender_files(study, option, goal))
    return target
