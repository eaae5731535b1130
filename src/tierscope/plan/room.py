"""What a placement keeps on every tier, and whether it fits: pure, asked of a study that nobody has to run."""

import math

from tierscope.plan.checkpoints import checkpoint_bytes, ranks_together, tier_of
from tierscope.plan.plan import Plan
from tierscope.plan.planned import planned
from tierscope.plan.policies import nodes_per_cache, room_of
from tierscope.spec.feasibility import Feasibility, TierRoom
from tierscope.spec.study import Study, Tier

_MOST_COUNTED = 200_000  # files: of more, a node's random part is bounded instead of counted
_SCATTER = 5  # standard deviations of a node's random part: what no node of a million exceeds


def feasibility_of(study: Study, exact: bool = False, staged: bool = False, checkpoints: bool = True) -> Feasibility:
    """`exact`: count every file, however many there are. `staged`: the files were there, so that real tiers held them.

    `checkpoints`: those that are kept, and the one that is written, lie beside pinned files, as a run asks for.
    Of a node's own copies the node with the most counts. Where nodes read different random parts of many files, that is bounded from above.
    A tier that is filled as it is read holds in the end what it has room for, or all that its nodes read.
    """
    form, plan = planned(study)
    last = len(study.system.tiers) - 1
    rooms: list[TierRoom] = []
    for index, tier in enumerate(study.system.tiers):
        if index == last and tier.capacity is None:
            continue
        if study.placement.policy != "pinned" and index < last:
            by_node, in_all = _filled(study, plan, form.file_bytes)
        else:
            by_node, in_all = _pinned(study, plan, index, exact)
        own = tier.visible_to == "node"
        saved, saved_in_all = _saved(study, index) if checkpoints else (0, 0)
        rooms.append(
            TierRoom(
                tier=tier.name,
                bytes_per_node=by_node * form.file_bytes + saved if own else None,
                bytes_in_all=in_all * form.file_bytes + saved_in_all,
                checkpoint_bytes=saved if own else saved_in_all,
                capacity=tier.capacity,
                nodes_per_device=min(study.system.nodes, tier.device_shared_by or 1) if own else study.system.nodes,
                proven=staged and not tier.emulate,
            )
        )
    return Feasibility(tuple(rooms))


def _pinned(study: Study, plan: Plan, index: int, exact: bool) -> tuple[int, int]:
    """Files on the node with most, and on all nodes together."""
    once = plan.files_held(index, None)
    if study.system.tiers[index].visible_to != "node":
        return once, once
    nodes = study.system.nodes
    if plan.order.group_ranks == plan.ranks:
        return once, once * nodes
    stretches = [high - low for low, high in (plan.file_positions(node) for node in range(nodes))]
    in_all = round(once * sum(stretches) / plan.placement.files)
    if exact or plan.placement.files <= _MOST_COUNTED:
        nodes_alike = max(1, plan.order.group_ranks // study.system.ranks_per_node)  # these nodes hold the same
        return max(plan.files_held(index, node) for node in range(0, nodes, nodes_alike)), in_all
    share = once / plan.placement.files
    largest = max(stretches)
    return min(largest, math.ceil(largest * share + _SCATTER * math.sqrt(largest * share * (1 - share)))), in_all


def _saved(study: Study, index: int) -> tuple[int, int]:
    """Bytes of checkpoints on the node with most, which the first rank is on, and on all nodes together."""
    wanted, ranks = study.workload.checkpoint, study.system.ranks
    if not wanted.wanted or study.placement.policy != "pinned" or tier_of(study) != index:
        return 0, 0
    at_once = wanted.keep + 1
    first = checkpoint_bytes(wanted, ranks_together(study, 0), ranks)
    return at_once * first, at_once * checkpoint_bytes(wanted, range(ranks), ranks)


def _filled(study: Study, plan: Plan, file_bytes: int) -> tuple[int, int]:
    """Of policies that keep what they read, or a node's own share."""
    room, nodes, together = room_of(study, file_bytes), study.system.nodes, nodes_per_cache(study)
    held = [
        min(room, plan.file_positions(first + together - 1)[1] - plan.file_positions(first)[0])
        for first in range(0, nodes, together)
    ]
    return max(held), sum(held)


def devices_of(tier: Tier, nodes: int) -> int:
    """How many devices a tier has; one for all nodes where it is global and nothing else is said."""
    shared_by = tier.device_shared_by or (1 if tier.visible_to == "node" else nodes)
    return -(-nodes // shared_by)
