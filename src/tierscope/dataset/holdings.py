"""How many bytes of our files lie on the near tiers, at every point of a sweep: what a cache rate costs."""

from dataclasses import dataclass

from tierscope.dataset.capacity import held_bytes
from tierscope.jsonable import SweepValues
from tierscope.spec import sweep
from tierscope.spec.study import Study

Sweep = SweepValues


@dataclass(frozen=True, slots=True)
class HeldBytes:
    """Bytes of our files on a tier; `by_node` where every node keeps its own copies (the mean), else None."""

    by_node: int | None
    in_all: int


class Holdings:
    """By the swept values of a point."""

    def __init__(self, study: Study) -> None:
        self._studies = {tuple(point.sweep.items()): point.study for point in sweep.points(study)}

    def at(self, values: Sweep) -> dict[str, HeldBytes]:
        return {tier: HeldBytes(*held) for tier, held in held_bytes(self._studies[tuple(values.items())]).items()}
