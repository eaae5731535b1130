"""What a page says first: what bounds the epoch, what is best, what would help, and whether storage matters."""

from dataclasses import replace

import polars as pl

from tierscope.analysis.breakdown import Breakdown, PointGroup, SweepPoint, sweep_text, value_text
from tierscope.analysis.feasible import ROOM_KINDS
from tierscope.analysis.goals import GOAL_KINDS
from tierscope.analysis.traced_loader import loader_limit
from tierscope.analysis.worth import hides_io, worth_sentence
from tierscope.predict.whatif import SHOWN_STEP, by_gain
from tierscope.report.checkpoints import cost_sentences, held_up_sentence
from tierscope.report.parts import (
    UNIDENTIFIED,
    WASTED_PERCENT,
    are_single_cases,
    basis_note,
    bottleneck_stretches,
    flat_sentences,
    point_text,
    ranked_groups,
    unranked_sentence,
)
from tierscope.report.report_source import ReportPart, ReportSource
from tierscope.spec.feasibility import TierRoom
from tierscope.units import about_bytes, about_seconds, counted

_MOST_PARTS = 6  # with paragraphs of their own
_FIRST = (  # without these the rest would be misread
    *("partial", "inert_key", "running", "elsewhere", "shared_files", "not_identified", *ROOM_KINDS),
    *("loader_limits", "training_waits", "training_waits_little", "training_wait_unclear", "training_wait_unknown"),
)


def verdict(source: ReportSource) -> list[str]:
    """What bounds the epoch, what is best and what that takes, what would help, and whether it matters: a sentence each; of several cases, a paragraph each."""
    first = [_sentence(finding.text) for finding in source.findings if finding.kind in _FIRST]
    limit = loader_limit(source.conditions.loader_use, source.findings)
    first = [limit.text, *first] if limit else first
    last = [_sentence(finding.text) for finding in source.findings if finding.kind in GOAL_KINDS]
    held_up = held_up_sentence(source.breakdown)
    saved = cost_sentences(source.breakdown, source.costs)
    return [*first, *([held_up] if held_up else []), *_about_parts(source), *saved, *last]


def _about_parts(source: ReportSource) -> list[str]:
    breakdown = source.breakdown
    if len(breakdown.groups) == 1:
        return _about(source, source.parts[0])
    swept = [part for part in source.parts if len(part.breakdown.summary) > 1]
    unswept = source.parts if are_single_cases(breakdown) else source.parts[:1]
    shown = (swept or unswept)[:_MOST_PARTS]
    paragraphs = [f"{_whose(part)}{' '.join(_about(source, part))}" for part in shown]
    more = len(ranked_groups(breakdown, source.conditions)) - sum(_is_ranked(source, part) for part in shown)
    also = (
        [f"{counted(more, 'more group')} of points, each with its own best: see the numbers below."] if more > 0 else []
    )
    unranked = unranked_sentence(breakdown)
    return [*paragraphs, *also, *([unranked] if unranked else [])]


def _about(source: ReportSource, part: ReportPart) -> list[str]:
    """A part as if nothing else had been run."""
    alone = part.breakdown
    group = alone.groups[0]
    keys = [
        key for key in alone.sweep_keys if any(point.sweep[key] != alone.best.sweep[key] for point in alone.summary)
    ]
    varying = alone if len(source.breakdown.groups) == 1 else replace(alone, sweep_keys=tuple(keys))
    is_ranked = _is_ranked(source, part)
    has_best = is_ranked and (len(alone.summary) > 1 or len(source.breakdown.groups) == 1)
    best = _best(source, varying, group) if has_best else ""
    worth = worth_sentence(alone, group) if is_ranked else " ".join(flat_sentences(alone, source.conditions))
    texts = (worth, _bottleneck(varying, is_ranked), best, _helping(part), _mattering(source, part))
    return [sentence for sentence in texts if sentence]


def _is_ranked(source: ReportSource, part: ReportPart) -> bool:
    """Whether one of its points is the best: not where the swept keys change nothing."""
    return bool(ranked_groups(part.breakdown, source.conditions))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _bottleneck(breakdown: Breakdown, is_ranked: bool) -> str:
    best = breakdown.best
    if best.bottleneck is None:
        return "There was no I/O at the best point, so there is no bottleneck."
    share = 100 * best.classes[best.bottleneck] / best.io.median
    of = f"{share:.0f} % of the slowest process's I/O time"
    stretches = list(bottleneck_stretches(breakdown)) if is_ranked else []
    if not stretches:
        where = " at the best point" if len(breakdown.summary) > 1 and is_ranked else ""
        return f"{best.bottleneck} is the bottleneck{where}: {of}."
    if len(stretches) == 1:
        return f"{best.bottleneck} is the bottleneck throughout the sweep: {of} at the best point."
    return f"The bottleneck moves along the sweep: {', then '.join(stretches)}. At the best point {best.bottleneck} is {of}."


