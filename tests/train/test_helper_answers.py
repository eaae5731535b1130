"""Helpers that work together answer together, or the wait for them ends in a line."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, cast

import pytest

from tierscope.errors import StoppedError
from tierscope.helper_process import Helper
from tierscope.train.helper_answers import answers_of

WAITS, ANSWERS = "import time; time.sleep(600)", "print('[1.5]', flush=True); import time; time.sleep(600)"
FALLS = "import sys; sys.exit('RuntimeError: no such device')"
SLOWLY = "import sys, time; print('[1', end='', flush=True); time.sleep(0.2); print('.5]', flush=True); time.sleep(600)"


class Program:
    """As much of a helper as is asked for, running this."""

    def __init__(self, program: str, folder: Path) -> None:
        self._said = folder / f"said-{time.monotonic_ns()}"
        with self._said.open("wb") as said:
            self.process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=said)
        self.output = cast(IO[bytes], self.process.stdout)

    def said(self) -> str:
        return self._said.read_text()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.output.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator["Start"]:
    with ExitStack() as ended:
        yield Start(tmp_path, ended)


class Start:
    def __init__(self, folder: Path, ended: ExitStack) -> None:
        self._folder, self._ended = folder, ended

    def __call__(self, *programs: str) -> list[Helper]:
        started = [Program(program, self._folder) for program in programs]
        for program in started:
            self._ended.callback(program.close)
        return cast(list[Helper], started)


def test_lines_of_all(running: Start) -> None:
    assert answers_of(running(ANSWERS, SLOWLY), "all-reduce", 60) == [b"[1.5]\n", b"[1.5]\n"]


def test_one_that_dies_ends_the_wait_for_the_others(running: Start) -> None:
    with pytest.raises(StoppedError, match=r"^all-reduce failed: RuntimeError: no such device$"):
        answers_of(running(WAITS, FALLS), "all-reduce", 60)


def test_one_that_dies_without_a_word_too(running: Start) -> None:
    helpers = running(WAITS, WAITS)
    helpers[1].process.kill()
    with pytest.raises(StoppedError, match=r"^all-reduce failed: was killed by SIGKILL$"):
        answers_of(helpers, "all-reduce", 60)


def test_one_that_is_suspended_ends_the_wait(running: Start) -> None:
    helpers = running(ANSWERS, WAITS)
    os.kill(helpers[1].process.pid, signal.SIGSTOP)
    with pytest.raises(StoppedError, match=f"process {helpers[1].process.pid} was suspended"):
        answers_of(helpers, "all-reduce", 60)


def test_none_is_waited_for_without_an_end(running: Start) -> None:
    with pytest.raises(StoppedError, match=r"1 of 2 processes did not answer within 0.5 s"):
        answers_of(running(ANSWERS, WAITS), "all-reduce", 0.5)
