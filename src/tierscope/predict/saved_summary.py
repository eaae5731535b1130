"""What a simulated run says about its checkpoints, as a measured one does; and how long it takes to read one back."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from tierscope.plan.checkpoints import parts_of
from tierscope.plan.stations import Stations
from tierscope.predict.engine.inputs import READ, WRITE
from tierscope.predict.outcome import Outcome
from tierscope.predict.save_bound import save_bound
from tierscope.predict.saves import SavePlan
from tierscope.spec.study import Study
from tierscope.trace.description import CheckpointSummary


def summary_of(study: Study, stations: Stations, plan: SavePlan, outcomes: Sequence[Outcome]) -> CheckpointSummary:
    """Of all epochs."""
    seconds = [value for outcome in outcomes if outcome.saved for value in outcome.saved.seconds]
    ranks = study.system.ranks
    sizes = [sum(part.nbytes for part in parts_of(study.workload.checkpoint, rank, ranks)) for rank in range(ranks)]
    return CheckpointSummary(
        tier=study.system.tiers[plan.tier].name,
        count=sum(outcome.saved.begun for outcome in outcomes if outcome.saved),
        bytes=sum(sizes),
        writers=sum(size > 0 for size in sizes),
        seconds_median=median(seconds) if seconds else None,
        seconds_max=max(seconds, default=None),
        recovery_seconds=restore_seconds(study, stations, plan),
    )


def restore_seconds(study: Study, stations: Stations, plan: SavePlan) -> float:
    """Until the ranks that wrote a checkpoint have read their files of it back, nobody else being there: by the bound, from the tier that it was written to."""
    rank = plan.ranks
    operations = np.arange(len(rank))
    files = (operations < plan.commit[rank]) & (plan.kinds <= WRITE)
    kept = np.cumsum(np.bincount(rank[files], minlength=len(plan.first)))
    first, end = np.r_[0, kept[:-1]], kept
    reads = replace(
        plan,
        first=first,
        commit=end,
        end=end,
        drained=end,
        kinds=np.where(plan.kinds[files] == WRITE, READ, plan.kinds[files]),
        tiers=plan.tiers[files],
        files=plan.files[files],
        rows=plan.rows[files],
        turns=plan.turns[files],
        nbytes=plan.nbytes[files],
    )
    return save_bound(study, stations, reads).seconds
