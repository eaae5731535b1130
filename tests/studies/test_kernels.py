"""The efficiency of a step: what is said where it cannot be measured."""

import importlib.util

import pytest

from tierscope.errors import UserError
from tierscope.studies.kernels import measure_efficiency


def test_an_unknown_network_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match="did you mean resnet50"):
        measure_efficiency("resnet5", 1, "fp32", "cpu")


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="torch is installed")
def test_without_torch_the_line_that_installs_it() -> None:
    with pytest.raises(UserError, match=r"torch is not installed; pip install 'tierscope\[torch\]'"):
        measure_efficiency("lenet5", 1, "fp32", "cpu")
