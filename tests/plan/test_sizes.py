"""Sizes of samples: normal, bounded, and the same for everybody who asks."""

import numpy as np
import pytest

from tierscope.plan.permutation import IndexArray
from tierscope.plan.sizes import SampleSizes


def drawn(sizes: SampleSizes, files: int) -> IndexArray:
    return np.concatenate([sizes.of_file(file) for file in range(files)])


def test_mean_and_standard_deviation_are_those_asked_for() -> None:
    found = drawn(SampleSizes(10_000, 800, 1000, 7, ragged=True), 40)
    assert found.mean() == pytest.approx(10_000, abs=4 * 800 / np.sqrt(40_000))
    assert found.std() == pytest.approx(800, rel=0.02)
    standard = (found - 10_000) / 800
    assert abs(float((standard**3).mean())) < 0.06  # as of a normal distribution
    assert float((standard**4).mean()) == pytest.approx(3, abs=0.15)


def test_none_is_farther_off_than_four_times_that_and_none_is_empty() -> None:
    sizes = SampleSizes(1000, 600, 1000, 3, ragged=True)
    found = drawn(sizes, 100)
    assert found.min() >= 1
    assert found.max() <= sizes.largest == 3400


def test_samples_of_a_file_differ_or_files_do() -> None:
    ragged, alike = (SampleSizes(1000, 100, 8, 7, ragged) for ragged in (True, False))
    assert len(set(ragged.of_file(3).tolist())) > 4
    assert [len(set(alike.of_file(file).tolist())) for file in range(5)] == [1] * 5
    assert len({int(alike.of_file(file)[0]) for file in range(20)}) > 15


def test_a_function_of_seed_and_number() -> None:
    one, again, other = (SampleSizes(10**6, 10**5, 4, seed, ragged=True).of_file(9) for seed in (1, 1, 2))
    assert one.tolist() == again.tolist() != other.tolist()
    whole = SampleSizes(10**6, 10**5, 40, 1, ragged=True).of_file(0)
    assert whole[36:40].tolist() == one.tolist()  # by sample, not by file
    assert one.tolist() == [947389, 1022850, 938986, 894202]  # on any machine
