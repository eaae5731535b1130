"""Does it fit? Asked before a byte is written."""

from collections import defaultdict
from collections.abc import Iterable

from tierscope.data.stage import Missing, make_format
from tierscope.errors import UserError
from tierscope.plan.plan import Plan
from tierscope.spec.study import Study
from tierscope.units import about_bytes, format_fraction

_HEADROOM = 0.02  # directories, inodes, journals


def check_capacity(study: Study) -> None:
    """Refuse a placement that the configured capacity of a tier cannot hold."""
    file_bytes = make_format(study).file_bytes
    plan = Plan.of(study, file_bytes)
    for index, tier in enumerate(study.system.tiers):
        if tier.capacity is None:
            continue
        nodes: list[int | None] = [None]
        if tier.visible_to == "node":
            nodes = [0] if plan.order.group_ranks == plan.ranks else list(range(study.system.nodes))
        needed = max(plan.files_held(index, node) for node in nodes) * file_bytes
        if needed > tier.capacity:
            whose = "each node" if tier.visible_to == "node" else "all nodes"
            rate = format_fraction(study.placement.cache_rate)
            raise UserError(
                f"placement.cache_rate = {rate}; needs {about_bytes(needed)} on {tier.name} for {whose}, which holds "
                f"{about_bytes(tier.capacity)}: lower the rate, or raise system.tiers.{tier.name}.capacity if there is room"
            )


def check_space(missing: Iterable[tuple[str, Missing]]) -> int:
    """Refuse to start writing what the disks have no room for. Pairs of (host, what is missing); the bytes to write."""
    needed: dict[tuple[str, int], int] = defaultdict(int)
    free: dict[tuple[str, int], Missing] = {}
    for host, share in missing:
        needed[host, share.device] += share.nbytes
        free[host, share.device] = share
    for disk, nbytes in needed.items():
        share = free[disk]
        if nbytes and nbytes * (1 + _HEADROOM) > share.free_bytes:
            raise UserError(
                f"{share.directory}: {about_bytes(nbytes)} to be written, but only {about_bytes(share.free_bytes)} is free "
                "on that disk; free some, choose another path, or use fewer or smaller files"
            )
    return sum(needed.values())
