"""A rank that another profiler watches: reads with calls that it can see, tells it of epochs, and takes no times itself."""

import ctypes
import errno
import os
import signal
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.small_study import small_study, stage, totals
from tierscope.bench.crew import LocalCrew
from tierscope.bench.group import Alone
from tierscope.bench.profiled import DarshanFrames, Unframed, Watched, frames_of
from tierscope.bench.run import RunTask, run_rank
from tierscope.errors import TierscopeError
from tierscope.loaders.choose import choose_loader
from tierscope.storage.access import SeenDirectory
from tierscope.trace import recorder
from tierscope.trace.recorder import Recording, SilentLane

pytestmark = pytest.mark.whole


def test_what_is_read_is_what_os_preadv_reads(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(range(100)))
    access = SeenDirectory()
    fd = access.open(str(tmp_path / "file"), os.O_RDONLY)
    memory = memoryview(bytearray(60))
    assert access.preadv(fd, (memory,), 10) == 60
    assert bytes(memory) == bytes(range(10, 70))
    assert access.preadv(fd, (memory[:50],), 70) == 30
    assert bytes(memory[:30]) == bytes(range(70, 100))
    assert access.preadv(fd, (memory,), 100) == 0
    access.close(fd)
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)) as caught:
        access.preadv(fd, (memory,), 0)
    assert caught.value.errno == errno.EBADF


def test_an_interrupted_read_is_begun_again() -> None:
    answers = [-1, 5]

    def interrupted(*_arguments: object) -> int:
        ctypes.set_errno(errno.EINTR)
        return answers.pop(0)

    access = SeenDirectory()
    access._pread = interrupted
    assert access.preadv(3, (memoryview(bytearray(5)),), 0) == 5


class Library:
    """Darshan's two calls, and what the environment said when they were made."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, int, str | None]] = []

    def called(self, name: str) -> Callable[..., None]:
        def call(number: int, *_rest: object) -> None:
            self.calls.append((name, number, os.environ.get("DARSHAN_LOGPATH")))

        return call


def test_darshan_begins_a_log_for_every_epoch_and_none_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DARSHAN_LOGPATH", "/start")
    library = Library()
    frames = DarshanFrames(str(tmp_path), library.called("initialize"), library.called("shutdown"))
    for epoch in (1, 2):
        frames.begin(epoch)
        frames.end()
    first, second = (str(tmp_path / f"epoch-00000{epoch}") for epoch in (1, 2))
    assert library.calls == [
        ("shutdown", 0, "/start"),
        ("initialize", 0, first),
        ("shutdown", 1, first),
        ("initialize", 0, second),
        ("shutdown", 1, second),
    ]
    today = datetime.now()
    assert Path(second, str(today.year), str(today.month), str(today.day)).is_dir()


def test_only_a_darshan_that_was_preloaded_can_tell_epochs_apart(tmp_path: Path) -> None:
    watched = Watched("darshan", str(tmp_path))
    with pytest.raises(TierscopeError, match="was not preloaded into the rank"):
        frames_of(watched, 2)
    assert isinstance(frames_of(watched, 1), Unframed)
    assert isinstance(frames_of(Watched("dftracer", str(tmp_path)), 2), Unframed)
    assert isinstance(frames_of(None, 2), Unframed)


def test_silent_lanes_read_no_clock_and_have_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden() -> int:
        raise AssertionError("the clock was read")

    monkeypatch.setattr(recorder, "_now", forbidden)
    for lane in Recording(2, silent=True).lanes(2):
        assert isinstance(lane, SilentLane)
        assert not lane.alone
        lane.begin()
        lane.end(1, 1, 0, 0, 100)
        lane.begin()
        lane.abandon()
        lane.whole_file(0, 0, 10, 1, 2, 3, 4)
        assert lane.finish().ops.sum() == 0


@pytest.mark.parametrize("threads", [0, 2])
def test_a_watched_rank_reads_the_same_and_records_nothing(
    tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = small_study(f"read_threads={threads}")
    stage(study, str(tmp_path))
    plain = run_rank(RunTask(study, choose_loader(study), str(tmp_path), None, "none", None), Alone())
    seen: list[int] = []
    read = SeenDirectory.preadv

    def noted(self: SeenDirectory, fd: int, buffers: Any, offset: int) -> int:
        seen.append(buffers[0].nbytes)
        return read(self, fd, buffers, offset)

    monkeypatch.setattr(SeenDirectory, "preadv", noted)
    loader, watcher = choose_loader(study, seen=True), Watched("dftracer", "/nowhere")
    task = RunTask(study, loader, str(tmp_path), None, "none", None, watcher)
    watched = run_rank(task, Alone())
    assert watched.loader == ("threads" if threads else "inline") == choose_loader(study, seen=True)
    for epoch, other in zip(watched.epochs, plain.epochs, strict=True):
        assert (epoch.order_digest, epoch.samples, epoch.payload_bytes) == (
            other.order_digest,
            other.samples,
            other.payload_bytes,
        )
        assert totals(epoch.lanes, "ops", "read") == [0, 0]
        assert 0 < epoch.span_ns[1] - epoch.span_ns[0] < 60e9
        assert (epoch.span_ns[1] - epoch.span_ns[0]) / 1e9 >= epoch.seconds
    assert watched.epochs[0].span_ns[1] <= watched.epochs[1].span_ns[0]
    assert len(seen) == sum(sum(totals(epoch.lanes, "ops", "read")) for epoch in plain.epochs)


def test_ranks_get_the_variables_and_say_how_they_ended() -> None:
    crew = LocalCrew(2, {"TIERSCOPE_TEST": "yes"})
    first, second = crew._processes
    for process in (first, second):
        assert b"TIERSCOPE_TEST=yes" in Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
    second.kill()
    second.wait()
    assert crew.leave(30) == ["rank 1 was killed by SIGKILL (out of memory?)"]
    assert first.returncode == 0


@pytest.mark.faults
def test_a_rank_that_does_not_leave_is_ended_and_named() -> None:
    crew = LocalCrew(1)
    (process,) = crew._processes
    os.kill(process.pid, signal.SIGSTOP)
    assert crew.leave(0.2) == ["rank 0 did not exit within 0.2 s"]
    assert process.returncode == -signal.SIGKILL
