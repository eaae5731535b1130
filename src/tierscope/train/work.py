"""Steps of real training for a rank's loop: copy, forward, backward with all-reduce, optimizer; each timed.

The host does not wait for an accelerator before the epoch's end: it is a few steps ahead, and batches are on their way to the device while it computes. With `train.sync: step` it is waited for after
every step, as a program does that looks at its loss; and always before a checkpoint, which has what the steps before it computed.
"""

import os
from dataclasses import fields
from functools import partial
from typing import Any

import torch
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from tierscope.arch.network import Network
from tierscope.arch.networks import build_network, find_network
from tierscope.arch.precision import PRECISIONS
from tierscope.errors import StoppedError, UserError
from tierscope.formats import FORMATS
from tierscope.loaders import Batch
from tierscope.plan.checkpoints import is_due
from tierscope.plan.file_format import make_format
from tierscope.spec.study import Study
from tierscope.trace.rank_trace import Phases, TrainingLog
from tierscope.train.clock import StepClock, wait
from tierscope.train.devices import device_name, memory_bytes, pick_device
from tierscope.train.exchange import Exchange
from tierscope.train.fits import refuse_too_large, saying_shortage
from tierscope.train.model import NetworkModule
from tierscope.train.pinned import PinnedCopies, pin
from tierscope.train.samples import HostSamples, StoredSamples

_RATE = 1e-3
_MOMENTUM = 0.9


class TorchWork:
    """One rank's training. `place` says which of how many ranks it is."""

    def __init__(self, study: Study, place: Any) -> None:
        model, reader = study.workload.model, study.workload.reader
        assert model.network is not None
        self._model, self._place = model, place
        self._device = pick_device(model.device, place.rank_on_host)
        if self._device.type == "cpu":
            torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // place.ranks_on_host))
        known = find_network(model.network)
        shape = None if model.input is None else tuple(map(int, model.input.split("x")))
        self.network = build_network(model.network, shape)
        self._precision = PRECISIONS[model.arithmetic]
        step = self.network, reader.batch_size, self._precision, model.solver, model.recompute
        refuse_too_large(*step, self._device, place.ranks_on_host)
        self._saying_shortage = partial(saying_shortage, *step)
        torch.manual_seed(study.seed)
        self._module: nn.Module = NetworkModule(self.network, model.recompute).to(self._device)
        self._optimizer = make_optimizer(model.solver, self._module)
        self._batch_size = reader.batch_size
        picture = FORMATS[study.workload.dataset.format].picture
        decode = make_format(study).decode if picture else None
        self._stored = StoredSamples(self.network.input_shape, known.data.element_bytes, decode)
        on_device = self._device.type == "cuda"
        self.pin = pin if on_device else None
        self._samples: PinnedCopies | HostSamples = (
            PinnedCopies(self._stored, reader.batch_size, self._device)
            if on_device
            else HostSamples(self._stored, reader.batch_size)
        )
        self._waits, self._steps = study.workload.train.sync == "step", 0
        self._checkpoint = study.workload.checkpoint
        self._fixed = torch.rand(reader.batch_size, *self.network.input_shape, device=self._device)
        self._synthetic = model.data == "synthetic"
        if not self._synthetic:
            self._fixed = self._fixed[:1].clone()
        self._clock = StepClock(self._device)
        self._exchange = Exchange(self._device, place.size)
        self._losses: list[torch.Tensor] = []  # the first and the last

    def begin(self) -> None:
        place = self._place
        if place.size > 1:
            join(place, self._device)
            ids = [self._device.index] if self._device.type == "cuda" else None
            self._module = DistributedDataParallel(self._module, device_ids=ids)
            self._module.register_comm_hook(None, self._exchange.reduce)
        with self._saying_shortage():
            for _ in range(2):  # what the first steps pay for: libraries, plans, memory
                inputs = self._fixed[:1].expand(self._batch_size, *self._fixed.shape[1:])
                self._loss(inputs.contiguous(), range(self._batch_size)).backward()
                self._optimizer.zero_grad(set_to_none=True)
        self._exchange.turn()
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            torch.cuda.reset_peak_memory_stats(self._device)

    def __call__(self, batch: Batch) -> bool:
        with self._saying_shortage():
            self._step(batch)
        return True

    def _step(self, batch: Batch) -> None:
        clock = self._clock
        clock.open()
        inputs = self._fixed[: len(batch.samples)] if self._synthetic else self._samples(batch)
        clock.mark("copy")
        loss = self._loss(inputs, batch.samples)
        clock.mark("forward")
        loss.backward()
        clock.mark("backward")
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        clock.mark("optimizer")
        self._losses = [*self._losses[:1], loss.detach()]
        self._samples.release()
        self._steps += 1
        if self._waits or is_due(self._checkpoint, self._steps):
            wait(self._device)
        clock.close()

    def settle(self) -> None:
        self._clock.settle()

    def turn(self) -> Phases:
        taken = self._clock.take()
        known = {f"{phase}_seconds": seconds for phase, seconds in taken.items()}
        known["exchange_seconds"] = self._exchange.turn()
        known["overlapped_seconds"], self._clock.overlapped_seconds = self._clock.overlapped_seconds, 0.0
        return Phases(**{field.name: known.get(field.name, 0.0) for field in fields(Phases)})

    def finish(self) -> TrainingLog:
        if distributed.is_initialized():
            self._exchange.settle()
            distributed.destroy_process_group()
        peak = torch.cuda.max_memory_allocated(self._device) if self._device.type == "cuda" else None
        losses = [float(loss) for loss in self._losses]
        if not all(abs(loss) < float("inf") for loss in losses):
            raise StoppedError(
                f"the loss of {self.network.name} is {losses[-1]}, so its times are unusable; try another --optimizer or --precision"
            )
        return TrainingLog(
            network=self.network.name,
            parameters=self.network.parameters,
            device=device_name(self._device),
            device_memory_bytes=memory_bytes(self._device),
            software=f"torch {torch.__version__}",
            first_loss=losses[0] if losses else 0.0,
            last_loss=losses[-1] if losses else 0.0,
            peak_memory_bytes=peak,
            ahead_bytes=self._samples.nbytes,
            repeated=self._stored.repeated,
        )

    def _loss(self, inputs: torch.Tensor, samples: Any) -> torch.Tensor:
        targets = make_targets(self.network, samples, self._device)
        with torch.autocast(self._device.type, torch.bfloat16, enabled=self._precision.copies_weights):
            return loss_of(self.network, self._module(inputs), targets)


