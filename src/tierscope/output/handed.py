"""What `handover` wrote, read back where there is a decoder. Only these types are made, and no pickles are read."""

import struct
import tokenize
import zipfile
import zlib
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from tierscope.errors import ResultError
from tierscope.output.disk_errors import unreadable
from tierscope.output.handed_check import check_ranks
from tierscope.output.handover import ARRAY, SCHEMA_VERSION, TREE, HandedRun
from tierscope.plain_files import open_plain
from tierscope.plain_json import parse_json
from tierscope.trace.decode import wrong_field
from tierscope.trace.rank_trace import RankTrace

_MOST_BYTES = 1 << 28  # unpacked
_MOST_ARRAYS = 1 << 17
# What opening a damaged archive, and arrays in it, raises.
_BROKEN = (
    *(ValueError, EOFError, NotImplementedError, RuntimeError, KeyError, TypeError, SyntaxError, OverflowError),
    *(zipfile.BadZipFile, zlib.error, tokenize.TokenError, struct.error),
)
_Arrays = dict[str, np.ndarray[Any, Any]]


class HandedTree(msgspec.Struct, frozen=True, kw_only=True):
    """Everything but the arrays."""

    schema_version: int
    about: HandedRun
    ranks: Annotated[list[RankTrace], Meta(min_length=1)]


def load(path: str) -> tuple[HandedRun, list[RankTrace]]:
    """A run that was handed over; nothing in the file is trusted."""
    try:
        arrays = _arrays(path)
        plain = parse_json(arrays.pop(TREE, np.zeros(0, np.uint8)).tobytes(), finite=False)
    except OSError as error:
        raise unreadable(error, path) from None
    except _BROKEN as error:
        raise _refused(path, (str(error).splitlines() or [type(error).__name__])[0]) from None
    try:
        tree = msgspec.convert(plain, HandedTree, dec_hook=lambda _, value: _array(value, arrays))
        check_ranks(tree.ranks)
    except msgspec.ValidationError as error:
        raise _refused(path, wrong_field(str(error))) from None
    except ValueError as error:
        raise _refused(path, str(error)) from None
    if tree.schema_version != SCHEMA_VERSION:
        raise _refused(path, "has another version")
    return tree.about, tree.ranks


def _refused(path: str, reason: str) -> ResultError:
    return ResultError(f"{path}: is not a run from --hand-over ({reason}); copy it again, or measure it again")


def _arrays(path: str) -> _Arrays:
    with open_plain(path) as file:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > _MOST_BYTES or len(entries) > _MOST_ARRAYS:
                raise ValueError("is too large")
            if len({entry.filename for entry in entries}) < len(entries):
                raise ValueError("contains an array twice")
        file.seek(0)
        with np.load(file, allow_pickle=False) as loaded:
            return {name: loaded[name] for name in loaded.files}


def _array(value: Any, arrays: _Arrays) -> np.ndarray[Any, Any]:
    """What stands for an array in the tree is its name."""
    name = value.get(ARRAY) if isinstance(value, dict) else None
    if not isinstance(name, str) or name not in arrays:
        raise ValueError("must be an array of this file")
    return arrays[name]
