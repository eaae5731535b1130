"""The marker that says a directory is ours. We write into a directory, or delete from it, only if it carries one.

`place`: what the directory lies on, where that is a tier's storage.
"""

import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from tierscope.errors import SHORT, ForeignDirectoryError, ResultError, UserError
from tierscope.jsonable import JsonObject
from tierscope.output import disk_errors
from tierscope.output.documents import MOST_BYTES, PLAIN, DocumentPlace, DocumentSource, within
from tierscope.output.durable import TEMPORARY, temporary_name, write_file
from tierscope.output.ours import FIXED, LOGS, MARK, RESULTS, WITH_LOGS
from tierscope.plain_json import parse_json

NAME = "tierscope.json"
SCHEMA_VERSION = 1
LEFT = rf"{MARK}\.\d+\.tmp"  # by a killed writer of an older version
_MOST_LISTED_BYTES = 1 << 19  # of a mark: logs beyond this are not listed, and stay when a result is deleted


def claim(directory: str, kind: str, place: DocumentPlace = PLAIN, facts: JsonObject | None = None) -> JsonObject:
    """Make the directory ours: new or empty ones are marked, marked ones are read, all others are refused.

    `facts`: what a new mark says beside its kind. That of a result lists files with fixed names, of which there is none yet (`put`).
    """
    if kind in RESULTS:
        refuse_no_text(directory)
    with _explained(directory):
        place.make_folder(directory)
        mark = _of_kind(directory, kind, place)
        if mark is None:
            lists = [FIXED] * (kind in RESULTS) + [LOGS] * (kind in WITH_LOGS)
            write(directory, kind, {name: [] for name in lists} | (facts or {}), place)
        return mark or {}


def put(directory: str, files: Mapping[str, bytes]) -> list[str]:
    """Write files with fixed names into a directory of ours, each durably; their paths. The mark lists them before they are there (`record`).

    A mark without a list was written before there were lists, and stays so: then all names of its kind are ours.
    """
    record(directory, files)
    paths = [os.path.join(directory, name) for name in files]
    for path, content in zip(paths, files.values(), strict=True):
        write_file(path, content, directory)
    return paths


def record(directory: str, names: Iterable[str], key: str = FIXED, inside: str = "") -> None:
    """Have the mark list these files, whose names start from the folder `inside`; refuse what `refuse_strangers` refuses."""
    mark = read(directory)
    known = mark.get(key) if mark else None
    if mark and isinstance(known, list) and (missing := set(names).difference(map(str, known))):
        _refuse_existing(os.path.join(directory, inside), missing)
        write(directory, str(mark.get("kind")), {**mark, key: sorted({*map(str, known), *missing})})


def refuse_strangers(directory: str, names: Iterable[str]) -> None:
    """A file that is there and that the mark does not list is somebody else's: nothing may be written in its place."""
    known = (read(directory) or {}).get(FIXED)
    if isinstance(known, list):
        _refuse_existing(directory, set(names).difference(map(str, known)))


def _refuse_existing(directory: str, names: Iterable[str]) -> None:
    for name in sorted(names):
        path = os.path.join(directory, name)
        if os.path.lexists(path):
            raise ForeignDirectoryError(
                f"{path}: was not created by Tierscope; move it away, or choose another directory"
            )


def record_logs(directory: str, names: Sequence[str]) -> None:
    """As `record`, of logs from the folder of logs on; not of so many that a mark cannot hold them."""
    known = recorded_logs(directory) or []
    if sum(len(name) for name in (*known, *names)) <= _MOST_LISTED_BYTES:
        record(directory, names, LOGS, LOGS)


def recorded_logs(directory: str) -> list[str] | None:
    """None: the mark of an older version does not say."""
    known = (read(directory) or {}).get(LOGS)
    return [str(name) for name in known] if isinstance(known, list) else None


def check(directory: str, kind: str) -> None:
    """Refuse what `claim` would refuse; nothing is made or written."""
    refuse_no_text(directory)
    with _explained(directory):
        try:
            is_directory = stat.S_ISDIR(os.stat(directory).st_mode)
        except FileNotFoundError:
            if not os.path.islink(directory):
                return
            is_directory = False  # a link to nothing
        if not is_directory:
            raise FileExistsError
        _of_kind(directory, kind, PLAIN)


