"""Small documents in folders, and where they lie: what marks (`output/manifest.py`) ask of a place; and the one way in for JSON of any origin.

Results lie in plain directories, tiers on storages of any kind; both are marked in the same way. Ranks use this without a decoder; where there is one,
`output/typed_documents.py` gives documents their types.
"""

import json
import math
import os
import stat
from collections import Counter
from typing import Any, NamedTuple, Protocol

from tierscope.output.durable import write_file
from tierscope.plain_files import open_plain

MOST_BYTES = 1 << 20  # of a document, unless its reader expects more
MOST_NESTED = 64
FILE, FOLDER, LINK, OTHER = "file", "folder", "link", "other"  # what an entry of a folder can be


class FileFacts(NamedTuple):
    """`version`: another one when the file was replaced or written since. A tuple, because staging asks for one of every file."""

    kind: str  # FILE, FOLDER, LINK or OTHER
    nbytes: int
    version: tuple[int, ...] = ()


class DocumentSource(Protocol):
    """Errors are OSErrors with the numbers of the system."""

    def read_document(self, path: str, most: int = MOST_BYTES, /) -> bytes:
        """The first so many bytes of it; EINVAL or ELOOP: it is no plain file."""


class DocumentPlace(DocumentSource, Protocol):
    """The same to write to."""

    def make_folder(self, path: str, /) -> None:
        """And those above it; one that is there is left as it is."""

    def entries(self, folder: str, /) -> dict[str, str]:
        """Names → FILE, FOLDER, LINK or OTHER."""

    def write_document(self, path: str, content: bytes, /) -> None:
        """Durable when it returns; a kill at any moment leaves the old one or the new one."""


class PlainDirectories:
    """Directories of this system."""

    def make_folder(self, path: str, /) -> None:
        os.makedirs(path, exist_ok=True)

    def entries(self, folder: str, /) -> dict[str, str]:
        with os.scandir(folder) as scanned:
            return {entry.name: entry_kind(entry) for entry in scanned}

    def read_document(self, path: str, most: int = MOST_BYTES, /) -> bytes:
        with open_plain(path) as source:
            return source.read(most)

    def write_document(self, path: str, content: bytes, /) -> None:
        write_file(path, content)


def entry_kind(entry: "os.DirEntry[str]") -> str:
    if entry.is_symlink():
        return LINK
    if entry.is_file(follow_symlinks=False):
        return FILE
    return FOLDER if entry.is_dir(follow_symlinks=False) else OTHER


def facts_of(status: os.stat_result) -> FileFacts:
    mode = status.st_mode
    kind = FILE if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else LINK if stat.S_ISLNK(mode) else OTHER
    return FileFacts(kind, status.st_size, (status.st_ino, status.st_size, status.st_mtime_ns))


PLAIN = PlainDirectories()


def within(content: bytes, most: int) -> bytes:
    """What was read with room for a byte more; ValueError if that byte is there."""
    if len(content) > most:
        raise ValueError(f"is larger than {most >> 20} MiB")
    return content


def parse_json(content: bytes | str, finite: bool = True) -> Any:
    """Plain data; ValueError says why there is none. A key that is given twice means two things, so it is refused, as are numbers that
    are none, text that is no Unicode, and nesting beyond any document of ours. `finite`: false where infinity and NaN are news."""
    try:
        plain = json.loads(
            content,
            object_pairs_hook=_once,
            parse_constant=_refused_number if finite else None,
            parse_float=_finite if finite else None,
        )
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    _check_texts(plain)
    return plain


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ValueError(f"{twice[:64]} is given twice")
    return document


def _refused_number(name: str) -> float:
    raise ValueError(f"{name} is not a finite number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:32]} is too large a number")
    return number


def _check_texts(plain: Any) -> None:
    left = [(plain, 0)]
    while left:
        value, depth = left.pop()
        if depth > MOST_NESTED:
            raise ValueError("is nested too deeply")
        if isinstance(value, str):
            value.encode()  # a lone surrogate is a ValueError
        elif isinstance(value, dict):
            left += ((part, depth + 1) for pair in value.items() for part in pair)
        elif isinstance(value, list):
            left += ((part, depth + 1) for part in value)
