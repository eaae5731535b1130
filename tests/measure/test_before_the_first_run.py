"""What is asked before the first run depends on the number of points, not on how often each is repeated."""

import importlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.tiny import tiny
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.watch import Silent

pytestmark = pytest.mark.whole


class ReachedError(Exception):
    """The first run."""


@pytest.mark.parametrize("repetitions", [1, 1000])
def test_repetitions_add_no_question(repetitions: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: Counter[str] = Counter()

    def count(name: str) -> None:
        module, _, attribute = name.rpartition(".")
        real = getattr(importlib.import_module(module), attribute)

        def counted(*arguments: Any, **named: Any) -> Any:
            asked[attribute] += 1
            return real(*arguments, **named)

        monkeypatch.setattr(name, counted)

    def reached(*_: object) -> None:
        raise ReachedError

    count("tierscope.measure.storages.storage_type")
    count("tierscope.measure.storages.devices_of")
    count("tierscope.measure.run.choose_loader")
    count("tierscope.measure.staging.namespace")
    monkeypatch.setattr("tierscope.measure.run.Runner.run", reached)
    crews = Crews()
    with pytest.raises(ReachedError):
        run_study(tiny(f"repetitions={repetitions}"), str(tmp_path / "out"), crews, Silent())
    crews.close()
    assert asked["devices_of"] == asked["choose_loader"] == 3
    assert asked["storage_type"] <= 3 * 2 * 10
    assert asked["namespace"] <= 3 * 2 * 5
