"""Operations of a step as the framework issues them, forward and backward: their kernels' time, their arithmetic, their bytes.

Time is that of the device's kernels (torch's profiler); on a CPU that of the call. Arithmetic is counted for matrix products and
convolutions, each gradient of a convolution as much as its forward pass, whatever the groups. Bytes are those of all tensors that an
operation reads and writes, once each: what caches serve is counted too.
"""

import math
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tierscope.arch.efficiency import Kernel
from tierscope.train.ceilings import Ceilings
from tierscope.train.steps import Trainer

_MARK = "tierscope-op-"
_VIEWS = (
    "view",
    "t",
    "transpose",
    "expand",
    "permute",
    "slice",
    "select",
    "detach",
    "alias",
    "as_strided",
    "unsqueeze",
)


@dataclass(slots=True)
class Operation:
    name: str
    flops: int
    nbytes: int
    narrow: bool  # products in 16 bits
    groups: int = 1
    seconds: float = 0.0


class _Watch(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self, clock: bool) -> None:
        super().__init__()
        self.operations: list[Operation] = []
        self._clock = clock  # by the host's

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name.strip("_") in _VIEWS or "record_function" in name:
            return func(*args, **kwargs)
        start = time.perf_counter()
        with record_function(f"{_MARK}{len(self.operations)}"):
            result = func(*args, **kwargs)
        seconds = time.perf_counter() - start if self._clock else 0.0
        self.operations.append(_described(name, args, kwargs, result, seconds))
        return result


def _described(name: str, args: Any, kwargs: Any, result: Any, seconds: float) -> Operation:
    tensors = {id(leaf): leaf for leaf in tree_leaves((args, kwargs, result)) if isinstance(leaf, torch.Tensor)}
    nbytes = sum(leaf.numel() * leaf.element_size() for leaf in tensors.values())
    first = next((leaf for leaf in tensors.values() if leaf.is_floating_point()), None)
    narrow = first is not None and first.element_size() == 2
    flops, groups = _flops(name, args, result)
    return Operation(name, flops, nbytes, narrow, groups, seconds)


def _flops(name: str, args: Any, result: Any) -> tuple[int, int]:
    if name in ("mm", "bmm", "addmm", "baddbmm"):
        left, right = args[-2:] if name in ("mm", "bmm") else args[1:3]
        return 2 * math.prod(left.shape) * right.shape[-1], 1
    if name == "convolution":
        weight, transposed, groups = args[1], args[6], args[8]
        return _convolved(args[0], weight, result, transposed), groups
    if name == "convolution_backward":
        gradient, source, weight = args[:3]
        transposed, groups, wanted = args[7], args[9], args[10]
        flops = _convolved(source, weight, gradient, transposed)
        return flops * sum(bool(which) for which in wanted[:2]), groups
    return 0, 1


def _convolved(source: torch.Tensor, weight: torch.Tensor, result: torch.Tensor, transposed: bool) -> int:
    """The weight's shape is (outputs, inputs / groups, kernel), or (inputs, outputs / groups, kernel) where it is turned round."""
    return int(2 * math.prod(source.shape if transposed else result.shape) * math.prod(weight.shape[1:]))


def watch_step(trainer: Trainer) -> list[Operation]:
    """The operations of one step, after two that warm up."""
    on_device = trainer.device.type == "cuda"
    for _ in range(2):
        trainer.step()
    if not on_device:
        watch = _Watch(clock=True)
        with watch:
            trainer.step()
        return watch.operations
    torch.cuda.synchronize(trainer.device)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        watch = _Watch(clock=False)
        with watch:
            trainer.step()
        torch.cuda.synchronize(trainer.device)
    for event in profiled.events():
        owner: Any = event
        while owner is not None and not owner.name.startswith(_MARK):
            owner = owner.cpu_parent
        if owner is not None and event.kernels:
            spent = sum(kernel.duration for kernel in event.kernels) / 1e6
            watch.operations[int(owner.name.removeprefix(_MARK))].seconds += spent
    return [operation for operation in watch.operations if operation.seconds]


def as_kernels(operations: list[Operation], ceilings: Ceilings, tensor_cores: bool = True) -> list[Kernel]:
    """Utilisations against measured ceilings. Depthwise convolutions and 32-bit linear layers use no tensor cores, nor does a CPU."""
    kernels = []
    for operation in operations:
        rate = operation.flops / operation.seconds
        convolution = operation.name.startswith("convolution")
        peak = ceilings.bf16 if operation.narrow else ceilings.tf32
        tensor = tensor_cores and operation.groups == 1 and (operation.narrow or convolution)
        plain = ceilings.bf16 if operation.narrow and not tensor_cores else ceilings.fp32
        kernels.append(
            Kernel(
                operation.name,
                operation.seconds,
                rate / peak if tensor else 0.0,
                0.0 if tensor else rate / plain,
                operation.nbytes / operation.seconds / ceilings.memory_bandwidth,
            )
        )
    return kernels
