"""The demo keeps its promises: what it finds follows from what was configured, and turns round with it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.demo

# The demo's rates (see its preset): one metadata server for all, one device for every two of the four nodes.
FILES = 512
METADATA_SECONDS = FILES / 400
DEVICE_SECONDS = FILES / 2 * (1 / 480 + (128 * 1024 + 16) / (100 * 2**20))


def demo(out: Path, *settings: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "tierscope.cli.main", "demo", "--out", str(out), "--json"]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def test_the_demo_finds_what_was_configured(tmp_path: Path) -> None:
    result = demo(tmp_path / "out")
    by_rate = {point["sweep"]["cache_rate"]: point for point in result["summary"]}
    assert len(by_rate) == 11
    assert by_rate[0.0]["bottleneck"] == "GFS-META"
    assert by_rate[1.0]["bottleneck"] == "LFS-READ"
    assert 0 < result["best"]["sweep"]["cache_rate"] < 1
    assert by_rate[0.0]["classes"]["GFS-META"] == pytest.approx(METADATA_SECONDS, rel=0.05)
    assert by_rate[1.0]["classes"]["LFS-READ"] == pytest.approx(DEVICE_SECONDS, rel=0.05)
    assert by_rate[0.0]["classes"]["LFS-READ"] == by_rate[1.0]["classes"]["GFS-META"] == 0
    assert result["emulated_tiers"] == ["gfs", "lfs"]


def test_swapped_rates_turn_the_verdict_round(tmp_path: Path) -> None:
    """The global tier gets the devices' rates, and the local one those of the metadata and object servers."""
    swap = [
        "lfs.read_ops=null",
        "lfs.metadata_ops=400/s",
        "lfs.servers=4",
        "lfs.bandwidth=160 MiB/s",
        "lfs.device_shared_by=4",
        "gfs.metadata_ops=null",
        "gfs.read_ops=480/s",
        "gfs.servers=2",
        "gfs.bandwidth=100 MiB/s",
        "sweep.cache_rate=[0%, 40%, 100%]",
    ]
    result = demo(tmp_path / "out", *swap)
    by_rate = {point["sweep"]["cache_rate"]: point for point in result["summary"]}
    assert by_rate[0.0]["bottleneck"] == "GFS-READ"
    assert by_rate[1.0]["bottleneck"] == "LFS-META"
    assert by_rate[1.0]["io_seconds"] > by_rate[0.0]["io_seconds"]
    assert result["best"]["sweep"]["cache_rate"] == 0.4
