"""Bytes over NVLink in a node of Summitdev (T-T3, T-F7): who sends what by which way when TensorFlow gathers gradients on GPU 0."""

import itertools
import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence

from tierscope.arch.precision import PARAMETER_BYTES
from tierscope.papers.architecture_model import absent, beside, judge
from tierscope.papers.section import PaperTable, Section
from tierscope.papers.training_model import BATCH, GPUS, IMAGES, gradient_bytes, input_bytes
from tierscope.papers.verdict import Verdict, points_agree

LINKS = (
    (("GPU 0", "GPU 1"), "nvlink"),
    (("GPU 2", "GPU 3"), "nvlink"),
    (("CPU 0", "CPU 1"), "x-bus"),
    *tuple(((f"CPU {gpu // 2}", f"GPU {gpu}"), "nvlink") for gpu in range(GPUS)),
)
PRINTED = {"lenet5": (1520, 326, 1846), "alexnet": (20355, 3832, 24187), "resnet50": (13136, 1948, 15084)}
_TOTALS = (1.8, 24, 15)  # TB, T-T3-4
# TensorFlow-Slim's LeNet with ImageNet's 1,000 classes: two convolutions of 5 × 5 on 28 × 28 × 3, and linear layers of 1,024 and 1,000.
SLIM_LENET = (25 * 3 + 1) * 32 + (25 * 32 + 1) * 64 + (7 * 7 * 64 + 1) * 1024 + (1024 + 1) * 1000
_NOMINAL, _HOST, _PAIR, _AROUND = 40.0, 31.77, 35.12, 21.47  # GB/s, T-F7-1, T-F7-2


def way(start: str, end: str) -> tuple[str, ...]:
    """The fewest links; through CPUs where GPUs have none of their own."""
    ways: deque[tuple[str, ...]] = deque([(start,)])
    while ways:
        path = ways.popleft()
        if path[-1] == end:
            return path
        for pair, _ in LINKS:
            if path[-1] in pair:
                other = pair[1 - pair.index(path[-1])]
                if other not in path and (other == end or other.startswith("CPU")):
                    ways.append((*path, other))
    raise ValueError(f"no way from {start} to {end}")


def moved(gradients: float, samples: float, gpus: int = GPUS) -> Counter[str]:
    """Bytes of one step by kind of link: samples to every GPU, gradients to GPU 0 and weights back, the sum to the CPU. A way of two links counts twice."""
    counted: Counter[str] = Counter()
    for gpu in range(gpus):
        _carry(counted, way(f"CPU {gpu // 2}", f"GPU {gpu}"), samples / gpus)
        if gpu:
            _carry(counted, way(f"GPU {gpu}", "GPU 0"), 2 * gradients)
    _carry(counted, ("GPU 0", "CPU 0"), gradients)
    return counted


def _carry(counted: Counter[str], path: Sequence[str], nbytes: float) -> None:
    for first, second in itertools.pairwise(path):
        ends = sorted((first[:3], second[:3]))
        counted["–".join(reversed(ends))] += nbytes  # type: ignore[assignment]


def epoch_gigabytes(gradients: float, samples: float) -> tuple[float, float]:
    """GPU–CPU and GPU–GPU, in an epoch of ImageNet."""
    steps = math.ceil(IMAGES.samples / BATCH)
    of = moved(gradients, samples)
    return steps * of["GPU–CPU"] / 1e9, steps * of["GPU–GPU"] / 1e9


def make(short: bool) -> Section:
    del short  # nothing here takes long
    ours = {name: epoch_gigabytes(gradient_bytes(name), BATCH * input_bytes(name)) for name in PRINTED}
    slim = epoch_gigabytes(PARAMETER_BYTES * SLIM_LENET, BATCH * PARAMETER_BYTES * 28 * 28 * 3)
    names = {"lenet5": "LeNet-5 (62 K parameters)", "alexnet": "AlexNet", "resnet50": "ResNet-50"}
    lines: list[tuple[str | float | int, ...]] = [
        (names[name], *map(float, PRINTED[name][:2]), *ours[name]) for name in PRINTED
    ]
    lines.append((f"LeNet of TensorFlow-Slim ({SLIM_LENET / 1e6:.1f} M)", *map(float, PRINTED["lenet5"][:2]), *slim))
    columns = ("network", "GPU–CPU, published, GB", "GPU–GPU, published, GB", "GPU–CPU, ours, GB", "GPU–GPU, ours, GB")
    table = PaperTable("T-T3", "links", columns, tuple(lines), "modelled", f"bytes over NVLink in an epoch with {GPUS} GPUs, global batch {BATCH}")  # fmt: skip
    return Section((*_traffic(ours, slim), *_topology()), (), (table,))


