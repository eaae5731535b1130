"""Steps of training on samples that the device has, by themselves: how long they take and how much memory, without any loader."""

import time
from dataclasses import dataclass

import torch
from torch import nn

from tierscope.arch.network import Network
from tierscope.arch.precision import Precision
from tierscope.train.clock import wait
from tierscope.train.model import NetworkModule
from tierscope.train.work import loss_of, make_optimizer, make_targets

_WARM = 3


@dataclass(frozen=True, slots=True)
class Steps:
    """`seconds`: of each step after warming up. `peak_bytes`: of the allocator over one whole step; None: it does not say."""

    seconds: tuple[float, ...]
    peak_bytes: int | None
    start_bytes: int | None  # before the step: parameters, optimizer's state, samples, libraries
    kept_bytes: int | None  # more of it after forward


class Trainer:
    """One network on one device with a batch of its own."""

    def __init__(
        self,
        network: Network,
        batch: int,
        precision: Precision,
        solver: str,
        device: torch.device,
        recompute: bool = False,
    ) -> None:
        torch.manual_seed(0)
        self.network, self.device, self._precision = network, device, precision
        self.module: nn.Module = NetworkModule(network, recompute).to(device)
        self._optimizer = make_optimizer(solver, self.module)
        self._inputs = torch.rand(batch, *network.input_shape, device=device)
        self._targets = make_targets(network, range(batch), device)

    def train_on(self, inputs: torch.Tensor) -> None:
        """A step on samples of somebody else's; nobody waits for the device."""
        self._inputs = inputs
        if len(inputs) != len(self._targets):
            self._targets = make_targets(self.network, range(len(inputs)), self.device)
        self.step()

    def forward(self) -> torch.Tensor:
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self._precision.copies_weights):
            return loss_of(self.network, self.module(self._inputs), self._targets)

    def update(self) -> None:
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)

    def step(self) -> None:
        self.forward().backward()
        self.update()


def measure_steps(trainer: Trainer, count: int) -> Steps:
    for _ in range(_WARM):
        trainer.step()
    wait(trainer.device)
    seconds = []
    for _ in range(count):
        step_start = time.perf_counter()
        trainer.step()
        wait(trainer.device)
        seconds.append(time.perf_counter() - step_start)
    if trainer.device.type != "cuda":
        return Steps(tuple(seconds), None, None, None)
    torch.cuda.reset_peak_memory_stats(trainer.device)
    start = torch.cuda.memory_allocated(trainer.device)
    loss = trainer.forward()
    kept = torch.cuda.memory_allocated(trainer.device) - start
    loss.backward()
    trainer.update()
    wait(trainer.device)
    return Steps(tuple(seconds), torch.cuda.max_memory_allocated(trainer.device), start, kept)
