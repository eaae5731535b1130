"""The one walk that deletes: through folders of ours, by descriptor, and in them only names that are ours (`output/ours.py`).

Links, whatever is mounted inside, and all other kinds of file are kept and named. What is ours may be looked at first and deleted later
(`dataset/cleaning.py`), or deleted at once (`remove_ours`).
"""

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field

from tierscope.output.documents import FILE, FOLDER
from tierscope.output.folders import EnteredFolder, enter_directory
from tierscope.output.ours import NO_NAMES, Rules, leftovers

_DEEPEST = 64


@dataclass(slots=True)
class FolderTally:
    """A directory: how much of it is ours, what is not, and which folders were listed otherwise."""

    path: str
    kind: str = ""
    files: int = 0
    nbytes: int = 0
    kept: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


class Walk:
    """Whoever lists before deleting says what was agreed on, and what becomes of folders that have no rules here."""

    deletes = True

    def agreed(self, folder: EnteredFolder, digest: bytes, tally: FolderTally) -> tuple[bool, bool]:
        """Whether its files of ours go, now that they are these; and whether its folders are looked into."""
        del folder, digest, tally
        return True, True

    def stranger(self, folder: EnteredFolder, rules: Rules, tally: FolderTally, depth: int) -> bool:
        """A folder that no rule tells anything of; False: it is kept as it is."""
        del folder, rules, tally, depth
        return False

    def inside(
        self,
        folder: EnteredFolder,
        rules: Rules,
        tally: FolderTally,
        depth: int = 0,
        also: frozenset[str] = frozenset(),
    ) -> None:
        """`also`: more files of ours, which stay."""
        files, folders, digest = _look(folder, rules, also, tally)
        delete, enter = self.agreed(folder, digest, tally)
        if not self.deletes:
            tally.files += len(files)
            tally.nbytes += sum(files.values())
        elif delete:
            for name in files:
                if name not in also:
                    delete_file(folder, name, tally)
        for name in folders if enter else ():
            self.folder(folder, name, rules, tally, depth + 1)

    def folder(self, parent: EnteredFolder, name: str, rules: Rules, tally: FolderTally, depth: int = 0) -> None:
        """`rules`: of the parent."""
        inner = rules.inside(name)
        entered = parent.enter(name) if depth <= _DEEPEST else None
        if entered is None:
            tally.kept.append(os.path.join(parent.path, name))
            return
        try:
            if inner is not None:
                self.inside(entered, inner, tally, depth)
            elif not self.stranger(entered, rules, tally, depth):
                tally.kept.append(entered.path)
                return
        finally:
            entered.leave()
        if self.deletes:
            parent.remove_folder(name)


def _look(
    folder: EnteredFolder, rules: Rules, also: frozenset[str], tally: FolderTally
) -> tuple[dict[str, int], list[str], bytes]:
    """Files of ours with their sizes, folders, and a digest of which files these are; whatever else there is, is kept."""
    files: dict[str, int] = {}
    folders: list[str] = []
    digest = hashlib.blake2b(folder.identity().encode(), digest_size=16)
    for name, facts in folder.inside():
        if facts.kind == FOLDER:
            folders.append(name)
        elif facts.kind == FILE and (name in also or rules.owns(name)):
            files[name] = facts.nbytes
            digest.update(f"/{facts.version} ".encode() + os.fsencode(name))
        else:
            tally.kept.append(os.path.join(folder.path, name))
    return files, folders, digest.digest()


def delete_file(folder: EnteredFolder, name: str, tally: FolderTally) -> None:
    try:
        nbytes = folder.remove(name)
    except FileNotFoundError:
        return
    if nbytes is None:
        tally.kept.append(os.path.join(folder.path, name))
        return
    tally.files += 1
    tally.nbytes += nbytes


def remove_ours(folder: EnteredFolder, rules: Rules) -> list[str]:
    """All that is ours in a folder goes; what is kept. The folder itself stays, and is left."""
    tally = FolderTally(folder.path)
    try:
        Walk().inside(folder, rules, tally)
    finally:
        folder.leave()
    return tally.kept


def remove_folder(path: str, root: str, rules: Rules) -> None:
    """A folder with all that is ours in it (`rules`); it stays if it holds anything else. Below `root` no link is followed."""
    folder, name = os.path.split(path)
    with suppress(OSError):  # whoever needs its place will say so
        parent = enter_directory(folder, root)
        try:
            Walk().folder(parent, name, Rules(folders=((r".*", rules),)), FolderTally(folder))
        finally:
            parent.leave()


def remove_leftovers(folder: str, files: str = NO_NAMES, root: str | None = None) -> None:
    """Drop what killed writers left behind; only for a folder that nobody else writes to now. `files`: names that we give there."""
    with suppress(FileNotFoundError):
        entered, tally, rules = enter_directory(folder, root), FolderTally(folder), leftovers(files)
        try:
            for name, facts in entered.inside():
                if facts.kind == FILE and rules.owns(name):
                    delete_file(entered, name, tally)
        finally:
            entered.leave()
