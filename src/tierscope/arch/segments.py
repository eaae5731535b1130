"""Where a network may be cut for checkpointed activations: about as many pieces as the square root of its layers."""

import math

from tierscope.arch.network import Network


def segments(network: Network) -> list[range]:
    """Consecutive pieces, each cut where the fewest elements pass (a cut inside a block would keep its shortcut too).

    A layer that writes in place stays with the one whose output it overwrites.
    """
    count = len(network.layers)
    pieces = max(1, math.isqrt(count))
    passing = _passing(network)
    cuts = [0]
    for piece in range(1, pieces):
        near = round(piece * count / pieces)
        reach = max(1, count // (2 * pieces))
        window = [
            place
            for place in range(max(cuts[-1] + 1, near - reach), min(count, near + reach + 1))
            if not network.layers[place].inplace
        ]
        if window:
            cuts.append(min(window, key=lambda place: (passing[place], abs(place - near))))
    return [range(start, stop) for start, stop in zip(cuts, [*cuts[1:], count], strict=True) if stop > start]


def _passing(network: Network) -> list[int]:
    """Elements of one sample that are needed at or after each layer and were made before it."""
    last = [index for index, _ in enumerate(network.layers)]
    for index, readers in enumerate(network.readers()):
        last[index] = max([index, *readers])
    passing = [0] * (len(network.layers) + 1)
    for index, layer in enumerate(network.layers):
        for place in range(index + 1, last[index] + 1):
            passing[place] += layer.elements
    return passing
