"""Children from a warm template: ours, and none of them left when the template fails, is killed or hangs."""

import gc
import json
import os
import resource
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

import pytest

from tests.bench.test_crew import wait_until_dead
from tierscope.bench import child, children
from tierscope.bench.children import Children, allow_files
from tierscope.bench.template import Adopted, start_from_template
from tierscope.errors import StoppedError, UserError
from tierscope.helper_process import ONE_THREAD

pytestmark = pytest.mark.whole

# A template whose children say who they are; `{before}` happens in it first, `{between}` after the first of them.
PROGRAM = """
import os, signal, sys, time
from tierscope.bench import child
{before}
fork, forks = os.fork, []
def forked():
    forks.append(1)
    if len(forks) == 2:
        {between}
    return fork()
os.fork = forked
joined = child.join(sys.argv[1:], lambda _: None)
if joined is not None:
    joined.connection.send((joined.number, joined.arguments, os.getppid()))
    joined.connection.recv()
    joined.leave()
"""


def template(before: str = "", between: str = "pass", seconds: float = 30) -> list[tuple[Adopted, Connection]] | None:
    program = PROGRAM.format(before=before, between=between)
    command = [sys.executable, "-c", program, str(os.getpid()), "a", "b"]
    return start_from_template(command, 3, os.environ, seconds, "rank")


def own_children() -> set[int]:
    return {int(word) for task in os.listdir("/proc/self/task") for word in _children_of(task)}


def _children_of(task: str) -> list[str]:
    return Path(f"/proc/self/task/{task}/children").read_text().split()


def test_its_children_are_ours_and_the_template_is_gone() -> None:
    before = own_children()
    started = template()
    assert started is not None
    assert own_children() - before == {process.pid for process, _ in started}
    for _, connection in started:
        connection.send("begin")
    assert [connection.recv() for _, connection in started] == [(n, ("a", "b"), os.getpid()) for n in range(3)]
    assert [process.poll() for process, _ in started] == [None] * 3
    started[0][1].send(None)
    assert started[0][0].wait(20) == 0
    started[1][0].kill()
    assert started[1][0].wait(20) == -signal.SIGKILL
    started[2][1].close()
    assert started[2][0].wait(20) != 0  # its director seems to be gone
    assert own_children() == before


@pytest.mark.faults
@pytest.mark.parametrize(
    ("between", "said"),
    [
        ("os.kill(os.getpid(), 9)", "rank 1 of 3 could not be started: their template was killed by signal 9"),
        (
            "raise BlockingIOError(11, 'Resource temporarily unavailable')",
            "Resource temporarily unavailable; raise the",
        ),
        ("sys.exit(7)", "rank 1 of 3 could not be started: their template exited with code 7"),
    ],
)
def test_a_template_that_fails_in_between_leaves_nobody(between: str, said: str) -> None:
    before = own_children()
    with pytest.raises(StoppedError, match=said):
        template(between=between)
    assert not wait_until_dead(list(own_children() - before))


@pytest.mark.faults
def test_a_template_that_hangs_is_ended_in_time() -> None:
    before, began = own_children(), time.monotonic()
    with pytest.raises(StoppedError, match=r"rank 1 did not start within 1.5 s"):
        template(between="os.kill(os.getpid(), signal.SIGSTOP)", seconds=1.5)
    assert time.monotonic() - began < 20
    assert not wait_until_dead(list(own_children() - before))


def test_a_template_with_threads_is_not_forked() -> None:
    before = "import threading; threading.Thread(target=time.sleep, args=(0.5,), daemon=True).start()"
    assert template(before=before) is None


def test_where_there_can_be_no_template_each_is_started_afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "start_from_template", lambda *_: None)
    with Children() as found:
        found.start_alike("tierscope.bench.rank", 2, ("2", "0"))
        assert found.greet() == [("hello", 0), ("hello", 1)]
        pids = found.pids
    assert not wait_until_dead(pids)


def test_a_preloaded_library_is_never_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError

    monkeypatch.setenv("LD_PRELOAD", "libm.so.6")
    monkeypatch.setattr(children, "start_from_template", forbidden)
    started: list[int] = []
    monkeypatch.setattr(Children, "start_afresh", lambda _self, _module, number, *_: started.append(number))
    Children().start_alike("tierscope.bench.rank", 2, ())
    assert started == [0, 1]


def test_a_fork_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = Pipe(duplex=False)

    def fork() -> int:
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(os, "fork", fork)
    monkeypatch.setattr(os, "listdir", lambda _: ["1"])
    monkeypatch.setattr(gc, "freeze", lambda: None)
    assert child.fork_each(os.dup(theirs.fileno()), [99]) is None
    assert ours.recv() == "Cannot allocate memory"


def test_limits_follow_the_number_of_processes() -> None:
    assert children.start_seconds(512) > children.start_seconds(2) + 200


@pytest.mark.parametrize(("soft", "hard", "wanted", "now"), [(64, 4096, 600, True), (64, 128, 600, False)])
def test_the_limit_on_open_files_is_raised_or_named(
    soft: int, hard: int, wanted: int, now: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, hard))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: asked.append(limits))
    if now:
        allow_files(wanted)
        assert wanted < asked[0][0] <= hard == asked[0][1]
    else:
        with pytest.raises(UserError, match=r"open files are needed .* limit is 128; raise it \(ulimit -Hn"):
            allow_files(wanted)


WARM = """
import json, os, sys
from tierscope.bench import rank
rank.warm_up(["2", "0", "7", "0.0"])
heavy = {"polars", "msgspec", "rich", "torch", "tensorflow", "scipy", "mpi4py", "numba", "yaml", "h5py"} & set(sys.modules)
mapped = "libtierscope" in open("/proc/self/maps").read()
print(json.dumps([sorted(heavy), len(os.listdir("/proc/self/task")), sorted(os.listdir("/proc/self/fd")), mapped]))
"""


def test_a_warm_template_has_no_thread_no_file_and_nothing_heavy() -> None:
    """A fork takes along no thread, and whatever is open or mapped would be everybody's."""
    environment = {**os.environ, **ONE_THREAD}
    done = subprocess.run([sys.executable, "-c", WARM], capture_output=True, check=True, timeout=60, env=environment)
    assert json.loads(done.stdout) == [[], 1, ["0", "1", "2", "3"], False]  # 3: the listing itself
