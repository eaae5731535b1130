"""How late this machine lets sleepers go on, while something is measured on it: emulated operations end when their process runs again, not when they are over.

A process of its own does what a rank does at an emulated tier, without any tier: it sleeps, notes how much later it goes on than it should, copies some memory, and sleeps again. A model
that is given this lateness as latency of every operation says how much longer the same study takes on a machine so busy: what lies between that and the plain
model is no error of the model.
"""

import subprocess
import sys
import time
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from tierscope.predict.simulation import Simulation
from tierscope.spec.study import Study
from validation.table import Row

_PAUSE_SECONDS = 0.01
_COPIED = 2**20
_MOST = 0.9  # of all sleeps
_LEAST_SECONDS = 1e-6  # less is nothing to speak of
_LONGEST_SECONDS = 60.0  # that a study may have as a latency


@dataclass(frozen=True, slots=True)
class Late:
    """Seconds by which sleepers went on late, of so many sleeps: on average, and all but a tenth of them at most (where several wait for each other, the latest counts)."""

    mean_seconds: float = 0.0
    seconds: float = 0.0
    sleeps: int = 0

    @property
    def words(self) -> str:
        return f"sleepers {1e3 * self.mean_seconds:.1f} ms late, a tenth of them more than {1e3 * self.seconds:.1f} ms"


class Lateness:
    """`with Lateness() as lateness:` measure; then `lateness.seen`."""

    seen = Late()

    def __enter__(self) -> Self:
        self._sleeper = subprocess.Popen(
            [sys.executable, "-m", "validation.lateness"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        answer, _ = self._sleeper.communicate()  # the end of its input ends it
        if error is None:
            late = sorted(map(float, answer.split()))
            if late:
                self.seen = Late(sum(late) / len(late), late[int(_MOST * (len(late) - 1))], len(late))


def with_lateness(study: Study, late: Late) -> Study:
    """The study on a machine whose sleepers are so late: every operation of an emulated tier takes that much longer, outside any queue."""
    if late.seconds < _LEAST_SECONDS:
        return study
    tiers = tuple(
        replace(
            tier,
            latency=min(_LONGEST_SECONDS, tier.latency + late.seconds),
            metadata_latency=min(_LONGEST_SECONDS, tier.metadata_latency + late.seconds),
        )
        if tier.emulate
        else tier
        for tier in study.system.tiers
    )
    return replace(study, system=replace(study.system, tiers=tiers))


def lateness_percent(study: Study, late: Late) -> float:
    """By how much the study's slowest I/O time is longer on a machine so late, as the model has it with the study's own rates."""
    slowest = [
        float(Simulation.of(some).epoch(2, "events", seed=1).io.max()) for some in (study, with_lateness(study, late))
    ]
    return max(0.0, 100 * (slowest[1] / slowest[0] - 1))


def judged(row: Row, error: float, goal: float, spread: float, late: float) -> Row:
    """The row with its verdict; all in percent of what was measured. `error`: of the model, below 0 where it is too short, `spread`: of repeated measurements to either side.

    Lateness makes measurements longer, never shorter. A miss that these two can explain is not the model's: the row says so, and is not judged.
    """
    if abs(error) <= goal:
        return replace(row, met=True)
    if not -(goal + spread + late) <= error <= goal + spread:
        return replace(row, met=False)
    return replace(row, met=None, unjudged=f"not judged: up to {spread + late:.1f} % are this machine's own")


def _sleep_until_told() -> None:
    import select  # noqa: PLC0415  (only the sleeper needs them)

    from tierscope.storage.emulated import sharpen_sleep  # noqa: PLC0415

    sharpen_sleep()
    memory, late = bytes(_COPIED), []
    while not select.select([sys.stdin], [], [], 0)[0]:
        due = time.monotonic_ns() + round(_PAUSE_SECONDS * 1e9)
        time.sleep(_PAUSE_SECONDS)
        late.append(max(0, time.monotonic_ns() - due) / 1e9)
        bytearray(memory)
    print(*late)


if __name__ == "__main__":
    _sleep_until_told()
