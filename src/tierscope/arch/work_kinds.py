"""Kinds of work that a training step is made of, as a device is asked for them: sizes, operations, bytes.

A kind has sizes (numbers that describe one piece of work) and ways (what is done with it: forward, the gradient of its input, of its weights).
A device is measured on drawn sizes (`train/device_probe.py`); layers are pieces of work with their own (`arch/step_work.py`).
Sides are geometric means of the output's sides; the input's side is that times the stride.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

Sizes = tuple[float, ...]

_HALVINGS = {
    "inputs": 6,
    "outputs": 6,
    "side": 3,
    "rows": 3,
    "columns": 3,
    "inner": 3,
}  # how often a round number can be halved


@dataclass(frozen=True, slots=True)
class WorkKind:
    """`flops` of one way; `elements` that are read and written at least, about as many in every way; `units`: whose peak it is compared with."""

    name: str
    sizes: tuple[str, ...]
    ways: tuple[str, ...]
    elements: Callable[[Sizes], float]
    flops: Callable[[Sizes], float] = lambda _: 0.0
    units: str = "memory"
    combined: Callable[[Sizes], tuple[float, ...]] = lambda _: ()  # products of sizes that count by themselves

    def features(self, sizes: Sizes) -> list[float]:
        """What its speed is a smooth function of: logarithms of sizes, how far from round those are that matrix units like round, and logarithms of what sizes make together."""
        logs = [math.log2(size) for size in sizes]
        odd = [_odd(name, size) for name, size in zip(self.sizes, sizes, strict=True) if self._counts(name)]
        return [*logs, *odd, *(math.log2(product) for product in self.combined(sizes))]

    @property
    def feature_count(self) -> int:
        return len(self.features((1.0,) * len(self.sizes)))

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Of the first features: sizes, and how far from round they are."""
        return (*self.sizes, *(f"odd {name}" for name in self.sizes if self._counts(name)))

    def _counts(self, name: str) -> bool:
        return self.units != "memory" and name in _HALVINGS


def _odd(name: str, size: float) -> float:
    """Halvings that it lacks. A mean side of an oblong is no whole number, and counts as round."""
    whole = round(size)
    if abs(whole - size) > 1e-6:
        return 0.0
    return float(max(0, _HALVINGS[name] - ((whole & -whole).bit_length() - 1)))


def _convolution(dims: int) -> WorkKind:
    def flops(sizes: Sizes) -> float:
        batch, inputs, outputs, side, kernel, _, _ = sizes
        return 2 * batch * inputs * outputs * side**dims * kernel**dims

    def elements(sizes: Sizes) -> float:
        batch, inputs, outputs, side, kernel, stride, _ = sizes
        return batch * (inputs * (side * stride) ** dims + outputs * side**dims) + inputs * outputs * kernel**dims

    def combined(sizes: Sizes) -> tuple[float, ...]:
        """As a product of matrices: its rows, what each of its sums is over, operations of an element; and elements."""
        batch, inputs, _, side, kernel, _, _ = sizes
        moved = elements(sizes)
        return batch * side**dims, inputs * kernel**dims, flops(sizes) / moved, moved

    names = ("batch", "inputs", "outputs", "side", "kernel", "stride", "dilation")
    return WorkKind(f"conv{dims}d", names, ("forward", "data", "weights"), elements, flops, "tensor", combined)


def _depthwise() -> WorkKind:
    def elements(sizes: Sizes) -> float:
        batch, channels, side, _, stride, _ = sizes
        return batch * channels * side**2 * (1 + stride**2)

    names = ("batch", "channels", "side", "kernel", "stride", "dilation")
    return WorkKind("depthwise2d", names, ("forward", "data", "weights"), elements)


def _pool(name: str, dims: int) -> WorkKind:
    def elements(sizes: Sizes) -> float:
        planes, side, _, stride = sizes
        return planes * side**dims * (1 + stride**dims)

    return WorkKind(name, ("planes", "side", "kernel", "stride"), ("forward", "backward"), elements)


def _plain(name: str, moved: float, ways: tuple[str, ...] = ("forward",)) -> WorkKind:
    """Of a tensor's elements alone."""
    return WorkKind(name, ("elements",), ways, lambda sizes: moved * sizes[0])


_PLANES = ("batch", "channels", "places")

KINDS = {
    kind.name: kind
    for kind in (
        _convolution(2),
        _convolution(3),
        _depthwise(),
        WorkKind(
            "product",
            ("rows", "columns", "inner"),
            ("forward", "data", "weights"),
            lambda sizes: sizes[0] * sizes[1] + sizes[1] * sizes[2] + sizes[0] * sizes[2],
            lambda sizes: 2 * math.prod(sizes),
            "product",
        ),
        WorkKind("norm", _PLANES, ("forward", "backward"), lambda sizes: 3 * math.prod(sizes)),
        WorkKind("bias", _PLANES, ("forward", "backward"), lambda sizes: 2 * math.prod(sizes)),
        WorkKind("loss", _PLANES, ("forward", "backward"), lambda sizes: 4 * math.prod(sizes)),
        WorkKind("mean", ("planes", "places"), ("forward", "backward"), math.prod),
        WorkKind("resize", ("planes", "places"), ("forward", "backward"), math.prod),
        _pool("max_pool2d", 2),
        _pool("max_pool3d", 3),
        _pool("avg_pool2d", 2),
        _plain("map", 2, ("forward", "inplace", "backward")),
        _plain("leaky", 2, ("forward", "backward")),
        _plain("add", 3),
        _plain("copy", 2),
        _plain("cast", 1.5, ("forward", "backward")),
        _plain("dropout", 2, ("forward", "backward")),
        WorkKind("sgd", ("tensors", "elements"), ("update",), lambda sizes: 5 * sizes[1]),
        WorkKind("adam", ("tensors", "elements"), ("update",), lambda sizes: 7 * sizes[1]),
    )
}
