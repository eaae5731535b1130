"""Where checkpoints lie on a tier, and which of them count.

    TIER/checkpoints/step-000120        complete: it got this name when all of it was there
    TIER/checkpoints/step-000140.part   being written or removed, or left by a killed run: never counts

A run begins without checkpoints. Only files with names of ours are ever removed, from a folder that carries our mark.
"""

import re

from tierscope.dataset.data_folders import claim_folder
from tierscope.errors import ForeignDirectoryError, UserError
from tierscope.output.disk_errors import GENERATING, explained
from tierscope.output.ours import CHECKPOINT
from tierscope.output.walk import remove_ours
from tierscope.storage.base import FILE, FOLDER, Storage
from tierscope.storage.folders import enter
from tierscope.units import about_bytes

NAME = "checkpoints"
MANIFEST = "checkpoint.json"
_PART = ".part"
_STEP = re.compile(r"step-(\d{6,})(\.part)?")


def receipt_name(rank: int) -> str:
    """What a rank that does not lead says about its files."""
    return f"rank-{rank:06d}.json"


class CheckpointFolder:
    """Those of one tier, as one node sees it. All but `make` is for one rank of those that share it."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.path = f"{storage.root}/{NAME}"

    def finished(self, step: int) -> str:
        return f"{self.path}/step-{step:06d}"

    def unfinished(self, step: int) -> str:
        return self.finished(step) + _PART

    def make(self, step: int) -> str:
        """A folder to write to; every rank may make it."""
        self.storage.make_folder(self.unfinished(step))
        return self.unfinished(step)

    def begin(self, needed_bytes: int, keep: int = 1) -> None:
        """Empty, and with room for as many bytes: for those that are kept, and one."""
        claim_folder(self.storage, self.path, NAME)
        with explained(self.path, GENERATING):
            for name, kind in self.storage.entries(self.path).items():
                if _STEP.fullmatch(name) and kind == FOLDER:
                    self._remove(f"{self.path}/{name}")
            free_bytes = self.storage.space(self.path).free_bytes
        if needed_bytes > free_bytes:
            fewer = "set workload.checkpoint.keep: 1, " if keep > 1 else ""
            raise UserError(
                f"{self.path}: checkpoints take up to {about_bytes(needed_bytes)}, but only {about_bytes(free_bytes)} is free "
                f"on that disk; free some, {fewer}or choose another tier"
            )

    def complete(self) -> list[int]:
        """The steps of those that count, oldest first."""
        matches = (_STEP.fullmatch(name) for name in self.storage.entries(self.path))
        return sorted(int(match[1]) for match in matches if match and not match[2])

    def finish(self, step: int) -> None:
        """From now on it counts."""
        self.storage.rename(self.unfinished(step), self.finished(step))

    def prune(self, keep: int) -> None:
        """Remove all but the last ones. What is being removed does not count any more, should we be killed meanwhile."""
        for step in self.complete()[:-keep]:
            self.storage.rename(self.finished(step), self.unfinished(step))
            self._remove(self.unfinished(step))

    def _remove(self, folder: str) -> None:
        for name, kind in self.storage.entries(folder).items():
            if not CHECKPOINT.owns(name) or kind != FILE:
                raise _foreign(f"{folder}/{name}")
        if kept := remove_ours(enter(self.storage, folder), CHECKPOINT):
            raise _foreign(kept[0])
        self.storage.remove_folder(folder)


def _foreign(path: str) -> ForeignDirectoryError:
    return ForeignDirectoryError(
        f"{path}: was not created by Tierscope, but is in its checkpoint directory; move it elsewhere"
    )
