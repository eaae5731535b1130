"""The directory of a study's results: ours, locked while in use, and about one study only."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tierscope.errors import ForeignDirectoryError, ResultError, UserError
from tierscope.output import disk_errors, manifest
from tierscope.output.disk_errors import explained
from tierscope.output.durable import lock_file, remove_leftovers, write_file
from tierscope.output.store import RunStore
from tierscope.plain_files import open_plain
from tierscope.spec import dump, sweep
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.spec.tree import MAX_BYTES
from tierscope.trace.trace import RunKey

_STUDY = "study.yaml"
_LOCK = "lock"
SCRATCH = ".scratch"  # of the running command, inside the result
_FOLDERS = ("runs", "ops", "logs", "figures", SCRATCH)


@contextmanager
def open_result(out: str, study: Study, profiler: str | None = None, kind: str = "result") -> Iterator[RunStore]:
    """Claim and lock the directory for this study; refuse another study's, another profiler's, or one in use. Its runs, to be read and added to."""
    manifest.claim(out, kind)
    with explained(out, disk_errors.RESULT, by_name=True), locked(out):
        _remember(out, study)
        store = RunStore(out)
        refuse_other_runs(study, store, profiler)
        shutil.rmtree(os.path.join(out, SCRATCH), ignore_errors=True)
        yield store


def check_result(out: str, study: Study, profiler: str | None = None, kind: str = "result") -> None:
    """Refuse what `open_result` would refuse, but for one in use, which may be free later; nothing is made or written."""
    manifest.check(out, kind)
    if os.path.isdir(out):
        refuse_links(out)
        _refuse_other_study(out, study)
        refuse_other_runs(study, RunStore(out), profiler)


@contextmanager
def locked(
    out: str, taken: str = "another run is using it; wait for it to end or give another --out"
) -> Iterator[None]:
    """Nobody else uses the directory of a result meanwhile; what a killed writer left there is cleared away."""
    refuse_links(out)
    try:
        fd = lock_file(os.path.join(out, _LOCK))
    except BlockingIOError:
        raise UserError(f"{out}: {taken}") from None
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}; give another --out") from None
    try:
        for folder in ("", "runs", "ops"):
            remove_leftovers(os.path.join(out, folder))
        yield
    finally:
        os.close(fd)


def refuse_links(out: str) -> None:
    """A folder of a result is in the result: nothing is written or deleted where a link leads."""
    for path in (os.path.join(out, name) for name in _FOLDERS):
        if os.path.islink(path):
            raise ForeignDirectoryError(
                f"{path}: is a symbolic link, and results are not written through one; put a directory in its place, or give another --out"
            )


def make_scratch(out: str, name: str = "") -> str:
    """A folder of the running command, which nobody else may look into."""
    os.makedirs(os.path.join(out, SCRATCH), 0o700, exist_ok=True)
    folder = os.path.join(out, SCRATCH, name)
    if name:
        os.mkdir(folder, 0o700)
    return folder


def _remember(out: str, study: Study) -> None:
    """The study is written down; another one may take its place only while there is no result of it."""
    _refuse_other_study(out, study)
    write_file(os.path.join(out, _STUDY), dump.to_yaml(study).encode())


def _refuse_other_study(out: str, study: Study) -> None:
    if os.path.exists(os.path.join(out, _STUDY)) and RunStore(out).finished():
        changes = dump.differences(replace(read_study(out), goal=study.goal), study)
        if changes:
            shown = "; ".join(changes[:5]) + (f"; and {len(changes) - 5} more" if len(changes) > 5 else "")
            raise UserError(
                f"{out}: holds results of a different study ({shown}); give another --out, or undo the change"
            )


def refuse_other_runs(study: Study, store: RunStore, profiler: str | None = None) -> None:
    """Every finished run of the store must be one of this study, measured with this profiler; None: with the same as the others."""
    expected = {
        RunKey(point.index, repetition): point
        for point in sweep.points(study)
        for repetition in range(1, study.repetitions + 1)
    }
    store.refuse_others(expected, profiler)
    if strangers := store.finished() - expected.keys():
        raise ResultError(f"{store.path(min(strangers))}: is no run of this study; move it away, or give another --out")


def has_study(out: str) -> bool:
    return os.path.exists(os.path.join(out, _STUDY))


def read_study(out: str) -> Study:
    """The resolved study of a result."""
    path = os.path.join(out, _STUDY)
    try:
        with open_plain(path) as source:
            text = source.read(MAX_BYTES + 1).decode()
    except FileNotFoundError:
        raise ResultError(
            f"{out}: has no {_STUDY}; give the --out of an earlier 'tierscope run' or 'tierscope trace', or a CSV file"
        ) from None
    except OSError as error:
        raise disk_errors.unreadable(error, path) from None
    except UnicodeDecodeError:
        raise ResultError(
            f"{path}: cannot be read: it is no UTF-8; restore it or run the study again elsewhere"
        ) from None
    return parse_study(text, path)


LOG_NAMES = r".+\.(darshan|pfw[.\w]*)"  # of all profilers
