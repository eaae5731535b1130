"""A step for which there is no memory, though it was predicted to fit: one line says so, with the prediction."""

from typing import Any

import pytest

from tests.integration.test_step_stalls import BATCH, STUDY
from tierscope.bench.work import RankPlace
from tierscope.errors import UserError
from tierscope.spec.load import parse_study

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")

SHORT = r"^lenet5: a step of batch 4 failed: not enough memory; .*, or use a smaller batch; it needs .* at its peak \(predicted\)$"


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 602112000000 bytes. Error code 12 (Cannot allocate memory)"
        ),
    ],
)
def test_a_step_without_memory_is_one_line(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    from tierscope.train.work import TorchWork  # noqa: PLC0415

    work: Any = TorchWork(parse_study(STUDY, "small.yaml"), RankPlace(0, 1, 0, 1, None))

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(TorchWork, "_loss", fail)
    with pytest.raises(UserError, match=SHORT):
        work.begin()
    with pytest.raises(UserError, match=SHORT):
        work(BATCH)


def test_other_errors_of_a_step_are_not_taken_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from tierscope.train.work import TorchWork  # noqa: PLC0415

    work: Any = TorchWork(parse_study(STUDY, "small.yaml"), RankPlace(0, 1, 0, 1, None))

    def fail(*_: Any) -> None:
        raise RuntimeError("cuDNN error: CUDNN_STATUS_NOT_SUPPORTED")

    monkeypatch.setattr(TorchWork, "_loss", fail)
    with pytest.raises(RuntimeError, match=r"^cuDNN error"):
        work.begin()
