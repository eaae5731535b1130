"""The directory of a study's results: ours, locked while in use, and about one study only."""

import errno
import itertools
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from tierscope.errors import ForeignDirectoryError, ResultError, UserError
from tierscope.output import disk_errors, manifest
from tierscope.output.disk_errors import explained
from tierscope.output.durable import enter_folder, lock_file, make_folders
from tierscope.output.ours import DOCUMENTS, OPS, RUNS, SCRATCH, SCRATCH_RULES, WITH_RUNS, Rules
from tierscope.output.store import RunStore
from tierscope.output.walk import remove_folder, remove_leftovers
from tierscope.plain_files import open_plain
from tierscope.spec import dump, sweep
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.spec.tree import MAX_BYTES
from tierscope.trace.trace import RunKey

STUDY_FILE = "study.yaml"
_LOCK = "lock"
_FOLDERS = ("runs", "ops", "logs", "figures", SCRATCH)


@contextmanager
def open_result(out: str, study: Study, profiler: str | None = None, kind: str = "result") -> Iterator[RunStore]:
    """Claim and lock the directory for this study; refuse another study's, another profiler's, or one in use. Its runs, to be read and added to."""
    manifest.claim(out, kind)
    with explained(out, disk_errors.RESULT, by_name=True), locked(out):
        _remember(out, study)
        store = RunStore(out)
        refuse_other_runs(study, store, profiler)
        clear_scratch(out)
        yield store


def check_result(out: str, study: Study, profiler: str | None = None, kind: str = "result") -> None:
    """Refuse what `open_result` would refuse, but for one in use, which may be free later; nothing is made or written."""
    manifest.check(out, kind)
    if os.path.isdir(out):
        check_folders(out)
        _refuse_other_study(out, study)
        refuse_other_runs(study, RunStore(out), profiler)


@contextmanager
def locked(
    out: str, taken: str = "in use by another run; wait for it to finish or choose another --out"
) -> Iterator[None]:
    """Nobody else uses the directory of a result meanwhile; what a killed writer left there is cleared away."""
    check_folders(out)
    try:
        fd = lock_file(os.path.join(out, _LOCK))
    except BlockingIOError:
        raise UserError(f"{out}: {taken}") from None
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror}; choose another --out") from None
    try:
        for folder, names in (("", DOCUMENTS), ("runs", RUNS), ("ops", OPS)):
            remove_leftovers(os.path.join(out, folder), names, out)
        yield
    finally:
        os.close(fd)


def check_folders(out: str) -> None:
    """Say in good time which folder of a result is none, before hours pass: what writes there does not follow links in any case."""
    for path in (os.path.join(out, name) for name in _FOLDERS):
        try:
            os.close(enter_folder(path, out))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise _no_folder(path, error) from None


def _no_folder(path: str, error: OSError) -> UserError:
    fix = "replace it with a directory, or choose another --out"
    if error.errno == errno.ELOOP:
        return ForeignDirectoryError(f"{path}: is a symbolic link, which is not followed for results; {fix}")
    if error.errno == errno.ENOTDIR:
        return ForeignDirectoryError(f"{path}: is not a directory; {fix}")
    return UserError(f"{path}: cannot be entered: {error.strerror}; change its mode, or choose another --out")


def make_scratch(out: str, name: str = "") -> str:
    """A folder of the running command, which nobody else may look into."""
    folder = os.path.join(out, SCRATCH, name) if name else os.path.join(out, SCRATCH)
    made = make_folders(folder, out, 0o700)
    if name and os.listdir(made):
        raise ForeignDirectoryError(
            f"{folder}: contains files that Tierscope did not create; move them away, or choose another --out"
        )
    return made


def clear_scratch(out: str, name: str | None = None) -> None:
    """What a command left there, or one folder of it; what is mounted there, and what has other names, stays."""
    if name is None:
        remove_folder(os.path.join(out, SCRATCH), out, SCRATCH_RULES)
    else:
        remove_folder(os.path.join(out, SCRATCH, name), out, Rules(r".*", deep=True))


def _remember(out: str, study: Study) -> None:
    """The study is written down; another one may take its place only while there is no result of it.

    What says the same stays as it is: finished runs were made with that text, which an older version or the user wrote.
    """
    kept = _refuse_other_study(out, study)
    if kept is None or dump.differences(kept, study):
        manifest.put(out, {STUDY_FILE: dump.to_yaml(study).encode()})


def _refuse_other_study(out: str, study: Study) -> Study | None:
    """The study of the runs that are finished, which may differ in its goal alone; None: there is none."""
    if not (has_study(out) and RunStore(out).finished()):
        return None
    kept = read_study(out)
    if changes := dump.differences(replace(kept, goal=study.goal), study):
        shown = "; ".join(changes[:5]) + (f"; and {len(changes) - 5} more" if len(changes) > 5 else "")
        raise UserError(
            f"{out}: contains results of a different study ({shown}); use --out {shlex.quote(_free(out))}, or undo the change"
        )
    return kept


def _free(out: str) -> str:
    """A name beside it that nothing has."""
    plain = out.rstrip(os.sep)
    return next(name for number in itertools.count(2) if not os.path.lexists(name := f"{plain}-{number}"))


def refuse_other_runs(study: Study, store: RunStore, profiler: str | None = None) -> None:
    """Every finished run of the store must be one of this study, measured with this profiler; None: with the same as the others."""
    expected = {
        RunKey(point.index, repetition): point
        for point in sweep.points(study)
        for repetition in range(1, study.repetitions + 1)
    }
    store.refuse_others(expected, profiler)
    if strangers := store.finished() - expected.keys():
        raise ResultError(
            f"{store.path(min(strangers))}: is not a run of this study; move it away, or choose another --out"
        )


def has_study(out: str) -> bool:
    return os.path.exists(os.path.join(out, STUDY_FILE))


def read_study(out: str) -> Study:
    """The resolved study of a result."""
    path = os.path.join(out, STUDY_FILE)
    try:
        with open_plain(path) as source:
            text = source.read(MAX_BYTES + 1).decode()
    except FileNotFoundError:
        raise ResultError(f"{out}: {_why_no_study(manifest.kind_of(out))}") from None
    except OSError as error:
        raise disk_errors.unreadable(error, path) from None
    except UnicodeDecodeError:
        raise ResultError(f"{path}: is not UTF-8 text; restore it, or rerun the study with another --out") from None
    return parse_study(text, path)


def _why_no_study(kind: str | None) -> str:
    """`kind`: what the directory is marked as."""
    if kind in WITH_RUNS:
        return f"its {STUDY_FILE} is missing; restore it, or rerun the study with another --out"
    fix = "name the --out of 'tierscope run' or 'tierscope trace', or a CSV file"
    return (
        f"has no {STUDY_FILE}; {fix}"
        if kind is None
        else f"contains Tierscope's {kind}, without a study or runs; {fix}"
    )
