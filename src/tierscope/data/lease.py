"""Datasets in use: two studies may share files, but not at the same time.

They would disturb each other's times, and one might write a file that the other reads. The lock is advisory, held by the
director for its own host's view of the tiers, and goes with the process. Filesystems without locks are used without.
"""

import fcntl
import os
from contextlib import ExitStack

from tierscope.errors import UserError
from tierscope.spec.study import Study
from tierscope.tiers.files import dataset_name, tier_root

_LOCK = "lock"


def lease(study: Study, out: str, nodes: list[int], held: set[str], until: ExitStack) -> None:
    """Lock the study's dataset on every tier as these nodes see it, and add the folders to `held`."""
    for tier in study.system.tiers:
        for node in nodes if tier.visible_to == "node" else nodes[:1]:
            folder = os.path.join(tier_root(tier, out, node), dataset_name(study.workload.dataset, study.seed))
            if folder not in held:
                _lock(folder, until)
                held.add(folder)


def _lock(folder: str, until: ExitStack) -> None:
    try:
        fd = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError as error:
        raise UserError(f"{folder}: cannot be used: {error.strerror}; check the directory") from None
    until.callback(os.close, fd)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(
            f"{folder}: another study is using these files now; wait for it to end, or give the tier another path"
        ) from None
    except OSError:
        return  # a filesystem without locks
