"""Documents of ours by kind: how large one may be, which type it has, and what to do about one that is damaged. All that is JSON and was not made in this process comes in here."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from tierscope.errors import ResultError
from tierscope.output.disk_errors import unreadable
from tierscope.output.documents import within
from tierscope.plain_files import open_plain
from tierscope.plain_json import parse_json
from tierscope.trace.decode import wrong_field

T = TypeVar("T")
_MOST_SAID = 200


@dataclass(frozen=True, slots=True)
class DocumentKind(Generic[T]):
    """`decode`: plain data to the type, with a ResultError or a ValueError that says what does not fit; None: as msgspec does it."""

    of: type[T]
    fix: str
    most_bytes: int = 1 << 20
    decode: Callable[[Any], T] | None = None


def read_typed(path: str | os.PathLike[str], kind: DocumentKind[T]) -> T:
    """Raises FileNotFoundError where there is none; any other trouble is an error of ours that names the file."""
    path = os.fspath(path)
    try:
        with open_plain(path) as source:
            content = source.read(kind.most_bytes + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise unreadable(error, path) from None
    try:
        plain = parse_json(within(content, kind.most_bytes))
        return kind.decode(plain) if kind.decode else msgspec.convert(plain, kind.of)
    except ResultError as error:
        raise error.prefixed(path) from None
    except ValueError as error:  # msgspec's errors are some
        raise ResultError(f"{path}: is damaged: {_reason(error)}; {kind.fix}") from None


def _reason(error: ValueError) -> str:
    if isinstance(error, UnicodeError):
        return "it contains invalid Unicode"
    said = wrong_field(str(error)) if isinstance(error, msgspec.ValidationError) else str(error)
    return said[:_MOST_SAID]
