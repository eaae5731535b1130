"""What would faster classes change, and which of them meet a goal, at which price."""

import math
from collections.abc import Sequence

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.wording import Finding
from tierscope.commands.estimate import without_goal
from tierscope.dataset.holdings import Holdings
from tierscope.errors import UserError
from tierscope.predict.explore import MOST_COMBINATIONS, MOST_TIMES, Exploration, Prices, explore
from tierscope.predict.goals import MOST_AU_CELLS, refuse_untold
from tierscope.predict.processes import Processes
from tierscope.spec.goal import AU, GOAL_HINT
from tierscope.spec.whatif import read_goal, read_improvements, read_prices, read_variations


def explored(
    analysis: Analysis, goal: str | None, vary: Sequence[str], improve: Sequence[str], cost: Sequence[str]
) -> tuple[Exploration, list[Finding]]:
    """Like `estimated`."""
    classes = analysis.times.io_classes
    variations = read_variations(vary, classes)
    if not variations:
        example = " ".join(f"--vary {name}=0:200:10" for name in classes[:2])
        raise UserError(f"nothing varies; say which classes to improve by how much, for example {example}")
    combinations = math.prod(len(values) for values in variations.values())
    most = min(MOST_COMBINATIONS, MOST_TIMES // len(analysis.breakdown.summary))
    if combinations > most:
        raise UserError(f"--vary makes {combinations:,} combinations; at most {most:,} here: use larger steps")
    fixed = read_improvements(improve, classes)
    if both := [name for name in fixed if name in variations]:
        raise UserError(f"--improve {both[0]}: it varies already; remove one of --vary and --improve")
    wanted = read_goal(goal) if goal is not None else analysis.goal
    if wanted is None:
        raise UserError(f"there is no goal; {GOAL_HINT}")
    refuse_untold(analysis.times, wanted)
    processes = Processes.of(analysis.times)
    ranks = sum(len(times.ranks) for point in processes.points for times in point.epochs)
    if wanted.kind == AU and combinations * ranks > MOST_AU_CELLS:
        raise UserError(
            f"--vary makes {combinations:,} combinations; at most {MOST_AU_CELLS // ranks:,} here for an AU goal: use larger steps"
        )
    prices = _prices(analysis, processes.comparable(), cost, list(variations))
    return explore(processes, wanted, variations, fixed, prices), without_goal(analysis.findings)


def _prices(analysis: Analysis, processes: Processes, cost: Sequence[str], varied: list[str]) -> Prices:
    study = analysis.study
    near = [tier.name for tier in study.system.tiers[:-1]] if study else []
    if study is None and (gib := [text for text in cost if text.partition("=")[0].lower().endswith("-gib")]):
        raise UserError(
            f"--cost {gib[0]}: how many bytes are cached is known of a study's result only; leave it out here"
        )
    by_class, by_tier = read_prices(cost, varied, near)
    if not by_tier or study is None:
        return Prices(by_class)
    holdings = Holdings(study)
    held = [{tier: one.in_all for tier, one in holdings.at(point.sweep).items()} for point in processes.points]
    return Prices(by_class, by_tier, held)
