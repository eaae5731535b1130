"""Nsight Compute's tables."""

import pytest

from tierscope.errors import UserError
from tierscope.train.counters import FP32, MEMORY, TENSOR, TIME, command, kernels_of

HEAD = '"ID","Process ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'


def row(number: int, name: str, metric: str, unit: str, value: str) -> str:
    return f'"{number}","9","{name}","{metric}","{unit}","{value}"\n'


def test_every_kernel_has_its_time_and_utilisations() -> None:
    text = "==PROF== Connected to process 9\nsome line of the program\n" + HEAD
    text += row(0, "gemm, wide", TIME, "us", "1,250.5") + row(0, "gemm, wide", TENSOR, "%", "55.5")
    text += (
        row(0, "gemm, wide", MEMORY, "%", "10")
        + row(1, "copy", TIME, "nsecond", "800")
        + row(1, "copy", FP32, "%", "n/a")
    )
    first, second = kernels_of(text)
    assert (first.name, first.tensor, first.memory, first.fp32) == ("gemm, wide", 0.555, 0.1, 0.0)
    assert first.seconds == pytest.approx(1250.5e-6)
    assert second.seconds == pytest.approx(800e-9)
    assert second.efficiency == 0


def test_a_kernel_without_a_time_is_left_out() -> None:
    assert kernels_of(HEAD + row(0, "k", TENSOR, "%", "5")) == []


def test_why_there_are_no_counters_is_said() -> None:
    with pytest.raises(UserError, match="ncu returned no counters: no permission"):
        kernels_of("==PROF== hello\n==ERROR== no permission\n")
    with pytest.raises(UserError, match="no table"):
        kernels_of("")


def test_the_command_profiles_between_the_marks_only() -> None:
    assert command(["python", "x.py"], ["a", "b"]) == [
        "ncu", "--csv", "--profile-from-start", "off", "--clock-control", "none", "--metrics", "a,b", "python", "x.py",
    ]  # fmt: skip
