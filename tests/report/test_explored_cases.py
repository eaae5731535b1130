"""A case that no combination meets the goal in is named: its absence from a table is easily missed."""

from rich.console import Console

from tierscope.predict.exploration import Combination, SimulatedExploration
from tierscope.report.models import SimulatedExplorationView
from tierscope.spec.goal import Goal


def combination(case: str, servers: int, seconds: float) -> Combination:
    return Combination(
        {"case": case, "servers": servers}, 0.5, seconds, seconds, seconds, "GFS-READ", seconds, seconds <= 4
    )


def shown(*combinations: Combination) -> str:
    met = tuple(each for each in combinations if each.met)
    found = SimulatedExploration(Goal("io", 4.0), "bound", {"servers": (1, 2)}, combinations, met)
    console = Console(width=160)
    with console.capture() as caught:
        console.print(SimulatedExplorationView("test", found))
    return caught.get()


def test_cases_that_nothing_meets_the_goal_in_are_named() -> None:
    met, missed = combination("small", 1, 3.0), [combination("large", servers, 5.0) for servers in (1, 2)]
    assert "Nothing here meets it in case large." in shown(met, *missed)
    assert "Nothing here" not in shown(met, missed[0], combination("large", 2, 4.0))
