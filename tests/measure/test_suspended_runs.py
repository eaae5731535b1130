"""Runs during which somebody was suspended: discarded, said in a line, repeated; and at some point it is enough."""

from pathlib import Path
from typing import Any

import pytest

from tests.kept_ranks import KeptCrew
from tests.measure.test_run import traces
from tests.tiny import tiny
from tierscope.bench.crew import Progress
from tierscope.bench.run import RunTask
from tierscope.bench.tasks import OverheadTask, Task
from tierscope.errors import StoppedError, SuspendedError
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.watch import Silent


class Counting(Silent):
    """Progress, and what was said."""

    def __init__(self) -> None:
        self.done = self.total = 0
        self.notes: list[str] = []

    def phase(self, _title: str, total: int, _unit: str) -> None:
        self.done, self.total = 0, total

    def advance(self, amount: int) -> None:
        self.done += amount

    def note(self, text: str) -> None:
        self.notes.append(text)


def suspend(monkeypatch: pytest.MonkeyPatch, kind: type, times: int) -> list[Task]:
    """The first so many tasks of a kind are done, and then it turns out that a rank was suspended."""
    call, seen = KeptCrew.call, list[Task]()

    def called(crew: KeptCrew, task: Task, progress: Progress) -> list[Any]:
        found = call(crew, task, progress)
        if isinstance(task, kind):
            seen.append(task)
            if len(seen) <= times:
                raise SuspendedError("rank 1 was suspended")
        return found

    monkeypatch.setattr(KeptCrew, "call", called)
    return seen


def run(out: Path, ops: bool = False) -> Counting:
    watch, crews = Counting(), Crews()
    try:
        run_study(tiny("cache_rate=50%", "sweep={}"), str(out), crews, watch, ops)
    finally:
        crews.close()
    return watch


@pytest.mark.faults
@pytest.mark.parametrize("kind", [RunTask, OverheadTask])
def test_a_suspended_run_is_repeated_as_if_it_had_not_been(
    kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = suspend(monkeypatch, kind, times=2)
    watch = run(tmp_path / "out", ops=True)
    assert len(seen) == 3
    line = "point 0, repetition 1: rank 1 was suspended; discarded and repeated"
    assert watch.notes.count(line) == 2
    assert watch.done == watch.total
    (trace,) = traces(tmp_path / "out")
    assert trace.ranks["samples"].to_list() == [12] * 4
    assert len(list((tmp_path / "out" / "ops").iterdir())) == 2
    assert not (tmp_path / "out" / ".scratch").exists()


@pytest.mark.faults
def test_a_run_that_is_always_suspended_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suspend(monkeypatch, RunTask, times=99)
    with pytest.raises(StoppedError, match=r"point 0, repetition 1: rank 1 was suspended in each of 3 attempts"):
        run(tmp_path / "out")
    assert not traces(tmp_path / "out")
