"""A batch that does not fit the device is refused before data are written, by the rank that would train with it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.tiny import tiny
from tierscope.bench.group import Alone
from tierscope.bench.tasks import FitTask, Who, perform
from tierscope.errors import UserError
from tierscope.measure.run import refuse_large_batches
from tierscope.spec.study import Study


def trained(batch: int = 8, device: str = "auto", data: str = "tiers") -> Study:
    study = tiny()
    model = replace(study.workload.model, network="lenet5", device=device, data=data)
    reader = replace(study.workload.reader, batch_size=batch)
    return replace(study, workload=replace(study.workload, model=model, reader=reader))


@dataclass
class FakeCrew:
    tasks: list[Any] = field(default_factory=list)

    def call(self, task: Any, _advance: Callable[[int], None]) -> list[Any]:
        self.tasks.append(task)
        return []

    def of(self, study: Study) -> tuple["FakeCrew", list[Who]]:
        """All on one host, whatever nodes the study has."""
        cores = frozenset(range(4))
        return self, [Who(rank, 1, "here", "boot", "here", cores) for rank in range(study.system.ranks)]


def test_each_batch_is_asked_once() -> None:
    crews = FakeCrew()
    studies = [trained(), trained(data="synthetic"), trained(16), trained(4, "cpu"), tiny()]
    refuse_large_batches(studies, crews)  # type: ignore[arg-type]
    assert [task.study.workload.reader.batch_size for task in crews.tasks] == [8, 16, 4]
    assert all(task.ranks_on_host == 2 for task in crews.tasks), "two nodes of one rank"


def test_the_first_rank_of_a_node_looks_for_the_devices_of_all() -> None:
    asked = []
    perform(
        FitTask(trained(), lambda study, number: asked.append((study.workload.reader.batch_size, number)), 4), Alone()
    )
    assert asked == [(8, 3)], "the last of four devices"

    def refuse(_study: Study, _number: int) -> None:
        raise UserError("does not fit")

    with pytest.raises(UserError, match="does not fit"):
        perform(FitTask(trained(), refuse, 1), Alone())


def test_it_is_asked_before_data_are_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from tierscope.measure import run  # noqa: PLC0415
    from tierscope.measure.crews import Crews  # noqa: PLC0415
    from tierscope.watch import Silent  # noqa: PLC0415

    def refuse(_studies: Any, _crews: Any) -> None:
        raise UserError("does not fit")

    monkeypatch.setattr(run, "refuse_large_batches", refuse)
    monkeypatch.setattr(run, "check_training", lambda *_: None)
    with pytest.raises(UserError, match="does not fit"):
        run.run_study(trained(), str(tmp_path / "out"), Crews(), Silent())
    assert not (tmp_path / "out" / "tiers").exists()
