"""The rule by which services vary: what it draws, and that nothing else does."""

import ast
import math
import random
from pathlib import Path

import numpy as np
import pytest

import tierscope
from tests.source_trees import nodes_of
from tierscope.plan.variation import factor, log_parameters, mean_factors

SOURCE = Path(tierscope.__file__).parent
VARIATIONS = [0.05, 0.5, 1.0, 2.0]
DRAWS = 40_000
SIGMAS = 4

# Who draws anything but even numbers in the rooms that know stations, and what for.
DRAWING = {
    "plan/variation.py": "the rule",
    "predict/engine/stations.py": "the rule, compiled",
    "predict/engine/consumers.py": "what a step takes longer by chance, which is no service",
    "plan/stations.py": "how fast each server is, once",
    "predict/drawn.py": "how many operations each server gets",
    "predict/spread.py": "the error of the model",
    "storage/background.py": "what others ask of a station",
    "predict/table_alike.py": "figures of fits that are about as good",
    "predict/sampled.py": "the sizes of a rank's samples, in all",
}
DISTRIBUTIONS = {
    "betavariate", "expovariate", "exponential", "gamma", "gammavariate", "gauss", "lognormal", "lognormvariate", "normal", "normalvariate",
    "pareto", "paretovariate", "standard_exponential", "standard_gamma", "standard_normal", "triangular", "weibull", "weibullvariate",
}  # fmt: skip


@pytest.mark.parametrize("variation", VARIATIONS)
def test_its_mean_is_one_and_its_variation_the_given_one(variation: float) -> None:
    """By the moments of a lognormal distribution."""
    mean, deviation = log_parameters(variation)
    assert math.exp(float(mean) + float(deviation) ** 2 / 2) == pytest.approx(1.0)
    assert math.sqrt(math.expm1(float(deviation) ** 2)) == pytest.approx(variation)


@pytest.mark.parametrize("variation", VARIATIONS)
def test_both_ways_to_draw_follow_it(variation: float) -> None:
    dice, rng = random.Random(3), np.random.default_rng(3)
    mean, deviation = log_parameters(variation)
    drawn = np.array([factor(variation, dice) for _ in range(DRAWS)])
    at_once = mean_factors(np.full(DRAWS, variation), np.ones(DRAWS), rng)
    for found in (drawn, at_once):
        logs = np.log(found)
        assert logs.mean() == pytest.approx(mean, abs=SIGMAS * float(deviation) / math.sqrt(DRAWS))
        assert logs.std() == pytest.approx(deviation, rel=SIGMAS / math.sqrt(2 * DRAWS))
        assert found.mean() == pytest.approx(1.0, abs=SIGMAS * variation / math.sqrt(DRAWS))


def test_a_sum_of_services_varies_less_and_keeps_its_mean() -> None:
    rng = np.random.default_rng(4)
    for services in (1, 9, 100):
        found = mean_factors(np.full(DRAWS, 1.5), np.full(DRAWS, services), rng)
        each = rng.lognormal(*log_parameters(1.5), (4000, services)).mean(axis=1)
        assert found.mean() == pytest.approx(1.0, abs=SIGMAS * 1.5 / math.sqrt(services * DRAWS))
        assert np.quantile(found, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(each, [0.1, 0.5, 0.9]), rel=0.1)


def test_without_variation_nothing_varies() -> None:
    assert factor(0.0, random.Random(1)) == 1.0
    assert (mean_factors(np.zeros(5), np.arange(5.0), np.random.default_rng(1)) == 1.0).all()


def test_nobody_draws_services_by_a_rule_of_their_own() -> None:
    found = set()
    for room in ("plan", "storage", "native", "predict"):
        for path in (SOURCE / room).rglob("*.py"):
            calls = [node.func for node in nodes_of(path) if isinstance(node, ast.Call)]
            if any(isinstance(call, ast.Attribute) and call.attr in DISTRIBUTIONS for call in calls):
                found.add(str(path.relative_to(SOURCE)))
    assert found == set(DRAWING)
