"""A network: its layers in the order in which they run, and what feeds which.

`Builder` writes one down; a network of torch is read into the same by `arch/traced.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from tierscope.arch.layer import INPUT, Layer, Shape


def weight_tensors(layer: Layer) -> list[int]:
    """Elements of its weight and of its bias."""
    biases = min(layer.bias_elements, layer.parameters)  # none of its own where it shares another layer's
    return [size for size in (layer.parameters - biases, biases) if size]


@dataclass(frozen=True, slots=True)
class Network:
    name: str
    input_shape: Shape
    layers: tuple[Layer, ...]

    @property
    def parameters(self) -> int:
        return sum(layer.parameters for layer in self.layers)

    @property
    def parameter_tensors(self) -> tuple[int, ...]:
        """Elements of every weight and bias, in order."""
        return tuple(size for layer in self.layers for size in weight_tensors(layer))

    @property
    def input_elements(self) -> int:
        return math.prod(self.input_shape)

    @property
    def forward_flops(self) -> int:
        return sum(layer.forward_flops for layer in self.layers)

    @property
    def backward_flops(self) -> int:
        return sum(layer.backward_flops for layer in self.layers)

    def readers(self) -> list[list[int]]:
        """For every layer, who reads its output."""
        readers: list[list[int]] = [[] for _ in self.layers]
        for index, layer in enumerate(self.layers):
            for source in layer.inputs:
                if source != INPUT:
                    readers[source].append(index)
        return readers


@dataclass(slots=True)
class Builder:
    """Appends layers; each call gives the index of its layer. `after`: whose output is read; the last layer's without."""

    name: str
    input_shape: Shape
    layers: list[Layer] = field(default_factory=list)

    def network(self) -> Network:
        return Network(self.name, self.input_shape, tuple(self.layers))

    @property
    def last(self) -> int:
        return len(self.layers) - 1

    def shape(self, index: int) -> Shape:
        return self.input_shape if index == INPUT else self.layers[index].out_shape

    def conv(  # noqa: PLR0913  (what a convolution has)
        self,
        name: str,
        channels: int,
        kernel: int,
        *,
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = False,
        after: int | None = None,
    ) -> int:
        source, before = self._source(after)
        dims = len(before) - 1
        sides = tuple((side + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1 for side in before[1:])
        weights = channels * (before[0] // groups) * kernel**dims
        return self._append(
            name,
            f"Conv{dims}d",
            source,
            (channels, *sides),
            kernel=(kernel,) * dims,
            stride=(stride,) * dims,
            padding=(padding,) * dims,
            dilation=(dilation,) * dims,
            groups=groups,
            bias=bias,
            parameters=weights + (channels if bias else 0),
        )

    def transposed(
        self, name: str, channels: int, kernel: int, *, stride: int, padding: int, after: int | None = None
    ) -> int:
        """A convolution turned round that doubles the sides (output_padding 1 with stride 2), without bias."""
        source, before = self._source(after)
        dims = len(before) - 1
        sides = tuple((side - 1) * stride - 2 * padding + kernel + 1 for side in before[1:])
        return self._append(
            name,
            f"ConvTranspose{dims}d",
            source,
            (channels, *sides),
            kernel=(kernel,) * dims,
            stride=(stride,) * dims,
            padding=(padding,) * dims,
            dilation=(1,) * dims,
            output_padding=(1,) * dims,
            parameters=before[0] * channels * kernel**dims,
        )

    def linear(self, name: str, features: int, *, after: int | None = None) -> int:
        source, before = self._source(after)
        weights = before[-1] * features
        return self._append(
            name,
            "Linear",
            source,
            (features,),
            bias=True,
            parameters=weights + features,
            gemm=(1, features, before[-1]),
        )

    def norm(self, name: str, *, kind: str = "", after: int | None = None) -> int:
        source, before = self._source(after)
        kind = kind or f"BatchNorm{len(before) - 1}d"
        return self._append(name, kind, source, before, bias=True, parameters=2 * before[0])

    def activation(
        self, name: str, kind: str = "ReLU", *, inplace: bool = False, slope: float = 0.0, after: int | None = None
    ) -> int:
        source, before = self._source(after)
        return self._append(name, kind, source, before, inplace=inplace, slope=slope)

    def pool(
        self,
        name: str,
        kernel: int,
        *,
        stride: int | None = None,
        padding: int = 0,
        kind: str = "Max",
        after: int | None = None,
    ) -> int:
        source, before = self._source(after)
        dims = len(before) - 1
        step = stride or kernel
        sides = tuple((side + 2 * padding - kernel) // step + 1 for side in before[1:])
        return self._append(
            name,
            f"{kind}Pool{dims}d",
            source,
            (before[0], *sides),
            kernel=(kernel,) * dims,
            stride=(step,) * dims,
            padding=(padding,) * dims,
        )

    def global_pool(self, name: str, *, after: int | None = None) -> int:
        source, before = self._source(after)
        dims = len(before) - 1
        return self._append(name, f"AdaptiveAvgPool{dims}d", source, (before[0], *(1,) * dims))

    def flatten(self, name: str, *, after: int | None = None) -> int:
        source, before = self._source(after)
        return self._append(name, "Flatten", source, (math.prod(before),))

    def add(self, name: str, left: int, right: int) -> int:
        return self._append(name, "Add", (left, right), self.shape(left))

    def concat(self, name: str, parts: Sequence[int]) -> int:
        shapes = [self.shape(part) for part in parts]
        return self._append(name, "Concat", tuple(parts), (sum(shape[0] for shape in shapes), *shapes[0][1:]))

    def resize(self, name: str, sides: Shape, *, after: int | None = None) -> int:
        source, before = self._source(after)
        return self._append(name, "Resize", source, (before[0], *sides))

    def _source(self, after: int | None) -> tuple[tuple[int, ...], Shape]:
        index = (self.last if self.layers else INPUT) if after is None else after
        return (index,), self.shape(index)

    def _append(self, name: str, kind: str, inputs: tuple[int, ...], out_shape: Shape, **more: object) -> int:
        layer = Layer(name=name, kind=kind, inputs=inputs, in_shape=self.shape(inputs[0]), out_shape=out_shape, **more)  # type: ignore[arg-type]
        self.layers.append(layer)
        return self.last
