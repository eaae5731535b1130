"""The largest number that storage feeds, found by few simulations: where it ends, what ends it, and when the limit came first."""

import io
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from tests.examples import examples
from tests.predict.planning import loaded
from tierscope.errors import UserError
from tierscope.predict import combining, searches
from tierscope.predict.searches import LargestFed, _largest, find_most
from tierscope.report.plans import LargestFedView
from tierscope.spec.load import Loaded
from tierscope.watch import Silent

pytestmark = pytest.mark.whole


def most(wanted: str, goal: str = "au=90%", **changes: Any) -> LargestFed:
    plain = {"rates": "0%", "compute": "20 ms", "nodes": 1, "ranks": 1, "capacity": "1 GB"}
    return find_most(loaded(**{**plain, **changes}), wanted, goal, "bound", Silent())


@settings(max_examples=examples(60))
@given(st.integers(0, 300), st.integers(1, 300))
def test_the_largest_is_found_by_doubling_and_halving(true: int, limit: int) -> None:
    tried: list[int] = []

    def is_met(number: int) -> bool:
        tried.append(number)
        assert 1 <= number <= limit
        return number <= true

    assert _largest(is_met, limit) == min(true, limit)
    assert len(tried) <= 20


@pytest.mark.parametrize("wanted", ["nodes", "ranks_per_node"])
def test_it_ends_where_one_more_is_not_fed(wanted: str) -> None:
    """Two servers of 100 MB/s, files of 100 kB, two to a batch of 20 ms: one rank asks for 10 MB/s."""
    found = most(wanted)
    assert found.at is not None
    assert found.beyond is not None
    assert 15 <= found.value <= 24
    assert found.at.au is not None
    assert found.at.au >= 0.9 > (found.beyond.au or 0)
    assert found.tried[found.value + 1] == found.beyond
    assert found.beyond.bottleneck == "GFS-READ"
    low, high = found.at.interval("au")
    assert 0 < low <= found.at.au <= high <= 1
    assert found.sure <= found.value
    assert not found.is_limited
    assert found.again is None


@pytest.mark.parametrize("goal", ["io=1s", "epoch=1s"])
def test_ranks_that_are_done_in_time(goal: str) -> None:
    """Each rank reads 64 files of 100 kB, whatever their number: two servers of 100 MB/s do that for 31 of them in a second."""
    found = most("nodes", goal, compute="0 s", files=64)
    assert found.at is not None
    assert found.beyond is not None
    kind = goal.partition("=")[0]
    assert found.at.value(kind) <= 1 < found.beyond.value(kind)
    assert 20 <= found.value <= 31


@pytest.mark.parametrize("goal", ["io=1s", "epoch=1s", "au=90%"])
def test_of_each_number_the_best_of_the_sweep_counts(goal: str) -> None:
    """More is fed where files are cached than without, and the answer says where."""
    compute = "20 ms" if goal.startswith("au") else "0 s"
    alone, swept = (most("nodes=64", goal, compute=compute, files=64, rates=rates) for rates in ("0%", "0%, 50%, 100%"))
    assert alone.value < swept.value
    assert swept.safe is not None
    assert swept.safe.cache_rate > 0
    assert swept.tried[1].cache_rate == 0  # the smallest that is enough
    console = Console(width=500, record=True, file=io.StringIO())
    console.print(LargestFedView("study.yaml", swept))
    assert f" at cache_rate {100 * swept.safe.cache_rate:.0f}%" in console.export_text().splitlines()[1]


def test_fewer_data_are_no_way_to_feed_more() -> None:
    swept = find_most(
        loaded(("num_files_train=8,64",), rates="0%", compute="0 s", nodes=1, ranks=1, capacity="1 GB"),
        "nodes",
        "io=1s",
        "bound",
        Silent(),
    )
    assert swept.value == most("nodes", "io=1s", compute="0 s", files=64).value


def test_few_steps_have_their_part_of_the_credit() -> None:
    """Five seconds of credit are not there again for each of the steps that are simulated of a long epoch."""
    study = loaded(rates="0%", compute="20 ms", nodes=1, ranks=1, files=100000).study
    far = replace(study.system.tiers[1], credit=5.0)
    with_credit = replace(study, system=replace(study.system, tiers=(study.system.tiers[0], far)))
    found = find_most(Loaded(with_credit), "nodes=400", "au=90%", "bound", Silent())
    assert found.value < 30


def test_a_limit_that_comes_first_is_said() -> None:
    found = most("nodes=3")
    assert (found.value, found.limit, found.is_limited, found.beyond) == (3, 3, True, None)


def test_not_even_one_may_be_fed() -> None:
    found = most("nodes", compute="1 us")
    assert (found.value, found.at) == (0, None)
    assert found.beyond is not None


def test_what_does_not_fit_is_not_fed() -> None:
    """However fast: half of the files do not fit on any node."""
    assert most("nodes=4", rates="50%", capacity="1 B").value == 0
    assert most("nodes=4", rates="0%, 50%", capacity="1 B").value == 4  # of the sweep the point that fits
    cached = loaded(rates="0%", compute="20 ms", nodes=1, ranks=1, capacity="1 B")
    placed = replace(cached.study, sweep=(), placement=replace(cached.study.placement, cache_rate=0.5))
    assert find_most(Loaded(placed), "nodes=4", "au=90%", "bound", Silent()).value == 0


def test_utilisation_that_rises_again_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    simulate = combining.simulate_combination

    def odd(settings: Any, study: Any, method: str, known: Any, share: float) -> Any:
        found = simulate(settings, study, method, known, share)
        return replace(found, au=1.0 if study.system.nodes in (1, 2, 3, 6) else 0.1)

    monkeypatch.setattr(searches, "simulate_combination", odd)
    found = most("nodes=20")
    assert (found.value, found.again) == (3, 6)


def test_what_may_do_comes_behind_what_does() -> None:
    """The answer is the number that meets the goal at the low end of its interval; one that only may is named as such."""
    fed = most("nodes")
    likely = replace(fed, sure=fed.value - 1, tried={**fed.tried, fed.value - 1: fed.tried[1]})
    assert likely.safe is fed.tried[1]
    console = Console(width=500, record=True, file=io.StringIO())
    console.print(LargestFedView("study.yaml", likely))
    answer = console.export_text().splitlines()[1]
    assert answer.startswith(f"Largest nodes: {fed.value - 1}, with ")
    assert f"; {fed.value} may do, with " in answer


@pytest.mark.parametrize(
    ("wanted", "goal", "changes", "said"),
    [
        ("servers", "au=90%", {}, "must be ranks_per_node or nodes"),
        ("nodes=0", "au=90%", {}, "--most nodes=0"),
        ("nodes=x", "au=90%", {}, "--most nodes=x"),
        ("nodes", "au=90%", {"compute": "0 s"}, "needs compute"),
    ],
)
def test_a_search_that_makes_no_sense_is_one_line(wanted: str, goal: str, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError) as refused:
        most(wanted, goal, **changes)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)
