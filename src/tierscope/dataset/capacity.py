"""Does it fit? Asked before a byte is written."""

from collections import defaultdict
from collections.abc import Iterable

from tierscope.dataset.stage import Missing
from tierscope.errors import UserError
from tierscope.plan.plan import Plan
from tierscope.plan.planned import planned
from tierscope.plan.policies import nodes_per_cache, room_of
from tierscope.spec.study import Study
from tierscope.storage.opening import open_storage
from tierscope.units import about_bytes, counted, format_fraction

_HEADROOM = 0.02  # directories, inodes, journals


def check_capacity(study: Study) -> None:
    """Refuse a placement that the configured capacity of a tier cannot hold."""
    form, plan = planned(study)
    file_bytes = form.file_bytes
    for index, tier in enumerate(study.system.tiers):
        if tier.capacity is None:
            continue
        nodes: list[int | None] = [None]
        if tier.visible_to == "node":  # nodes that read the same stretch of files hold the same
            nodes = list(range(0, study.system.nodes, max(1, plan.order.group_ranks // study.system.ranks_per_node)))
        needed = max(plan.files_held(index, node) for node in nodes) * file_bytes
        if needed > tier.capacity:
            whose = "each node" if tier.visible_to == "node" else "all nodes"
            rate = format_fraction(study.placement.cache_rate)
            raise UserError(
                f"placement.cache_rate = {rate}; needs {about_bytes(needed)} on {tier.name} for {whose}, which holds "
                f"{about_bytes(tier.capacity)}: lower the rate, or raise system.tiers.{tier.name}.capacity if there is room"
            )


def held_bytes(study: Study) -> dict[str, tuple[int | None, int]]:
    """By near tier: the bytes of our files on each node (the mean; None where nodes share them), and on all nodes together.

    Where nodes may read different numbers of files, what they hold is taken as the same share of each: it is, but for chance. A tier that
    is filled as it is read holds in the end what it has room for, or all that its nodes read.
    """
    form, plan = planned(study)
    file_bytes = form.file_bytes
    nodes = study.system.nodes
    if study.placement.policy != "pinned":
        return {study.system.tiers[0].name: _kept_bytes(study, plan, file_bytes)}
    stretches = (plan.file_positions(node) for node in range(nodes))
    copies = sum(high - low for low, high in stretches) / plan.placement.files
    held: dict[str, tuple[int | None, int]] = {}
    for index, tier in enumerate(study.system.tiers[:-1]):
        once = plan.files_held(index, None)
        if tier.visible_to == "node":
            in_all = round(once * copies) * file_bytes
            held[tier.name] = in_all // nodes, in_all
        else:
            held[tier.name] = None, once * file_bytes
    return held


def _kept_bytes(study: Study, plan: Plan, file_bytes: int) -> tuple[int | None, int]:
    room, nodes, each = room_of(study, file_bytes), study.system.nodes, nodes_per_cache(study)
    held = 0
    for first in range(0, nodes, each):
        low, high = plan.file_positions(first)[0], plan.file_positions(first + each - 1)[1]
        held += min(room, high - low) * file_bytes
    return (held // nodes if study.system.tiers[0].visible_to == "node" else None), held


def check_disks(study: Study, out: str) -> None:
    """Refuse at once what could not even fit on empty disks: looking at every file first would take for ever."""
    form, plan = planned(study)
    file_bytes = form.file_bytes
    for index, tier in enumerate(study.system.tiers):
        node = 0 if tier.visible_to == "node" else None
        held = plan.files_held(index, node) if node is None or plan.order.group_ranks == plan.ranks else 0
        storage = open_storage(tier, out, 0)
        disk = storage.space(storage.root)
        if held * file_bytes > disk.total_bytes:
            raise UserError(
                f"{tier.name}: {about_bytes(held * file_bytes)} to be written, but the whole disk at {disk.place} has only "
                f"{about_bytes(disk.total_bytes)}; choose another path, or use fewer or smaller files"
            )


def check_space(missing: Iterable[tuple[str, Missing]]) -> int:
    """Refuse to start writing what the disks have no room for. Pairs of (host, what is missing); the bytes to write.

    What is on the same device of the same host is added up; on several hosts, what they write to a shared directory is.
    """
    pairs = list(missing)
    hosts = {host for host, _ in pairs}
    disks: dict[tuple[str, int | str], list[Missing]] = defaultdict(list)
    for host, share in pairs:
        disks[(share.directory, 0) if share.shared and len(hosts) > 1 else (host, share.device)].append(share)
    total = 0
    for shares in disks.values():
        nbytes, files = sum(share.disk_bytes for share in shares), sum(share.files for share in shares)
        total += sum(share.nbytes for share in shares)
        disk = shares[0]
        fix = "free some, choose another path, or use fewer or smaller files"
        if nbytes and nbytes * (1 + _HEADROOM) > disk.free_bytes:
            raise UserError(
                f"{disk.directory}: {about_bytes(nbytes)} to be written, but only {about_bytes(disk.free_bytes)} is free "
                f"on that disk; {fix}"
            )
        if disk.free_files is not None and files > disk.free_files:
            raise UserError(
                f"{disk.directory}: {counted(files, 'file')} to be written, but only {disk.free_files} inodes are free on that disk; {fix}"
            )
    return total
