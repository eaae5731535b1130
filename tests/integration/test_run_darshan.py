"""`run --profiler darshan` with a stand-in for Darshan's runtime library, which no package index has.

The stand-in is preloaded like the real one. It counts opens and reads of files between `darshan_core_initialize` and
`darshan_core_shutdown`, notes these calls, and leaves a log where Darshan would: of its own text, or a real one.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
import pytest

from tests.imports.darshan_logs import Did, made_log, needs_library, wheel_log
from tests.measure.test_profiled import run
from tests.tiny import TINY, tiny
from tests.traces import profiled_logs
from tierscope.commands.analyze import analyze
from tierscope.errors import UserError
from tierscope.imports.darshan_reader import DarshanLog
from tierscope.output.store import RunStore
from tierscope.recording.darshan import Darshan
from tierscope.trace.trace import Trace

pytestmark = [
    pytest.mark.darshan,
    needs_library,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler for the stand-in"),
]

COUNTING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 4096, FDS = 1024 };
static struct { char path[512]; long opens, reads, bytes; } files[FILES];
static int used, of_fd[FDS], active, logs;

static void note(const char *call, int argument) {
    const char *path = getenv("STAND_IN_CALLS"), *folder = getenv("DARSHAN_LOGPATH");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (out) fprintf(out, "%d %s %d %s %s %s\n", getpid(), call, argument, folder, getenv("DARSHAN_CONFIG_PATH"), getenv("LD_PRELOAD"));
    if (out) fclose(out);
}

static int opened(int fd, const char *path) {
    if (fd < 0 || fd >= FDS) return fd;
    of_fd[fd] = -1;
    if (!active || !strstr(path, getenv("STAND_IN_BELOW"))) return fd;
    int at = 0;
    while (at < used && strcmp(files[at].path, path)) at++;
    if (at == used) strncpy(files[used++].path, path, 511);
    files[at].opens++;
    of_fd[fd] = at;
    return fd;
}

int open64(const char *path, int flags, ...) {
    int (*real)(const char *, int, ...) = dlsym(RTLD_NEXT, "open64");
    va_list rest;
    va_start(rest, flags);
    int mode = va_arg(rest, int);
    va_end(rest);
    return opened(real(path, flags, mode), path);
}

ssize_t pread64(int fd, void *into, size_t size, off64_t offset) {
    ssize_t (*real)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
    ssize_t got = real(fd, into, size, offset);
    if (active && fd < FDS && of_fd[fd] >= 0 && got >= 0) files[of_fd[fd]].reads++, files[of_fd[fd]].bytes += got;
    return got;
}
"""
LIFE = r"""
__attribute__((visibility("default"))) void INITIALIZE(int argc, char **argv) {
    note("initialize", argc + (argv != NULL));
    if (active) abort();
    active = 1, used = 0;
    memset(files, 0, sizeof files), memset(of_fd, -1, sizeof of_fd);
}

__attribute__((visibility("default"))) void SHUTDOWN(int write_log) {
    if (!active) return;
    note("shutdown", write_log);
    active = 0;
    if (!write_log) return;
    char path[4096], block[65536];
    time_t now = time(NULL);
    struct tm *day = localtime(&now);
    snprintf(path, sizeof path, "%s/%d/%d/%d/me_python_id%d-%d_1-1-1-%d_1.darshan", getenv("DARSHAN_LOGPATH"), day->tm_year + 1900,
             day->tm_mon + 1, day->tm_mday, getpid(), getpid(), logs++ ? 1 : 9);
    FILE *out = fopen(path, "w"), *in = getenv("STAND_IN_LOG") ? fopen(getenv("STAND_IN_LOG"), "r") : NULL;
    if (!out) abort();
    for (size_t n; in && (n = fread(block, 1, sizeof block, in)) > 0;) fwrite(block, 1, n, out);
    for (int at = 0; !in && at < used; at++) fprintf(out, "%ld %ld %ld %s\n", files[at].opens, files[at].reads, files[at].bytes, files[at].path);
    fclose(out);
}

__attribute__((constructor)) static void start(void) { if (getenv("DARSHAN_ENABLE_NONMPI") && !getenv("DARSHAN_DISABLE")) INITIALIZE(0, NULL); }
__attribute__((destructor)) static void stop(void) { SHUTDOWN(1); }
"""


