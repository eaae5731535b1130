"""What counts as stall on a device that is behind its host: a device and a host that share a clock which only the test moves."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.integration.test_step_clock import Moment
from tierscope.bench.work import RankPlace
from tierscope.loaders import Batch
from tierscope.spec.load import parse_study

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")

STUDY = """
study: small
workload:
  dataset: {format: raw, num_files_train: 8, num_samples_per_file: 1, record_length_bytes: 784}
  reader: {batch_size: 4, read_threads: 1, prefetch_size: 2}
  model: {network: lenet5, device: cpu}
system: {nodes: 1, ranks_per_node: 1, tiers: {disk: {path: "{out}/tiers/disk"}}}
"""


class FakeDevice:
    """Does what it is told one after another; `host`: the host's clock."""

    def __init__(self) -> None:
        self.host = self.busy_until = 0.0

    def now(self, _device: object = None) -> Moment:
        return Moment(max(self.host, self.busy_until))

    def compute(self, seconds: float) -> None:
        self.busy_until = max(self.host, self.busy_until) + seconds

    def wait(self, _device: object = None) -> None:
        self.host = max(self.host, self.busy_until)


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDevice:
    made = FakeDevice()
    monkeypatch.setattr(Moment, "done_until", 0.0)
    for module in ("clock", "work"):
        monkeypatch.setattr(f"tierscope.train.{module}.wait", made.wait)
    monkeypatch.setattr("tierscope.train.clock.now", made.now)
    monkeypatch.setattr("tierscope.train.clock.time.perf_counter", lambda: made.host)
    return made


class Copies:
    """Of batches: the host waits for each until the device comes to it, as for one that the device has no memory for yet."""

    nbytes = 0

    def __init__(self, device: FakeDevice, seconds: float) -> None:
        self._device, self._seconds = device, seconds

    def __call__(self, batch: Batch) -> Any:
        return torch.zeros(len(batch.samples), 1, 28, 28)

    def release(self) -> None:
        self._device.host += self._seconds


def training(device: FakeDevice, *settings: str, copy_seconds: float = 0.0) -> Any:
    """Whose steps take the device four seconds."""
    from tierscope.train.work import TorchWork  # noqa: PLC0415

    study = parse_study(STUDY, "small.yaml", settings)
    work: Any = TorchWork(study, RankPlace(0, 1, 0, 1, None))
    work._samples = Copies(device, copy_seconds)
    plain: Callable[..., Any] = work._loss

    def loss(*inputs: Any) -> Any:
        device.compute(4.0)
        return plain(*inputs)

    work._loss = loss
    return work


BATCH = Batch(0, np.arange(4), [memoryview(bytes(784))] * 4, 0, 0)


def test_waiting_for_each_step_is_no_waiting_for_a_batch(device: FakeDevice) -> None:
    work = training(device, "train.sync=step")
    work(BATCH)
    device.host += 3.0  # until the next batch, with a device that has nothing to do
    work(BATCH)
    assert work.turn().overlapped_seconds == pytest.approx(0.0)


def test_waiting_for_copies_is_no_waiting_for_a_batch(device: FakeDevice) -> None:
    work = training(device, copy_seconds=2.5)
    work(BATCH)
    device.host += 3.0  # the device has one and a half seconds left to compute
    work(BATCH)
    assert work.turn().overlapped_seconds == pytest.approx(1.5)


def test_waiting_for_all_steps_is_no_waiting_for_a_batch(device: FakeDevice) -> None:
    work = training(device)
    work(BATCH)
    work.settle()
    device.host += 3.0
    work(BATCH)
    assert work.turn().overlapped_seconds == pytest.approx(0.0)


def test_a_checkpoint_waits_for_the_steps_before_it(device: FakeDevice) -> None:
    settings = ("checkpoint.model_parameters=1000", "checkpoint.steps_between_checkpoints=2")
    work = training(device, *settings)
    behind = []
    for _ in range(4):
        work(BATCH)
        behind.append(device.busy_until - device.host)
    assert behind == pytest.approx([4.0, 0.0, 4.0, 0.0])
