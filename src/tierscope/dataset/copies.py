"""Copies that ranks leave on the near tier as they read (first touch). They are of one run: the next one begins without them.

They have a folder of their own, beside what was staged, with its own mark.
"""

from tierscope.dataset.data_folders import claim_folder, make_folders, names_facts, remove_data
from tierscope.output.disk_errors import GENERATING, explained
from tierscope.storage.base import Storage
from tierscope.storage.files import DatasetFiles


class Copies:
    """Those of one dataset on one tier, as one node sees it. What changes them is for one rank of all that share them."""

    def __init__(self, storage: Storage, files: DatasetFiles) -> None:
        self._storage, self._files = storage, files

    def begin(self) -> None:
        """An empty folder: copies go, whole or half written ones. Files that have other names are not ours, and stay."""
        claim_folder(self._storage, self._files.folder, "copies", names_facts(self._files))
        with explained(self._files.folder, GENERATING):
            remove_data(self._storage, self._files)
        make_folders(self._storage, self._files)

    def sync(self) -> None:
        """Pages that were never written to the device cannot be taken out of the page cache."""
        with explained(self._files.folder, GENERATING):
            self._storage.sync(self._files.folder)