def check_writable(directory: str) -> None:
    """Refuse, before anything takes long, where `claim` could make no directory or no file: a folder is made there, and removed."""
    with _explained(directory):
        nearest = directory
        while not os.path.lexists(nearest):
            nearest = os.path.dirname(nearest)
        trial = os.path.join(nearest, temporary_name())
        os.mkdir(trial)
        os.rmdir(trial)


def refuse_no_text(directory: str) -> None:
    """Tables and pages know their files by text."""
    try:
        directory.encode()
    except UnicodeEncodeError:
        raise UserError(f"{directory}: its name is not valid UTF-8; rename it, or choose another directory") from None


@contextmanager
def _explained(directory: str) -> Iterator[None]:
    """What the system says of a directory that cannot be used, with what to do about it."""
    try:
        yield
    except FileExistsError:
        raise UserError(f"{directory}: is a file, not a directory; choose a directory") from None
    except NotADirectoryError:
        raise UserError(f"{directory}: part of this path is a file; choose another directory") from None
    except PermissionError:
        raise UserError(f"{directory}: permission denied; change its mode or choose another directory") from None
    except OSError as error:
        if error.errno in SHORT:
            raise disk_errors.unreadable(error, directory) from None
        if isinstance(error, FileNotFoundError) or error.errno is not None:
            raise UserError(f"{directory}: cannot be used: {error.strerror}; choose another directory") from None
        raise


def _of_kind(directory: str, kind: str, place: DocumentPlace) -> JsonObject | None:
    """The marker's content; None: the directory is empty. All that is not ours, or of another kind, is refused."""
    mark = read(directory, place)
    if mark is None:
        entries = [name for name in place.entries(directory) if not re.fullmatch(rf"{LEFT}|{TEMPORARY}", name)]
        if entries:
            raise ForeignDirectoryError(
                f"{directory}: is not empty and was not created by Tierscope (it contains {entries[0]}); "
                f"choose a new or empty directory, e.g. {os.path.join(directory, 'tierscope')}"
            )
        return None
    if mark.get("kind") != kind:
        raise ForeignDirectoryError(
            f"{directory}: contains Tierscope's {mark.get('kind')}, not a {kind}; choose a separate directory"
        )
    return mark


def read(directory: str, place: DocumentSource = PLAIN) -> JsonObject | None:
    """The marker's content, or None where there is none."""
    path = os.path.join(directory, NAME)
    try:
        content = parse_json(within(place.read_document(path, MOST_BYTES + 1), MOST_BYTES))
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in disk_errors.NOT_PLAIN:
            raise
        raise ResultError(
            f"{path}: is a link or not a regular file, so not a Tierscope marker; choose another directory"
        ) from None
    except ValueError:
        raise ResultError(
            f"{path}: is damaged; if everything in {directory} is Tierscope's, remove that directory and rerun"
        ) from None
    if not isinstance(content, dict) or not _is_whole(content.get("schema_version")):
        raise ResultError(f"{path}: is not a Tierscope marker; choose another directory")
    if content["schema_version"] > SCHEMA_VERSION:
        raise ResultError(
            f"{path}: schema version {content['schema_version']} is newer than this Tierscope supports ({SCHEMA_VERSION}); update Tierscope"
        )
    for name, of in _FIELDS.items():
        if name in content and not isinstance(content[name], of):
            raise ResultError(
                f"{path}: is not a Tierscope marker ({name} must be {of.__name__}); choose another directory"
            )
    return content


_FIELDS = {
    "kind": str,
    "made_by": str,
    "complete": bool,
    "host": str,
    "boot_id": str,
}  # those that anything is decided by


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def kind_of(directory: str) -> str | None:
    """What a directory is marked as; None: it is not."""
    try:
        mark = read(directory)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise disk_errors.unreadable(error, os.path.join(directory, NAME)) from None
    return None if mark is None else mark.get("kind")


def write(directory: str, kind: str, content: JsonObject, place: DocumentPlace = PLAIN) -> None:
    head = {"schema_version": SCHEMA_VERSION, "made_by": "tierscope", "kind": kind}
    whole = head | content | head
    place.write_document(os.path.join(directory, NAME), (json.dumps(whole, indent=1) + "\n").encode())
