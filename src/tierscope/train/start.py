"""Where a rank's training begins. A director names this function in a rank's task; torch is imported by the rank that calls it only."""

from typing import Any

from tierscope.spec.study import Study
from tierscope.train import TRAININGS


def start_training(study: Study, place: Any) -> Any:
    """The training of one rank (a `TrainingSession`). `place` says which of how many ranks it is."""
    return TRAININGS.load("torch")(study, place)


def refuse_large_batch(study: Study, number: int) -> None:
    """One whose step does not fit the device of that number."""
    from tierscope.train.fits import refuse_batch_of  # noqa: PLC0415  (torch)

    refuse_batch_of(study, number)
