"""Which way an epoch is simulated: every operation by events, or the bottleneck bound.

Events are right wherever both were compared (`make validate`), and where an epoch is too large a part of it stands for the rest. The bound needs no
compiler. It is close where one station decides: steady servers, no compute in between, many ranks with many samples each, and a busiest station that
alone explains the time. Elsewhere it may be off by any factor, and `auto` does not take it.
"""

from collections.abc import Sequence
from importlib.util import find_spec

from tierscope.errors import UserError
from tierscope.predict.demand import least_seconds
from tierscope.predict.simulation import Simulation
from tierscope.spec.study import STAGED_POLICIES, Point, Study

AUTO, BOUND, EVENTS = "auto", "bound", "events"
METHODS = (AUTO, BOUND, EVENTS)
_FEWEST_RANKS, _FEWEST_SAMPLES = 64, 16
_EXPLAINED = 0.95  # of the time, by the busiest station alone


def chosen_method(points: Sequence[Point], method: str) -> str:
    """The method of all points of a study: those of one result are comparable."""
    if method != AUTO:
        return method
    if find_spec("numba") is not None:
        return EVENTS
    for point in points:
        if (reason := why_far_off(point.study)) is not None:
            raise UserError(
                f"{reason}: the bound may be inaccurate, and events need numba; pip install 'tierscope[predict]', or use --method bound anyway"
            )
    return BOUND


def why_far_off(study: Study) -> str | None:
    """Why the bound may be far from what events say; None: it is close."""
    train, placement = study.workload.train, study.placement
    if train.computation_time or train.sync == "step":
        return "workload.train: ranks compute between reads, or synchronise"
    if placement.policy not in STAGED_POLICIES:
        return f"placement.policy = {placement.policy}: cached files change during reading"
    if varies := [tier.name for tier in study.system.tiers if tier.service_variation or tier.metadata_variation]:
        return f"system.tiers.{varies[0]}: its service times vary"
    return _few_or_mixed(study)


def _few_or_mixed(study: Study) -> str | None:
    simulation, ranks = Simulation.of(study), study.system.ranks
    samples = simulation.plan.order.samples_per_rank
    if ranks < _FEWEST_RANKS or samples < _FEWEST_SAMPLES:
        return f"{ranks:,} ranks with {samples:,} samples each are few"
    outcome = simulation.epoch(min(2, study.workload.train.epochs), BOUND, seed=study.seed)
    if least_seconds(simulation.stations, outcome.load) < _EXPLAINED * float(outcome.wall.sum(axis=(1, 2)).max()):
        return f"placement.cache_rate = {study.placement.cache_rate:.0%}: no single station explains the time"
    return None
