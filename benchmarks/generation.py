"""Generation: our staging beside a plain write loop of the same files, in memory."""

import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.common import Result, interleaved, memory_folder, ratio
from tierscope.dataset.stage import Stager, StagingPlace
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study

FILES = 1500
NBYTES = 128 * 1024
STUDY = """
study: bench
workload:
  dataset: {{format: {format}, num_files_train: {files}, record_length_bytes: {nbytes}}}
system:
  tiers: {{gfs: {{path: "{{out}}/gfs"}}}}
"""


def generation() -> Iterator[Result]:
    with memory_folder() as folder:
        contenders: dict[str, Callable[[], float]] = {
            "plain": lambda: _plain(folder / "plain"),
            "raw": lambda: staged(folder / "ours", "raw"),
            "tfrecord": lambda: staged(folder / "ours", "tfrecord"),
            "npz": lambda: staged(folder / "ours", "npz"),
        }
        times = interleaved(contenders, 5)
    label = f"generating {NBYTES // 1024} KiB files"
    yield ratio(f"{label}: raw / plain write loop", times["plain"], times["raw"], 0.7)
    yield ratio(f"{label}: tfrecord with checksums / plain write loop", times["plain"], times["tfrecord"], 0.7)
    yield ratio(f"{label}: npz with checksums / plain write loop", times["plain"], times["npz"])


def _plain(folder: Path) -> float:
    folder.mkdir()
    content = os.urandom(NBYTES)
    start = time.monotonic()
    for file in range(FILES):
        fd = os.open(f"{folder}/{file:09d}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        os.write(fd, content)
        os.close(fd)
    seconds = time.monotonic() - start
    shutil.rmtree(folder)
    return seconds


def staged(folder: Path, form: str, files: int = FILES, nbytes: int = NBYTES) -> float:
    """Seconds that our staging takes for so many files, their table of checksums included; they are removed again."""
    start = time.monotonic()
    written(folder, form, files, nbytes)
    seconds = time.monotonic() - start
    shutil.rmtree(folder)
    return seconds


def written(folder: Path, form: str, files: int, nbytes: int) -> tuple[Study, Stager]:
    """A study's files and their table of checksums, below the folder."""
    study = parse_study(STUDY.format(format=form, files=files, nbytes=nbytes), "bench")
    stager = Stager(study, str(folder), StagingPlace(0, 1, 0, 0, 1))
    stager.claim()
    stager.write(lambda _: None)
    stager.sync()
    return study, stager
