"""What the host spends on giving work to an accelerator, per layer of each kind: chains of tiny layers, whose work takes next to no time."""

import random
import statistics
import time
from collections.abc import Callable, Sequence

import torch

from tierscope.arch.network import Builder, Network
from tierscope.arch.precision import Precision
from tierscope.train.clock import wait
from tierscope.train.steps import Trainer

_FEW, _MANY = 4, 28  # layers of a chain
_WARM, _REPEATS = 3, 31
_BATCH = 2
_MIXED = 40  # times convolution, normalisation and activation

Seconds = tuple[float, float, float]  # of forward, backward, update
Link = Callable[[Builder, str], object]

_SQUARE: dict[str, Link] = {
    "conv": lambda net, name: net.conv(name, 8, 3, padding=1),
    "conv_bias": lambda net, name: net.conv(name, 8, 3, padding=1, bias=True),
    "depthwise": lambda net, name: net.conv(name, 8, 3, padding=1, groups=8),
    "norm": lambda net, name: net.norm(name),
    "relu": lambda net, name: net.activation(name),
    "leaky": lambda net, name: net.activation(name, "LeakyReLU", slope=0.3),
    "dropout": lambda net, name: net.activation(name, "Dropout", slope=0.5),
    "max_pool": lambda net, name: net.pool(name, 3, stride=1, padding=1),
    "avg_pool": lambda net, name: net.pool(name, 3, stride=1, padding=1, kind="Avg"),
    "add": lambda net, name: net.add(name, net.last, net.last),
    "concat": lambda net, name: net.concat(name, (net.last,)),
    "resize": lambda net, name: net.resize(name, (8, 8)),
}
_FLAT: dict[str, Link] = {
    "linear": lambda net, name: net.linear(name, 16),
    "view": lambda net, name: net.flatten(name),
}


def host_seconds(device: torch.device, precision: Precision) -> dict[str, Seconds]:
    """Of a layer of each kind; update: of its parameters. `step`: what is left of a step without layers."""
    costs = {}
    base: Seconds = (0.0, 0.0, 0.0)
    for kind, link in (_SQUARE | _FLAT).items():
        short, long = _spent([_chain(kind, link, count) for count in (_FEW, _MANY)], device, precision)
        slope = tuple((more - less) / (_MANY - _FEW) for less, more in zip(short, long, strict=True))
        costs[kind] = (max(slope[0], 0.0), max(slope[1], 0.0), max(slope[2], 0.0))
        if kind == "linear":
            base = tuple(max(0.0, less - (_FEW + 1) * per_layer) for less, per_layer in zip(short, slope, strict=True))  # type: ignore[assignment]
    costs["step"] = base
    return {**costs, "mixed": _mixed_over_alike(costs, device, precision)}


def _mixed_over_alike(costs: dict[str, Seconds], device: torch.device, precision: Precision) -> Seconds:
    """How many times what chains of equal layers say a network spends whose layers differ."""
    net = Builder("mixed", (8, 8, 8))
    rng = random.Random("mixed")
    counts: dict[str, int] = {}
    for number in range(_MIXED):
        channels = 8 * rng.randint(1, 8)
        kernel = rng.choice((1, 3))
        for kind, link in (
            ("conv", lambda name: net.conv(name, channels, kernel, padding=kernel // 2)),  # noqa: B023
            ("norm", net.norm),
            ("relu", lambda name: net.activation(name, inplace=True)),
        ):
            link(f"{number} {kind}")
            counts[kind] = counts.get(kind, 0) + 1
    (spent,), base = _spent([net.network()], device, precision), costs["step"]
    known = [sum(counts[kind] * costs[kind][turn] for kind in counts) for turn in range(3)]
    first, second, third = (
        max(1.0, (whole - rest) / sums) if sums else 1.0 for whole, rest, sums in zip(spent, base, known, strict=True)
    )
    return first, second, third


def _chain(kind: str, link: Link, count: int) -> Network:
    net = Builder(kind, (8, 8, 8))
    if kind in _FLAT:
        net.flatten("flat")
        net.linear("first", 16)
    else:
        net.conv("first", 8, 3, padding=1)
    for number in range(count):
        link(net, str(number))
    return net.network()


def _spent(networks: Sequence[Network], device: torch.device, precision: Precision) -> list[Seconds]:
    """Of each network, in turns: a host is not equally fast from one moment to the next."""
    trainers = [Trainer(network, _BATCH, precision, "sgd", device) for network in networks]
    rounds = [[_timed(trainer, device) for trainer in trainers] for _ in range(_WARM + _REPEATS)][_WARM:]
    wait(device)
    return [_medians(rows) for rows in zip(*rounds, strict=True)]


def _timed(trainer: Trainer, device: torch.device) -> Seconds:
    wait(device)
    start = time.perf_counter()
    loss = trainer.forward()
    forward = time.perf_counter()
    loss.backward()
    backward = time.perf_counter()
    trainer.update()
    return forward - start, backward - forward, time.perf_counter() - backward


def _medians(rows: Sequence[Seconds]) -> Seconds:
    first, second, third = (statistics.median(column) for column in zip(*rows, strict=True))
    return first, second, third
