"""Does it fit? Asked before a byte is written."""

from collections import defaultdict
from collections.abc import Iterable

from tierscope.dataset.stage import Missing
from tierscope.errors import UserError
from tierscope.plan.planned import planned
from tierscope.plan.room import feasibility_of
from tierscope.spec.feasibility import NO
from tierscope.spec.study import Study
from tierscope.storage.opening import open_storage
from tierscope.units import about_bytes, counted, format_fraction

_HEADROOM = 0.02  # directories, inodes, journals


def check_capacity(study: Study) -> None:
    """Refuse a placement that the configured capacity of a tier cannot hold."""
    feasibility = feasibility_of(study, exact=True, checkpoints=False)  # those have a line of their own
    if feasibility.is_possible:
        return
    room = next(room for room in feasibility.tiers if room.fits == NO)
    whose = "all nodes" if room.bytes_per_node is None else "each node"
    rate = format_fraction(study.placement.cache_rate)
    raise UserError(
        f"placement.cache_rate = {rate}; needs {about_bytes(room.needed)} on {room.tier} for {whose}, which holds "
        f"{about_bytes(room.capacity or 0)}: lower the rate, or raise system.tiers.{room.tier}.capacity if there is space"
    )


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
                f"{tier.name}: {about_bytes(held * file_bytes)} must be written, but the disk at {disk.place} holds only "
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
        fix = "free some space, choose another path, or use fewer or smaller files"
        if nbytes and nbytes * (1 + _HEADROOM) > disk.free_bytes:
            raise UserError(
                f"{disk.directory}: {about_bytes(nbytes)} must be written, but only {about_bytes(disk.free_bytes)} is free "
                f"on that disk; {fix}"
            )
        if disk.free_files is not None and files > disk.free_files:
            raise UserError(
                f"{disk.directory}: {counted(files, 'file')} must be written, but only {disk.free_files} inodes are free on that disk; {fix}"
            )
    return total
