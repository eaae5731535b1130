"""The Training study's networks and machine as Tierscope knows them, and how long steps on its P100 take: between two ends, since none was measured there.

The fast end is the roofline of a P100. The slow end keeps the efficiency that an H200's device file predicts, device part by device part. Neither is shorter than what
the H200's host needs to give out a step. Nothing in them is fitted to the study.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tierscope.arch.device_parse import load_device
from tierscope.arch.machine import Machine, machine_of
from tierscope.arch.network import Network
from tierscope.arch.networks import NETWORKS, TrainingSet, build_network
from tierscope.arch.precision import PARAMETER_BYTES, PRECISIONS
from tierscope.arch.roofline import Device, layer_costs, roofline_seconds
from tierscope.arch.step_time import Surfaces, predict_step
from tierscope.papers.measured_h200 import FOLDER
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.spec.known import load_system

FP32 = PRECISIONS["fp32"]
SYSTEM = "summitdev"
TITLES = {"lenet5": "LeNet", "alexnet": "AlexNet", "resnet50": "ResNet-50", "resnet101": "ResNet-101"}
NAMES = tuple(TITLES)
BATCH, GPUS = 128, 4  # of a node
IMAGES = NETWORKS["resnet50"].data  # what all four networks are trained on: ImageNet
_PREDICTED = (32, 128)
FAST, SLOW = "fast", "slow"
ENDS = (FAST, SLOW)
ABOUT = "steps between the roofline of a P100 (fast) and the efficiency of an H200 (slow)"


@cache
def network_of(name: str) -> Network:
    return build_network(name)


@cache
def summitdev() -> Machine:
    return machine_of(SYSTEM, load_system(SYSTEM).system)


def data_of(name: str) -> TrainingSet:
    return NETWORKS[name].data


def gradient_bytes(name: str) -> int:
    return PARAMETER_BYTES * network_of(name).parameters


def input_bytes(name: str) -> int:
    """Of a sample on its way to a GPU: 32-bit elements."""
    return PARAMETER_BYTES * network_of(name).input_elements


@dataclass(frozen=True, slots=True)
class P100Steps:
    """Seconds of one GPU's step without input and exchange. `host`: to give it out; `slope`, `fixed`: of the slow end's device part."""

    host: float
    roofline: float  # of a sample
    fixed: float
    slope: float

    def seconds(self, batch: float, end: str) -> float:
        return max(self.host, self.device(batch, end))

    def device(self, batch: float, end: str) -> float:
        """Of the device, if the host were no limit."""
        return batch * self.roofline if end == FAST else max(self.fixed + self.slope * batch, batch * self.roofline)


@cache
def p100_steps() -> Mapping[str, P100Steps] | MissingMeasurement:
    path = FOLDER / "device.yaml"
    if not path.is_file():
        return MissingMeasurement("validation/h200 is part of a clone, not of the installed package")
    device = load_device(str(path))
    tops = device.ceilings
    measured = Device(tops["fp32"], tops["memory_bandwidth"], tops["bf16"], tops["tf32"])
    steps, surfaces = {}, Surfaces()
    for name in NAMES:
        network = network_of(name)
        costs = layer_costs(network, FP32)
        roofline = roofline_seconds(costs, Device(summitdev().device.fp32, summitdev().device.memory_bandwidth), FP32)
        slower = roofline / roofline_seconds(costs, measured, FP32)
        small, large = (predict_step(device, network, batch, FP32, surfaces=surfaces) for batch in _PREDICTED)
        low, high = (step.device_seconds * slower for step in (small, large))
        slope = (high - low) / (_PREDICTED[1] - _PREDICTED[0])
        steps[name] = P100Steps(small.host_seconds, roofline, max(0.0, low - slope * _PREDICTED[0]), slope)
    return steps


def named(values: Mapping[str, float | str]) -> str:
    return "; ".join(f"{TITLES[name]} {value}" for name, value in values.items())


def span(values: Mapping[str, float], form: str = ".2f", unit: str = "") -> str:
    """Both ends, the smaller first."""
    low, high = sorted(values.values())
    texts = f"{low:{form}}", f"{high:{form}}"
    return f"{texts[0]}{unit}" if texts[0] == texts[1] else f"{texts[0]}–{texts[1]}{unit}"
