"""Simulated combinations of different cases, or that read different amounts of data, have lists of their own."""

import json
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from tests.cli.test_commands import run
from tierscope.predict.exploration import Combination, Remedy, SimulatedExploration
from tierscope.predict.plan_json import simulated_exploration_json
from tierscope.predict.ranked_apart import groups_apart, rank_apart
from tierscope.report.models import SimulatedExplorationView
from tierscope.spec.goal import Goal

GOAL = Goal("io", 4.0)


def combination(seconds: float, nbytes: float | None, **settings: Any) -> Combination:
    return Combination(
        settings, 0.0, seconds, seconds, seconds, "GFS-READ", seconds, GOAL.is_met(seconds), read_bytes=nbytes
    )


def explored(*combinations: Combination) -> SimulatedExploration:
    front = rank_apart(
        combinations, lambda group: sorted((one for one in group if one.met), key=lambda one: one.io_seconds)
    )
    return SimulatedExploration(GOAL, "bound", {}, combinations, tuple(front))


def shown(found: SimulatedExploration) -> str:
    console = Console(width=160)
    with console.capture() as caught:
        console.print(SimulatedExplorationView("test", found))
    return " ".join(caught.get().split())


def test_less_data_does_not_beat_more() -> None:
    found = explored(
        combination(1.0, 1e6, files=10), combination(3.0, 1e9, files=10_000), combination(2.0, 1e9, files=9_995)
    )
    groups = groups_apart(found)
    assert [(group.amount, [one.settings["files"] for one in group.pareto]) for group in groups] == [
        (1e9, [9_995, 10_000]),
        (1e6, [10]),
    ]
    text = shown(found)
    assert "954 MiB per epoch: 2 of 2 combinations meet it" in text
    assert "977 KiB per epoch: 1 of 1 combination" in text
    assert "Combinations that read different amounts of data are ranked separately." in text
    content = simulated_exploration_json(found)
    assert content["pareto"] is None
    assert [len(group["pareto"]) for group in content["groups"]] == [2, 1]


def test_cases_stay_apart_and_one_without_an_answer_says_so() -> None:
    found = explored(
        combination(3.0, 1e6, case="b", servers=1),
        combination(9.0, 1e6, case="a", servers=1),
        combination(8.0, 1e6, case="a", servers=2),
    )
    text = shown(found)
    assert text.index("Case b") < text.index("Case a")
    assert "Case a, 977 KiB per epoch: 4 s cannot be met by these combinations: the shortest is 8 s" in text
    assert "ranked separately" not in text
    content = simulated_exploration_json(found)
    assert [(one["case"], len(one["pareto"])) for one in content["cases"]] == [("b", 1), ("a", 0)]


def test_one_group_is_as_before() -> None:
    found = explored(combination(3.0, 1e6, servers=1), combination(2.0, 1e6, servers=2))
    assert len(groups_apart(found)) == 1
    content = simulated_exploration_json(found)
    assert len(content["pareto"]) == 2
    assert not {"groups", "cases"} & set(content)
    assert "per epoch:" not in shown(found)


def test_unknown_amounts_are_one_group() -> None:
    assert len(groups_apart(explored(combination(3.0, None, a=1), combination(2.0, 1e6, a=2)))) == 1


def test_a_study_is_never_told_to_read_less(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numba")
    small = ("--set", "sweep={}", "--vary", "num_files_train=64,128", "--goal", "io=1h")
    assert run("explore", "--simulate", "demo", *small, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["pareto"] is None
    assert [group["settings"] for group in found["groups"]] == [[{"num_files_train": 128}], [{"num_files_train": 64}]]
    first, second = (group["amount"] for group in found["groups"])
    assert first == 2 * second


def test_a_case_whose_options_cost_too_much_says_so() -> None:
    cheap, dear = combination(3.0, 1e6, case="a", servers=1), combination(3.0, 1e6, case="b", servers=1)
    found = explored(replace(cheap, cost=5.0), replace(dear, cost=50.0))
    found = replace(found, max_price=10.0, pareto=found.pareto[:1], over_price=1)
    text = shown(found)
    assert "Case a, 977 KiB per epoch: 1 of 1 combination meets it; the cheapest first" in text
    assert "Case b, 977 KiB per epoch: 1 of 1 combination meets it, none within 10: the cheapest costs 50." in text


def test_remedies_stand_with_the_case_that_needs_them() -> None:
    found = explored(combination(3.0, 1e6, case="a", servers=1), combination(9.0, 1e6, case="b", servers=1))
    remedy = Remedy("local shuffle", {}, combination(2.0, 1e6, case="b", servers=1), 0.1)
    assert [len(group.remedies) for group in groups_apart(replace(found, remedies=(remedy,)))] == [0, 1]


def test_what_has_no_price_is_not_the_cheapest() -> None:
    """A group with options within the limit, and one without."""
    within = replace(combination(3.0, 1e6, case="small"), cost=50.0)
    free = replace(combination(3.0, 1e6, case="big"), cost=0.0, unpriced=("system.tiers.gfs.bandwidth",))
    dear = replace(combination(2.0, 1e6, case="big", servers=9), cost=200.0)
    limited = replace(explored(within, free, dear), pareto=(within,), max_price=100.0)
    assert "none within 100: the cheapest costs 200." in shown(limited)
    unknown = replace(explored(within, free), pareto=(within,), max_price=100.0)
    assert "none within 100: what they cost is not known without a price for gfs.bandwidth." in shown(unknown)
