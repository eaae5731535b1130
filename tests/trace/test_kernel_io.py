"""What the kernel counts of this process and its children."""

import os
import sys
from pathlib import Path

import pytest

from tierscope.trace import kernel_io as module
from tierscope.trace.kernel_io import KernelIo, counted_since, kernel_io


def test_own_reads_and_those_of_children_that_were_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(1 << 20))
    before = kernel_io()
    file.read_bytes()
    pid = os.posix_spawn(sys.executable, [sys.executable, "-Sc", f"open({str(file)!r}, 'rb').read()"], os.environ)
    not_yet = counted_since(before)
    os.waitpid(pid, 0)
    after = counted_since(before)
    assert not_yet is not None
    assert after is not None
    assert 1 << 20 <= not_yet.read_bytes < 2 << 20 <= after.read_bytes < 3 << 20
    assert after.faults > not_yet.faults


@pytest.mark.parametrize("content", [None, b"", b"rchar: 1\nwchar: x\n", b"rchar: 1\nwchar: 2\n"])
def test_a_kernel_that_does_not_count(content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "io"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.setattr(module, "_FILE", str(path))
    assert kernel_io() is None
    assert counted_since(KernelIo(1, 2, 3, 4)) is None
    assert counted_since(None) is None
