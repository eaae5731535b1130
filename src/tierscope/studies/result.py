"""The directory of a study's results: ours, locked while in use, and about one study only."""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from tierscope.data import manifest
from tierscope.errors import ResultError, UserError
from tierscope.spec import dump
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.trace.durable import remove_leftovers, write_file

_STUDY = "study.yaml"
_LOCK = "lock"
SCRATCH = "tmp"  # of the running command, inside the result


@contextmanager
def open_result(out: str, study: Study) -> Iterator[None]:
    """Claim and lock the directory for this study; refuse another study's, or one in use."""
    manifest.claim(out, "result")
    fd = os.open(os.path.join(out, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{out}: another run is using it; wait for it to end or give another --out") from None
        _remember(out, study)
        for folder in ("", "runs", "ops"):
            remove_leftovers(os.path.join(out, folder))
        shutil.rmtree(os.path.join(out, SCRATCH), ignore_errors=True)
        yield
    finally:
        os.close(fd)


def _remember(out: str, study: Study) -> None:
    path = os.path.join(out, _STUDY)
    if not os.path.exists(path):
        write_file(path, dump.to_yaml(study).encode())
        return
    changes = dump.differences(read_study(out), study)
    if changes:
        shown = "; ".join(changes[:5]) + (f"; and {len(changes) - 5} more" if len(changes) > 5 else "")
        raise UserError(f"{out}: holds results of a different study ({shown}); give another --out, or undo the change")


def read_study(out: str) -> Study:
    """The resolved study of a result."""
    path = os.path.join(out, _STUDY)
    try:
        with open(path, encoding="utf-8") as source:
            return parse_study(source.read(1 << 20), path)
    except FileNotFoundError:
        raise ResultError(
            f"{out}: has no {_STUDY}; give the --out of an earlier 'tierscope run', or a CSV file"
        ) from None
    except (OSError, UnicodeDecodeError):
        raise ResultError(f"{path}: cannot be read; restore it or run the study again elsewhere") from None
