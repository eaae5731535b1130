"""Memory: what a rank's peak grows by when the dataset and the number of operations grow a hundredfold."""

import subprocess
import sys
from collections.abc import Iterator

from benchmarks.common import Result

PROGRAM = """
import re, sys
from tierscope.bench.loading import make_loader, null_source
from tierscope.bench.resolved import ResolvedRun
from tierscope.spec.load import load_study
from tierscope.trace.recorder import Recording


study = load_study("demo", ["sweep={}", f"num_files_train={sys.argv[1]}", "lfs.capacity=null", "batch_size=12"])
run = ResolvedRun.of(study)
loader = make_loader(run, null_source(run), Recording(len(study.system.tiers)))
done = sum(len(batch.samples) for batch in loader.batches(run.plan.reads(0, 1)))
loader.finish()
print(done, re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])  # maxrss would be the parent's
"""


def memory() -> Iterator[Result]:
    peaks = {}
    for files in (16 * 3_000, 16 * 300_000):
        done = subprocess.run([sys.executable, "-c", PROGRAM, str(files)], check=True, capture_output=True, text=True)
        samples, peak = (int(word) for word in done.stdout.split())
        assert samples == files // 16
        peaks[files] = peak / 1024
    small, large = peaks.values()
    growth = large - small
    yield Result("peak of a rank that reads 3,000 files", small, "MiB", small, small, 1)
    yield Result("growth of that peak for 300,000 files", growth, "MiB", growth, growth, 1, "≤ 2 MiB", growth <= 2)
