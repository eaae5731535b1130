"""Disks that are soon full."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


def mounted(folder: Path, size: str) -> Iterator[Path]:
    """A tmpfs of this size in a new folder, until the test is over."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder], capture_output=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {done.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)
