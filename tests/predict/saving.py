"""Small studies that save checkpoints, simulated."""

from dataclasses import replace
from typing import Any

from tests.predict.queueing import study_of
from tierscope.predict.outcome import Outcome, SaveOutcome
from tierscope.predict.simulation import Simulation
from tierscope.spec.study import Checkpoint, Study, Tier


def saving(*tiers: Tier, epochs: int = 1, sync: str = "epoch", checkpoint: dict[str, Any], **keys: Any) -> Study:
    """`checkpoint`: keys of it; one file of so many bytes is `fp32` parameters without an optimizer."""
    study = study_of(*tiers, **keys)
    train = replace(study.workload.train, epochs=epochs, sync=sync)
    wanted = Checkpoint(**{"precision": "fp32", "optimizer": "none", "fsync": False, **checkpoint})
    return replace(study, workload=replace(study.workload, train=train, checkpoint=wanted))


def epochs_of(study: Study, method: str = "events") -> list[Outcome]:
    """All of them, each with what the one before left under way."""
    simulation = Simulation.of(study)
    found: list[Outcome] = []
    under_way = None
    for number in range(1, study.workload.train.epochs + 1):
        found.append(simulation.epoch(number, method, number, under_way))
        under_way = saved(found[-1]).under_way if found[-1].saved else None
    return found


def saved(outcome: Outcome) -> SaveOutcome:
    assert outcome.saved is not None
    return outcome.saved
