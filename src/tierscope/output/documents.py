"""Small documents in folders, and where they lie: what marks (`output/manifest.py`) ask of a place.

Results lie in plain directories, tiers on storages of any kind; both are marked in the same way.
"""

import os
import stat
from typing import NamedTuple, Protocol

from tierscope.output.durable import open_plain, write_file

MOST_BYTES = 1 << 20  # of a document, unless its reader expects more
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
        with os.scandir(folder) as found:
            return {entry.name: entry_kind(entry) for entry in found}

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


def facts_of(found: os.stat_result) -> FileFacts:
    mode = found.st_mode
    kind = FILE if stat.S_ISREG(mode) else FOLDER if stat.S_ISDIR(mode) else LINK if stat.S_ISLNK(mode) else OTHER
    return FileFacts(kind, found.st_size, (found.st_ino, found.st_size, found.st_mtime_ns))


PLAIN = PlainDirectories()
