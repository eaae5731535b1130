"""Workers of a loader among the processes of a traced command."""

from pathlib import Path
from typing import Any

import numpy as np

from tests.states import START, write_state
from tierscope.native.state import StateHead, read_head
from tierscope.native.usage import USAGE
from tierscope.recording.loader_use import loader_use

TEN = 10 * 10**9


def noted(**changes: int) -> Any:
    usage = np.zeros((), USAGE)
    plain = {"end_ns": START + TEN, "user_ns": 3 * 10**9, "system_ns": 10**9, "delay_ns": 10**8, "has_delay": 1, "framework": 1}  # fmt: skip
    for name, value in {**plain, **changes}.items():
        usage[name] = value
    return usage


def head(folder: Path, pid: int, usage: Any, parent: int = 1) -> StateHead:
    found = read_head(str(write_state(folder, f"node-{pid}", pid=pid, parent=parent, usage=usage)), 2)
    assert found is not None
    return found


def test_workers_are_told_from_the_process_that_trains(tmp_path: Path) -> None:
    training = head(tmp_path, 10, noted(user_ns=9 * 10**9))
    workers = [head(tmp_path, pid, noted(worker=1), parent=10) for pid in (11, 12)]
    use = loader_use([(training, 0), *((worker, 2 * 10**9) for worker in workers)])
    assert use is not None
    assert (use.workers, use.other_readers, use.frameworks) == (2, 1, ("torch",))
    assert (use.window_seconds, use.io_seconds, use.user_seconds, use.system_seconds) == (20.0, 4.0, 6.0, 2.0)
    assert (use.delay_seconds, use.training_cpu_share) == (0.2, 1.0)


def test_what_nobody_noted_is_not_known(tmp_path: Path) -> None:
    worker = head(tmp_path, 11, noted(worker=1, has_delay=0), parent=10)
    use = loader_use([(worker, 0)])
    assert use is not None
    assert (use.delay_seconds, use.training_cpu_share) == (None, None)
    nothing = head(tmp_path, 12, noted(end_ns=0))
    assert nothing.usage is None
    assert loader_use([(nothing, 0)]) is None
    assert loader_use([(head(tmp_path, 13, noted(framework=0)), 5)]) is None  # no framework: no word about loaders
    assert head(tmp_path, 14, noted(user_start_ns=10**10)).usage is None  # a counter that went back


def test_numbers_that_cannot_be_are_left_out(tmp_path: Path) -> None:
    assert head(tmp_path, 11, noted(end_ns=2**63)).usage is None
    use = loader_use([(head(tmp_path, 12, noted(worker=1)), 2**40)])
    assert use is not None
    assert use.io_seconds <= use.window_seconds
