"""The folders of a dataset on a tier: made, marked, emptied. Nothing is done through a link."""

from tierscope.errors import ForeignDirectoryError
from tierscope.jsonable import JsonObject
from tierscope.output import manifest
from tierscope.output.disk_errors import GENERATING, LOOKING, explained
from tierscope.output.ours import NAMES, Rules
from tierscope.output.walk import remove_ours
from tierscope.storage.base import LINK, Storage
from tierscope.storage.files import DatasetFiles
from tierscope.storage.folders import enter


def claim_folder(storage: Storage, folder: str, kind: str, facts: JsonObject | None = None) -> JsonObject:
    """A folder on a tier, ours as `manifest.claim` has it; nothing is marked through a link."""
    refuse_link(storage, folder)
    return manifest.claim(folder, kind, storage, facts)


def names_facts(files: DatasetFiles) -> JsonObject:
    """What the mark of a dataset says of its files."""
    return {NAMES: files.names.facts()}


def remove_data(storage: Storage, files: DatasetFiles) -> None:
    """All files of a dataset, finished or not, and its subfolders; whatever else lies there stays."""
    remove_ours(enter(storage, files.folder), Rules(numbered=files.names))


def make_folders(storage: Storage, files: DatasetFiles) -> None:
    """All that must be there before files are written."""
    for folder in files.folders():
        refuse_link(storage, folder)
        with explained(files.folder, GENERATING):
            storage.make_folder(folder)


def refuse_link(storage: Storage, folder: str) -> None:
    """With its own sentence; no storage follows one in any case."""
    with explained(folder, LOOKING):
        facts = storage.look(folder)
    if facts is not None and facts.kind == LINK:
        raise ForeignDirectoryError(f"{folder}: is a symbolic link; replace it by a directory or remove it")
