"""Bytes that a layer moves through the device's memory for one sample.

Every layer reads its inputs and writes its output; parameters stay in caches, and nothing else does. Backward reads the gradient of its
output and what was kept, and writes the gradient of its input. A matrix product reads the gradient twice, for the gradients of its input and
of its weights; a normalisation reads what it normalises twice, first for the statistics. Views move nothing.
"""

import math
from dataclasses import dataclass

from tierscope.arch.kept_activations import keeps_input, keeps_output
from tierscope.arch.layer import INPUT, NORMALISATIONS, VIEWS, Layer
from tierscope.arch.network import Network


@dataclass(frozen=True, slots=True)
class Traffic:
    forward: int
    backward: int


def traffic(network: Network, index: int, activation_bytes: int) -> Traffic:
    layer = network.layers[index]
    if layer.kind in VIEWS:
        return Traffic(0, 0)
    shapes = [network.input_shape if source == INPUT else network.layers[source].out_shape for source in layer.inputs]
    read = sum(math.prod(shape) for shape in shapes)
    trained = 0 if layer.inputs == (INPUT,) else read
    passes = 2 if layer.kind in NORMALISATIONS else 1
    kept = (read if keeps_input(layer) else 0) + (layer.elements if keeps_output(layer) else 0)
    gradients = layer.elements * (2 if layer.multiplies and trained else passes)
    if layer.kind == "Add":
        return Traffic(activation_bytes * (read + layer.elements), 0)  # its gradient is passed on as it is
    return Traffic(
        activation_bytes * (read * passes + layer.elements), activation_bytes * (gradients + kept * passes + trained)
    )


def uses_tensor_cores(layer: Layer) -> bool:
    """Matrix products of more than one channel a group; depthwise convolutions are left to the other cores."""
    return layer.multiplies and (layer.groups == 1 or layer.in_shape[0] // layer.groups > 1)