def join(place: Any, device: torch.device) -> None:
    if place.meeting is None:
        raise UserError("ranks that train together need a place to meet; run them with 'tierscope train'")
    if device.type == "cuda":
        torch.cuda.set_device(device)  # events are made on the current one
    backend = "nccl" if device.type == "cuda" else "gloo"
    if place.ranks_on_host == place.size:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    distributed.init_process_group(
        backend, init_method=f"file://{place.meeting}", rank=place.rank, world_size=place.size
    )


def make_optimizer(solver: str, module: nn.Module) -> torch.optim.Optimizer:
    if solver == "adam":
        return torch.optim.Adam(module.parameters(), lr=_RATE)
    return torch.optim.SGD(module.parameters(), lr=_RATE, momentum=_MOMENTUM)


def make_targets(network: Network, samples: Any, device: torch.device) -> torch.Tensor:
    """Something to learn that depends on the sample's number alone."""
    numbers = torch.tensor(list(samples), dtype=torch.int64, pin_memory=device.type == "cuda")
    numbers = numbers.to(device, non_blocking=True)
    last = network.layers[-1]
    if last.kind == "Tanh":  # regression
        return (numbers[:, None] % 7 - 3).float().expand(-1, last.out_shape[0]) / 4
    classes = numbers % last.out_shape[0]
    if len(last.out_shape) == 1:
        return classes
    return classes.view(-1, *(1,) * (len(last.out_shape) - 1)).expand(-1, *last.out_shape[1:]).contiguous()


def loss_of(network: Network, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    if network.layers[-1].kind == "Tanh":
        return functional.mse_loss(outputs.float(), targets)
    return functional.cross_entropy(outputs, targets)
