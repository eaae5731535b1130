"""A disk that fills up while data is generated: said, and gone on with after space was made. Needs root for a small tmpfs."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.small_disks import mounted
from tests.tiny import TINY

pytestmark = pytest.mark.faults


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "small", "4m")


def run(study: Path, out: Path, *settings: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tierscope.cli.main", "run", str(study), "--out", str(out), "--quiet"]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_too_little_free_space_is_found_out_before_writing(small_disk: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(TINY)
    (small_disk / "hog").write_bytes(bytes(3 << 20))
    done = run(
        study, tmp_path / "out", f"gfs.path={small_disk}/gfs", "record_length_bytes=100 KiB", "lfs.capacity=null"
    )
    assert done.returncode == 2
    assert "must be written, but only" in done.stderr
    assert not list(small_disk.rglob("*.raw"))


def test_too_small_a_disk_is_found_out_at_once(small_disk: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(TINY)
    done = run(study, tmp_path / "out", f"gfs.path={small_disk}/gfs", "record_length_bytes=1 MiB", "lfs.capacity=null")
    assert done.returncode == 2
    assert "24 MiB must be written, but the disk at" in done.stderr


def test_too_few_inodes_are_found_out_before_writing(small_disk: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(TINY.replace("num_files_train: 24", "num_files_train: 800"))
    subprocess.run(["mount", "-o", "remount,nr_inodes=600", small_disk], check=True)
    done = run(study, tmp_path / "out", f"gfs.path={small_disk}/gfs", "lfs.capacity=null", "sweep={}")
    assert done.returncode == 2
    assert "inodes are free" in done.stderr


def hog(folder: Path) -> None:
    """Another user, who takes all of the space as soon as some files are there, of which only the last may be half written."""
    deadline = time.monotonic() + 60
    while len(list(folder.rglob("*.raw"))) < 50 and time.monotonic() < deadline:
        time.sleep(0.001)
    with (folder / "hog").open("wb") as file:
        try:
            while True:
                file.write(bytes(1 << 16))
        except OSError:
            pass
        with contextlib.suppress(OSError):
            file.close()


def test_a_disk_that_fills_up_meanwhile_is_resumable(small_disk: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(TINY.replace("num_files_train: 24", "num_files_train: 12000"))
    subprocess.run(["mount", "-o", "remount,size=64m,nr_inodes=20000", small_disk], check=True)
    settings = (f"gfs.path={small_disk}/gfs", "lfs.capacity=null", "sweep={}", "epochs=1")
    thread = threading.Thread(target=hog, args=(small_disk,))
    thread.start()
    done = run(study, tmp_path / "out", *settings)
    thread.join()
    assert done.returncode == 3, done.stderr
    assert "No space left on device while generating" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    written = {path: path.stat().st_mtime_ns for path in small_disk.rglob("*.raw") if path.stat().st_size == 1024}
    (small_disk / "hog").unlink()
    done = run(study, tmp_path / "out", *settings)
    assert done.returncode == 0, done.stderr
    assert written
    assert {path: path.stat().st_mtime_ns for path in written} == written, "finished files were written again"
