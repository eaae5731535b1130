"""What an estimate says in one sentence; the page says the same while sliders move (assets/page.js)."""

from collections.abc import Mapping

from tierscope.analysis.breakdown import sweep_text
from tierscope.analysis.cases import without_case
from tierscope.jsonable import SweepValues
from tierscope.predict.whatif import Estimate
from tierscope.spec.goal import EPOCH
from tierscope.units import about_seconds

_NOTHING = 0.05  # percent: what is not shown with one digit


def improvements_text(improvements: Mapping[str, float]) -> str:
    shown = [f"{name} {percent:+g} %" for name, percent in improvements.items() if percent]
    return ", ".join(shown) or "no improvement"


def where_text(sweep: SweepValues) -> str:
    """Without its case: the row or the sentence has said that."""
    return sweep_text(without_case(sweep)) if len(sweep) > 1 else sweep_text(sweep)


def estimate_sentence(estimate: Estimate) -> str:
    """First what the points are ranked by: with compute, the epoch; as on the page (page.js)."""
    before, after = estimate.before.best, estimate.after.best
    moved = "" if where_text(before.sweep) == where_text(after.sweep) else f" instead of {where_text(before.sweep)}"
    rank = ", in another process" if estimate.slowest_rank_changed else ""
    what = improvements_text(estimate.improvements)
    epoch = _epoch_text(estimate)
    if abs(estimate.change_percent) < _NOTHING and before.sweep == after.sweep:
        io = f"{about_seconds(after.io.median)} of I/O per epoch"
        still = f"an epoch of {about_seconds(after.epoch_seconds)}" if epoch and after.epoch_seconds else io
        return f"{what} changes nothing: the best is still {still}, at {where_text(after.sweep)}."
    bottleneck = f"; the bottleneck is then {after.bottleneck}{rank}" if after.bottleneck else ""
    times = f"instead of {about_seconds(before.io.median)} ({estimate.change_percent:+.1f} %)"
    io, where = f"{about_seconds(after.io.median)} of I/O", f"at {where_text(after.sweep)}{moved}"
    if epoch:
        return f"With {what}: {epoch}, {where}, with {io} {times}{bottleneck}."
    return f"With {what}: {io} per epoch {times}, {where}{bottleneck}."


def _epoch_text(estimate: Estimate) -> str:
    """What happens to the epoch, where there is compute that may hide the I/O; empty: there is none."""
    before, after = estimate.before.best.epoch_seconds, estimate.after.best.epoch_seconds
    if estimate.before.ranked_by != EPOCH or before is None or after is None:
        return ""
    change = estimate.epoch_change_percent
    if abs(change or 0.0) < _NOTHING:
        return f"the epoch still takes about {about_seconds(after)}"
    slower = ", if compute hides none of the added I/O" if after > before else ""
    return f"the epoch takes about {about_seconds(after)} instead of {about_seconds(before)} ({change:+.1f} %){slower}"
