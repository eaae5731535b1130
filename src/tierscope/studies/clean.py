"""What Tierscope made, deleted again: results, and data on tiers. Nothing else, whatever lies beside it.

Only directories with our mark are looked into, and in them only names that we give are ours. All others, and every symbolic link, are
kept and named; a directory that holds any keeps its mark. Directories are entered by descriptor and never through a link, so that
nobody can lead us elsewhere meanwhile. What a command is using is refused.
"""

import fcntl
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from tierscope.data import manifest
from tierscope.data.stage import make_format
from tierscope.errors import ForeignDirectoryError, UserError
from tierscope.spec import sweep
from tierscope.studies.result import read_study
from tierscope.tiers.files import DatasetFiles, tier_root

_LOCK = "lock"
_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OF_ALL = rf"{re.escape(manifest.NAME)}|{_LOCK}|.+\.\d+\.tmp"
_DATA = ("dataset", "copies", "checkpoints")


@dataclass(frozen=True, slots=True)
class _Rules:
    """Names of ours in a directory: files, and folders with the rules inside them. `between`: other folders lead to marked ones."""

    files: str
    folders: tuple[tuple[str, "_Rules"], ...] = ()
    between: bool = False


_EVERYTHING = _Rules(r".*", ((r".*", _Rules(r".*", ((r".*", _Rules(r".*", ((r".*", _Rules(r".*")),))),))),))
_BETWEEN = _Rules(r"(?!)", between=True)
_SAMPLES = r"\d{9,}\.[a-z0-9]+(\.part)?"
_DATASET = _Rules(_SAMPLES, ((r"\d{6}", _Rules(_SAMPLES)),))
_CHECKPOINT = _Rules(r"(part|weights|optimizer)-\d{6,}\.bin|rank-\d{6,}\.json|checkpoint\.json")
_KINDS = {
    "tier": _Rules(r"(?!)"),
    "dataset": _DATASET,
    "copies": _DATASET,
    "checkpoints": _Rules(r"(?!)", ((r"step-\d{6,}(\.part)?", _CHECKPOINT),)),
    "probe": _Rules(r"(?!)", ((r"\d+", _Rules(r"\d{6}\.bin")),)),
}
_RESULT = _Rules(
    r"study\.yaml|(summary|tune|training|requirements|efficiency|shuffling)\.json|(report|requirements|efficiency)\.html|shuffling-\w+\.(svg|png)",
    ((r"runs|ops|logs|figures|\.scratch", _EVERYTHING),),
    between=True,
)


@dataclass(slots=True)
class Found:
    """A marked directory: how much of it is ours, and what is not."""

    path: str
    kind: str
    files: int = 0
    nbytes: int = 0
    kept: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cleaning:
    """What would be deleted; nobody uses it meanwhile."""

    found: tuple[Found, ...]
    roots: tuple[str, ...]

    def delete(self) -> None:
        for root in self.roots:
            _Walk(delete=True).root(root)


@contextmanager
def cleaning(folders: Sequence[str], only_data: bool) -> Iterator[Cleaning]:
    """Look at what these directories hold, and hold it. `only_data`: of results, the data of their studies on the tiers, and not themselves."""
    roots = list(dict.fromkeys(root for folder in folders for root in _roots(os.path.abspath(folder), only_data)))
    roots = [root for root in roots if not any(root != other and root.startswith(other + "/") for other in roots)]
    walk = _Walk(delete=False)
    with ExitStack() as held:
        for root in roots:
            walk.root(root)
        for place in {*(found.path for found in walk.found), *map(os.path.dirname, roots)}:
            _hold(place, held)
        yield Cleaning(tuple(walk.found), tuple(roots))


def _roots(folder: str, only_data: bool) -> list[str]:
    kind = _kind_of(folder)
    if not only_data or kind in ("tier", *_DATA):
        return [folder]
    study = read_study(folder)
    found = []
    for point in sweep.points(study):
        dataset, suffix = point.study.workload.dataset, make_format(point.study).suffix
        for tier in point.study.system.tiers:
            for node in range(point.study.system.nodes if tier.visible_to == "node" else 1):
                for copies in (False, True):
                    files = DatasetFiles.of(tier, folder, node, dataset, point.study.seed, suffix, copies=copies)
                    found.append(files.folder)
                found.append(os.path.join(tier_root(tier, folder, node), "checkpoints"))
    return [path for path in dict.fromkeys(found) if os.path.lexists(path)]


