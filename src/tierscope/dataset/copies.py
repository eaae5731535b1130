"""Copies that ranks leave on the near tier as they read (first touch). They are of one run: the next one begins without them.

They have a folder of their own, beside what was staged, with its own mark.
"""

import os

from tierscope.dataset.stage import explained, make_folders
from tierscope.output import manifest
from tierscope.output.durable import sync_filesystem
from tierscope.storage.files import DatasetFiles


class Copies:
    """Those of one dataset on one tier, as one node sees it. What changes them is for one rank of all that share them."""

    def __init__(self, files: DatasetFiles) -> None:
        self._files = files

    def begin(self) -> None:
        """An empty folder: copies go, whole or half written ones. Files that have other names are not ours, and stay."""
        manifest.claim(self._files.folder, "copies")
        make_folders(self._files)
        with explained(self._files.folder):
            for folder in self._files.folders():
                for entry in os.scandir(folder):
                    if self._files.owns(entry.name) and entry.is_file(follow_symlinks=False):
                        os.unlink(entry.path)

    def sync(self) -> None:
        """Pages that were never written to the device cannot be taken out of the page cache."""
        with explained(self._files.folder):
            sync_filesystem(self._files.folder)
