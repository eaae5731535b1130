"""strace as the witness of request sizes: packed records in order, read by Tierscope's loaders on a real directory."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.strace_log import strace

pytestmark = pytest.mark.native

STUDY = """
study: seen
workload:
  dataset: {format: tfrecord, num_files_train: 2, num_samples_per_file: 24, record_length_bytes: 65520}
  reader: {batch_size: 16, read_threads: 1, sample_shuffle: off, transfer_size: 300 KiB, data_loader: LOADER, evict: false, verify: off}
  train: {epochs: 1}
system: {tiers: {gfs: {path: "{out}/gfs"}}}
"""
KIB = 1 << 10


@pytest.mark.parametrize("loader", ["native", "threads"])
def test_the_kernel_sees_requests_of_the_transfer_size(tmp_path: Path, loader: str) -> None:
    """48 samples of 64 KiB in batches of 16: runs of 1 MiB, and of 512 KiB where a file ends."""
    (tmp_path / "study.yaml").write_text(STUDY.replace("LOADER", loader))
    base = [sys.executable, "-m", "tierscope.cli.main"]
    out = str(tmp_path / "out")
    subprocess.run([*base, "generate", "study.yaml", "--out", out, "--quiet"], cwd=tmp_path, check=True)
    log = tmp_path / "log"
    tracing = [
        strace(),
        "-ff",
        "-y",
        "-qq",
        "-o",
        str(log),
        "-e",
        "trace=pread64,preadv,preadv2,read",
        "-e",
        "signal=none",
    ]
    subprocess.run([*tracing, *base, "run", "study.yaml", "--out", out, "--quiet"], cwd=tmp_path, check=True, capture_output=True)  # fmt: skip
    sizes = Counter(
        int(match[1])
        for part in tmp_path.glob("log.*")
        for line in part.read_text().splitlines()
        if ".tfrecord>" in line and (match := re.search(r"= (\d+)$", line)) and int(match[1])
    )
    runs = [1024 * KIB, 512 * KIB] * 2
    expected: Counter[int] = Counter()
    for run in runs:
        expected[300 * KIB] += run // (300 * KIB)
        expected[run % (300 * KIB)] += 1
    assert sizes == expected
