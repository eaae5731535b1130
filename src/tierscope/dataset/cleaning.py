"""What Tierscope made, deleted again: results, and data on tiers. Nothing else, whatever lies beside it.

Only directories with our mark are looked into, and in them only names that we give are ours. All others, every symbolic link and
whatever is mounted inside are kept and named; a directory that holds any keeps its mark. Directories are entered by descriptor and
never through a link, so that nobody can lead us elsewhere meanwhile. What a command is using is refused.

Deleted is what was listed: of every folder a digest of its files of ours (names, inodes, sizes, times) is remembered. A folder where
these are others by the time of the answer keeps its files, and one that was not there keeps all; both are named.
"""

import errno
import fcntl
import hashlib
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field

from tierscope.errors import ForeignDirectoryError, ResultError, UserError
from tierscope.output import manifest
from tierscope.output.result import LOG_NAMES, SCRATCH, read_study
from tierscope.plan.file_format import make_format
from tierscope.spec import sweep
from tierscope.storage.files import DatasetFiles, tier_root

_LOCK = "lock"
_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OF_ALL = rf"{re.escape(manifest.NAME)}|{_LOCK}"
_UNFINISHED = r"(\.\d+\.tmp)?"  # of a killed writer
_DATA = ("dataset", "copies", "checkpoints")
_DEEPEST = 64


@dataclass(frozen=True, slots=True)
class _Rules:
    """Names of ours in a directory: files, and folders with the rules inside them.

    `between`: other folders lead to marked ones. `deep`: folders of all names, with the same rules.
    """

    files: str
    folders: tuple[tuple[str, "_Rules"], ...] = ()
    between: bool = False
    deep: bool = False


_NOTHING = r"(?!)"
_BETWEEN = _Rules(_NOTHING, between=True)
_SAMPLES = r"\d{9,}\.[a-z0-9]+(\.part)?"
_DATASET = _Rules(_SAMPLES, ((r"\d{6}", _Rules(_SAMPLES)),))
_CHECKPOINT = _Rules(r"(part|weights|optimizer)-\d{6,}\.bin|rank-\d{6,}\.json|checkpoint\.json")
_RUN = r"\d{4,}-r\d+"
_FIGURES = "|".join(
    (
        "time|breakdown|estimate|goal|processes|beside",
        "training-(throughput|phases)|reads-(sizes|ranks|time|hidden)",
        "memory|roofline|movement|scaling|decomposition|efficiency",
    )
)
_RESULT = _Rules(
    r"study\.yaml|(summary|tune|training|requirements|efficiency|shuffling)\.json|(report|requirements)\.html|shuffling-\w+\.(svg|png)",
    (
        ("runs", _Rules(rf"{_RUN}\.parquet")),
        ("ops", _Rules(rf"{_RUN}-node\d+\.parquet|files\.parquet")),
        ("figures", _Rules(rf"({_FIGURES})\.(svg|png)")),
        ("logs", _Rules(LOG_NAMES, ((_RUN, _Rules(LOG_NAMES)),))),
        (re.escape(SCRATCH), _Rules(r".*", deep=True)),
    ),
    between=True,
)
_KINDS = {
    "tier": _Rules(_NOTHING),
    "dataset": _DATASET,
    "copies": _DATASET,
    "checkpoints": _Rules(_NOTHING, ((r"step-\d{6,}(\.part)?", _CHECKPOINT),)),
    "probe": _Rules(_NOTHING, ((r"\d+", _Rules(r"\d{6}\.bin")),)),
    **dict.fromkeys(("result", "simulation", "trace", "import", "report", "tune"), _RESULT),
    **dict.fromkeys(("training", "requirements", "efficiency", "shuffling"), _RESULT),
}


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
class Cleaning:
    """What would be deleted; nobody uses it meanwhile."""

    found: tuple[Found, ...]
    roots: tuple[str, ...]
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
    roots = list(dict.fromkeys(root for folder in folders for root in _roots(os.path.abspath(folder), only_data)))
    roots = [root for root in roots if not any(root != other and root.startswith(other + "/") for other in roots)]
    walk = _Walk()
    with ExitStack() as held:
        for root in roots:
            walk.root(root)
        for place in {*(found.path for found in walk.found), *map(os.path.dirname, roots)}:
            _hold(place, held)
        yield Cleaning(tuple(walk.found), tuple(roots), walk.listed)


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
    return _kind_at(folder, folder)


def _kind_at(place: str, folder: str) -> str:
    """`place`: where to read the mark; `folder`: what the reader knows it by."""
    try:
        mark = manifest.read(place)
    except ResultError as error:
        raise ResultError(str(error).replace(place, folder)) from None
    except OSError as error:
        raise UserError(f"{folder}: cannot be read: {error.strerror}; change its mode") from None
    if mark is None:
        raise ForeignDirectoryError(
            f"{folder}: was not made by Tierscope (it has no {manifest.NAME}); give a result, or a tier's directory"
        )
    kind = mark.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ForeignDirectoryError(
            f"{folder}: its {manifest.NAME} says that it is a {str(kind)[:40]!r}, which this Tierscope does not know; "
            "update it, or delete that directory yourself"
        )
    return kind


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


