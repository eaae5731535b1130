"""What Tierscope made, deleted again: results, and data on tiers. Nothing else, whatever lies beside it.

Only directories with our mark are looked into, and in them only names that we give are ours (`output/ours.py`). All others, every symbolic
link and whatever is mounted inside are kept and named (`output/walk.py`); a directory that holds any keeps its mark. What lies on a tier goes
through the tier's storage. What a command is using is refused.

Deleted is what was listed: of every folder a digest of its files of ours (names, and what tells a new file from an old one) is remembered. A folder
where these are others by the time of the answer keeps its files, and one that was not there keeps all; both are named.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace

from tierscope.errors import ForeignDirectoryError, UserError
from tierscope.jsonable import JsonObject
from tierscope.output import manifest
from tierscope.output.documents import FILE, PLAIN
from tierscope.output.folders import EnteredFolder
from tierscope.output.ours import BETWEEN, KINDS, Rules, rules_of
from tierscope.output.result import has_study, read_study
from tierscope.output.walk import FolderTally, Walk, delete_file
from tierscope.plan.file_format import make_format
from tierscope.spec import sweep
from tierscope.spec.study import System, Tier
from tierscope.storage.base import Storage
from tierscope.storage.files import DatasetFiles, tier_root
from tierscope.storage.folders import enter, hold, remove_root
from tierscope.storage.opening import open_storage, open_to_clean, storage_type

__all__ = ["Cleaning", "FolderTally", "cleaning"]

_LOCK = "lock"
_OF_ALL = frozenset({manifest.NAME, _LOCK})
_DATA = ("dataset", "copies", "checkpoints")


@dataclass(frozen=True, slots=True)
class _Root:
    """A marked directory to begin with; `storage` None: it is a directory of this system."""

    path: str
    storage: Storage | None = None


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What would be deleted; nobody uses it meanwhile."""

    tallies: tuple[FolderTally, ...]
    roots: tuple[_Root, ...]
    listed: Mapping[str, bytes]

    def delete(self) -> tuple[FolderTally, ...]:
        """What was deleted, and what was not."""
        walk = _Walk(self.listed)
        for root in self.roots:
            walk.root(root)
        return tuple(walk.tallies)


@contextmanager
def cleaning(folders: Sequence[str], only_data: bool) -> Iterator[Cleaning]:
    """Look at what these directories hold, and hold it. `only_data`: of results, the data of their studies on the tiers, and not themselves."""
    roots = _topmost(root for folder in folders for root in _roots(os.path.abspath(folder), only_data))
    walk = _Walk()
    with ExitStack() as held:
        for root in roots:
            walk.root(root)
        inside = _elsewhere([root.path for root in roots], walk.tallies)
        for root in inside:
            walk.root(root)
        above = {os.path.dirname(root.path): root.storage for root in (*roots, *inside)}
        for place, storage in (above | walk.places).items():
            _hold(storage, place, held)
        yield Cleaning(tuple(walk.tallies), (*inside, *roots), walk.listed)


def _topmost(roots: Iterator[_Root]) -> list[_Root]:
    by_path = {root.path: root for root in roots}
    return [
        root
        for path, root in by_path.items()
        if not any(path != other and path.startswith(other + "/") for other in by_path)
    ]


def _roots(folder: str, only_data: bool) -> list[_Root]:
    kind, _ = _mark_of(folder)
    if not only_data or kind in ("tier", *_DATA):
        return [_Root(folder)]
    study = read_study(folder)
    roots: dict[str, _Root] = {}
    for point in sweep.points(study):
        dataset, suffix = point.study.workload.dataset, make_format(point.study).suffix
        for tier in point.study.system.tiers:
            for node in range(_nodes(point.study.system, tier)):
                storage = open_to_clean(tier, folder, node)
                paths = [
                    DatasetFiles.of(tier, folder, node, dataset, point.study.seed, suffix, copies=copies).folder
                    for copies in (False, True)
                ]
                roots |= {path: _Root(path, storage) for path in (*paths, f"{storage.root}/checkpoints")}
    return [root for path, root in roots.items() if root.storage is not None and root.storage.look(path) is not None]


def _elsewhere(roots: Sequence[str], tallies: Sequence[FolderTally]) -> list[_Root]:
    """Tiers of the results that were found whose paths lead into what is cleaned, but whose files are no files of the system."""
    tiers: dict[str, _Root] = {}
    for result in (marked.path for marked in tallies if has_study(marked.path)):
        for tier, nodes in _tiers_of(result):
            if not _leads_into(tier, result, roots) or storage_type(tier).abilities.paths:
                continue
            for node in range(nodes):
                storage = open_storage(tier, result, node)
                if storage.look(storage.root) is not None:
                    tiers[storage.root] = _Root(storage.root, storage)
    return list(tiers.values())


def _tiers_of(result: str) -> Iterator[tuple[Tier, int]]:
    """With the number of nodes that have their own. A study that cannot be read is deleted, whatever it says."""
    with suppress(UserError):
        systems = {point.study.system for point in sweep.points(read_study(result))}
        yield from {(tier, _nodes(system, tier)) for system in systems for tier in system.tiers}


