"""A training step as pieces of work, in the order in which torch gives them to a device: forward, loss, backward, update.

Transposed convolutions are their opposite's gradients: forward is `data` of the convolution that goes the other way. Under `amp` weights are cast
forward and their gradients back. An output with several readers has its gradients added. What has no kind of its own takes the place of one that moves as many
bytes, and is named (`stand_ins`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from tierscope.arch.layer import CONVOLUTIONS, INPUT, NORMALISATIONS, POOLS, TRANSPOSED, VIEWS, Layer
from tierscope.arch.network import Network, weight_tensors
from tierscope.arch.precision import Precision
from tierscope.arch.work_kinds import KINDS, Sizes


@dataclass(frozen=True, slots=True)
class Piece:
    """One kernel, or a few that belong together."""

    kind: str
    way: str
    sizes: Sizes


@dataclass(frozen=True, slots=True)
class Issue:
    """What the host gives to the device in one go; `host`: the kind of layer whose host cost it has, `turn`: 0 forward, 1 backward, 2 update."""

    host: str
    turn: int
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class StepWork:
    issues: tuple[Issue, ...]
    stand_ins: tuple[str, ...]  # kinds of layers that have no kind of work of their own


@dataclass(slots=True)
class _Split:
    forward: list[Piece] = field(default_factory=list)
    backward: list[Piece] = field(default_factory=list)


def step_work(
    network: Network, batch: int, precision: Precision, optimizer: str, checkpointed: bool = False
) -> StepWork:
    """`checkpointed`: everything forward is done a second time on the way back."""
    readers = network.readers()
    forward: list[Issue] = []
    backward: list[Issue] = []
    strange: dict[str, None] = {}
    for index, layer in enumerate(network.layers):
        split = _pieces(layer, batch, precision, strange)
        added = len(readers[index]) - 1
        if added > 0 and layer.kind not in VIEWS:
            split.backward[:0] = [Piece("add", "forward", (batch * layer.elements,))] * added
        forward.append(Issue(_host(layer), 0, tuple(split.forward)))
        backward.append(Issue(_host(layer), 1, tuple(split.backward)))
    lost = Issue("step", 0, _loss(network.layers[-1], batch, "forward"))
    back = Issue("step", 1, _loss(network.layers[-1], batch, "backward"))
    again = forward if checkpointed else []
    update = [Issue(_host(layer), 2, ()) for layer in network.layers if layer.parameters]
    if optimizer in KINDS:
        sizes = (len(network.parameter_tensors), network.parameters)
        update.append(Issue("step", 2, (Piece(optimizer, "update", sizes),)))
    return StepWork((*forward, lost, back, *again, *reversed(backward), *update), tuple(strange))


def _loss(last: Layer, batch: int, way: str) -> tuple[Piece, ...]:
    if last.kind == "Tanh":
        return (Piece("map", way, (batch * last.elements,)),)
    classes, places = last.out_shape[0], math.prod(last.out_shape[1:])
    return (Piece("loss", way, (batch, classes, places)),)


_HOSTS = {
    "Linear": "linear",
    "LeakyReLU": "leaky",
    "Dropout": "dropout",
    "Add": "add",
    "Concat": "concat",
    "Resize": "resize",
    **dict.fromkeys(NORMALISATIONS, "norm"),
    **dict.fromkeys(VIEWS, "view"),
    **{kind: "max_pool" if "Max" in kind else "avg_pool" for kind in POOLS},
}


def _host(layer: Layer) -> str:
    if layer.kind in CONVOLUTIONS | TRANSPOSED:
        dense = "conv_bias" if layer.bias else "conv"
        return "depthwise" if _is_depthwise(layer) else dense
    return _HOSTS.get(layer.kind, "linear" if layer.gemm else "relu")


def _is_depthwise(layer: Layer) -> bool:
    return layer.groups == layer.in_shape[0] == layer.out_shape[0] > 1


def _pieces(layer: Layer, batch: int, precision: Precision, strange: dict[str, None]) -> _Split:
    if layer.multiplies:
        return _products(layer, batch, precision, strange)
    if layer.kind in VIEWS:
        return _Split()
    if layer.kind in _OWN_KINDS:
        return _both(*_OWN_KINDS[layer.kind](layer, batch))
    size = (batch * layer.elements,)
    if layer.kind in ("Add", "Concat"):
        moved = Piece("add" if layer.kind == "Add" else "copy", "forward", size)
        return _Split([moved], [] if layer.kind == "Add" else [moved])
    if layer.kind not in ("ReLU", "Tanh", "Sigmoid", "TrainableAffine"):
        strange[layer.kind] = None
    passes = 2 if layer.kind in NORMALISATIONS else 1
    way = "inplace" if layer.inplace else "forward"
    return _Split([Piece("map", way, size)] * passes, [Piece("map", "backward", size)] * passes)


def _norm(layer: Layer, batch: int) -> tuple[str, Sizes]:
    return "norm", (batch, layer.out_shape[0], math.prod(layer.out_shape[1:]))


def _pool(layer: Layer, batch: int) -> tuple[str, Sizes]:
    name = layer.kind.replace("Pool", "_pool").lower()
    return name, (batch * layer.out_shape[0], _side(layer.out_shape), layer.kernel[0], layer.stride[0])


def _mean(layer: Layer, batch: int) -> tuple[str, Sizes]:
    return "mean", (batch * layer.out_shape[0], math.prod(layer.in_shape[1:]))


def _resize(layer: Layer, batch: int) -> tuple[str, Sizes]:
    return "resize", (batch * layer.out_shape[0], math.prod(layer.out_shape[1:]))


_OWN_KINDS: dict[str, Callable[[Layer, int], tuple[str, Sizes]]] = {
    **{f"BatchNorm{dims}d": _norm for dims in (1, 2, 3)},
    **{f"AdaptiveAvgPool{dims}d": _mean for dims in (1, 2, 3)},
    "MaxPool2d": _pool,
    "MaxPool3d": _pool,
    "AvgPool2d": _pool,
    "Resize": _resize,
    "Dropout": lambda layer, batch: ("dropout", (batch * layer.elements,)),
    "LeakyReLU": lambda layer, batch: ("leaky", (batch * layer.elements,)),
}


def _both(kind: str, sizes: Sizes) -> _Split:
    return _Split([Piece(kind, "forward", sizes)], [Piece(kind, "backward", sizes)])


def _side(shape: tuple[int, ...]) -> float:
    places = math.prod(shape[1:])
    return float(places ** (1 / max(1, len(shape) - 1)))


def _products(layer: Layer, batch: int, precision: Precision, strange: dict[str, None]) -> _Split:
    kind, sizes = _product_sizes(layer, batch, strange)
    turned = layer.kind in TRANSPOSED
    first = layer.inputs == (INPUT,)
    split = _Split()
    if precision.copies_weights:
        weights = sum(weight_tensors(layer))
        if weights:
            split.forward.append(Piece("cast", "forward", (weights,)))
        if first:
            split.forward.append(Piece("cast", "forward", (batch * layer.in_elements,)))
    split.forward.append(Piece(kind, "data" if turned else "forward", sizes))
    if not first:
        split.backward.append(Piece(kind, "forward" if turned else "data", sizes))
    split.backward.append(Piece(kind, "weights", sizes))
    if layer.bias:
        shape = (batch, layer.bias_elements, max(1, layer.elements // layer.bias_elements))
        if layer.kind != "Linear":
            split.forward.append(Piece("bias", "forward", shape))
        split.backward.append(Piece("bias", "backward", shape))
    if precision.copies_weights and layer.parameters:
        split.backward.append(Piece("cast", "backward", (layer.parameters,)))
    return split


def _product_sizes(layer: Layer, batch: int, strange: dict[str, None]) -> tuple[str, Sizes]:
    if layer.kind not in CONVOLUTIONS | TRANSPOSED:
        assert layer.gemm is not None
        rows, columns, inner = layer.gemm
        if layer.kind != "Linear":
            strange[layer.kind] = None
        return "product", (batch * rows, columns, inner)
    dims = len(layer.kernel)
    turned = layer.kind in TRANSPOSED
    ends = (layer.out_shape, layer.in_shape) if turned else (layer.in_shape, layer.out_shape)
    inputs, outputs, side = ends[0][0], ends[1][0], _side(ends[1])
    geometry = (layer.kernel[0], layer.stride[0], layer.dilation[0])
    if dims == 2 and _is_depthwise(layer):
        return "depthwise2d", (batch, inputs, side, *geometry)
    if dims == 1 or layer.groups > 1:
        strange[f"{layer.kind}{' in groups' if layer.groups > 1 else ''}"] = None
    if dims == 1:
        return "conv2d", (batch, inputs / layer.groups, outputs, side**0.5, max(1.0, geometry[0] ** 0.5), *geometry[1:])
    return f"conv{dims}d", (batch, inputs / layer.groups, outputs, side, *geometry)