def _kind_of(folder: str) -> str:
    """The kind of a directory of ours; refuses all others."""
    if os.path.islink(folder):
        raise ForeignDirectoryError(f"{folder}: is a symbolic link; give the directory itself")
    if not os.path.isdir(folder):
        raise UserError(f"{folder}: there is no such directory")
    try:
        mark = manifest.read(folder)
    except OSError as error:
        raise UserError(f"{folder}: cannot be read: {error.strerror}; change its mode") from None
    if mark is None:
        raise ForeignDirectoryError(
            f"{folder}: was not made by Tierscope (it has no {manifest.NAME}); give a result, or a tier's directory"
        )
    return str(mark.get("kind"))


def _hold(folder: str, held: ExitStack) -> None:
    """Refuse what is in use: every command that uses a result or a tier has a lock there first."""
    try:
        fd = os.open(os.path.join(folder, _LOCK), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return  # nobody ever did, or it is not a lock of ours
    held.callback(os.close, fd)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise UserError(f"{folder}: is in use by another command; wait for it to end") from None
    except OSError:
        pass  # a filesystem without locks


class _Walk:
    """Through directories of ours: counting, or deleting."""

    def __init__(self, delete: bool) -> None:
        self._delete = delete
        self.found: list[Found] = []

    def root(self, path: str) -> None:
        try:
            fd = os.open(path, _ENTER)
        except OSError as error:
            raise UserError(f"{path}: cannot be entered: {error.strerror}; give a directory of Tierscope") from None
        try:
            self._marked(fd, path)
        except OSError as error:
            raise UserError(
                f"{error.filename or path}: cannot be deleted: {error.strerror}; change its mode, and clean again"
            ) from None
        finally:
            os.close(fd)
        if self._delete:
            with suppress(OSError):  # not empty, or where something is mounted
                os.rmdir(path)

    def _marked(self, fd: int, path: str) -> None:
        kind = _kind_of(path)
        found = Found(path, kind)
        self.found.append(found)
        self._inside(fd, path, _KINDS.get(kind, _RESULT), found, _OF_ALL)
        if self._delete and set(os.listdir(fd)) <= {manifest.NAME, _LOCK}:
            for name in (_LOCK, manifest.NAME):
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=fd)

    def _inside(self, fd: int, path: str, rules: _Rules, found: Found, also: str = r"(?!)") -> None:
        """`also`: more files of ours, which stay until the directory is empty but for them."""
        for name in sorted(os.listdir(fd)):
            about = os.stat(name, dir_fd=fd, follow_symlinks=False)
            whole = os.path.join(path, name)
            if stat.S_ISDIR(about.st_mode):
                self._folder(fd, name, whole, rules, found)
            elif not stat.S_ISREG(about.st_mode) or not re.fullmatch(f"{rules.files}|{also}", name, re.DOTALL):
                found.kept.append(whole)
            else:
                found.files += 1
                found.nbytes += about.st_size
                if self._delete and name not in (manifest.NAME, _LOCK):
                    os.unlink(name, dir_fd=fd)

    def _folder(self, fd: int, name: str, path: str, rules: _Rules, found: Found) -> None:
        inner = next((inside for names, inside in rules.folders if re.fullmatch(names, name, re.DOTALL)), None)
        inside = os.open(name, _ENTER, dir_fd=fd)
        try:
            if inner is not None:
                self._inside(inside, path, inner, found)
            elif manifest.NAME in os.listdir(inside):
                self._marked(inside, path)
            elif rules.between:
                self._inside(inside, path, _BETWEEN, found)
            else:
                found.kept.append(path)
        finally:
            os.close(inside)
        if self._delete:
            with suppress(OSError):
                os.rmdir(name, dir_fd=fd)
