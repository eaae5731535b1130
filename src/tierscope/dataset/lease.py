"""Tiers in use: two studies may share a tier's directory, but not at the same time.

They would disturb each other's times, and one might write a file that the other reads. The lock is advisory, held by the
director for its own host's view of the tiers, and goes with the process. Filesystems without locks are used without.
"""

from contextlib import ExitStack

from tierscope.errors import UserError
from tierscope.spec.study import Study
from tierscope.storage.files import real_root, tier_root
from tierscope.storage.opening import namespace, open_storage

_LOCK = "lock"


def lease(study: Study, out: str, nodes: list[int], held: set[str], until: ExitStack) -> None:
    """Lock the study's tiers as these nodes see them, and add them to `held`."""
    for tier in study.system.tiers:
        for node in nodes if tier.visible_to == "node" else nodes[:1]:
            root = tier_root(tier, out, node)
            lies = f"{namespace(tier)}:{root}"
            if lies in held:
                continue
            try:
                until.callback(open_storage(tier, out, node).lock(f"{root}/{_LOCK}"))
            except BlockingIOError:
                raise UserError(
                    f"{root}: in use by another study; wait for it to finish, or set another path for the tier"
                ) from None
            except OSError as error:
                raise UserError(f"{root}: cannot be used: {error.strerror}; check the directory") from None
            held.add(lies)


def refuse_nested(study: Study, out: str, node: int) -> None:
    """Two names for one directory, or one inside the other, would be one tier measured as two."""
    roots = [(tier.name, real_root(tier, out, node)) for tier in study.system.tiers]
    for name, root in roots:
        for other, inside in roots:
            if name != other and (inside + "/").startswith(root + "/"):
                raise UserError(
                    f"system.tiers.{other}.path: {inside} is the directory of tier {name}, or inside it; use separate directories"
                )