def _leads_into(tier: Tier, result: str, roots: Sequence[str]) -> bool:
    try:
        path = tier_root(tier, result, 0)
    except UserError:  # a variable that is not set here
        return False
    return any(path.startswith(root + "/") for root in roots)


def _nodes(system: System, tier: Tier) -> int:
    return system.nodes if tier.visible_to == "node" else 1


def _mark_of(folder: str) -> tuple[str, JsonObject]:
    """The kind of a directory of ours and its mark; refuses all others."""
    if os.path.islink(folder):
        raise ForeignDirectoryError(f"{folder}: is a symbolic link; name the directory itself")
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: no such directory")
    return _mark_at(folder)


def _mark_at(folder: str, entered: EnteredFolder | None = None) -> tuple[str, JsonObject]:
    """`entered`: where to read the mark, if not by the path."""
    try:
        mark = manifest.read(folder, entered or PLAIN)
    except OSError as error:
        raise UserError(f"{folder}: cannot be read: {error.strerror}; change its mode") from None
    if mark is None:
        raise ForeignDirectoryError(
            f"{folder}: was not created by Tierscope (it has no {manifest.NAME}); name a result, or a tier's directory"
        )
    kind = mark.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ForeignDirectoryError(
            f"{folder}: its {manifest.NAME} says that it is a {str(kind)[:40]!r}, which this Tierscope does not support; "
            "update Tierscope, or delete that directory yourself"
        )
    return kind, mark


def _hold(storage: Storage | None, folder: str, held: ExitStack) -> None:
    """Refuse what is in use: every command that uses a result or a tier has a lock there first."""
    try:
        release = hold(storage, f"{folder}/{_LOCK}")
    except BlockingIOError:
        raise UserError(f"{folder}: is in use by another command; wait for it to finish") from None
    if release is not None:
        held.callback(release)


class _Walk(Walk):
    """Through directories of ours: listing them, or deleting what an earlier walk has listed."""

    def __init__(self, before: Mapping[str, bytes] | None = None) -> None:
        self._before = before
        self.deletes = before is not None
        self._storage: Storage | None = None  # of the root
        self.listed: dict[str, bytes] = {}  # by folder
        self.tallies: list[FolderTally] = []
        self.places: dict[str, Storage | None] = {}  # all that was found, and what it is on

    def root(self, root: _Root) -> None:
        self._storage, path = root.storage, root.path
        try:
            entered = enter(root.storage, path)
        except OSError as error:
            raise UserError(f"{path}: cannot be entered: {error.strerror}; name a Tierscope directory") from None
        try:
            self._marked(entered, 0)
        except OSError as error:
            raise UserError(
                f"{error.filename or path}: cannot be deleted: {error.strerror}; change its mode and clean again"
            ) from None
        finally:
            entered.leave()
        if self.deletes:
            remove_root(root.storage, path)

    def _marked(self, folder: EnteredFolder, depth: int) -> None:
        kind, mark = _mark_at(folder.path, folder)
        tally = FolderTally(folder.path, kind)
        self.tallies.append(tally)
        self.places[folder.path] = self._storage
        self.inside(folder, _with_marks(rules_of(kind, mark, os.path.basename(folder.path))), tally, depth, _OF_ALL)
        if not self.deletes:
            self._leave_out_marks(folder, tally)
            return
        if folder.path in tally.changed:
            return
        if set(folder.names()) <= _OF_ALL:
            for name in (_LOCK, manifest.NAME):
                delete_file(folder, name, tally)

    def _leave_out_marks(self, folder: EnteredFolder, tally: FolderTally) -> None:
        """A folder that stays, because something in it is kept, keeps its mark and its lock."""
        if any(inner.kept for inner in self.tallies if f"{inner.path}/".startswith(f"{folder.path}/")):
            marks = [facts.nbytes for name, facts in folder.inside() if name in _OF_ALL and facts.kind == FILE]
            tally.files -= len(marks)
            tally.nbytes -= sum(marks)

    def agreed(self, folder: EnteredFolder, digest: bytes, tally: FolderTally) -> tuple[bool, bool]:
        self.listed[folder.path] = digest
        if self._before is None:
            return False, True
        if self._before.get(folder.path) == digest:
            return True, True
        tally.changed.append(folder.path)
        return False, folder.path in self._before

    def stranger(self, folder: EnteredFolder, rules: Rules, tally: FolderTally, depth: int) -> bool:
        """One with a mark of its own, or one on the way to such."""
        if manifest.NAME in folder.names():
            self._marked(folder, depth)
        elif rules.between:
            self.inside(folder, BETWEEN, tally, depth)
        else:
            return False
        return True


def _with_marks(rules: Rules) -> Rules:
    """What a killed writer of a mark left is ours, too."""
    return replace(rules, files=rf"{rules.files}|{manifest.LEFT}")
