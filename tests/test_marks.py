"""What a traced program may call; where nothing is preloaded it does nothing, but bad arguments are refused all the same."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tierscope


def test_without_a_recorder_marks_do_nothing() -> None:
    tierscope.mark_epoch(1)
    tierscope.mark_epoch(np.int64(7))
    with tierscope.phase("compute"), tierscope.phase("é" * 11):
        pass


def test_a_phase_lets_errors_through() -> None:
    with pytest.raises(KeyError), tierscope.phase("x"):
        raise KeyError


@pytest.mark.parametrize(
    ("number", "error", "message"),
    [
        (0, ValueError, "mark_epoch takes a number of 1 to 2147483647, not 0"),
        (-1, ValueError, "mark_epoch takes a number of 1 to 2147483647, not -1"),
        (2**31, ValueError, "mark_epoch takes a number of 1 to 2147483647, not 2147483648"),
        (1.0, TypeError, "mark_epoch takes a whole number, not 1.0"),
        ("1", TypeError, "mark_epoch takes a whole number, not '1'"),
        (None, TypeError, "mark_epoch takes a whole number, not None"),
        (True, TypeError, "mark_epoch takes a whole number, not True"),
    ],
)
def test_bad_epochs_are_refused(number: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        tierscope.mark_epoch(number)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("", ValueError, "a phase's name must be of 1 to 23 bytes, not ''"),
        ("é" * 12, ValueError, f"a phase's name must be of 1 to 23 bytes, not '{'é' * 12}'"),
        ("a\0b", ValueError, "a phase's name must be of 1 to 23 bytes, not 'a\\x00b'"),
        (b"compute", TypeError, "phase takes a name, not b'compute'"),
        (None, TypeError, "phase takes a name, not None"),
    ],
)
def test_bad_phases_are_refused(name: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        tierscope.phase(name)
    assert str(caught.value) == message


def test_marks_cost_next_to_nothing_without_a_recorder() -> None:
    start = time.perf_counter()
    for number in range(1, 10_000):
        tierscope.mark_epoch(number)
    assert (time.perf_counter() - start) / 10_000 < 20e-6


def test_a_preloaded_library_is_told(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if not compiler:
        pytest.skip("no C compiler")
    source = """
    #include <stdio.h>
    void ts_mark_epoch(int n) { printf("epoch %d\\n", n); fflush(stdout); }
    void ts_phase_begin(const char *name) { printf("begin %s\\n", name); fflush(stdout); }
    void ts_phase_end(void) { printf("end\\n"); fflush(stdout); }
    """
    (tmp_path / "fake.c").write_text(source)
    library = str(tmp_path / "fake.so")
    subprocess.run([compiler, "-shared", "-fPIC", str(tmp_path / "fake.c"), "-o", library], check=True)
    program = (
        "import tierscope as t\nt.mark_epoch(2)\nwith t.phase('a'):\n  with t.phase('b'): pass\nt.mark_epoch(2**31 - 1)"
    )
    environment = {**os.environ, "LD_PRELOAD": library}
    told = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == ["epoch 2", "begin a", "begin b", "end", "end", "epoch 2147483647"]


def test_a_mark_is_a_read_within_a_span_of_its_name_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a framework that records, as torch does; and a phase is a span there, too."""
    told: list[str] = []

    @contextmanager
    def record_function(name: str) -> Iterator[None]:
        told.append(f"begin {name}")
        yield
        told.append(f"end {name}")

    def read(descriptor: int, size: int) -> bytes:
        told.append(f"read {os.path.basename(os.readlink(f'/proc/self/fd/{descriptor}'))}")
        return plain_read(descriptor, size)

    plain_read = os.read
    torch = SimpleNamespace(
        profiler=SimpleNamespace(record_function=record_function),
        autograd=SimpleNamespace(_profiler_enabled=lambda: True),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setattr(os, "read", read)
    tierscope.mark_clock(tmp_path)
    with tierscope.phase("compute"):
        told.append("work")
    token = told[0].removeprefix("begin tierscope.mark ")
    assert told[:3] == [f"begin tierscope.mark {token}", f"read tierscope-mark-{token}", f"end tierscope.mark {token}"]
    assert told[3:] == ["begin tierscope.phase compute", "work", "end tierscope.phase compute"]
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        tierscope.mark_clock(tmp_path / "nowhere")
