"""Which sizes of each kind of work a device is measured on: drawn evenly over the logarithms of what layers of training have.

Nothing here is chosen after a network that ships, though a drawn size may happen to be one of its layers (`validation/accelerator.py` leaves those out); the draws are the same for every device.
"""

import math
import random
from collections.abc import Callable, Iterator

from tierscope.arch.work_kinds import KINDS, Sizes

COUNTS = {
    "conv2d": 1400,
    "conv3d": 1500,
    "depthwise2d": 300,
    "product": 300,
    "norm": 250,
    "bias": 150,
    "loss": 60,
    "mean": 40,
    "resize": 40,
    "max_pool2d": 80,
    "max_pool3d": 80,
    "avg_pool2d": 50,
    "map": 30,
    "leaky": 30,
    "add": 30,
    "copy": 30,
    "cast": 30,
    "dropout": 30,
    "sgd": 40,
    "adam": 40,
}
_LEAST, _MOST = 2.0**9, 2.0**29.4  # elements of the larger of a layer's tensors
_MOST_FLOPS = 8e11
_FIRST = 0.3  # of convolutions
_ANY = (0.0, 0.0, 0.4)  # shares of a convolution's sizes that may be any number
PLANES = 64  # channels of a sample, where only their product with samples counts


def draws(kind: str) -> Iterator[Sizes]:
    """Without end."""
    rng = random.Random(f"work {kind}")
    while True:
        sizes = _DRAWN[kind](rng)
        if _LEAST <= KINDS[kind].elements(sizes) <= _MOST * 1.5 and KINDS[kind].flops(sizes) <= _MOST_FLOPS:
            yield sizes


def _between(rng: random.Random, low: float, high: float) -> int:
    return round(math.exp(rng.uniform(math.log(low), math.log(high))))


def _near(rng: random.Random, low: float, high: float, any_number: float = 0.4) -> int:
    """Mostly a round number, as sizes of layers are: one to seven, doubled a few times. `any_number`: how often it need not be one."""
    drawn = _between(rng, low, high)
    if rng.random() < any_number:
        return drawn
    odd = rng.choice((1, 1, 1, 3, 5, 7))
    return max(math.ceil(low), odd << max(0, round(math.log2(max(drawn, odd) / odd))))


def _channels(rng: random.Random, most: float, any_number: float) -> int:
    """Mostly multiples of 8; a few, as samples and classes have; some odd numbers."""
    turn = rng.random()
    if turn < 0.15:
        return rng.randint(1, 16)
    if turn < 0.2:
        return _between(rng, 8, most)
    return 8 * _near(rng, 1, most / 8, any_number)


def _dense(rng: random.Random, most_batch: int, most_channels: float, largest_side: int) -> tuple[int, int, int, int]:
    """Batch, channels in and out, and the side. Most have round numbers only, as layers have.

    Some are as in the first layers of networks, a large part of many steps: few channels in, a round number out, large sides.
    """
    any_number = rng.choice(_ANY)
    batch = _near(rng, 1, most_batch, any_number)
    if rng.random() < _FIRST:
        side = _near(rng, largest_side / 8, largest_side, any_number)
        return batch, rng.choice((1, 2, 3, 3, 4, 4)), 8 * _near(rng, 1, 16, any_number), side
    inputs, outputs = _channels(rng, most_channels, any_number), _channels(rng, most_channels, any_number)
    return batch, inputs, outputs, _near(rng, 2, largest_side, any_number)


def _conv2d(rng: random.Random) -> Sizes:
    kernel = rng.choices((1, 3, 5, 7, 11), (40, 42, 8, 7, 3))[0]
    stride = rng.choices((1, 2, 4), (72, 23, 5))[0]
    dilation = _between(rng, 2, 24) if kernel > 1 and stride == 1 and rng.random() < 0.15 else 1
    return (*_dense(rng, 1024, 2048, 768), kernel, stride, dilation)


def _conv3d(rng: random.Random) -> Sizes:
    kernel = rng.choices((1, 3, 5), (12, 76, 12))[0]
    stride = rng.choices((1, 2), (85, 15))[0]
    return (*_dense(rng, 64, 768, 160), kernel, stride, 1)


def _depthwise(rng: random.Random) -> Sizes:
    kernel = rng.choices((3, 5, 7), (80, 12, 8))[0]
    stride = rng.choices((1, 2), (75, 25))[0]
    dilation = rng.choice((2, 4)) if stride == 1 and rng.random() < 0.2 else 1
    return (_near(rng, 1, 256), 8 * _near(rng, 2, 256), _near(rng, 4, 512), kernel, stride, dilation)


def _product(rng: random.Random) -> Sizes:
    return (_near(rng, 1, 16384), _near(rng, 2, 16384), _near(rng, 8, 65536))


def _planes(rng: random.Random) -> Sizes:
    return (_near(rng, 1, 2048), _channels(rng, 8192, 0.4), 1 if rng.random() < 0.1 else _near(rng, 2, 2048) ** 2)


def _loss(rng: random.Random) -> Sizes:
    places = 1 if rng.random() < 0.4 else _near(rng, 16, 1024) ** 2
    return (_near(rng, 1, 4096), _between(rng, 2, 2000 if places == 1 else 64), places)


def _some_planes(rng: random.Random, most: float) -> int:
    planes = _between(rng, 4, most)
    return planes if planes < PLANES else PLANES * (planes // PLANES)


def _pool(rng: random.Random, side: int) -> Sizes:
    kernel = rng.choice((2, 2, 3))
    return (_some_planes(rng, 65536), _between(rng, 2, side), kernel, 2)


def _elements(rng: random.Random) -> Sizes:
    return (_between(rng, _LEAST, _MOST),)


def _tensors(rng: random.Random) -> Sizes:
    tensors = _between(rng, 4, 400)
    return (tensors, max(tensors * 16, _between(rng, 1e4, 3e8)))


_DRAWN: dict[str, Callable[[random.Random], Sizes]] = {
    "conv2d": _conv2d,
    "conv3d": _conv3d,
    "depthwise2d": _depthwise,
    "product": _product,
    "norm": _planes,
    "bias": _planes,
    "loss": _loss,
    "mean": lambda rng: (_some_planes(rng, 2**18), _between(rng, 2, 128) ** 2),
    "resize": lambda rng: (_some_planes(rng, 2**16), _between(rng, 2, 128) ** 2),
    "max_pool2d": lambda rng: _pool(rng, 512),
    "max_pool3d": lambda rng: _pool(rng, 96),
    "avg_pool2d": lambda rng: _pool(rng, 256),
    "map": _elements,
    "leaky": _elements,
    "add": _elements,
    "copy": _elements,
    "cast": _elements,
    "dropout": _elements,
    "sgd": _tensors,
    "adam": _tensors,
}
