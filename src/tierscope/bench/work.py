"""What a rank does with a batch once it has it: emulated compute, or a step of real training.

Who trains is handed over with the task (`MakeTraining`): this room knows torch no more than torch's room knows this one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tierscope.loaders import Batch
from tierscope.loaders.base import Pin
from tierscope.spec.study import Study
from tierscope.trace.rank_trace import Phases, TrainingLog


class Work(Protocol):
    def __call__(self, batch: Batch, /) -> bool:
        """One step; False: there was nothing to do."""


class TrainingSession(Work, Protocol):
    """A network that is trained, all epochs of a run. `pin`: keeps memory of samples where its device can fetch it; None: it need not."""

    pin: Pin | None

    def settle(self) -> None:
        """Until all steps are done: a device may be behind the host that tells it what to do."""

    def begin(self) -> None:
        """What the first step would otherwise pay for, while nobody measures."""

    def turn(self) -> Phases:
        """Where the time of its steps went since the last call."""

    def finish(self) -> TrainingLog: ...


@dataclass(frozen=True, slots=True)
class RankPlace:
    """Which of how many ranks, and where they meet (a path that all see; None: alone)."""

    rank: int
    size: int
    rank_on_host: int
    ranks_on_host: int
    meeting: str | None


MakeTraining = Callable[[Study, RankPlace], TrainingSession]


@dataclass(frozen=True, slots=True)
class EmulatedWork:
    """Passes the time that a step would take."""

    compute: Callable[[float], None]
    step_seconds: Callable[[], float]

    def __call__(self, _batch: Batch) -> bool:
        seconds = self.step_seconds()
        if seconds:
            self.compute(seconds)
        return seconds > 0
