"""A whole run beside strace: every file is opened once in an epoch, read through that descriptor, and evicted through it before and after."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import native_programs as programs
from tests.strace_log import strace
from tierscope.mounts import IN_MEMORY, filesystem_of
from tierscope.native import library, state
from tierscope.storage import cold

pytestmark = pytest.mark.native

FILES, EPOCHS = 12, 2
STUDY = """
study: opens
workload:
  dataset: {{format: raw, num_files_train: {files}, record_length_bytes: 64 KiB}}
  reader: {{batch_size: 2, read_threads: 2, data_loader: {loader}, evict: {evict}}}
  train: {{epochs: {epochs}}}
system:
  ranks_per_node: 2
  tiers:
    lfs: {{path: "{{out}}/lfs/{{node}}", visible_to: node}}
    gfs: {{path: "{{out}}/gfs"}}
placement: {{cache_rate: 50%}}
"""
_CALL = re.compile(r"(openat|pread64|preadv2?|fadvise64)\((.*?)\)\s+= (\d+)(<(.*?)>)?")


def calls_on_data(folder: Path, loader: str, evict: str = "true") -> dict[str, list[str]]:
    """By file: what was called on it, in its order, after it was staged."""
    study = folder / "study.yaml"
    study.write_text(STUDY.format(files=FILES, epochs=EPOCHS, loader=loader, evict=evict))
    words = [sys.executable, "-m", "tierscope.cli.main", "run", str(study), "--out", str(folder / "out"), "--quiet"]
    log = folder / "log"
    tracing = [strace(), "-f", "-y", "-s", "0", "-o", str(log), "-e", "trace=openat,pread64,preadv,preadv2,fadvise64"]
    done = subprocess.run([*tracing, *words], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    calls: dict[str, list[str]] = {}
    for line in _whole(log.read_text().splitlines()):
        if (match := _CALL.search(line)) is None:
            continue
        name, arguments, _, _, opened = match.groups()
        path = opened if name == "openat" else re.findall(r"<(.*?)>", arguments)[0]
        if path and path.endswith(".raw") and "O_CREAT" not in arguments:
            calls.setdefault(path, []).append(name)
    return calls


def _whole(lines: list[str]) -> list[str]:
    """Calls that another thread's cut in two, joined."""
    begun: dict[str, str] = {}
    whole = []
    for line in lines:
        thread, _, rest = line.partition(" ")
        if rest.endswith("<unfinished ...>"):
            begun[thread] = rest.removesuffix("<unfinished ...>")
        elif match := re.match(r"\s*<\.\.\. \w+ resumed>(.*)", rest):
            whole.append(begun.pop(thread, "") + match[1])
        else:
            whole.append(rest)
    return whole


@pytest.mark.parametrize("loader", ["native", "threads"])
def test_every_file_is_opened_once_in_an_epoch_and_evicted_through_that_descriptor(tmp_path: Path, loader: str) -> None:
    if loader == "native" and library.load() is None:
        pytest.skip("the native library is not built")
    calls = calls_on_data(tmp_path, loader)
    assert len(calls) == FILES
    read = "pread64" if loader == "native" else "preadv"
    for path, made in calls.items():
        assert [name.removesuffix("2") for name in made] == ["openat", "fadvise64", read, "fadvise64"] * EPOCHS, path


def test_nothing_is_evicted_where_the_study_says_so(tmp_path: Path) -> None:
    counted = Counter(name for made in calls_on_data(tmp_path, "threads", "false").values() for name in made)
    assert counted["openat"] == FILES * EPOCHS
    assert counted["fadvise64"] == 0


READER = "import os, sys\nfd = os.open(sys.argv[1], os.O_RDONLY)\nwhile os.read(fd, 1 << 20):\n    pass\nos.close(fd)\n"


@pytest.mark.parametrize("evicts", [True, False])
def test_what_somebody_else_s_code_reads_is_evicted_by_the_preload_library(tmp_path: Path, evicts: bool) -> None:
    """For tf.data, which opens files by itself. Nothing of it is recorded."""
    tier = tmp_path / "tier"
    tier.mkdir()
    data = tier / "data"
    data.write_bytes(bytes(1 << 20))
    os.sync()
    command = [sys.executable, "-S", "-c", READER, str(data)]
    options = state.OPTION_EVICT if evicts else 0
    recorded = programs.run_recorded(command, tmp_path / "record", {"one": tier}, options)
    assert recorded.ended.code == 0, recorded.ended.err
    kinds = {kind: ops for (_, kind), (ops, _) in recorded.totals.items() if ops}
    assert kinds == {"open": 1, "read": 2, "close": 1}
    with data.open("rb") as opened:
        cached = cold.resident(opened.fileno(), 1 << 20)
    if cached is None or filesystem_of(str(data)) in IN_MEMORY:
        pytest.skip("this kernel has no cachestat (Linux 6.5), or this is tmpfs, whose pages are the files")
    assert cached == (0 if evicts else 1 << 20)
