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
from tierscope.storage.access import READ_FLAGS
from tierscope.storage.sums import SampleSums, stored_size

_now = time.monotonic_ns
Place = tuple[int, int, int]  # file, number inside it, tier
Places = Iterable[Place]
_AGAIN = "rerun the same command to create it again"


def truncated(path: str, inside: int, offset: int, wanted: int, got: int) -> TierscopeError:
    """A file that ends before the extent does."""
    return VanishedDataError(
        f"{path}: sample {inside}: truncated: {got} of {wanted} bytes at offset {offset}; "
        "rerun the same command: files of the wrong size are written again"
    )


def explain(error: OSError, path: str) -> TierscopeError:
    """What the system said about a file."""
    if error.errno in (errno.ENOENT, errno.ESTALE, errno.ENOTDIR):
        return VanishedDataError(f"{path}: has disappeared; rerun the same command to write missing files again")
    if error.errno in (errno.EACCES, errno.EPERM):
        return UserError(f"{path}: permission denied; change its mode")
    name = os.strerror(error.errno) if error.errno else str(error)
    if error.errno in AWAY:
        return StoppedError(
            f"{path}: cannot be read: {name}; finished runs are kept; rerun the same command when the storage is back"
        )
    return UserError(f"{path}: cannot be read: {name}; check the tier with 'tierscope doctor' or the system's log")


def explain_copy(error: OSError, path: str) -> Exception:
    """What the system said about a file that was to be written."""
    return explanation(error, path, COPYING)


def broken(source: SampleSource, place: Place, what: str) -> TierscopeError:
    """A sample that is not what was staged. Of a file with another size than it was staged with: that, since staging will see it too."""
    file, inside, tier = place
    path = source.files[tier].path(file)
    expected, nbytes = _staged_bytes(source, file, tier), _present_bytes(source, path, tier)
    if expected is None or nbytes is None or stored_size(nbytes) == stored_size(expected):
        return DamagedDataError(f"{path}: sample {inside}: {what}; delete the file and rerun to generate it again")
    if nbytes < expected:
        return truncated(path, inside, 0, expected, nbytes)
    return VanishedDataError(
        f"{path}: sample {inside}: the file has {nbytes} bytes instead of {expected}; rerun the same command: files of the wrong size are written again"
    )


def _staged_bytes(source: SampleSource, file: int, tier: int) -> int | None:
    """What a file was written with; modulo 2^32, where only content decides it."""
    known = source.format.file_bytes_of(file)
    if known is not None or source.checks is None:
        return known
    try:
        return source.checks.tables[tier].opened().size_of(file)
    except (OSError, ValueError):
        return None


def _present_bytes(source: SampleSource, path: str, tier: int) -> int | None:
    access = source.open_accesses()[tier]
    try:
        fd = access.open(path, READ_FLAGS)
        try:
            return access.size(fd)
        finally:
            access.close(fd)
    except OSError:
        return None
    finally:
        access.leave()


def verify_samples(
    source: SampleSource, samples: Sequence[int], places: Sequence[Place], payloads: Sequence[memoryview]
) -> None:
    """Compare all of these with the checksums that were kept when they were staged."""
    for tier in {place[2] for place in places}:
        own = [at for at, place in enumerate(places) if place[2] == tier]
        table = _table(source, tier)
        try:
            wrong = table.verify([samples[at] for at in own], [payloads[at] for at in own])
        except OSError as error:
            raise _no_table(error, table.path) from None
        if wrong is None:
            continue
        if not table.intact():
            raise VanishedDataError(f"{table.path}: is damaged; {_AGAIN}")
        place = places[own[wrong.at]]
        if not wrong.stored:
            path = source.files[tier].path(place[0])
            raise VanishedDataError(f"{path}: sample {place[1]}: has no checksum in {table.path}; {_AGAIN}")
        what = f"its checksum is {wrong.computed:#010x}, not {wrong.stored:#010x} as when it was staged: damaged, or another sample"
        raise broken(source, place, what)


def _table(source: SampleSource, tier: int) -> SampleSums:
    assert source.checks is not None, "samples are compared with checksums"
    table = source.checks.tables[tier]
    try:
        return table.opened()
    except OSError as error:
        raise _no_table(error, table.path) from None
    except ValueError as error:
        raise VanishedDataError(f"{table.path}: {error}; {_AGAIN}") from None


def _no_table(error: OSError, path: str) -> TierscopeError:
    """A table that cannot be read: away as any other file may be, or gone, short or no plain file, which staging mends."""
    if error.errno in AWAY or error.errno in (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM):
        return explain(error, path)
    return VanishedDataError(f"{path}: checksums cannot be read: {error.strerror}; {_AGAIN}")


def check_samples(source: SampleSource, places: Places, slots: Iterable[memoryview]) -> None:
    """Let the format look at every slot that was read; places are (file, number inside it, tier)."""
    check = source.format.check
    for (file, inside, tier), slot in zip(places, slots, strict=False):
        try:
            check(slot)
        except ValueError as error:
            raise broken(source, (file, inside, tier), str(error)) from None


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
                raise broken(source, (file, inside, tier), str(error)) from None
        raise