def _mount_of(fd: int) -> str:
    """The mount that a descriptor is on: one for every mount, also of the same filesystem at another place."""
    path = f"/proc/self/fdinfo/{fd}"
    with open(path, encoding="ascii") as about:
        found = next((line for line in about if line.startswith("mnt_id:")), None)
    if found is None:
        raise OSError(errno.ENOTSUP, "this system does not say what is mounted where", path)
    return found


class _Walk:
    """Through directories of ours: listing them, or deleting what an earlier walk has listed."""

    def __init__(self, before: Mapping[str, bytes] | None = None) -> None:
        self._before = before
        self.listed: dict[str, bytes] = {}  # by folder
        self.found: list[Found] = []

    def root(self, path: str) -> None:
        try:
            fd = os.open(path, _ENTER)
        except OSError as error:
            raise UserError(f"{path}: cannot be entered: {error.strerror}; give a directory of Tierscope") from None
        try:
            self._marked(fd, path, 0)
        except OSError as error:
            raise UserError(
                f"{error.filename or path}: cannot be deleted: {error.strerror}; change its mode, and clean again"
            ) from None
        finally:
            os.close(fd)
        if self._before is not None:
            with suppress(OSError):  # not empty, or where something is mounted
                os.rmdir(path)

    def _marked(self, fd: int, path: str, depth: int) -> None:
        kind = _kind_at(f"/proc/self/fd/{fd}", path)
        found = Found(path, kind)
        self.found.append(found)
        self._inside(fd, path, _KINDS[kind], found, depth, _OF_ALL)
        if self._before is not None and path not in found.changed and set(os.listdir(fd)) <= {manifest.NAME, _LOCK}:
            for name in (_LOCK, manifest.NAME):
                self._delete(fd, name, path, found)

    def _inside(self, fd: int, path: str, rules: _Rules, found: Found, depth: int, also: str = _NOTHING) -> None:
        """`also`: more files of ours, which stay until the directory is empty but for them."""
        files, folders, digest = _look(fd, path, rf"({rules.files}|{also}){_UNFINISHED}", found)
        self.listed[path] = digest
        if self._before is None:
            found.files += len(files)
            found.nbytes += sum(files.values())
        elif self._before.get(path) == digest:
            for name in files:
                if not re.fullmatch(also, name):
                    self._delete(fd, name, path, found)
        else:
            found.changed.append(path)
            if path not in self._before:
                return
        for name in folders:
            self._folder(fd, name, os.path.join(path, name), rules, found, depth + 1)

    def _folder(self, fd: int, name: str, path: str, rules: _Rules, found: Found, depth: int) -> None:
        inner = next((inside for names, inside in rules.folders if re.fullmatch(names, name, re.DOTALL)), None)
        inner = rules if rules.deep else inner
        inside = os.open(name, _ENTER, dir_fd=fd)
        try:
            if depth > _DEEPEST or _mount_of(inside) != _mount_of(fd):
                found.kept.append(path)
                return
            if inner is not None:
                self._inside(inside, path, inner, found, depth)
            elif manifest.NAME in os.listdir(inside):
                self._marked(inside, path, depth)
            elif rules.between:
                self._inside(inside, path, _BETWEEN, found, depth)
            else:
                found.kept.append(path)
                return
        finally:
            os.close(inside)
        if self._before is not None:
            with suppress(OSError):
                os.rmdir(name, dir_fd=fd)

    def _delete(self, fd: int, name: str, path: str, found: Found) -> None:
        try:
            nbytes = os.stat(name, dir_fd=fd, follow_symlinks=False).st_size
            os.unlink(name, dir_fd=fd)
        except FileNotFoundError:
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            found.kept.append(os.path.join(path, name))  # something is mounted on it
            return
        found.files += 1
        found.nbytes += nbytes


def _look(fd: int, path: str, ours: str, found: Found) -> tuple[dict[str, int], list[str], bytes]:
    """Files of ours with their sizes, folders, and a digest of which files these are; whatever else there is, is kept."""
    files: dict[str, int] = {}
    folders: list[str] = []
    digest = hashlib.blake2b(str(os.fstat(fd).st_ino).encode(), digest_size=16)
    for name in sorted(os.listdir(fd)):
        try:
            about = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            continue
        if stat.S_ISDIR(about.st_mode):
            folders.append(name)
        elif stat.S_ISREG(about.st_mode) and re.fullmatch(ours, name, re.DOTALL):
            files[name] = about.st_size
            digest.update(f"/{about.st_ino} {about.st_size} {about.st_mtime_ns} ".encode() + os.fsencode(name))
        else:
            found.kept.append(os.path.join(path, name))
    return files, folders, digest.digest()
