"""Small documents in folders, and where they lie: what marks (`output/manifest.py`) ask of a place. JSON itself is read by `plain_json.py`.

Results lie in plain directories, tiers on storages of any kind; both are marked in the same way. Ranks use this without a decoder; where there is one,
`output/typed_documents.py` gives documents their types.
"""

import os
import stat
from typing import NamedTuple, Protocol

from tierscope.output.durable import write_file
from tierscope.plain_files import open_plain

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
