"""The Architecture study's networks and machine as Tierscope knows them, and verdicts as its sections give them."""

from functools import cache

from tierscope.arch.kept_activations import kept_bytes
from tierscope.arch.machine import Machine, machine_of
from tierscope.arch.movement import Movement, SampleLoad, movement
from tierscope.arch.network import Network
from tierscope.arch.networks import NETWORKS, TrainingSet, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.requirements import Requirements, Wish, requirements
from tierscope.arch.roofline import layer_costs
from tierscope.papers.verdict import Source, Verdict
from tierscope.spec.known import load_system

AMP = PRECISIONS["amp"]
SYSTEM = "cori-gpu"
MODELLED = "from the layers, 16-bit activations, peaks of Cori GPU"


@cache
def network_of(name: str) -> Network:
    return build_network(name)


def data_of(name: str) -> TrainingSet:
    return NETWORKS[name].data


@cache
def cori() -> Machine:
    return machine_of(SYSTEM, load_system(SYSTEM).system)


@cache
def required(name: str, batches: tuple[int, ...] = (1,), nodes: tuple[int, ...] = (1,)) -> Requirements:
    return requirements(network_of(name), cori(), data_of(name), Wish(AMP, batches=batches, nodes=nodes))


def operations(name: str) -> int:
    """Of a sample, forward and backward."""
    return required(name).flops


def kept(name: str) -> int:
    """Bytes of a sample that autograd keeps, in 16 bits."""
    return kept_bytes(network_of(name), AMP.activation_bytes)


def moved(name: str) -> int:
    """Bytes of a sample through HBM: every layer reads its input and writes its output."""
    return sum(cost.nbytes for cost in layer_costs(network_of(name), AMP))


def sample_bytes(name: str) -> int:
    return network_of(name).input_elements * data_of(name).element_bytes


def moved_at(name: str, batch: int, nodes: int) -> Movement:
    """Seconds of a sample on each way, with what all layers read and write through HBM."""
    load = SampleLoad(moved(name), network_of(name).parameters, sample_bytes(name), data_of(name).file_bytes, batch)
    return movement(load, cori(), nodes)


def seconds(value: float | None) -> float:
    """Of a way whose speed the system says."""
    assert value is not None
    return value


def judge(row_id: str, ours: str, holds: bool, source: Source, why: str = "", made: str = "") -> Verdict:
    return Verdict(row_id, ours, "holds" if holds else "does not hold", source, why, made)


def beside(row_id: str, ours: str, source: Source, why: str = "", made: str = "") -> Verdict:
    return Verdict(row_id, ours, "beside", source, why, made)


def absent(row_id: str, why: str, ours: str = "–", source: Source = "", made: str = "") -> Verdict:
    return Verdict(row_id, ours, "not available here", source, why, made)
