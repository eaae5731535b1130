"""Processes of our own: nothing that lies in the current folder is executed, and what they lack is told from what they died of."""

import errno
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.imports.darshan_logs import needs_library, wheel_log
from tests.imports.dftracer_lines import began, call, named, write
from tierscope import helper_process
from tierscope.bench.crew import LocalCrew
from tierscope.errors import MissingResourceError, StoppedError, TierscopeError, UserError
from tierscope.helper_process import Helper, helper_command, helper_environment, isolated_children, threads_with_helpers
from tierscope.imports import dftracer_readers
from tierscope.imports.darshan_reader import DarshanLog, read_logs
from tierscope.imports.dftracer import DFTracerOptions, import_traces
from tierscope.imports.paths import TierRules
from tierscope.probe.crew import ProbeCrew
from tierscope.recording.darshan import Darshan

SOURCE = Path(helper_process.__file__).parents[1]
TRAPS = (
    *("ctypes", "json", "numpy", "socket", "struct", "select", "threading", "signal", "resource", "zlib", "csv"),
    *("pickle", "subprocess", "multiprocessing", "polars", "torch", "msgspec", "runpy", "sitecustomize", "tierscope"),
)
# Tells who executed it, and is the real module then: what is executed stays unnoticed otherwise.
TRAP = """
import sys
import importlib.machinery, importlib.util
here = __file__.rpartition("/")[0]
with open(here + "/executed", "a") as out:
    out.write(f"{__name__} {' '.join(sys.orig_argv)}\\n")
spec = importlib.machinery.PathFinder.find_spec(__name__, [path for path in sys.path if path not in ("", here)])
if spec is not None:
    sys.modules[__name__] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
"""


@pytest.fixture
def trapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, full of traps; and PYTHONPATH names it in three ways beside what is good."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in TRAPS:
        (folder / f"{name}.py").write_text(TRAP)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", ".", "../logs", str(SOURCE)]))
    return folder


def executed(folder: Path) -> list[str]:
    found = folder / "executed"
    return found.read_text().splitlines() if found.exists() else []


def read_a_darshan_log(_folder: Path) -> None:
    (log,) = read_logs([str(wheel_log("example.darshan"))])
    assert isinstance(log, DarshanLog), log


def read_traces(folder: Path) -> None:
    lines = [*began(), *named("/gfs/a"), call("read", "/gfs/a", 0, 5, ret=100)]
    paths = [write(folder / f"{number}.pfw", lines) for number in range(2)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dftracer_readers, "LARGE_BYTES", 0)
        patch.setattr("os.sched_getaffinity", lambda _: {0, 1})
        assert import_traces(paths, TierRules({"gfs": ("/",)}), DFTracerOptions()).facts.logs == 2


