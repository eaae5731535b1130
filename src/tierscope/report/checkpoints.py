"""Checkpoints in words: what each takes, what bandwidth they need, and how often they are worth it."""

from collections.abc import Iterator, Sequence

from tierscope.analysis.breakdown import Breakdown, sweep_text
from tierscope.analysis.checkpoint_costs import LITTLE, CheckpointCosts, SaveInterval
from tierscope.units import about_bytes, about_seconds


def cost_sentences(breakdown: Breakdown, costs: Sequence[CheckpointCosts]) -> Iterator[str]:
    """Of the best point, or of the one where training stands still longest, if the best has none."""
    if not costs:
        return
    here = next((cost for cost in costs if cost.sweep == breakdown.best.sweep), None)
    shown = here or max(costs, key=lambda cost: cost.epoch_standstill_seconds)
    where = f" at {sweep_text(shown.sweep)}" if breakdown.sweep_keys else ""
    rates = "" if breakdown.best.is_usable else ", with rates as simulated"
    yield f"Each checkpoint{where}{rates}: {_cost(shown)}."
    yield f"{_bandwidth(shown)}."
    if shown.best is not None and shown.current is not None and shown.mean_time_between_failures is not None:
        yield (
            f"With a failure every {about_seconds(shown.mean_time_between_failures)} (estimated, Young–Daly): "
            f"{_share(shown.current)} goodput as configured, with {about_seconds(shown.current.seconds)} of training between checkpoints; best "
            f"{_share(shown.best)} with {about_seconds(shown.best.seconds)}."
        )


def held_up_sentence(breakdown: Breakdown) -> str:
    """What the I/O time does not say: training waits longer for checkpoints that are written behind it than for everything else."""
    best = breakdown.best
    stood = best.checkpoint_seconds or 0.0
    if not best.background_seconds or stood <= best.io.median:
        return ""
    of = f" ({100 * best.checkpoint_share:.0f} % of the epoch)" if best.checkpoint_share else ""
    return (
        f"Checkpoints are the bottleneck: training waits {about_seconds(stood)}{of} for background checkpoints, "
        f"longer than the {about_seconds(best.io.median)} of all other I/O."
    )


def _cost(costs: CheckpointCosts) -> str:
    parts = [f"{about_bytes(costs.bytes)} to {costs.tier}"]
    if costs.save_seconds is not None:
        rate = f", {about_bytes(costs.bandwidth or 0.0)}/s" if costs.bandwidth else ""
        parts.append(f"written in {about_seconds(costs.save_seconds)}{rate}")
    parts.append(f"training pauses for {about_seconds(costs.standstill_seconds)}")
    if costs.restore_seconds is not None:
        parts.append(f"restored in {about_seconds(costs.restore_seconds)}")
    return ", ".join(parts)


def _bandwidth(costs: CheckpointCosts) -> str:
    needed = f"{about_bytes(costs.needed_bandwidth)}/s"
    if costs.background:
        return f"Checkpoints every {about_seconds(costs.interval_seconds)} need {needed} for one to be written before the next"
    return f"Checkpoints every {about_seconds(costs.interval_seconds)} of training need {needed} to take at most {LITTLE:.0%} of the time"


def _share(interval: SaveInterval) -> str:
    return f"{100 * interval.goodput:.1f} %"
