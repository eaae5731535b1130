"""`tierscope require`: a network, a system and what is asked, put together to one answer."""

from dataclasses import dataclass, replace
from typing import Any

from tierscope.analysis.wording import Finding, finding_json
from tierscope.arch.findings import find
from tierscope.arch.kept_activations import RULES
from tierscope.arch.machine import Machine, machine_of
from tierscope.arch.movement import Compression
from tierscope.arch.network import Network
from tierscope.arch.networks import TrainingSet, build_network, find_network
from tierscope.arch.precision import OPTIMIZER_STATES, PRECISIONS
from tierscope.arch.requirements import Requirements, Wish, requirements
from tierscope.arch.stations import TRANSFER_BYTES, reading_threads, with_station_times
from tierscope.arch.to_json import to_json
from tierscope.errors import UserError
from tierscope.spec import known, option_values
from tierscope.spec.study import System

UNKNOWN_SAMPLES = 1_000_000  # of a traced network, whose training set nobody named
_TRACED_BYTES = 4  # of an element: float32


@dataclass(frozen=True, slots=True)
class RequireOptions:
    """Options as they were typed."""

    system: str | None = None
    batch: str = "1"
    precision: str = "fp32"
    nodes: str | None = None
    optimizer: str = "sgd"
    kept: str = "autograd"
    checkpointed: bool = False
    compression: str | None = None
    servers: int = 1
    weak: bool = False
    input: str | None = None
    samples: int | None = None
    sample_file_bytes: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    found: Requirements
    findings: tuple[Finding, ...]


def require(model: str, wanted: RequireOptions) -> Answer:
    """Refuses what cannot be read first, then what cannot be found."""
    wish = _wish(wanted)
    shape = None if wanted.input is None else option_values.read_shape(wanted.input)
    system, machine = _system(wanted.system)
    wish = replace(wish, nodes=wish.nodes or tuple(option_values.powers(1, machine.nodes)))
    network, data, is_known = _network(model, shape)
    data = _changed(data, wanted)
    found = requirements(network, machine, data, wish)
    found = with_station_times(found, system)
    return Answer(found, tuple(find(found, has_training_set=is_known or wanted.samples is not None)))


def answer_json(answer: Answer, layers: bool = False) -> dict[str, Any]:
    document = to_json(answer.found, layers)
    document["station_model"] = {
        "read_threads": reading_threads(answer.found.machine),
        "transfer_bytes": TRANSFER_BYTES,
        "samples_per_file": answer.found.data.samples_per_file,
    }
    document["findings"] = [finding_json(finding) for finding in answer.findings]
    return document


def _wish(wanted: RequireOptions) -> Wish:
    ratio, decode = (1.0, None) if wanted.compression is None else option_values.read_compression(wanted.compression)
    assert wanted.kept in RULES
    assert wanted.optimizer in OPTIMIZER_STATES
    return Wish(
        precision=PRECISIONS[wanted.precision],
        batches=option_values.read_batches(wanted.batch),
        nodes=() if wanted.nodes is None else option_values.read_nodes(wanted.nodes),
        optimizer=wanted.optimizer,
        kept=wanted.kept,
        checkpointed=wanted.checkpointed,
        compression=Compression(ratio, decode),
        servers=wanted.servers,
        weak=wanted.weak,
    )


def _described() -> list[str]:
    """Systems that say what their nodes are made of."""
    return [name for name in known.names() if known.load_system(name).system.hardware.accelerator.count]


def _system(name: str | None) -> tuple[System, Machine]:
    if name is None:
        raise UserError(f"--system is missing; give one of {', '.join(_described())}, or the YAML file of yours")
    try:
        found = known.load_system(name)
    except UserError as error:
        raise type(error)(f"--system {error}") from None
    return found.system, machine_of(found.name, found.system)


def _network(model: str, shape: tuple[int, ...] | None) -> tuple[Network, TrainingSet, bool]:
    """With what it is trained on, and whether that is known. A sample of another shape than usual has a file in proportion."""
    if ":" not in model:
        network, known_network = build_network(model, shape), find_network(model)
        data = known_network.data
        if shape is not None:
            share = network.input_elements / build_network(model).input_elements
            data = replace(data, file_bytes=data.file_bytes * share)
        return network, data, True
    if shape is None:
        raise UserError(f"{model}: the shape of a sample is not known; give --input, like --input 3x224x224")
    from tierscope.arch.traced import trace_network  # noqa: PLC0415  (torch)

    network = trace_network(model, shape)
    nbytes = network.input_elements * _TRACED_BYTES
    return network, TrainingSet(UNKNOWN_SAMPLES, _TRACED_BYTES, nbytes, "assumed"), False


def _changed(data: TrainingSet, wanted: RequireOptions) -> TrainingSet:
    """What the options say instead."""
    if wanted.samples is not None:
        data = replace(data, samples=wanted.samples)
    if wanted.sample_file_bytes is None:
        return data
    size = option_values.read_size("--sample-file-bytes", wanted.sample_file_bytes)
    return replace(data, file_bytes=size, samples_per_file=1)