def _traffic(ours: Mapping[str, tuple[float, float]], slim: tuple[float, float]) -> list[Verdict]:
    def text(pair: tuple[float, float], name: str) -> str:
        off = [value / printed for value, printed in zip(pair, PRINTED[name][:2], strict=True)]
        return f"GPU–CPU {pair[0]:,.0f} GB ({off[0]:.2f} of published), GPU–GPU {pair[1]:,.0f} GB ({off[1]:.2f})"

    rule = f"samples to each GPU, gradients to GPU 0 and weights back, the sum to the CPU; global batch {BATCH} (not published for this table). This rule was chosen with the published bytes in sight"
    totals = [sum(pair) / 1e3 for pair in (value[:2] for value in PRINTED.values())]
    agree = all(abs(total - printed) <= (0.05 if printed < 10 else 0.5) for total, printed in zip(totals, _TOTALS, strict=True))  # fmt: skip
    exact = all(sum(printed[:2]) == printed[2] for printed in PRINTED.values())
    order = sum(ours["alexnet"]) > sum(ours["resnet50"]) > max(sum(ours["lenet5"]), sum(slim))
    more = all(pair[0] > pair[1] for pair in (*ours.values(), slim))
    both = f"with the 62 K parameters of LeNet-5: {text(ours['lenet5'], 'lenet5')}; with the {SLIM_LENET / 1e6:.1f} M of TensorFlow-Slim's: {text(slim, 'lenet5')}"
    return [
        beside("T-T3", "a table, below", "modelled", rule),
        beside("T-T3-1", both, "modelled", f"{rule}. So few parameters cannot make the published bytes (T-C-14); Slim's LeNet was looked for because of that"),
        beside("T-T3-2", text(ours["alexnet"], "alexnet"), "modelled", rule),
        beside("T-T3-3", text(ours["resnet50"], "resnet50"), "modelled", rule),
        judge("T-T3-4", ", ".join(f"{total:.1f}" for total in totals) + " TB", agree and exact, "arithmetic", "sums of the printed table"),
        judge("T-T3-5", f"AlexNet {sum(ours['alexnet']):,.0f}, ResNet-50 {sum(ours['resnet50']):,.0f}, LeNet {sum(ours['lenet5']):,.0f} or {sum(slim):,.0f} GB", order, "modelled", rule),
        judge("T-T3-6", f"GPU–CPU over GPU–GPU: AlexNet {ours['alexnet'][0] / ours['alexnet'][1]:.1f}, ResNet-50 {ours['resnet50'][0] / ours['resnet50'][1]:.1f}, LeNet {slim[0] / slim[1]:.1f} (Slim's)", more, "modelled", f"{rule}; published 5.3, 6.7 and 4.7"),
    ]  # fmt: skip


def _topology() -> list[Verdict]:
    ways = {gpu: way(f"GPU {gpu}", "GPU 0") for gpu in range(1, GPUS)}
    detour = all(ways[gpu] == (f"GPU {gpu}", "CPU 1", "CPU 0", "GPU 0") for gpu in (2, 3))
    shares, less = (100 * _HOST / _NOMINAL, 100 * _PAIR / _NOMINAL), 100 * (1 - _AROUND / _PAIR)
    return [
        beside("T-F7", "; ".join(" – ".join(ways[gpu]) for gpu in ways), "input", "a diagram; the links as a list"),
        beside("T-F7-1", f"{shares[0]:.0f} and {shares[1]:.0f} % of {_NOMINAL:g} GB/s", "arithmetic", "no NVLink 1.0 here; the rates are inputs of the system `summitdev`. 35.12 is 88 % (T-C-3)"),
        judge("T-F7-2", f"{less:.1f} % less", points_agree(less, 40.0), "arithmetic", "on the printed rates; not measured here"),
        judge("T-F7-3", f"GPU 2: {' – '.join(ways[2])}; GPU 1: {' – '.join(ways[1])}", detour and ways[1] == ("GPU 1", "GPU 0"), "arithmetic", "the shortest ways over the links of T-F7"),
        absent("T-F7-4", "no node with several GPUs here"),
    ]  # fmt: skip
