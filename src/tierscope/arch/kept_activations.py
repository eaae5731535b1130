"""What a step must keep from its forward pass for its backward pass, for one sample.

`autograd` is what torch keeps: inputs of convolutions, linear layers, normalisations and pools; outputs of activations,
or their inputs where the gradient is computed of those; one copy where two layers keep the same tensor, none for what is written over in place; indices of pools (8 bytes) and masks of dropout (1 byte).

The other rules are those that published figures turn out to follow (`docs/validation.md`):
`outputs` counts the output of every layer, of joins too; `fused` that without activations, which run inside the layer before them;
`products` the outputs of convolutions and linear layers alone.
"""

import math

from tierscope.arch.layer import ACTIVATIONS, INPUT, JOINS, NORMALISATIONS, VIEWS, Layer
from tierscope.arch.network import Network

RULES = ("autograd", "outputs", "fused", "products")

_INDEX_BYTES = 8
_MASK_BYTES = 1
_OF_THEIR_INPUT = frozenset(
    {"LeakyReLU", "GELU", "SiLU", "ELU", "Hardtanh", "ReLU6"}
)  # what their gradient is computed of
_STATISTICS = 2 * 4  # of a normalised channel: mean and deviation, 32-bit


def storages(network: Network) -> list[int]:
    """For every layer, the layer that allocated its output: another one where it writes in place or only views."""
    own: list[int] = []
    for index, layer in enumerate(network.layers):
        source = layer.inputs[0]
        shared = (layer.inplace or layer.kind in VIEWS) and source != INPUT
        own.append(own[source] if shared else index)
    return own


def keeps_input(layer: Layer) -> bool:
    if layer.kind in _OF_THEIR_INPUT:
        return not layer.inplace
    if layer.kind.startswith("AdaptiveAvg") and math.prod(layer.out_shape[1:]) == 1:
        return False  # a mean, which needs only its shape
    return (
        layer.multiplies or layer.kind in NORMALISATIONS or "Pool" in layer.kind or layer.kind in ("Mul", "Elementwise")
    )


def keeps_output(layer: Layer) -> bool:
    return layer.kind == "Attention" or (layer.kind in ACTIVATIONS and not keeps_input(layer))


def beside_bytes(layer: Layer) -> int:
    """Kept beside activations, whatever their precision."""
    if layer.kind.startswith(("MaxPool", "AdaptiveMaxPool")):
        return _INDEX_BYTES * layer.elements
    return _MASK_BYTES * layer.elements if layer.kind == "Dropout" else 0


def statistics_bytes(layer: Layer) -> int:
    """Kept once for a whole batch."""
    return _STATISTICS * layer.out_shape[0] if layer.kind.startswith("BatchNorm") else 0


def kept_elements(network: Network) -> dict[int, int]:
    """Elements of one sample that autograd keeps, by the layer that allocated them; INPUT: the sample."""
    own = [*storages(network), INPUT]  # so that own[INPUT] is INPUT
    sizes = {own[index]: layer.elements for index, layer in enumerate(network.layers) if own[index] == index}
    sizes[INPUT] = network.input_elements
    kept = set()
    for index, layer in enumerate(network.layers):
        if keeps_input(layer):
            kept |= {own[source] for source in layer.inputs}
        if keeps_output(layer):
            kept.add(own[index])
    return {storage: sizes[storage] for storage in sorted(kept)}


def kept_bytes(network: Network, activation_bytes: int, rule: str = "autograd") -> int:
    """Of one sample, without the sample itself."""
    if rule == "autograd":
        elements = sum(size for storage, size in kept_elements(network).items() if storage != INPUT)
        return elements * activation_bytes + sum(beside_bytes(layer) for layer in network.layers)
    return activation_bytes * sum(layer.elements for layer in network.layers if _counted(layer, rule))


def _counted(layer: Layer, rule: str) -> bool:
    if rule == "products":
        return layer.multiplies
    if rule == "fused":
        return layer.kind not in ACTIVATIONS | JOINS | VIEWS
    return layer.kind not in VIEWS
