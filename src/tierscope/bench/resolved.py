"""One point of a study with all that follows from it, worked out once in a process and handed on."""

from dataclasses import dataclass, replace
from typing import Self

from tierscope.formats import Format
from tierscope.loaders.choose import choose_loader
from tierscope.plan.plan import Plan
from tierscope.plan.planned import planned
from tierscope.spec.study import Study
from tierscope.storage.stations import StationMap, map_stations


@dataclass(frozen=True, slots=True)
class ResolvedRun:
    """`loader`: of the registry; whoever directs a run chooses it, ranks are told. `stations`: the queues of emulated tiers."""

    study: Study
    loader: str
    format: Format
    plan: Plan
    stations: StationMap

    @classmethod
    def of(cls, study: Study, loader: str | None = None, repetition: int = 1) -> Self:
        """`loader` None: it is still to be chosen."""
        form, plan = planned(study, repetition)
        return cls(
            study=study,
            loader=choose_loader(study) if loader is None else loader,
            format=form,
            plan=plan,
            stations=map_stations(study.system, study.seed, study.workload.reader.read_threads),
        )

    def with_study(self, study: Study, form: Format | None = None) -> Self:
        """Another study with the same loader; `form`: in place of its own."""
        made = type(self).of(study, self.loader)
        return made if form is None else replace(made, format=form, plan=Plan.of(study, form.file_bytes))
