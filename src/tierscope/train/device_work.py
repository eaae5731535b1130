"""Each kind of work of `arch/work_kinds.py` as calls of torch on memory that is there: way → call."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional

from tierscope.arch.work_draws import PLANES
from tierscope.arch.work_kinds import Sizes
from tierscope.train.work import make_optimizer

Call = Callable[[], object]
_SLOPE = 0.3


@dataclass(frozen=True, slots=True)
class WorkMemory:
    """Random numbers that every piece of work reads; `narrow`: in 16 bits."""

    wide: torch.Tensor
    narrow: torch.Tensor
    is_narrow: bool

    @classmethod
    def of(cls, device: torch.device, elements: int) -> "WorkMemory":
        wide = torch.randn(elements, device=device)
        return cls(wide, wide.bfloat16(), False)

    @property
    def _own(self) -> torch.Tensor:
        return self.narrow if self.is_narrow else self.wide

    @property
    def device(self) -> torch.device:
        return self.wide.device

    def tensor(self, *shape: int, gradient: bool = False) -> torch.Tensor:
        count = math.prod(shape)
        if count > self.wide.numel():
            raise torch.OutOfMemoryError(f"{count} elements")
        return self._own[:count].view(shape).detach().requires_grad_(gradient)


def calls_of(kind: str, sizes: Sizes, memory: WorkMemory) -> dict[str, Call]:
    """Sizes are whole here."""
    return _MADE[kind](tuple(int(size) for size in sizes), memory)


def _convolution(dims: int) -> Callable[[tuple[int, ...], WorkMemory], dict[str, Call]]:
    def made(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
        batch, inputs, outputs, side, kernel, stride, dilation = sizes
        return _convolved(memory, dims, batch, (inputs, outputs), (side, kernel, stride, dilation), 1)

    return made


def _depthwise(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    batch, channels, *geometry = sizes
    side, kernel, stride, dilation = geometry
    return _convolved(memory, 2, batch, (channels, channels), (side, kernel, stride, dilation), channels)


def _convolved(
    memory: WorkMemory,
    dims: int,
    batch: int,
    channels: tuple[int, int],
    geometry: tuple[int, int, int, int],
    groups: int,
) -> dict[str, Call]:
    (inputs, outputs), (side, kernel, stride, dilation) = channels, geometry
    sample = memory.tensor(batch, inputs, *(side * stride,) * dims)
    weights = memory.tensor(outputs, inputs // groups, *(kernel,) * dims)
    gradient = memory.tensor(batch, outputs, *(side,) * dims)
    padding = dilation * (kernel - 1) // 2
    rest = ([stride] * dims, [padding] * dims, [dilation] * dims, False, [0] * dims, groups)
    aten = torch.ops.aten

    def back(*wanted: bool) -> Call:
        return lambda: aten.convolution_backward(gradient, sample, weights, None, *rest, [*wanted, False])

    return {
        "forward": lambda: aten.convolution(sample, weights, None, *rest),
        "data": back(True, False),
        "weights": back(False, True),
    }


def _product(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    rows, columns, inner = sizes
    sample, weights, gradient = (
        memory.tensor(rows, inner),
        memory.tensor(columns, inner),
        memory.tensor(rows, columns),
    )
    bias = memory.tensor(columns)
    return {
        "forward": lambda: functional.linear(sample, weights, bias),
        "data": lambda: gradient @ weights,
        "weights": lambda: gradient.t() @ sample,
    }


def _through(
    forward: Callable[[torch.Tensor], torch.Tensor], sample: torch.Tensor, *more: torch.Tensor
) -> dict[str, Call]:
    """Of a function with a gradient: both ways by autograd."""
    result = forward(sample)
    gradient = torch.ones_like(result)
    return {
        "forward": lambda: forward(sample),
        "backward": lambda: torch.autograd.grad(result, (sample, *more), gradient, retain_graph=True),
    }


def _norm(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    batch, channels, places = sizes
    side = math.isqrt(places)
    like = {"device": memory.device}
    weight, bias = torch.ones(channels, **like).requires_grad_(), torch.zeros(channels, **like).requires_grad_()
    mean, variance = torch.zeros(channels, **like), torch.ones(channels, **like)

    def forward(sample: torch.Tensor) -> torch.Tensor:
        return functional.batch_norm(sample, mean, variance, weight, bias, training=True)

    return _through(forward, memory.tensor(batch, channels, side, side, gradient=True), weight, bias)


def _bias(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    batch, channels, places = sizes
    gradient = memory.tensor(batch, channels, places)
    sample, bias = gradient.clone(), torch.zeros(1, channels, 1, device=memory.device, dtype=gradient.dtype)
    return {"forward": lambda: sample.add_(bias), "backward": lambda: gradient.sum((0, 2))}


def _loss(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    batch, classes, places = sizes
    shape = (batch, classes) if places == 1 else (batch, classes, math.isqrt(places), math.isqrt(places))
    targets = torch.zeros(batch, *shape[2:], dtype=torch.int64, device=memory.device)

    def forward(sample: torch.Tensor) -> torch.Tensor:
        return functional.cross_entropy(sample.float(), targets)

    return _through(forward, memory.tensor(*shape, gradient=True))


def _planes(memory: WorkMemory, planes: int, *sides: int) -> torch.Tensor:
    channels = min(planes, PLANES)
    return memory.tensor(planes // channels, channels, *sides, gradient=True)


def _mean(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    planes, places = sizes
    side = math.isqrt(places)
    return _through(lambda sample: functional.adaptive_avg_pool2d(sample, 1), _planes(memory, planes, side, side))


def _resize(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    planes, places = sizes
    sides = (math.isqrt(places),) * 2
    return _through(lambda sample: functional.interpolate(sample, size=sides), _planes(memory, planes, 1, 1))


def _pool(name: str, dims: int) -> Callable[[tuple[int, ...], WorkMemory], dict[str, Call]]:
    function = getattr(functional, name)

    def made(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
        planes, side, kernel, stride = sizes
        sample = _planes(memory, planes, *(side * stride,) * dims)
        return _through(lambda value: function(value, kernel, stride, (kernel - 1) // 2), sample)

    return made


def _map(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    sample = memory.tensor(*sizes)
    scratch = sample.clone()
    return {
        "forward": lambda: torch.relu(sample),
        "inplace": lambda: torch.relu_(scratch),
        "backward": lambda: torch.ops.aten.threshold_backward(sample, sample, 0),
    }


def _leaky(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    sample = memory.tensor(*sizes)
    return {
        "forward": lambda: functional.leaky_relu(sample, _SLOPE),
        "backward": lambda: torch.ops.aten.leaky_relu_backward(sample, sample, _SLOPE, False),
    }


def _cast(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    wide, narrow = memory.wide[: sizes[0]], memory.narrow[: sizes[0]]
    return {"forward": lambda: wide.to(torch.bfloat16), "backward": lambda: narrow.to(torch.float32)}


def _dropout(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
    return _through(lambda sample: functional.dropout(sample, 0.5, True), memory.tensor(*sizes, gradient=True))


def _one(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[tuple[int, ...], WorkMemory], dict[str, Call]]:
    return lambda sizes, memory: {"forward": lambda: function(memory.tensor(*sizes))}


def _optimizer(solver: str) -> Callable[[tuple[int, ...], WorkMemory], dict[str, Call]]:
    def made(sizes: tuple[int, ...], memory: WorkMemory) -> dict[str, Call]:
        tensors, elements = sizes
        parameters = torch.nn.ParameterList(
            [torch.zeros(elements // tensors, device=memory.device) for _ in range(tensors)]
        )
        for parameter in parameters:
            parameter.grad = torch.zeros_like(parameter)
        return {"update": make_optimizer(solver, parameters).step}

    return made


_MADE: dict[str, Callable[[tuple[int, ...], WorkMemory], dict[str, Call]]] = {
    "conv2d": _convolution(2),
    "conv3d": _convolution(3),
    "depthwise2d": _depthwise,
    "product": _product,
    "norm": _norm,
    "bias": _bias,
    "loss": _loss,
    "mean": _mean,
    "resize": _resize,
    "max_pool2d": _pool("max_pool2d", 2),
    "max_pool3d": _pool("max_pool3d", 3),
    "avg_pool2d": _pool("avg_pool2d", 2),
    "map": _map,
    "leaky": _leaky,
    "add": _one(lambda sample: sample + sample),
    "copy": _one(lambda sample: sample.clone()),
    "cast": _cast,
    "dropout": _dropout,
    "sgd": _optimizer("sgd"),
    "adam": _optimizer("adam"),
}