def ask_for_darshan(_folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DARSHAN_LIB", library_of_c())
        assert Darshan().can_restart_log() is False


def library_of_c() -> str:
    for line in Path("/proc/self/maps").read_text().splitlines():
        if os.path.basename(line).startswith(("libc.so", "libc-")):
            return line.split()[-1]
    pytest.skip("no libc that is loaded by name")


def start_a_rank(_folder: Path) -> None:
    LocalCrew(1).close()


def start_a_probe(_folder: Path) -> None:
    ProbeCrew(1).close()


HELPERS = [
    pytest.param(read_a_darshan_log, marks=needs_library),
    read_traces,
    ask_for_darshan,
    start_a_rank,
    start_a_probe,
]


@pytest.mark.parametrize("use", HELPERS)
def test_nothing_of_the_current_folder_is_executed(use: Callable[[Path], None], trapped: Path) -> None:
    use(trapped)
    assert executed(trapped) == []


def test_a_profiled_step_executes_nothing_of_it_either(trapped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """torch may be missing here: then that is said, and by a line."""
    from tierscope.arch.networks import build_network  # noqa: PLC0415
    from tierscope.train.counters import profile_step  # noqa: PLC0415

    programs = trapped.parent / "bin"
    programs.mkdir()
    (programs / "ncu").write_text('#!/bin/sh\nwhile [ "$1" != "--metrics" ]; do shift; done; shift 2; exec "$@"\n')
    (programs / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    with pytest.raises(TierscopeError, match=r"one_step could not start: |ncu returned no counters") as caught:
        profile_step(build_network("lenet"), 1, "fp32")
    assert "\n" not in str(caught.value)
    assert executed(trapped) == []


def test_processes_of_other_libraries_neither(trapped: Path) -> None:
    environment = dict(os.environ)
    with isolated_children():
        subprocess.run([sys.executable, "-c", "import json, struct, tierscope"], check=True)
    assert os.environ == environment
    assert executed(trapped) == []


@needs_library
@pytest.mark.parametrize("way", ["script", "module"])
def test_a_command_in_a_folder_of_logs_executes_nothing_of_it(way: str, trapped: Path) -> None:
    """With `python -m` Python itself looks there first, before any line of ours is run; but no process of ours does."""
    (trapped / "a.darshan").write_bytes(wheel_log("example.darshan").read_bytes())
    script = trapped.parent / "tierscope"
    script.write_text("from tierscope.cli.main import main\nmain()\n")
    program = [str(script)] if way == "script" else ["-m", "tierscope.cli.main"]
    done = subprocess.run(
        [sys.executable, *program, "characterise", ".", "--tier", "gfs=/", "--force", "--json"],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in executed(trapped) if "darshan_worker" in line or way == "script"] == []
    assert way == "script" or executed(trapped)  # the traps do catch


class TestEnvironment:
    def path(self, given: str, monkeypatch: pytest.MonkeyPatch) -> str | None:
        monkeypatch.setenv("PYTHONPATH", given)
        return helper_environment().get("PYTHONPATH")

    @pytest.mark.parametrize("given", ["", ":", ".", "./", "src", "../x", ":.::src"])
    def test_folders_that_depend_on_the_current_one_are_left_out(
        self, given: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert self.path(given, monkeypatch) == str(SOURCE)  # a clone finds itself
        monkeypatch.setattr(helper_process, "_PACKAGES", "/usr/lib/python3/dist-packages")
        assert self.path(given, monkeypatch) == ""  # the interpreter looks there anyway

    def test_all_others_stay_in_their_order(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert self.path(f"/b:a:{SOURCE}:/c", monkeypatch) == f"/b:{SOURCE}:/c"
        assert self.path("/b:a:/c", monkeypatch) == f"{SOURCE}:/b:/c"

    def test_variables_are_ours_and_those_that_are_given(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ONE", "1")
        found = helper_environment({"TWO": "2"})
        assert (found["ONE"], found["TWO"]) == ("1", "2")

    def test_a_command_names_this_interpreter(self) -> None:
        assert helper_command("a.b", "c") == [sys.executable, "-P", "-m", "a.b", "c"]


class TestStart:
    """`python` stands for the interpreter, whatever it is asked to run."""

    def python(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> None:
        target = tmp_path / "python"
        target.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        target.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(target))

    def refused(self, kind: type[TierscopeError] = UserError) -> str:
        with pytest.raises(TierscopeError) as caught, Helper("a.b", needed_for="reading x") as helper:
            helper.expect_greeting()
        assert type(caught.value) is kind
        assert "\n" not in str(caught.value)
        return str(caught.value).removeprefix("reading x: a.b ")

    def test_a_module_that_is_missing(self) -> None:
        with pytest.raises(UserError, match=r"reading x: tierscope\.no could not start: .*No module named"):
            Helper("tierscope.no", needed_for="reading x").expect_greeting()

    @pytest.mark.parametrize(
        ("said", "short"),
        [
            ("MemoryError", "not enough memory"),
            ("ImportError: numpy.so: failed to map segment from shared object", "not enough memory"),
            ("OpenBLAS error: Memory allocation still failed after 10 retries, giving up.", "not enough memory"),
            ("RuntimeError: can't start new thread", "not enough threads"),
            ("OSError: [Errno 24] Too many open files", "too many open files"),
        ],
    )
    def test_what_is_short_is_named(
        self, said: str, short: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.python(tmp_path, monkeypatch, f'echo "Traceback:\n{said}" >&2', "exit 1")
        assert self.refused(MissingResourceError).startswith(f"could not start: {short}; ")

    def test_what_was_killed_may_have_been_short_of_memory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.python(tmp_path, monkeypatch, "kill -9 $$")
        assert self.refused(MissingResourceError).startswith("could not start: it was killed; if it ran out of")

    def test_other_ends(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.python(tmp_path, monkeypatch, "exit 7")
        assert self.refused() == "could not start: exited with code 7"
        self.python(tmp_path, monkeypatch, "kill -SEGV $$")
        assert self.refused() == "could not start: was killed by SIGSEGV"
        monkeypatch.setattr(sys, "executable", str(tmp_path / "gone"))
        assert self.refused() == f"could not start: {tmp_path}/gone: No such file or directory"

    @pytest.mark.parametrize("word", ["hello", "a.b 0.0.0", "x" * 1000])
    def test_somebody_else_who_comes_up(self, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.python(tmp_path, monkeypatch, f"echo {word}", "sleep 60")
        assert "responded; is another Tierscope in PYTHONPATH?" in self.refused()

    @pytest.mark.faults
    def test_one_that_never_comes_up_is_ended(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.python(tmp_path, monkeypatch, "exec sleep 60")
        with Helper("a.b", needed_for="reading x") as helper:
            with pytest.raises(StoppedError, match="did not start within"):
                helper.expect_greeting(time.monotonic() + 0.2)
            assert not helper.alive()

    @pytest.mark.parametrize("number", [errno.ENOMEM, errno.EAGAIN, errno.EMFILE])
    def test_a_process_that_the_system_does_not_give(self, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(subprocess, "Popen", refuse)
        assert self.refused(MissingResourceError).startswith("could not start: ")


ORPHANING = """
import os, sys, tierscope.helper_process as here
helper = here.Helper("tierscope.imports.dftracer_worker", ["0"], needed_for="x")
helper.expect_greeting()
print(helper.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.mark.faults
def test_a_helper_ends_with_whoever_started_it() -> None:
    done = subprocess.run([sys.executable, "-c", ORPHANING], stdout=subprocess.PIPE, text=True, check=False)
    ended = time.monotonic() + 10
    while os.path.exists(f"/proc/{int(done.stdout)}") and time.monotonic() < ended:
        time.sleep(0.02)
    assert not os.path.exists(f"/proc/{int(done.stdout)}")


def test_a_helper_that_is_started_while_its_group_ends_is_ended_too() -> None:
    with threads_with_helpers(1) as (_, helpers):
        helpers.kill()
        late = Helper("tierscope.imports.darshan_worker", needed_for="this")
        helpers.add(late)
        assert not late.alive()
        with pytest.raises(TierscopeError, match="was killed"):
            late.expect_greeting()
