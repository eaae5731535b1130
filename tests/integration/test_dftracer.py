"""DFTracer records a small reader for real: its counts are what was read, and the exit code is the command's."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.dftracer,
    pytest.mark.skipif(
        importlib.util.find_spec("dftracer") is None, reason="dftracer is not installed: make test-imports"
    ),
]

FILES, BYTES, PASSES, CODE = 20, 65_536, 2, 5
READER = f"""
import os, sys
for _ in range({PASSES}):
    for folder in sys.argv[1:]:
        for name in sorted(os.listdir(folder)):
            fd = os.open(os.path.join(folder, name), os.O_RDONLY)
            assert len(os.read(fd, {BYTES})) == {BYTES}
            os.close(fd)
sys.exit({CODE})
"""


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("dftracer")
    for tier in ("lfs", "gfs"):
        (folder / tier).mkdir()
        for number in range(FILES if tier == "gfs" else FILES // 2):
            (folder / tier / f"{number}.bin").write_bytes(bytes(BYTES))
    (folder / "reader.py").write_text(READER)
    tiers = [f"--tier={tier}={folder / tier}" for tier in ("lfs", "gfs")]
    command = [sys.executable, "-m", "tierscope.cli.main", "trace", "--with", "dftracer", *tiers]
    command += ["--out", str(folder / "out"), "--json", "--", sys.executable, str(folder / "reader.py")]
    done = subprocess.run(
        [*command, str(folder / "lfs"), str(folder / "gfs")], capture_output=True, text=True, check=False
    )
    assert done.returncode == CODE, done.stderr
    return folder, json.loads(done.stdout)


def test_its_counts_are_what_was_read(traced: tuple[Path, dict[str, Any]]) -> None:
    (point,) = traced[1]["points"]
    assert point["ops"]["GFS-READ"] == FILES * PASSES
    assert point["bytes"]["GFS-READ"] == FILES * PASSES * BYTES
    assert point["ops"]["LFS-READ"] == FILES // 2 * PASSES
    assert point["bytes"]["LFS-READ"] == FILES // 2 * PASSES * BYTES
    assert point["ops"]["GFS-META"] >= 2 * FILES * PASSES  # open and close
    assert 0 < point["classes"]["GFS-READ"] < 60


def test_the_exit_code_is_a_finding(traced: tuple[Path, dict[str, Any]]) -> None:
    codes = [finding["evidence"]["code"] for finding in traced[1]["findings"] if finding["kind"] == "failed_command"]
    assert codes == [CODE]


def test_its_logs_are_kept_and_the_result_can_be_seen_again(traced: tuple[Path, dict[str, Any]]) -> None:
    out = traced[0] / "out"
    assert list((out / "logs").glob("*.pfw*"))
    command = [sys.executable, "-m", "tierscope.cli.main", "analyze", str(out), "--json"]
    again = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert again["points"] == traced[1]["points"]
