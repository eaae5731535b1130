"""Options worth showing: none that another beats in every respect, and certainty is one."""

from dataclasses import replace

from tierscope.commands.explore import one_option
from tierscope.predict.exploration import Combination, SimulatedExploration
from tierscope.predict.fronts import best_rate, certain_rate, pareto, ranked
from tierscope.spec.goal import Goal

GOAL = Goal("io", 600.0)


def option(servers: int, seconds: float, high: float) -> Combination:
    plain = Combination(
        settings={"servers": servers},
        cache_rate=0.15,
        io_seconds=seconds,
        low_seconds=0.9 * seconds,
        high_seconds=high,
        bottleneck="GFS-READ",
        epoch_seconds=seconds,
        met=False,
        cost=10_000.0 * servers,
    )
    return plain.judged(GOAL)


def test_an_option_that_may_miss_does_not_hide_the_cheapest_that_is_certain() -> None:
    options = [option(8, 900, 950), option(12, 598, 628), option(14, 500, 540), option(16, 450, 480)]
    front = ranked(pareto(options, {"servers": 1}, GOAL), GOAL)
    assert [choice.settings["servers"] for choice in front] == [12, 14]


def test_of_options_as_certain_the_least_is_left() -> None:
    options = [option(12, 560, 590), option(14, 500, 540)]
    assert [choice.settings["servers"] for choice in pareto(options, {"servers": 1}, GOAL)] == [12]


def test_a_tender_asks_for_the_first_that_is_certain() -> None:
    options = (option(12, 598, 628), option(14, 500, 540))
    both = SimulatedExploration(GOAL, "bound", {}, options, options)
    assert one_option("tender", both) is options[1]
    assert one_option("tender", SimulatedExploration(GOAL, "bound", {}, options[:1], options[:1])) is options[0]
    assert one_option("tender", SimulatedExploration(GOAL, "bound", {}, (), ())) is None


def test_a_larger_rate_that_is_certain_is_kept_beside_the_smallest() -> None:
    rates = [replace(option(12, 598, 628), cache_rate=0.15), replace(option(12, 570, 590), cache_rate=0.159)]
    assert best_rate(rates, GOAL) is rates[0]
    assert certain_rate(rates, GOAL) is rates[1]
    assert certain_rate(rates[:1], GOAL) is None
    front = ranked(pareto([*rates, option(13, 560, 580)], {"servers": 1}, GOAL), GOAL)
    assert one_option("tender", SimulatedExploration(GOAL, "bound", {}, tuple(front), tuple(front))) is rates[1]


def test_what_has_no_price_comes_last_and_is_within_no_limit() -> None:
    free = replace(option(8, 500, 510), cost=0.0, unpriced=("system.tiers.gfs.metadata_servers",))
    priced = option(12, 500, 510)
    assert ranked([free, priced], GOAL) == [priced, free]
    assert [choice.costs_at_most(1e9) for choice in (free, priced)] == [False, True]


def test_of_what_costs_the_same_the_least_comes_first() -> None:
    more, less = (
        replace(option(8, 500, 510), cost=None, increase=2.0),
        replace(option(4, 550, 560), cost=None, increase=1.0),
    )
    assert ranked([replace(more, cache_rate=0.0), less], GOAL)[0] is less
    cheaper = replace(more, cost=1.0)
    assert ranked([replace(less, cost=2.0), cheaper], GOAL)[0] is cheaper
