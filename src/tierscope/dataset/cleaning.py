"""What Tierscope made, deleted again: results, and data on tiers. Nothing else, whatever lies beside it.

Only directories with our mark are looked into, and in them only names that we give are ours (`dataset/cleaning_rules.py`). All others, every symbolic
link and whatever is mounted inside are kept and named; a directory that holds any keeps its mark. What lies on a tier goes through the tier's storage;
directories are entered as `storage/folders.py` says. What a command is using is refused.

Deleted is what was listed: of every folder a digest of its files of ours (names, and what tells a new file from an old one) is remembered. A folder
where these are others by the time of the answer keeps its files, and one that was not there keeps all; both are named.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from tierscope.dataset.cleaning_rules import BETWEEN, KINDS, NO_NAMES, Rules
from tierscope.errors import ForeignDirectoryError, UserError
from tierscope.output import manifest
from tierscope.output.documents import PLAIN
from tierscope.output.result import has_study, read_study
from tierscope.plan.file_format import make_format
from tierscope.spec import sweep
from tierscope.spec.study import Tier
from tierscope.storage.base import FILE, FOLDER, Storage
from tierscope.storage.files import DatasetFiles, tier_root
from tierscope.storage.folders import EnteredFolder, enter, hold, remove_root
from tierscope.storage.opening import open_storage

_LOCK = "lock"
_OF_ALL = rf"{re.escape(manifest.NAME)}|{_LOCK}"
_UNFINISHED = r"(\.\d+\.tmp)?"  # of a killed writer
_DATA = ("dataset", "copies", "checkpoints")
_DEEPEST = 64


@dataclass(slots=True)
class Found:
    """A marked directory: how much of it is ours, what is not, and which folders were listed otherwise."""

    path: str
    kind: str
    files: int = 0
    nbytes: int = 0
    kept: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Root:
    """A marked directory to begin with; `storage` None: it is a directory of this system."""

    path: str
    storage: Storage | None = None


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What would be deleted; nobody uses it meanwhile."""

    found: tuple[Found, ...]
    roots: tuple[_Root, ...]
    listed: Mapping[str, bytes]

    def delete(self) -> tuple[Found, ...]:
        """What was deleted, and what was not."""
        walk = _Walk(self.listed)
        for root in self.roots:
            walk.root(root)
        return tuple(walk.found)


@contextmanager
def cleaning(folders: Sequence[str], only_data: bool) -> Iterator[Cleaning]:
    """Look at what these directories hold, and hold it. `only_data`: of results, the data of their studies on the tiers, and not themselves."""
    roots = _topmost(root for folder in folders for root in _roots(os.path.abspath(folder), only_data))
    walk = _Walk()
    with ExitStack() as held:
        for root in roots:
            walk.root(root)
        inside = _elsewhere([root.path for root in roots], walk.found)
        for root in inside:
            walk.root(root)
        above = {os.path.dirname(root.path): root.storage for root in (*roots, *inside)}
        for place, storage in (above | walk.places).items():
            _hold(storage, place, held)
        yield Cleaning(tuple(walk.found), (*inside, *roots), walk.listed)


def _topmost(roots: Iterator[_Root]) -> list[_Root]:
    by_path = {root.path: root for root in roots}
    return [
        root
        for path, root in by_path.items()
        if not any(path != other and path.startswith(other + "/") for other in by_path)
    ]


def _roots(folder: str, only_data: bool) -> list[_Root]:
    kind = _kind_of(folder)
    if not only_data or kind in ("tier", *_DATA):
        return [_Root(folder)]
    study = read_study(folder)
    found: dict[str, _Root] = {}
    for point in sweep.points(study):
        dataset, suffix = point.study.workload.dataset, make_format(point.study).suffix
        for tier in point.study.system.tiers:
            for node in range(point.study.system.nodes if tier.visible_to == "node" else 1):
                storage = open_storage(tier, folder, node)
                paths = [
                    DatasetFiles.of(tier, folder, node, dataset, point.study.seed, suffix, copies=copies).folder
                    for copies in (False, True)
                ]
                found |= {path: _Root(path, storage) for path in (*paths, f"{storage.root}/checkpoints")}
    return [root for path, root in found.items() if root.storage is not None and root.storage.look(path) is not None]


def _elsewhere(roots: Sequence[str], found: Sequence[Found]) -> list[_Root]:
    """Tiers of the results that were found whose paths lead into what is cleaned, but whose files are no files of the system."""
    tiers: dict[str, _Root] = {}
    for result in (one.path for one in found if has_study(one.path)):
        for tier, node in _tiers_of(result):
            path = tier_root(tier, result, node)
            if path in tiers or not any(path.startswith(root + "/") for root in roots):
                continue
            storage = open_storage(tier, result, node)
            if not storage.abilities.paths and storage.look(path) is not None:
                tiers[path] = _Root(path, storage)
    return list(tiers.values())


def _tiers_of(result: str) -> Iterator[tuple[Tier, int]]:
    """With the nodes that have their own."""
    try:
        study = read_study(result)
    except UserError:  # it is deleted, whatever it says
        return
    for point in sweep.points(study):
        system = point.study.system
        for tier in system.tiers:
            yield from ((tier, node) for node in range(system.nodes if tier.visible_to == "node" else 1))


