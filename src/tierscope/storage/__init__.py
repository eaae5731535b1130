"""What tiers lie on: which kinds of storage there are, and what bench, dataset and loaders may ask of one (`storage/base.py`).

A kind that somebody else wrote is found by its entry point, in the group `tierscope.storages`:

    [tierscope.storages]
    objects = my_package.objects:ObjectStorage
"""

from typing import TYPE_CHECKING

from tierscope.registry import Entry, Registry

if TYPE_CHECKING:
    from tierscope.storage.base import Storage

STORAGES: "Registry[type[Storage], Entry]" = Registry(
    "storage",
    {
        "directory": Entry(
            "tierscope.storage.directory:DirectoryStorage", "a directory of this system, on any filesystem"
        ),
        "emulated": Entry(
            "tierscope.storage.emulated_directory:EmulatedStorage",
            "a directory slowed down to the tier's rates; what emulate: true means",
        ),
        "memory": Entry(
            "tierscope.storage.memory:MemoryStorage", "a directory in this host's memory, such as /dev/shm"
        ),
    },
    plugins="tierscope.storages",
)
