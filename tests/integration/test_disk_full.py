"""A disk that fills up while data is generated: said, and gone on with after space was made. Needs root for a small tmpfs."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tiny import TINY

pytestmark = pytest.mark.faults


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "small"
    folder.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def run(study: Path, out: Path, *settings: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "tierscope.cli.main", "run", str(study), "--out", str(out), "--quiet"]
    for setting in settings:
        command += ["--set", setting]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_too_small_a_disk_is_found_out_before_writing(small_disk: Path, tmp_path: Path) -> None:
    study = tmp_path / "study.yaml"
    study.write_text(TINY)
    done = run(
        study, tmp_path / "out", f"gfs.path={small_disk}/gfs", "record_length_bytes=256 KiB", "lfs.capacity=null"
    )
    assert done.returncode == 2
    assert "to be written, but only" in done.stderr
    assert not list(small_disk.rglob("*.raw"))


def test_a_disk_that_fills_up_meanwhile_is_resumable(small_disk: Path, tmp_path: Path) -> None:
    """Another user's file takes the space between the check and the writing: here, sparse at first."""
    study = tmp_path / "study.yaml"
    study.write_text(TINY.replace("num_files_train: 24", "num_files_train: 1200"))
    settings = (f"gfs.path={small_disk}/gfs", "lfs.capacity=null", "sweep={}", "epochs=1")
    # A quota is not seen by statvfs: inodes run out although bytes are free.
    subprocess.run(["mount", "-o", "remount,nr_inodes=600", small_disk], check=True)
    done = run(study, tmp_path / "out", *settings)
    assert done.returncode == 3, done.stderr
    assert "No space left on device while generating" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    subprocess.run(["mount", "-o", "remount,nr_inodes=5000", small_disk], check=True)
    done = run(study, tmp_path / "out", *settings)
    assert done.returncode == 0, done.stderr
