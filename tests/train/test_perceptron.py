"""Gradients beside finite differences, and a step of all ranks beside the ranks' own."""

import numpy as np
import pytest

from tierscope.train.digits import FloatArray, IntArray
from tierscope.train.perceptron import LEARNING_RATE, Perceptron, batches

RANKS, BATCH, INPUTS, CLASSES = 3, 4, 6, 3
STEP = 1e-6


def made(ghost: bool, seed: int = 1) -> tuple[Perceptron, FloatArray, IntArray]:
    random = np.random.default_rng(seed)
    model = Perceptron(INPUTS, CLASSES, ghost, random, hidden=5)
    for name in ("shift", "bias"):  # zeros would hide a sign
        model.parameters[name] += random.normal(0, 0.3, model.parameters[name].shape)
    if ghost:
        model.parameters["scale"] += random.normal(0, 0.3, 5)
    return model, random.normal(size=(RANKS, BATCH, INPUTS)), random.integers(0, CLASSES, (RANKS, BATCH))


@pytest.mark.parametrize("ghost", [True, False])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_gradients_are_those_of_finite_differences(ghost: bool, seed: int) -> None:
    model, pixels, labels = made(ghost, seed)
    _, found = model.gradients(pixels, labels)
    assert found.keys() == model.parameters.keys()
    for name, parameter in model.parameters.items():
        for place in np.ndindex(parameter.shape):
            before, losses = parameter[place], []
            for change in (STEP, -STEP):
                parameter[place] = before + change
                losses.append(model.gradients(pixels, labels)[0])
            parameter[place] = before
            numeric = (losses[0] - losses[1]) / (2 * STEP)
            assert found[name][place] == pytest.approx(numeric, rel=1e-4, abs=1e-7), (name, place)


@pytest.mark.parametrize("ghost", [True, False])
def test_a_step_of_all_ranks_is_the_mean_of_their_own_gradients(ghost: bool) -> None:
    """What data-parallel training does; with ghost because nobody looks at another rank's batch."""
    model, pixels, labels = made(ghost)
    _, together = model.gradients(pixels, labels)
    alone = [model.gradients(pixels[rank : rank + 1], labels[rank : rank + 1])[1] for rank in range(RANKS)]
    for name, gradient in together.items():
        assert np.allclose(gradient, np.mean([each[name] for each in alone], axis=0))


def test_only_with_ghost_it_matters_which_rank_has_a_sample() -> None:
    for ghost in (True, False):
        model, pixels, labels = made(ghost)
        _, one = model.gradients(pixels, labels)
        swapped, theirs = pixels.reshape(BATCH, RANKS, INPUTS).swapaxes(0, 1), labels.reshape(BATCH, RANKS).T
        _, other = model.gradients(swapped, theirs)
        assert np.allclose(one["into"], other["into"]) is not ghost


def test_a_step_goes_down_the_gradient_and_remembers_it() -> None:
    model, pixels, labels = made(ghost=False)
    before = {name: value.copy() for name, value in model.parameters.items()}
    _, gradients = model.gradients(pixels, labels)
    first = model.step(pixels, labels)
    for name, value in before.items():
        assert np.allclose(model.parameters[name], value - LEARNING_RATE * gradients[name])
    assert [model.step(pixels, labels) for _ in range(30)][-1] < first


def test_one_class_only_is_tested_with_statistics_that_fit_nobody() -> None:
    """The harm of an unrepresentative share: ranks with a class each see variances that are too small."""
    random = np.random.default_rng(4)
    classes = random.normal(0, 3, (RANKS, 1, INPUTS)) + random.normal(0, 0.1, (RANKS, 50, INPUTS))
    labels = np.repeat(np.arange(RANKS)[:, None], 50, axis=1)
    spread = {}
    for name, given in (("apart", (classes, labels)), ("mixed", (classes.swapaxes(0, 1), labels.T))):
        model = Perceptron(INPUTS, CLASSES, True, np.random.default_rng(0))
        model.step(*given)
        spread[name] = float(model.running_variance.mean())
    assert spread["apart"] < 0.5 * spread["mixed"]


def test_batches_are_what_ranks_take_step_by_step() -> None:
    samples = np.arange(2 * 9).reshape(2, 9)
    assert [taken.tolist() for taken in batches(samples, 4)] == [[[0, 1, 2, 3], [9, 10, 11, 12]], [[4, 5, 6, 7], [13, 14, 15, 16]]]  # fmt: skip
    assert [taken.shape for taken in batches(samples, 5)] == [(2, 5), (2, 4)]
    assert [taken.shape for taken in batches(samples, 1)] == [(2, 1)] * 9
