"""One option simulated: its I/O and its epoch with intervals, what leads, AU, whether its files fit, and what it takes to put them there."""

from dataclasses import replace

import numpy as np

from tierscope.analysis.staging_costs import break_even_epochs
from tierscope.jsonable import SweepValues
from tierscope.plan.room import feasibility_of
from tierscope.predict import spread
from tierscope.predict.epoch_spread import epoch_range
from tierscope.predict.exploration import Combination
from tierscope.predict.identified import identify, model_error
from tierscope.predict.outcome import CATEGORIES, Outcome, read_in_epoch
from tierscope.predict.simulation import Simulation
from tierscope.spec.known import KnownSystem, drawn_systems
from tierscope.spec.study import STAGED_POLICIES, Study


def simulate_combination(
    settings: SweepValues,
    study: Study,
    method: str,
    known: KnownSystem | None,
    share: float = 1.0,
) -> Combination:
    """Of the second epoch, on the clock: the slowest I/O time with its interval, the class that leads, the epoch, and AU where there is compute.

    `share`: of an epoch that the study is; so much of what servers have to begin with is its own.
    """
    simulation = Simulation.of(study)
    simulation = replace(simulation, stations=simulation.stations.with_stock(share)).with_middle_layouts(known, method)
    outcome = simulation.settled_epoch(method, study.seed)
    systems = drawn_systems(study.system, known) if known else ()
    again = simulation.drawn_again(known, method, systems, share)
    error = model_error(study, known, simulation.reading)
    low, high = spread.relative(
        study, simulation.stations, simulation.reading, outcome, systems, simulation.saves, error, again
    )
    identified = identify(study, known, simulation.reading, outcome, systems, simulation.saves)
    low, high = low * identified.low, high * identified.high
    classes = outcome.wall_classes
    seconds = classes.sum(axis=(1, 2))
    slowest = int(seconds.argmax())
    longest = float(seconds[slowest])
    names = [f"{tier.name.upper()}-{kind}" for tier in study.system.tiers for kind in CATEGORIES]
    epoch = float(outcome.seconds.max())
    epoch_low, epoch_high = epoch_range(study, outcome, (low, high), error)
    return Combination(
        settings=settings,
        cache_rate=study.placement.cache_rate,
        io_seconds=longest,
        low_seconds=longest * low,
        high_seconds=longest * high,
        bottleneck=_held_up_by(study, outcome, longest) or names[int(classes[slowest].reshape(-1).argmax())],
        epoch_seconds=epoch,
        met=False,
        au=_utilisation(outcome),
        read_bytes=read_in_epoch(outcome),
        epoch_low=epoch_low,
        epoch_high=epoch_high,
        feasibility=feasibility_of(study),
        study=study,
        unidentified=identified.reasons,
    )


def with_staging(combination: Combination, without: float | None) -> Combination:
    """With what it takes to put its files on the near tiers first, and when that pays against epochs of `without` seconds, where those are known."""
    assert combination.study is not None
    staged = combination.study.placement.policy in STAGED_POLICIES
    seconds = Simulation.of(combination.study).staging_seconds() if staged else None
    if seconds is None or without is None:
        return replace(combination, staging_seconds=seconds)
    pays = break_even_epochs(seconds, without, combination.epoch_seconds)
    return replace(combination, staging_seconds=seconds, break_even_epochs=pays, compared=True)


def _held_up_by(study: Study, outcome: Outcome, io_seconds: float) -> str | None:
    """The class of checkpoints behind training that it waits longer for than for all else; they are no part of the I/O time."""
    saved = outcome.saved
    if saved is None or not saved.background or float(saved.standstill.max()) <= io_seconds:
        return None
    return f"{study.system.tiers[saved.tier].name.upper()}-WRITE"


def _utilisation(outcome: Outcome) -> float | None:
    """DLIO's AU: the first step and checkpoints excluded, the mean over ranks; of whole epochs where steps are not known."""
    if not outcome.compute:
        return None
    compute, seconds = np.full(len(outcome.seconds), outcome.compute), outcome.seconds
    if outcome.saved is not None:
        seconds = seconds - outcome.saved.standstill
    if outcome.steps is not None and outcome.steps.shape[1] > 1:
        first = outcome.steps[:, 0]
        compute, seconds = compute - first[:, 2], seconds - first[:, 1] - first[:, 2]
    return float(np.mean(compute / seconds))
