"""What went wrong with a sample, in one line; the same line whichever loader met it."""

import errno
import os
import time
from collections.abc import Callable, Iterable, Sequence

from tierscope.errors import (
    AWAY,
    DamagedDataError,
    StoppedError,
    TierscopeError,
    UserError,
    VanishedDataError,
)
from tierscope.loaders.base import SampleSource
from tierscope.loaders.preprocess import Floats
from tierscope.output.disk_errors import COPYING, explanation

_now = time.monotonic_ns
Places = Iterable[tuple[int, int, int]]


def truncated(path: str, offset: int, wanted: int, got: int) -> TierscopeError:
    """A file that ends before the extent does."""
    return VanishedDataError(
        f"{path}: truncated: {got} of {wanted} bytes at offset {offset}; run the same command again: short files are written anew"
    )


def explain(error: OSError, path: str) -> TierscopeError:
    """What the system said about a file."""
    if error.errno in (errno.ENOENT, errno.ESTALE, errno.ENOTDIR):
        return VanishedDataError(f"{path}: vanished; run the same command again: missing files are written anew")
    if error.errno in (errno.EACCES, errno.EPERM):
        return UserError(f"{path}: no permission to read it; change its mode")
    name = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in AWAY:
        return StoppedError(
            f"{path}: cannot be read: {name}; finished runs are kept, run the same command again when the storage is back"
        )
    return UserError(f"{path}: cannot be read: {name}; check the tier with 'tierscope doctor' or the system's log")


def explain_copy(error: OSError, path: str) -> Exception:
    """What the system said about a file that was to be written."""
    return explanation(error, path, COPYING)


def damaged(path: str, inside: int, what: str) -> TierscopeError:
    return DamagedDataError(f"{path}: sample {inside}: {what}; delete the file and run again to have it generated anew")


def check_samples(source: SampleSource, places: Places, slots: Iterable[memoryview]) -> None:
    """Let the format look at every slot that was read; places are (file, number inside it, tier)."""
    check = source.format.check
    for (file, inside, tier), slot in zip(places, slots, strict=False):
        try:
            check(slot)
        except ValueError as error:
            raise damaged(source.files[tier].path(file), inside, str(error)) from None


def preprocess_samples(
    source: SampleSource, places: Callable[[], Places], payloads: Sequence[memoryview]
) -> tuple[list[Floats], int]:
    """What preprocessing makes of samples, and the nanoseconds that it takes."""
    if source.preprocess is None:
        return [], 0
    start = _now()
    try:
        return source.preprocess(payloads), _now() - start
    except ValueError:  # rare: look again which of them it was
        for (file, inside, tier), payload in zip(places(), payloads, strict=False):
            try:
                source.preprocess([payload])
            except ValueError as error:
                raise damaged(source.files[tier].path(file), inside, str(error)) from None
        raise