def built(folder: Path, prefix: str) -> Path:
    """A library whose two calls are named like Darshan's, or not."""
    source, library = folder / "stand_in.c", folder / "libdarshan.so"
    names = f"#define INITIALIZE {prefix}_initialize\n#define SHUTDOWN {prefix}_shutdown\n"
    source.write_text(names + COUNTING + LIFE)
    subprocess.run(["cc", "-shared", "-fPIC", "-w", "-o", library, source, "-ldl"], check=True)
    return library


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    library = built(tmp_path, "darshan_core")
    monkeypatch.setenv("DARSHAN_LIB", str(library))
    monkeypatch.setenv("STAND_IN_CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("STAND_IN_BELOW", "/tiers/")
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    return library


def text_logs(paths: Sequence[str], **_options: object) -> Iterator[DarshanLog]:
    """What the stand-in wrote, as the reader would hand it over. All logs have begun in the same second, as in old ones."""
    for path in paths:
        pid = int(os.path.basename(path).partition("_id")[2].partition("-")[0])
        records = []
        for line in Path(path).read_text().splitlines():
            opens, reads, nbytes, name = line.split(maxsplit=3)
            times = {"F_READ_TIME": 0.25, "F_META_TIME": 0.125}
            records.append(Did(name, 0, {"OPENS": int(opens), "READS": int(reads), "BYTES_READ": int(nbytes), **times}))
        yield made_log(records, name=path, pid=pid, start=100.0, seconds=0.5, job_id=pid)


@pytest.fixture
def readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierscope.imports.logs.read_logs", text_logs)


def sums(trace: Trace, kinds: Sequence[str]) -> dict[tuple[int, int, str], tuple[int, int]]:
    chosen = trace.io.filter(pl.col("kind").is_in(kinds)).group_by("rank", "epoch", "tier")
    return {row[:3]: row[3:] for row in chosen.agg(pl.col("ops", "bytes").sum()).iter_rows()}


def test_every_rank_has_one_log_for_every_epoch(tmp_path: Path, stand_in: Path, readable: None) -> None:
    out = tmp_path / "out"
    run(tiny("sweep={}", "epochs=3"), out, "darshan")
    record = out / ".scratch" / "profile-0000-r1"
    of_rank: dict[str, list[list[str]]] = {}
    for line in (tmp_path / "calls").read_text().splitlines():
        pid, *call = line.split()
        assert call[3:] == [str(record / "darshan.conf"), str(stand_in)]
        of_rank.setdefault(pid, []).append(call[:3])
    assert len(of_rank) == 2
    for calls in of_rank.values():
        assert calls == [
            ["initialize", "0", str(record)],
            ["shutdown", "0", str(record)],
            *(
                [call, argument, str(record / f"epoch-00000{epoch}")]
                for epoch in (1, 2, 3)
                for call, argument in (("initialize", "0"), ("shutdown", "1"))
            ),
        ]
    kept = sorted(path.name.partition("_")[0] for path in (out / "logs" / "0000-r1").iterdir())
    assert kept == [f"epoch-00000{epoch}" for epoch in (1, 1, 2, 2, 3, 3)]
    assert not (out / ".scratch").exists()


def test_what_it_counted_is_what_our_own_recorder_counts(tmp_path: Path, stand_in: Path, readable: None) -> None:
    study = tiny("epochs=3")
    run(study, tmp_path / "theirs", "darshan")
    run(study, tmp_path / "ours", "builtin")
    pairs = list(zip(*(RunStore(str(tmp_path / name)).load_all() for name in ("theirs", "ours")), strict=True))
    assert len(pairs) == 3
    for theirs, ours in pairs:
        assert sums(theirs, ["read"]) == sums(ours, ["read"])
        assert sums(theirs, ["meta"]) == sums(ours, ["open"])
        digests = [trace.ranks.sort("rank", "epoch")["order_digest"].to_list() for trace in (theirs, ours)]
        assert digests[0] == digests[1]
        assert profiled_logs(theirs).missed_bytes == 0
    shown = analyze(str(tmp_path / "theirs"))
    assert shown.conditions.profilers == ("darshan",)
    assert not {"missed_by_profiler", "no_epochs"} & {finding.kind for finding in shown.findings}


def test_a_log_that_is_missing_is_no_smaller_measurement(
    tmp_path: Path, stand_in: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def but_one(paths: Sequence[str], **options: object) -> Iterator[DarshanLog]:
        yield from text_logs([path for path in paths if path != sorted(paths)[0]], **options)

    monkeypatch.setattr("tierscope.imports.logs.read_logs", but_one)
    with pytest.raises(UserError, match=r"darshan recorded no reads of rank [01] in epoch 2"):
        run(tiny("sweep={}"), tmp_path / "out", "darshan")


@pytest.mark.parametrize(("prefix", "anew"), [("darshan_core", True), ("other", False)])
def test_whether_a_library_can_begin_a_log_anew_is_seen_without_starting_it(
    tmp_path: Path, stand_in: Path, prefix: str, anew: bool
) -> None:
    built(tmp_path, prefix)
    assert Darshan().can_restart_log() is anew
    assert not (tmp_path / "calls").exists()


def test_one_epoch_needs_no_new_log(tmp_path: Path, stand_in: Path, readable: None) -> None:
    built(tmp_path, "other")
    diary = run(tiny("sweep={}", "epochs=1", "evict=false"), tmp_path / "out", "darshan")
    assert "this Darshan cannot start a new log: one log per rank for all epochs" in diary.notes
    (trace,) = RunStore(str(tmp_path / "out")).load_all()
    assert sum(ops for ops, _ in sums(trace, ["read"]).values()) == 24
    with pytest.raises(UserError, match="cannot start a new log"):
        run(tiny("sweep={}"), tmp_path / "other", "darshan")


def test_real_logs_of_another_job_are_read_and_refused(tmp_path: Path, stand_in: Path) -> None:
    """By the command, with the real reader."""
    (tmp_path / "study.yaml").write_text(TINY)
    log = wheel_log("sample-badost.darshan")
    command = [sys.executable, "-m", "tierscope.cli.main", "run", str(tmp_path / "study.yaml"), "--profiler", "darshan"]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")],
        env={**os.environ, "STAND_IN_LOG": str(log)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "no log belongs to the traced processes" in done.stderr
    kept = list((tmp_path / "out" / "logs").rglob("*.darshan"))
    assert len(kept) == 4
    assert all(path.read_bytes() == log.read_bytes() for path in kept)
