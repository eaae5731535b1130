"""A study's tiers, each on the storage that it names."""

from collections.abc import Sequence

from tierscope.errors import UserError
from tierscope.native.stations import TierStations
from tierscope.spec.study import Study, Tier
from tierscope.storage import STORAGES
from tierscope.storage.base import QueuedService, Storage, TierPlace
from tierscope.storage.files import tier_root
from tierscope.storage.stations import StationMap


def storage_name(tier: Tier) -> str:
    return "emulated" if tier.emulate else tier.storage


def storage_type(tier: Tier) -> type[Storage]:
    """With what it declares; refuses a name that nobody knows."""
    try:
        return STORAGES.load(storage_name(tier))
    except UserError as error:
        raise error.prefixed(f"system.tiers.{tier.name}.storage") from None


def namespace(tier: Tier) -> str:
    """Tiers of one namespace find the same files at one path: all those whose files are files of the system."""
    return "files" if storage_type(tier).abilities.paths else storage_name(tier)


def open_storage(tier: Tier, out: str, node: int, service: QueuedService | None = None) -> Storage:
    """A tier as one node sees it."""
    return storage_type(tier)(TierPlace(tier, tier_root(tier, out, node), service))


def open_storages(
    study: Study, out: str, node: int, services: Sequence[QueuedService | None] = ()
) -> tuple[Storage, ...]:
    tiers = study.system.tiers
    return tuple(
        open_storage(tier, out, node, service)
        for tier, service in zip(tiers, services or [None] * len(tiers), strict=True)
    )


def services_of(
    views: Sequence[TierStations | None], board: str | None, seed: int, rank: int
) -> tuple[QueuedService | None, ...]:
    """What a rank's operations on emulated tiers join; without a board nothing is slowed down."""
    return tuple(QueuedService(view, board, f"{seed}/{rank}") if view and board else None for view in views)


def views_at(stations: StationMap, node: int) -> tuple[TierStations | None, ...]:
    """The queues of each tier as a node meets them; None: the tier is not emulated."""
    return tuple(view[node] if view else None for view in stations.views)
