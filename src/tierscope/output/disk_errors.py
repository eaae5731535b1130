"""What the system says about files, as errors of ours: one translation for data, checkpoints, copies and results.

A full disk or quota is an OutOfSpaceError and storage that is away a StoppedError: the same command resumes after both. Whatever else the system
refuses is the user's to mend. The sentences differ by what was being done; all of them are here.
"""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tierscope.errors import AWAY, SHORT, OutOfSpaceError, ResultError, StoppedError, TierscopeError, UserError

FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
NOT_PLAIN = frozenset({errno.ELOOP, errno.EINVAL, errno.EISDIR})  # what `open_plain` says of a link, a pipe, a folder
_GO_ON = "free some space and rerun the same command to continue"


@dataclass(frozen=True, slots=True)
class Wording:
    """What follows the path, by what went wrong; `{said}` is the system's word for it. `other` None: not for us to explain."""

    full: str
    away: str
    other: str | None


GENERATING = Wording(
    f"{{said}} while generating; {_GO_ON}",
    "cannot be written: {said}; rerun the same command when the storage is back: existing data is kept",
    "cannot be written: {said}; check the directory",
)
LOOKING = Wording(*(["cannot be read: {said}; check the directory"] * 3))
COPYING = Wording(
    f"{{said}} while copying it here; {_GO_ON}",
    "cannot be written: {said}; check the directory",
    "cannot be written: {said}; check the directory",
)
CHECKPOINT = Wording(
    f"{{said}} while writing a checkpoint; {_GO_ON}",
    "a checkpoint cannot be written: {said}; finished runs are kept; rerun the same command when the storage is back",
    "a checkpoint cannot be written: {said}; check the directory",
)
RESULT = Wording(
    "cannot be written: {said}; finished runs are kept; free some space and rerun the same command",
    "cannot be written: {said}; finished runs are kept; fix the storage and rerun the same command",
    None,
)
TABLE = Wording(
    "cannot be written: {said}; free some space and rerun the same command",
    "cannot be written: {said}; check the directory and rerun the same command",
    "cannot be written: {said}; check the directory and rerun the same command",
)
READING = Wording(
    "cannot be read: {said}; free some space",
    "cannot be read: {said}; rerun the same command when the storage is back: no damage is known",
    "cannot be read: {said}; change its mode or restore it",
)


def plain(fix: str) -> Wording:
    """For a file that the user asked for: what to do about it, unless the disk is full."""
    other = f"cannot be written: {{said}}; {fix}"
    return Wording("cannot be written: {said}; free some space", other, other)


def said(error: OSError) -> str:
    """The system's word for it; a library's own words are long."""
    return os.strerror(error.errno) if error.errno else str(error).partition("\n")[0]


def is_full(error: OSError) -> bool:
    return error.errno in FULL


def explanation(error: OSError, path: str, wording: Wording) -> TierscopeError | OSError:
    """The error itself where the wording has no sentence for it."""
    kind: type[TierscopeError]
    if error.errno in SHORT:
        return StoppedError(
            f"{path}: cannot be opened: {said(error)}; {SHORT[error.errno]}, then rerun the same command"
        )
    if is_full(error):
        kind, sentence = OutOfSpaceError, wording.full
    elif error.errno in AWAY:
        kind, sentence = StoppedError, wording.away
    elif wording.other is not None:
        kind, sentence = UserError, wording.other
    else:
        return error
    return kind(f"{path}: {sentence.replace('{said}', said(error))}")


def unreadable(error: OSError, path: str) -> TierscopeError:
    """Why a file of ours cannot be read. It is not called damaged: nobody has seen what is in it."""
    if error.errno in NOT_PLAIN:
        return ResultError(
            f"{path}: cannot be read: it is a link or not a regular file; replace it with the file itself"
        )
    cause = explanation(error, path, READING)
    return ResultError(str(cause)) if isinstance(cause, UserError) else _ours(cause)


def _ours(error: TierscopeError | OSError) -> TierscopeError:
    assert isinstance(error, TierscopeError)  # this wording has a sentence for everything
    return error


@contextmanager
def explained(path: str, wording: Wording, by_name: bool = False) -> Iterator[None]:
    """`by_name`: the error's own file is named where it knows one, and `path` where it does not."""
    try:
        yield
    except OSError as error:
        raise explanation(error, (error.filename if by_name else None) or path, wording) from None
