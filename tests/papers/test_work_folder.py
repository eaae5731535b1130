"""The folder of small runs: gone when they are done, and when whoever ran them was killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tierscope.errors import UserError
from tierscope.papers.work_folder import work_folder

KILLED = """
import os, signal, sys
from tierscope.papers.work_folder import work_folder
with work_folder() as folder:
    os.makedirs(os.path.join(folder, "out", "tiers"))
    print(folder, flush=True)
    os.kill(os.getpid(), int(sys.argv[1]))
"""


def gone(folder: str) -> bool:
    until = time.monotonic() + 20
    while os.path.exists(folder) and time.monotonic() < until:
        time.sleep(0.02)
    return not os.path.exists(folder)


def test_it_is_gone_when_the_block_ends() -> None:
    with work_folder() as folder:
        assert Path(folder).is_dir()
        Path(folder, "kept").mkdir()
    assert not os.path.exists(folder)


def test_and_when_it_ends_badly() -> None:
    with pytest.raises(ZeroDivisionError), work_folder() as folder:
        raise ZeroDivisionError
    assert not os.path.exists(folder)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nobody_who_is_killed_leaves_it(number: int, tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(int(number))], env=environment, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == -number
    folder = done.stdout.strip()
    assert Path(folder).parent == tmp_path
    assert gone(folder)


def test_a_keeper_that_cannot_start_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierscope.papers.work_folder._KEEPER", "tierscope.papers.no_such_keeper")
    match = "^temporary files of tierscope reproduce: .* could not start: .*No module named"
    with pytest.raises(UserError, match=match) as caught, work_folder():
        pass
    assert "\n" not in str(caught.value)
