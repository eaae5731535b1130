"""What an epoch moves, counted for a fit: operations and bytes of every rank, tier and kind, checkpoints included."""

from typing import Any

import numpy as np

from tierscope.plan.reading import Reading
from tierscope.plan.stations import stations_of
from tierscope.predict import events
from tierscope.predict.engine.inputs import WRITE
from tierscope.predict.schedule import Schedule
from tierscope.spec.study import Study, Tier


def moved_by(study: Study, reading: Reading, schedule: Schedule, saving: events.Saving | None) -> tuple[Any, Any]:
    """Operations and bytes by (rank, tier, kind), those of checkpoints that ranks stand still for too."""
    ops, nbytes = events.counted(study, stations_of(study.system, 0), reading, schedule)
    if saving is not None and not saving.plan.background:
        plan, saves = saving.plan, len(saving.epoch.steps)
        rank = plan.ranks
        here = (plan.kinds <= WRITE) & (np.arange(len(plan.kinds)) < plan.end[rank])
        at = (rank[here], plan.tiers[here], plan.kinds[here])
        np.add.at(ops, at, saves * plan.turns[here].astype(np.int64))
        np.add.at(nbytes, at, saves * plan.nbytes[here])
    return ops, nbytes


def servers_of(study: Study, tier: Tier) -> tuple[int, int]:
    """Metadata servers and object servers of a tier in all."""
    nodes = study.system.nodes
    shared_by = tier.device_shared_by or (1 if tier.visible_to == "node" else nodes)
    devices = -(-nodes // shared_by)
    return devices * tier.metadata_servers, devices * tier.servers
