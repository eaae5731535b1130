"""What a page says first: what bounds the epoch, what is best, what would help, and whether storage matters."""

import polars as pl

from tierscope.analysis.breakdown import Breakdown, PointGroup, SweepPoint, counted_epochs, sweep_text, value_text
from tierscope.analysis.findings import HIDDEN_SHARE
from tierscope.analysis.goals import GOAL_KINDS
from tierscope.analysis.worth import worth_sentence
from tierscope.dataset.holdings import HeldBytes
from tierscope.report.parts import (
    WASTED_PERCENT,
    basis_note,
    bottleneck_stretches,
    case_views,
    group_text,
    point_text,
    ranked_groups,
    unranked_sentence,
)
from tierscope.report.report_source import ReportSource
from tierscope.units import about_bytes, about_seconds

_HELPING_STEP = 50.0
_FIRST = (  # without these the rest would be misread
    *("partial", "running"),
    *("training_waits", "training_waits_little", "training_wait_unclear", "training_wait_unknown"),
)


def verdict(source: ReportSource) -> list[str]:
    """What bounds the epoch, what is best and what that takes, what would help, and whether it matters: a sentence each."""
    first = [_sentence(finding.text) for finding in source.findings if finding.kind in _FIRST]
    last = [_sentence(finding.text) for finding in source.findings if finding.kind in GOAL_KINDS]
    breakdown = source.breakdown
    worth = [
        f"{group_text(breakdown, group)}{worth_sentence(breakdown, group)}"
        for group in breakdown.groups
        if worth_sentence(breakdown, group)
    ]
    bests = [*(_best(source, group) for group in ranked_groups(breakdown)), unranked_sentence(breakdown)]
    bottlenecks = [f"{whose}{_bottleneck(view)}" for whose, view in case_views(breakdown)]
    sentences = [*first, *worth, *bottlenecks, *bests, _helping(source), _mattering(source), *last]
    return [sentence for sentence in sentences if sentence]


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _bottleneck(breakdown: Breakdown) -> str:
    best = breakdown.best
    if best.bottleneck is None:
        return "There was no I/O at the best point, so nothing there bounds the epoch."
    share = 100 * best.classes[best.bottleneck] / best.io.median
    of = f"{share:.0f} % of the slowest process's I/O time"
    stretches = list(bottleneck_stretches(breakdown))
    if not stretches:
        where = " at the best point" if len(breakdown.summary) > 1 else ""
        return f"{best.bottleneck} is the bottleneck{where}: {of}."
    if len(stretches) == 1:
        return f"{best.bottleneck} is the bottleneck all along the sweep: {of} at the best point."
    return f"The bottleneck moves along the sweep: {', then '.join(stretches)}. At the best point {best.bottleneck} is {of}."


def _best(source: ReportSource, group: PointGroup) -> str:
    breakdown = source.breakdown
    best = group.best
    low, high = about_seconds(best.io.low), about_seconds(best.io.high)
    spread = f"{low} to {high}, {best.io.kind}, n={best.io.n}" if best.io.has_spread else f"n={best.io.n}"
    io = f"{about_seconds(best.io.median)} of I/O per epoch{basis_note(breakdown)} ({spread})"
    if not breakdown.sweep_keys:
        return f"The slowest process has {io}."
    if len(breakdown.summary) == 1:
        return f"At {sweep_text(best.sweep)}, the only point, the slowest process has {io}{_takes(source, best)}."
    rate_only = breakdown.sweep_keys == ("cache_rate",)
    what = (
        f"cache rate is {value_text('cache_rate', best.sweep['cache_rate'])}"
        if rate_only
        else f"point is {point_text(breakdown, best.sweep)}"
    )
    if breakdown.ranked_by == "epoch" and best.epoch is not None:
        io = f"{about_seconds(best.epoch.median)} per epoch and {io}"
    whose = group_text(breakdown, group)
    the = "the" if whose else "The"
    return f"{whose}{the} best {what}, with {io}{_takes(source, best)}{_equal(source, group)}."


def _takes(source: ReportSource, point: SweepPoint) -> str:
    """How much has to be held for it."""
    held = (source.held or {}).get(source.breakdown.summary.index(point), {})
    parts = [_amount(tier, amount) for tier, amount in held.items()]
    return f"; that takes {' and '.join(parts)}" if parts else ""


def _amount(tier: str, held: HeldBytes) -> str:
    if held.by_node is not None:
        return f"{about_bytes(held.by_node)} on {tier} of every node"
    return f"{about_bytes(held.in_all)} on {tier} in all"


def _equal(source: ReportSource, group: PointGroup) -> str:
    """The smallest cache rate that does as well, for all that is known."""
    equal = group.smallest_equal
    if equal is None or equal is group.best:
        return ""
    return f". {value_text('cache_rate', equal.sweep['cache_rate'])} cannot be told from it{_takes(source, equal)}"


def _helping(source: ReportSource) -> str:
    helping = sorted(source.estimate.sensitivity, key=lambda each: each.change_percent[_HELPING_STEP])
    first, *others = helping
    if -first.change_percent[_HELPING_STEP] < WASTED_PERCENT:
        return (
            f"No class by itself would help: {_HELPING_STEP:g} % more of any takes less than {WASTED_PERCENT:g} % off."
        )
    gain = -first.change_percent[_HELPING_STEP]
    what = "epoch" if first.measure == "epoch" else "time"
    rest = [
        f"{each.class_name} {-each.change_percent[_HELPING_STEP]:.1f} %"
        for each in others
        if -each.change_percent[_HELPING_STEP] >= WASTED_PERCENT
    ]
    after = f", {', '.join(rest)}" if rest else "; nothing else helps by itself"
    whose = group_text(source.breakdown, source.breakdown.groups[0])
    return f"{whose}Faster {first.class_name} would help most: {_HELPING_STEP:g} % more takes about {gain:.1f} % off the best {what}{after}."


def _mattering(source: ReportSource) -> str:
    """Storage against compute."""
    best = source.breakdown.best
    if best.compute_seconds is None:
        return ""
    if best.compute_seconds > 0:
        return _waiting(source, best, best.compute_seconds)
    steps = _steps(source.times.epochs)
    if not steps or not best.io.median:
        return ""
    return f"No compute was emulated: storage would be hidden once a step computes longer than {about_seconds(best.io.median / steps)}."


def _waiting(source: ReportSource, best: SweepPoint, compute_seconds: float) -> str:
    same = [pl.col(name).eq_missing(value) for name, value in best.sweep.items()]
    known = source.times.epochs.filter(pl.lit(True), *same).drop_nulls(["stall_seconds", "epoch_seconds"])
    known = known.filter(pl.col("epoch").is_in(list(counted_epochs(known["epoch"]))))
    whole = float(known["epoch_seconds"].sum())
    if whole <= 0 or not best.io.median:
        return ""
    share = float(known["stall_seconds"].sum()) / whole
    hidden = "compute hides the storage" if share < HIDDEN_SHARE else "storage is not hidden"
    return f"With {about_seconds(compute_seconds)} of compute, ranks waited for data {100 * share:.1f} % of an epoch at the best point: {hidden}."


def _steps(epochs: pl.DataFrame) -> int:
    """Of an epoch, in the rank that has most; 0: not known."""
    if "step_read_seconds" not in epochs.columns:
        return 0
    counts = epochs.select(pl.col("step_read_seconds").list.len() * pl.col("steps_per_entry")).to_series()
    return int(counts.max() or 0)  # type: ignore[arg-type]
