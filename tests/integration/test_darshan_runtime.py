"""`trace --with darshan` from end to end, with a stand-in for Darshan's runtime library, which no package index has.

The stand-in is preloaded like the real one, looks at its environment and puts a real log where Darshan would.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.imports.darshan_logs import needs_library, wheel_log

pytestmark = [
    pytest.mark.darshan,
    needs_library,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler for the stand-in"),
]

CODE = 7
STAND_IN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((destructor)) static void leave_a_log(void) {
    const char *folder = getenv("DARSHAN_LOGPATH"), *from = getenv("STAND_IN_LOG"), *program = getenv("STAND_IN_PROGRAM");
    char line[4096] = "", path[4096];
    FILE *command = fopen("/proc/self/cmdline", "r");
    size_t length = command ? fread(line, 1, sizeof line - 1, command) : 0;
    for (size_t i = 0; i + 1 < length; i++) if (!line[i]) line[i] = ' ';
    if (command) fclose(command);
    if (!folder || !from || !getenv("DARSHAN_ENABLE_NONMPI") || !strstr(line, program)) return;
    time_t now = time(NULL);
    struct tm *day = localtime(&now);
    snprintf(path, sizeof path, "%s/%d/%d/%d/me_python_id1-%d_1-1-1-1_1.darshan", folder, day->tm_year + 1900, day->tm_mon + 1,
             day->tm_mday, getpid());
    FILE *in = fopen(from, "r"), *out = fopen(path, "w");
    char block[65536];
    for (size_t n; in && out && (n = fread(block, 1, sizeof block, in)) > 0;) fwrite(block, 1, n, out);
    if (in) fclose(in);
    if (out) fclose(out);
}
"""


def test_the_logs_of_the_runtime_are_collected_and_shown(tmp_path: Path) -> None:
    (tmp_path / "stand_in.c").write_text(STAND_IN)
    library = tmp_path / "libdarshan.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, tmp_path / "stand_in.c"], check=True)
    (tmp_path / "data").mkdir()
    (tmp_path / "job.py").write_text(f"import sys; sys.exit({CODE})")
    log = wheel_log("sample-badost.darshan")
    given = {"DARSHAN_LIB": str(library), "STAND_IN_LOG": str(log), "STAND_IN_PROGRAM": "job.py"}
    command = [
        sys.executable,
        "-m",
        "tierscope.cli.main",
        "trace",
        "--with",
        "darshan",
        f"--tier=gfs={tmp_path / 'data'}",
    ]
    command += ["--out", str(tmp_path / "out"), "--json", "--", sys.executable, str(tmp_path / "job.py")]
    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=False)
    assert done.returncode == CODE, done.stderr
    shown = json.loads(done.stdout)
    assert shown["processes"] == 2048
    assert "failed_command" in {finding["kind"] for finding in shown["findings"]}
    assert shown["totals"]["write_seconds"] > 0
    (kept,) = (tmp_path / "out" / "logs").iterdir()
    assert kept.read_bytes() == log.read_bytes()
    assert not (tmp_path / "out" / ".scratch").exists()
