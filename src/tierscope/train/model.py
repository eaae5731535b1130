"""A network of `arch` as a module of torch: the same layers, in the same order, so that what is predicted is what is trained."""

import math
from collections.abc import Callable

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from tierscope.arch.layer import CONVOLUTIONS, INPUT, JOINS, TRANSPOSED, Layer
from tierscope.arch.network import Network
from tierscope.arch.networks import shown
from tierscope.arch.segments import segments
from tierscope.errors import UserError

_EPSILON = 1e-5


class Affine(nn.Module):  # type: ignore[misc]
    """A learned scale and shift of every channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        shape = (1, -1, *(1,) * (value.dim() - 2))
        return value * self.weight.view(shape) + self.bias.view(shape)


class NetworkModule(nn.Module):  # type: ignore[misc]
    """Runs the layers one after another and drops every output when its last reader has run."""

    def __init__(self, network: Network, checkpointed: bool = False) -> None:
        super().__init__()
        self.network = network
        self.layers = nn.ModuleList([_module(layer) for layer in network.layers])
        self._checkpointed = checkpointed
        self._last_reader = _last_readers(network)

    def forward(self, sample: torch.Tensor) -> torch.Tensor:
        if self.training and len(sample) == 1:
            refuse_single_values(self.network)
        if not self._checkpointed:
            return self._through({INPUT: sample}, range(len(self.layers)))[len(self.layers) - 1]
        live: dict[int, torch.Tensor] = {INPUT: sample}
        for segment in segments(self.network):
            live = self._through_again(live, segment)
        return live[len(self.layers) - 1]

    def _through(self, live: dict[int, torch.Tensor], places: range) -> dict[int, torch.Tensor]:
        for index in places:
            layer = self.network.layers[index]
            values = [live[source] for source in layer.inputs]
            for source in set(layer.inputs):
                if self._last_reader[source] == index:
                    del live[source]
            live[index] = _joined(layer, values) if layer.kind in JOINS else self.layers[index](*values)
            del values
        return live

    def _through_again(self, live: dict[int, torch.Tensor], places: range) -> dict[int, torch.Tensor]:
        """The same, keeping only what enters; the rest is computed again on the way back."""
        names = list(live)

        def run(*values: torch.Tensor) -> tuple[torch.Tensor, ...]:
            result = self._through(dict(zip(names, values, strict=True)), places)
            left.extend(result)
            return tuple(result.values())

        left: list[int] = []
        outputs = checkpoint(run, *live.values(), use_reentrant=False)
        return dict(zip(left[: len(outputs)], outputs, strict=True))


def refuse_single_values(network: Network) -> None:
    """A step of one sample, where each channel has one value in a layer that normalises: that has no variance."""
    for layer in network.layers:
        if layer.kind == "BatchNorm2d" and math.prod(layer.out_shape[1:]) == 1:
            raise UserError(
                f"{network.name} with input {shown(network.input_shape)} cannot be trained on a step of one sample: layer {layer.name} "
                "would normalise one value; use a larger --input, or a batch size that leaves no single sample for the last step"
            )


def _last_readers(network: Network) -> dict[int, int]:
    last: dict[int, int] = {}
    for index, layer in enumerate(network.layers):
        for source in layer.inputs:
            last[source] = index
    return last


def _joined(layer: Layer, values: list[torch.Tensor]) -> torch.Tensor:
    if layer.kind == "Add":
        return values[0] + values[1]
    if layer.kind == "Concat":
        return torch.cat(values, dim=1)
    return functional.interpolate(values[0], size=layer.out_shape[1:], mode="nearest")


def _convolution(layer: Layer) -> nn.Module:
    dims = len(layer.kernel)
    kind = getattr(nn, layer.kind)
    shape = {"kernel_size": layer.kernel, "stride": layer.stride, "padding": layer.padding, "groups": layer.groups}
    if layer.kind in TRANSPOSED:
        shape["output_padding"] = layer.output_padding or (0,) * dims
    made: nn.Module = kind(layer.in_shape[0], layer.out_shape[0], dilation=layer.dilation, bias=layer.bias, **shape)
    return made


_MADE: dict[str, Callable[[Layer], nn.Module]] = {
    "Linear": lambda layer: nn.Linear(layer.in_shape[-1], layer.out_shape[-1], bias=layer.bias),
    "BatchNorm2d": lambda layer: nn.BatchNorm2d(layer.out_shape[0], eps=_EPSILON),
    "TrainableAffine": lambda layer: Affine(layer.out_shape[0]),
    "ReLU": lambda layer: nn.ReLU(inplace=layer.inplace),
    "LeakyReLU": lambda layer: nn.LeakyReLU(layer.slope, inplace=layer.inplace),
    "Tanh": lambda _: nn.Tanh(),
    "Dropout": lambda layer: nn.Dropout(layer.slope),
    "Flatten": lambda _: nn.Flatten(),
    "MaxPool2d": lambda layer: nn.MaxPool2d(layer.kernel, layer.stride, layer.padding),
    "MaxPool3d": lambda layer: nn.MaxPool3d(layer.kernel, layer.stride, layer.padding),
    "AvgPool2d": lambda layer: nn.AvgPool2d(layer.kernel, layer.stride, layer.padding),
    "AdaptiveAvgPool2d": lambda _: nn.AdaptiveAvgPool2d(1),
}


def _module(layer: Layer) -> nn.Module:
    if layer.kind in CONVOLUTIONS or layer.kind in TRANSPOSED:
        return _convolution(layer)
    if layer.kind in JOINS:
        return nn.Identity()
    return _MADE[layer.kind](layer)