def _best(source: ReportSource, breakdown: Breakdown, group: PointGroup) -> str:
    best = group.best
    low, high = about_seconds(best.io.low), about_seconds(best.io.high)
    spread = f"{low} to {high}, {best.io.kind}, n={best.io.n}" if best.io.has_spread else f"n={best.io.n}"
    time = about_seconds(best.io.median)
    if not best.is_usable:
        time, spread = (
            f"{low} to {high}",
            f"{UNIDENTIFIED}, {best.io.kind}; {time} with rates as simulated",
        )
    io = f"{time} of I/O per epoch{basis_note(breakdown)} ({spread})"
    if not breakdown.sweep_keys:
        return f"The slowest process has {io}."
    if len(breakdown.summary) == 1:
        return f"At {sweep_text(best.sweep)}, the only point, the slowest process has {io}{_takes(best)}."
    rate_only = breakdown.sweep_keys == ("cache_rate",)
    what = (
        f"cache rate is {value_text('cache_rate', best.sweep['cache_rate'])}"
        if rate_only
        else f"point is {point_text(source.breakdown, best.sweep)}"
    )
    if breakdown.ranked_by == "epoch" and best.epoch is not None:
        epoch = about_seconds(best.epoch.median)
        if not best.is_usable:
            ends = f"{about_seconds(best.epoch.low)} to {about_seconds(best.epoch.high)}"
            epoch = f"{ends} ({UNIDENTIFIED}; {epoch} with rates as simulated)"
        io = f"{epoch} per epoch and {io}"
    return f"The best {what}, with {io}{_takes(best)}{_equal(group)}."


def _takes(point: SweepPoint) -> str:
    """How much has to be held for it."""
    feasibility = point.feasibility
    parts = [_amount(room) for room in feasibility.tiers if room.needed] if feasibility else []
    return f"; that needs {' and '.join(parts)}" if parts else ""


def _amount(room: TierRoom) -> str:
    where = "in total" if room.bytes_per_node is None else "on every node"
    return f"{about_bytes(room.needed)} on {room.tier} {where}"


def _equal(group: PointGroup) -> str:
    """The smallest cache rate that does as well, for all that is known."""
    equal = group.smallest_equal
    if equal is None or equal is group.best:
        return ""
    return f". {value_text('cache_rate', equal.sweep['cache_rate'])} is statistically indistinguishable{_takes(equal)}"


def _whose(part: ReportPart) -> str:
    """Before a sentence about one of several parts."""
    case = part.breakdown.groups[0].case
    return "" if not part.name else f"Case {part.name}: " if case == part.name else f"Points of {part.name}: "


def _helping(part: ReportPart) -> str:
    helping = by_gain(part.estimate.sensitivity, part.breakdown.best.classes)
    first, *others = helping
    if -first.change_percent[SHOWN_STEP] < WASTED_PERCENT:
        return f"No single class would help: {SHOWN_STEP:g} % more throughput saves less than {WASTED_PERCENT:g} %."
    gain = -first.change_percent[SHOWN_STEP]
    what = "epoch" if first.measure == "epoch" else "time"
    rest = [
        f"{sensitivity.class_name} {-sensitivity.change_percent[SHOWN_STEP]:.1f} %"
        for sensitivity in others
        if -sensitivity.change_percent[SHOWN_STEP] >= WASTED_PERCENT
    ]
    after = f", {', '.join(rest)}" if rest else "; no other class helps alone"
    return f"Faster {first.class_name} would help most: {SHOWN_STEP:g} % more throughput saves about {gain:.1f} % of the best {what}{after}."


def _mattering(source: ReportSource, part: ReportPart) -> str:
    """Storage against compute."""
    best = part.breakdown.best
    if best.compute_seconds is None:
        return ""
    if best.compute_seconds > 0:
        return _waiting(best, best.compute_seconds)
    steps = _steps(source.times.epochs.filter(pl.lit(True), *_at(best)))
    if not steps or not best.io.median:
        return ""
    return f"No compute was emulated: storage would be hidden if a step computed longer than {about_seconds(best.io.median / steps)}."


def _at(point: SweepPoint) -> list[pl.Expr]:
    return [pl.col(name).eq_missing(value) for name, value in point.sweep.items()]


def _waiting(best: SweepPoint, compute_seconds: float) -> str:
    if best.stall_share is None or not best.io.median:
        return ""
    saves = f" and paused for checkpoints {100 * best.checkpoint_share:.1f} %" if best.checkpoint_share else ""
    hidden = "compute hides storage" if hides_io(best) else "storage is not hidden"
    return (
        f"With {about_seconds(compute_seconds)} of compute, the rank with the longest epoch waited for data {100 * best.stall_share:.1f} %"
        f"{saves} of it at the best point: {hidden}."
    )


def _steps(epochs: pl.DataFrame) -> int:
    """Of an epoch, in the rank that has most; 0: not known."""
    if "step_read_seconds" not in epochs.columns:
        return 0
    counts = epochs.select(pl.col("step_read_seconds").list.len() * pl.col("steps_per_entry")).to_series()
    return int(counts.max() or 0)  # type: ignore[arg-type]
