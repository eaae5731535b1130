"""How many bytes of our files lie on the near tiers, at every point of a sweep: what a cache rate costs."""

from typing import Any

from tierscope.data.capacity import held_bytes
from tierscope.report.source import Held
from tierscope.spec import sweep
from tierscope.spec.study import Study

Sweep = dict[str, Any]


class Holdings:
    """By the swept values of a point."""

    def __init__(self, study: Study) -> None:
        self._studies = {tuple(point.sweep.items()): point.study for point in sweep.points(study)}

    def at(self, values: Sweep) -> dict[str, Held]:
        return {tier: Held(*held) for tier, held in held_bytes(self._studies[tuple(values.items())]).items()}
