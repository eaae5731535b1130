"""A results directory whose disk is full, or fails: one line, exit code 3, and what was finished stays."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.test_kill_and_resume import RUNS, STUDY
from tests.small_disks import mounted
from tierscope.output import manifest
from tierscope.output.store import RunStore

pytestmark = pytest.mark.faults

SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(int fd) {  /* from when the file FAIL_WHEN is there, for paths that hold FAIL_IN */
    char name[64], path[4096];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(name, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return strstr(path, getenv("FAIL_IN")) && access(getenv("FAIL_WHEN"), F_OK) == 0;
}
ssize_t write(int fd, const void *data, size_t size) {
    static ssize_t (*real)(int, const void *, size_t);
    if (!real) real = dlsym(RTLD_NEXT, "write");
    int before = errno, bad = !getenv("FAIL_FSYNC") && fails(fd);
    errno = bad ? atoi(getenv("FAIL_WITH")) : before;
    return bad ? -1 : real(fd, data, size);
}
int fsync(int fd) {
    static int (*real)(int);
    if (!real) real = dlsym(RTLD_NEXT, "fsync");
    int before = errno, bad = getenv("FAIL_FSYNC") && fails(fd);
    errno = bad ? atoi(getenv("FAIL_WITH")) : before;
    return bad ? -1 : real(fd);
}
"""


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "shim.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", folder / "shim.c", "-o", folder / "shim.so", "-ldl"], check=True)
    return folder / "shim.so"


def start(folder: Path, out: Path, **variables: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tierscope.cli.main", "run", str(folder / "study.yaml"), "--out", str(out)]
    command += ["--quiet", "--set", f"lfs.path={folder}/lfs/{{node}}", "--set", f"gfs.path={folder}/gfs", "--json"]
    environment = {**os.environ, **variables}
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)


def finished(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "runs").glob("*.parquet")}


def await_a_run(out: Path, process: "subprocess.Popen[str]") -> None:
    deadline = time.monotonic() + 60
    while not finished(out) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)


def goes_on(folder: Path, out: Path, before: dict[str, bytes]) -> None:
    process = start(folder, out)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    after = finished(out)
    assert len(after) == RUNS == len(list(RunStore(str(out)).load_all()))
    assert {name: after[name] for name in before} == before
    assert not list(out.rglob("*.tmp"))


def one_line(process: "subprocess.Popen[str]") -> str:
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    (line,) = err.splitlines()
    return line


@pytest.mark.parametrize(
    ("where", "number", "fsync", "says"),
    [
        ("/out/runs/", 5, False, "Input/output error"),
        ("/out/runs/", 5, True, "Input/output error"),
        ("/out/runs/", 28, False, "No space left on device; free some space"),
        ("/out/runs/", 122, False, "Disk quota exceeded; free some space"),
    ],
)
def test_a_disk_that_fails_while_results_are_written(
    where: str, number: int, fsync: bool, says: str, shim: Path, tmp_path: Path
) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    out, now = tmp_path / "out", tmp_path / "now"
    variables = {"LD_PRELOAD": str(shim), "FAIL_IN": where, "FAIL_WHEN": str(now), "FAIL_WITH": str(number)}
    process = start(tmp_path, out, **variables, **({"FAIL_FSYNC": "1"} if fsync else {}))
    await_a_run(out, process)
    now.touch()
    line = one_line(process)
    assert f"{out}/runs/" in line
    assert f"cannot be written: {says}" in line
    before = finished(out)
    assert before
    goes_on(tmp_path, out, before)


def test_a_disk_that_fails_at_once(shim: Path, tmp_path: Path) -> None:
    """Not even the study can be written down."""
    (tmp_path / "study.yaml").write_text(STUDY)
    out = tmp_path / "out"
    out.mkdir()
    manifest.write(str(out), "result", {})
    process = start(tmp_path, out, LD_PRELOAD=str(shim), FAIL_IN="/out/.tierscope-tmp-", FAIL_WHEN="/", FAIL_WITH="5")
    assert f"{out}/study.yaml: cannot be written: Input/output error" in one_line(process)
    goes_on(tmp_path, out, {})


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "small", "4m")


def test_a_disk_that_is_full_of_others_files(small_disk: Path, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(STUDY)
    out = small_disk / "out"
    process = start(tmp_path, out)
    await_a_run(out, process)
    hog = small_disk / "hog"
    with hog.open("wb") as file:
        free = os.statvfs(small_disk)
        os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize)
    line = one_line(process)
    assert "cannot be written: No space left on device; free some space" in line
    before = finished(out)
    hog.unlink()
    goes_on(tmp_path, out, before)
