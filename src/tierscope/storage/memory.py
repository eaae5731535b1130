"""`storage: memory`: a directory in main memory (tmpfs), for a tier that is as fast as this node gets, and for tests.

It costs the memory that its files take, which `clean` gives back; a restart loses them, and they are written again. Nothing can be evicted
from it: its pages are the files.
"""

from typing import ClassVar

from tierscope.errors import UserError
from tierscope.mounts import IN_MEMORY, filesystem_of
from tierscope.storage.base import Abilities, TierPlace
from tierscope.storage.directory import DirectoryStorage, nearest_folder


class MemoryStorage(DirectoryStorage):
    abilities: ClassVar[Abilities] = Abilities(
        paths=True,
        evict=False,
        direct_io=False,
        striping=False,
        share_hosts=False,
        why={
            "evict": "its pages are the files",
            "direct_io": "there is no device behind its pages",
            "striping": "it has no object servers",
            "share_hosts": "it is the memory of one host",
        },
    )

    def __init__(self, place: TierPlace, /) -> None:
        super().__init__(place)
        kind = filesystem_of(nearest_folder(place.root))
        if kind not in IN_MEMORY:
            raise UserError(
                f"system.tiers.{place.tier.name}.path = {place.tier.path} is on {kind}, not in memory; "
                "use a path below /dev/shm, or set storage: directory"
            )