def _kind_of(folder: str) -> str:
    """The kind of a directory of ours; refuses all others."""
    if os.path.islink(folder):
        raise ForeignDirectoryError(f"{folder}: is a symbolic link; give the directory itself")
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: there is no such directory")
    return _kind_at(folder)


def _kind_at(folder: str, entered: EnteredFolder | None = None) -> str:
    """`entered`: where to read the mark, if not by the path."""
    try:
        mark = manifest.read(folder, entered or PLAIN)
    except OSError as error:
        raise UserError(f"{folder}: cannot be read: {error.strerror}; change its mode") from None
    if mark is None:
        raise ForeignDirectoryError(
            f"{folder}: was not made by Tierscope (it has no {manifest.NAME}); give a result, or a tier's directory"
        )
    kind = mark.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ForeignDirectoryError(
            f"{folder}: its {manifest.NAME} says that it is a {str(kind)[:40]!r}, which this Tierscope does not know; "
            "update it, or delete that directory yourself"
        )
    return kind


def _hold(storage: Storage | None, folder: str, held: ExitStack) -> None:
    """Refuse what is in use: every command that uses a result or a tier has a lock there first."""
    try:
        release = hold(storage, f"{folder}/{_LOCK}")
    except BlockingIOError:
        raise UserError(f"{folder}: is in use by another command; wait for it to end") from None
    if release is not None:
        held.callback(release)


class _Walk:
    """Through directories of ours: listing them, or deleting what an earlier walk has listed."""

    def __init__(self, before: Mapping[str, bytes] | None = None) -> None:
        self._before = before
        self._storage: Storage | None = None  # of the root
        self.listed: dict[str, bytes] = {}  # by folder
        self.found: list[Found] = []
        self.places: dict[str, Storage | None] = {}  # all that was found, and what it is on

    def root(self, root: _Root) -> None:
        self._storage, path = root.storage, root.path
        try:
            entered = enter(root.storage, path)
        except OSError as error:
            raise UserError(f"{path}: cannot be entered: {error.strerror}; give a directory of Tierscope") from None
        try:
            self._marked(entered, 0)
        except OSError as error:
            raise UserError(
                f"{error.filename or path}: cannot be deleted: {error.strerror}; change its mode, and clean again"
            ) from None
        finally:
            entered.leave()
        if self._before is not None:
            remove_root(root.storage, path)

    def _marked(self, folder: EnteredFolder, depth: int) -> None:
        kind = _kind_at(folder.path, folder)
        found = Found(folder.path, kind)
        self.found.append(found)
        self.places[folder.path] = self._storage
        self._inside(folder, KINDS[kind], found, depth, _OF_ALL)
        if self._before is None or folder.path in found.changed:
            return
        if set(folder.names()) <= {manifest.NAME, _LOCK}:
            for name in (_LOCK, manifest.NAME):
                _delete(folder, name, found)

    def _inside(self, folder: EnteredFolder, rules: Rules, found: Found, depth: int, also: str = NO_NAMES) -> None:
        """`also`: more files of ours, which stay until the directory is empty but for them."""
        files, folders, digest = _look(folder, rf"({rules.files}|{also}){_UNFINISHED}", found)
        self.listed[folder.path] = digest
        if self._before is None:
            found.files += len(files)
            found.nbytes += sum(files.values())
        elif self._before.get(folder.path) == digest:
            for name in files:
                if not re.fullmatch(also, name):
                    _delete(folder, name, found)
        else:
            found.changed.append(folder.path)
            if folder.path not in self._before:
                return
        for name in folders:
            self._folder(folder, name, rules, found, depth + 1)

    def _folder(self, parent: EnteredFolder, name: str, rules: Rules, found: Found, depth: int) -> None:
        inner = next((inside for names, inside in rules.folders if re.fullmatch(names, name, re.DOTALL)), None)
        inner = rules if rules.deep else inner
        entered = parent.enter(name) if depth <= _DEEPEST else None
        if entered is None:
            found.kept.append(os.path.join(parent.path, name))
            return
        try:
            if inner is not None:
                self._inside(entered, inner, found, depth)
            elif manifest.NAME in entered.names():
                self._marked(entered, depth)
            elif rules.between:
                self._inside(entered, BETWEEN, found, depth)
            else:
                found.kept.append(entered.path)
                return
        finally:
            entered.leave()
        if self._before is not None:
            parent.remove_folder(name)


def _delete(folder: EnteredFolder, name: str, found: Found) -> None:
    try:
        nbytes = folder.remove(name)
    except FileNotFoundError:
        return
    if nbytes is None:
        found.kept.append(os.path.join(folder.path, name))
        return
    found.files += 1
    found.nbytes += nbytes


def _look(folder: EnteredFolder, ours: str, found: Found) -> tuple[dict[str, int], list[str], bytes]:
    """Files of ours with their sizes, folders, and a digest of which files these are; whatever else there is, is kept."""
    files: dict[str, int] = {}
    folders: list[str] = []
    digest = hashlib.blake2b(folder.identity().encode(), digest_size=16)
    for name, facts in folder.inside():
        if facts.kind == FOLDER:
            folders.append(name)
        elif facts.kind == FILE and re.fullmatch(ours, name, re.DOTALL):
            files[name] = facts.nbytes
            digest.update(f"/{facts.version} ".encode() + os.fsencode(name))
        else:
            found.kept.append(os.path.join(folder.path, name))
    return files, folders, digest.digest()
