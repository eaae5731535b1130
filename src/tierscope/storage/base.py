"""What bench, dataset and loaders may ask of a tier, whatever its files lie on; and what a storage says of itself.

A storage is made for one tier as one node sees it. Paths are texts below its `root`: what they mean is the storage's own matter, unless it declares
`paths`. All errors are OSErrors with the numbers of the system (ENOENT, EEXIST, ENOSPC …): the sentences that users read are made elsewhere.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from tierscope.native.stations import TierStations
from tierscope.output.documents import FILE, FOLDER, LINK, OTHER, DocumentPlace, FileFacts
from tierscope.spec.study import Tier
from tierscope.storage.access import Access

__all__ = [
    "FILE",
    "FOLDER",
    "LINK",
    "OTHER",
    "Abilities",
    "FileFacts",
    "Piece",
    "QueuedService",
    "Storage",
    "StorageSpace",
    "TierPlace",
]

Piece = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a storage can do. Of all that it cannot, `why` has the reason, as users read it behind "because".

    A study that needs what is missing is refused, labelled or run in another way: by these, never by the storage's name.
    """

    paths: bool  # its files are files of the system: C, libraries and frameworks may open and map them themselves
    evict: bool  # files can be taken out of caches, so that reads are cold
    direct_io: bool  # files can be read past the page cache (O_DIRECT)
    striping: bool  # files can be placed on object servers, where it is a Lustre
    share_hosts: bool  # several hosts can see the same files
    many_hosts: bool = True  # it works in studies that run on several hosts at all
    emulated: bool = False  # queues make the time of its operations, not what is underneath
    why: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        needed = {name for name in _ABILITIES if not getattr(self, name)}
        if needed != set(self.why):
            raise ValueError(f"a storage that cannot do {sorted(needed)} gives reasons for {sorted(self.why)}")


_ABILITIES = ("paths", "evict", "direct_io", "striping", "share_hosts", "many_hosts")


@dataclass(frozen=True, slots=True)
class StorageSpace:
    """What is there and what is free. `place`: what it was asked of."""

    place: str
    total_bytes: int
    free_bytes: int
    free_files: int | None  # None: any number of them
    block_bytes: int  # a file takes up whole ones


@dataclass(frozen=True, slots=True)
class QueuedService:
    """Queues that one rank's operations on an emulated tier join: the tier's as its node meets them. `seed`: for services that vary."""

    stations: TierStations
    board: str
    seed: str


@dataclass(frozen=True, slots=True)
class TierPlace:
    """All that a storage is made from. `service`: for an emulated tier, while it is measured."""

    tier: Tier
    root: str
    service: QueuedService | None = None


class Storage(DocumentPlace, Protocol):
    """To add one: a class of this shape in one file, named in the registry, or by an entry point of the group `tierscope.storages`."""

    abilities: ClassVar[Abilities]
    root: str

    def __init__(self, place: TierPlace, /) -> None: ...

    def open_access(self) -> Access:
        """A thread's own way to the files, for what is measured."""

    def look(self, path: str, /) -> FileFacts | None:
        """What is there, a link as itself; None: nothing."""

    def write(self, path: str, make: Callable[[], Sequence[Piece]], replace: bool = False, /) -> int:
        """A whole file; the bytes written. `make` is asked when the file is open. Without `replace` a file that is there is EEXIST."""

    def rename(self, old: str, new: str, /) -> None:
        """A file or a folder gets another name at once; a file that has it goes."""

    def remove(self, path: str, /) -> None:
        """A file, or a link itself."""

    def remove_folder(self, path: str, /) -> None:
        """An empty one; ENOTEMPTY if it is not."""

    def tidy(self, folder: str, /) -> None:
        """Drop what killed writers of documents left in a folder that nobody else writes to now."""

    def sync(self, folder: str, /) -> None:
        """All that was written below it by any process of this node survives a crash."""

    def space(self, path: str, /) -> StorageSpace:
        """Where this path is, or would be."""

    def device(self, path: str, /) -> int | str:
        """What is behind it: the same for two tiers that are one piece of hardware."""

    def lock(self, path: str, /) -> Callable[[], None]:
        """Hold it until the function is called or the process ends; BlockingIOError: somebody else does."""
