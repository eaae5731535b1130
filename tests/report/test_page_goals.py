"""The page's arithmetic gives the numbers of the commands, for goals of every kind (in Node; the whole page is tried in a browser)."""

import json
import shutil
import subprocess
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.predict.clocked import Rank, clocked
from tests.report.sources import GRID, source_of
from tests.traces import CLASSES
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.times import ClassTimes
from tierscope.predict.explore import explore
from tierscope.predict.whatif import estimate
from tierscope.report.markup import read_asset
from tierscope.report.page_data import live_data
from tierscope.spec.goal import Goal

pytestmark = pytest.mark.whole

NODE = shutil.which("node")
IMPROVE = {"GFS-READ": 35.0, "LFS-META": -20.0}
X, Y = "GFS-META", "LFS-READ"


def times(small: bool = False) -> ClassTimes:
    dice = np.random.default_rng(5)

    def rank(rate: float, payload: int) -> Rank:
        seconds = dice.gamma(4, 0.1, 4) * (1 - rate, 1 - rate, rate, rate)
        io = float(seconds.sum())
        compute = float(dice.uniform(0.2, 2.0))
        stall = float(dice.uniform(0, io))
        epoch = compute + stall + max(0.0, io - stall - compute)
        classes = dict(zip(CLASSES, map(float, seconds), strict=True))
        return {**classes, "epoch": epoch, "stall": stall, "compute": compute, "payload": payload}

    points = [
        ({"size": size, "cache_rate": rate}, [[rank(rate, size * 1000) for _ in range(30)] for _ in range(3)])
        for size in ((1, 2) if small else (2,))
        for rate in (0.0, 0.5, 1.0)
    ]
    return clocked(points, ("size", "cache_rate"))


def in_node(data: Any, expression: str) -> Any:
    assert NODE is not None
    code = f"{read_asset('whatif.js')}\nconst [model] = whatif.models({json.dumps(data)});\nconsole.log(JSON.stringify({expression}));"
    done = subprocess.run([NODE, "-"], input=code, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(NODE is None, reason="no node on this machine")
@pytest.mark.parametrize("small", [False, True])
def test_an_estimate_and_every_goal_are_those_of_the_commands(small: bool) -> None:
    given = times(small)
    source = source_of(given)
    goals = [Goal("io", 0.55), Goal("epoch", 1.6), Goal("au", 0.8), Goal("au", 0.05), Goal("epoch", 0.01)]
    asked = ", ".join(
        f"model.explore({goal.value}, '{X}', '{Y}', {json.dumps(IMPROVE)}, '{goal.kind}')" for goal in goals
    )
    found = in_node(live_data(source), f"[model.estimate({json.dumps(IMPROVE)}), {asked}]")
    after = estimate(given, break_down(given), IMPROVE).after
    assert found[0]["best"]["sweep"] == after.best.sweep
    assert found[0]["best"]["epoch_seconds"] == pytest.approx(after.best.epoch_seconds, rel=1e-9)
    assert found[0]["best"]["io_seconds"] == pytest.approx(after.best.io.median, rel=1e-9)
    for goal, one in zip(goals, found[1:], strict=True):
        expected = explore(source.processes, goal, {X: GRID, Y: GRID}, IMPROVE)
        assert [cell["met"] for cell in one["grid"]] == (expected.chosen >= 0).tolist(), goal
        assert [cell["value"] for cell in one["grid"]] == pytest.approx(expected.values.tolist(), rel=1e-9), goal
        assert [cell["io_seconds"] for cell in one["grid"]] == pytest.approx(expected.io_seconds.tolist(), rel=1e-9)
        sweeps = [None if place < 0 else dict(expected.sweeps[place]) for place in expected.chosen]
        assert [cell["sweep"] for cell in one["grid"]] == sweeps
        assert len(one["pareto"]) == len(expected.options)


def test_what_is_not_known_is_not_offered() -> None:
    given = times()
    assert live_data(source_of(given))["goal"]["kinds"] == ["io", "epoch", "au"]
    assert live_data(source_of(replace(given, epochs=given.epochs.clear())))["goal"]["kinds"] == ["io"]
    assert "clock" not in live_data(source_of(replace(given, epochs=given.epochs.clear())))["points"][0]["epochs"][0]
