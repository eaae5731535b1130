"""`emulate: true`: a directory whose operations take as long as the tier's configured queues make them (`storage/emulated.py`).

Only what is measured takes that long: staging, cleaning and looking go to the directory itself.
"""

import itertools
import random
from typing import ClassVar

from tierscope.storage.access import Access, Directory
from tierscope.storage.base import Abilities, QueuedService, TierPlace
from tierscope.storage.directory import DirectoryStorage
from tierscope.storage.emulated import Emulated, Queues


class EmulatedStorage(DirectoryStorage):
    """Without a service, as nobody measures it, it is the directory."""

    abilities: ClassVar[Abilities] = Abilities(
        paths=True,
        evict=False,
        direct_io=True,
        striping=False,
        share_hosts=False,
        many_hosts=False,
        emulated=True,
        why={
            "evict": "its queues set the time, not the underlying disk",
            "striping": "it is not a real Lustre: use servers and stripe_count for emulation",
            "share_hosts": "its queues are in memory",
            "many_hosts": "its queues are in memory",
        },
    )

    def __init__(self, place: TierPlace, /) -> None:
        super().__init__(place)
        self.service: QueuedService | None = place.service
        self._name, self._threads = place.tier.name, itertools.count()

    def open_access(self) -> Access:
        """Every thread of every rank has a variation of its own; the same study has the same ones again."""
        if self.service is None:
            return Directory()
        dice = random.Random(f"{self.service.seed}/{next(self._threads)}/{self._name}")
        return Emulated(self.service.stations, Queues(self.service.board), dice)
