"""`tierscope require`: a network, a system and what is asked, put together to one answer."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierscope.analysis.wording import Finding, finding_json
from tierscope.arch.decoder import DECODERS, MOST_DEVICES, Decoder, Split, find_decoder, refuse_split
from tierscope.arch.decoder_config import load_decoder
from tierscope.arch.decoder_memory import DecoderWork
from tierscope.arch.decoder_needs import DecoderNeeds, SaveWish, decoder_needs, needs_json
from tierscope.arch.findings import find
from tierscope.arch.kept_activations import RULES
from tierscope.arch.machine import Machine, machine_of
from tierscope.arch.movement import Compression
from tierscope.arch.network import Network
from tierscope.arch.networks import ALIASES, NETWORKS, TrainingSet, build_network, find_network
from tierscope.arch.precision import OPTIMIZER_STATES, PARAMETER_BYTES, PRECISIONS
from tierscope.arch.requirements import Requirements, Wish, requirements
from tierscope.arch.stations import TRANSFER_BYTES, reading_threads, with_station_times
from tierscope.arch.step_seconds import PREDICTED, StepSeconds, given
from tierscope.arch.storage_span import with_storage_span
from tierscope.arch.to_json import to_json
from tierscope.errors import UserError, shell_word
from tierscope.jsonable import JsonObject
from tierscope.spec import known, option_values
from tierscope.spec.known import KnownSystem
from tierscope.units import closest, parse_bandwidth, parse_fraction, parse_seconds

if TYPE_CHECKING:
    from tierscope.arch.device_file import DeviceFile

UNKNOWN_SAMPLES = 1_000_000  # of a traced network, whose training set nobody named
DEFAULT_SYSTEM = "h200-node"  # of transformers
MOST_STEP_SECONDS = 1e9  # of a prediction
_FILES = (".yaml", ".yml", ".json")
_FAMILIES = ("gpt2", "gpt-2", "llama")
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
    step_seconds: float | None = None
    device_file: str | None = None
    measured: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    required: Requirements
    findings: tuple[Finding, ...]


def require(model: str, wanted: RequireOptions) -> Answer:
    """Refuses what cannot be read first, then what cannot be found."""
    wish = _wish(wanted)
    shape = None if wanted.input is None else option_values.read_shape(wanted.input)
    loaded, machine = _system(wanted.system)
    wish = replace(wish, nodes=wish.nodes or tuple(option_values.powers(1, machine.nodes)))
    network, data = _network(model, shape)
    data = _changed(data, wanted)
    step, machine = known_step(wanted, network, machine, wish)
    required = requirements(network, machine, data, wish, step)
    required = with_storage_span(with_station_times(required, loaded.system), loaded)
    return Answer(required, tuple(find(required)))


def answer_json(answer: Answer, layers: bool = False) -> JsonObject:
    document = to_json(answer.required, layers)
    document["station_model"] = {
        "read_threads": reading_threads(answer.required.machine),
        "transfer_bytes": TRANSFER_BYTES,
        "samples_per_file": answer.required.data.samples_per_file,
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


def _system(name: str | None) -> tuple[KnownSystem, Machine]:
    if name is None:
        raise UserError(f"--system is missing; use one of {', '.join(_described())}, or your own YAML file")
    try:
        loaded = known.load_system(name)
    except UserError as error:
        raise type(error)(f"--system {error}") from None
    machine = machine_of(loaded.name, loaded.system)
    assumed = [
        tier
        for tier in machine.read_tiers
        if any(
            figure.kind == "assumed" and key.startswith(f"tiers.{tier}.") and key.endswith("bandwidth")
            for key, figure in loaded.figures.items()
        )
    ]
    return loaded, replace(machine, assumed_tiers=tuple(assumed))


def _network(model: str, shape: tuple[int, ...] | None) -> tuple[Network, TrainingSet]:
    """With what it is trained on. A sample of another shape than usual has a file in proportion."""
    if is_decoder(model):
        raise UserError(f"{model}: is a transformer; use 'tierscope require {shell_word(model)}' on a command line")
    if ":" not in model:
        network, known_network = build_network(model, shape), find_network(model)
        data = known_network.data
        if shape is not None:
            share = network.input_elements / build_network(model).input_elements
            data = replace(data, file_bytes=data.file_bytes * share)
        return network, data
    if shape is None:
        raise UserError(f"{model}: the shape of a sample is unknown; add --input, e.g. --input 3x224x224")
    from tierscope.arch.traced import trace_network  # noqa: PLC0415  (torch)

    network = trace_network(model, shape)
    nbytes = network.input_elements * _TRACED_BYTES
    return network, TrainingSet(UNKNOWN_SAMPLES, _TRACED_BYTES, nbytes, "assumed", assumed=True)


def _changed(data: TrainingSet, wanted: RequireOptions) -> TrainingSet:
    """What the options say instead."""
    if wanted.samples is not None:
        data = replace(data, samples=wanted.samples, assumed=False)
    if wanted.sample_file_bytes is None:
        return data
    size = option_values.read_size("--sample-file-bytes", wanted.sample_file_bytes)
    return replace(data, file_bytes=size, samples_per_file=1)


def known_step(
    wanted: RequireOptions, network: Network, machine: Machine, wish: Wish
) -> tuple[StepSeconds | None, Machine]:
    """None: nothing was given, so it is the roofline. The machine has the links of its nodes as a device file measured them."""
    options = {
        "--step-seconds": wanted.step_seconds,
        "--device-file": wanted.device_file,
        "--measured": wanted.measured,
    }
    named = [name for name, value in options.items() if value is not None]
    if len(named) > 1:
        raise UserError(f"{named[1]}: cannot be combined with {named[0]}; remove one of them")
    if wanted.step_seconds is not None:
        return given(wanted.step_seconds), machine
    if wanted.device_file is not None:
        from tierscope.arch.device_links import with_measured_links  # noqa: PLC0415
        from tierscope.arch.device_match import refuse_other_device  # noqa: PLC0415
        from tierscope.arch.device_parse import load_device  # noqa: PLC0415  (NumPy)

        device = load_device(wanted.device_file)
        refuse_other_device(wanted.device_file, device, machine)
        if wish.precision.name not in device.host:
            raise UserError(
                f"--device-file {wanted.device_file}: {device.origin.device} was not measured in {wish.precision.name}; use --precision {next(iter(device.host))}"
            )
        linked = with_measured_links(machine, device, PARAMETER_BYTES * network.parameters)
        step = predicted(device, network, wish, linked is not machine)
        if step.high > MOST_STEP_SECONDS:
            raise UserError(
                f"--device-file {wanted.device_file}: a step would take up to {step.high:.3g} s, so its numbers cannot be right; measure again with 'tierscope probe --accelerator cuda -o FILE'"
            )
        return step, linked
    if wanted.measured is None:
        return None, machine
    from tierscope.measure.measured_step import measured_step  # noqa: PLC0415  (tables)

    return measured_step(wanted.measured, network, machine, wish), machine


def predicted(device: "DeviceFile", network: Network, wish: Wish, is_linked: bool = False) -> StepSeconds:
    """`is_linked`: all-reduce within a node is as measured, too."""
    from tierscope.arch.step_time import predict_step  # noqa: PLC0415

    step = predict_step(device, network, wish.batches[0], wish.precision, wish.optimizer, wish.checkpointed)
    about = f"predicted from one {device.origin.device} as measured {device.origin.time[:10]}; 95 % interval"
    if is_linked and device.all_reduce is not None:
        about += f"; all-reduce in a node as measured alone over {device.all_reduce.devices} devices"
    return StepSeconds(step.seconds, *step.interval, PREDICTED, about, step.outside, step.stand_ins, is_linked)


@dataclass(frozen=True, slots=True)
class DecoderOptions:
    """Options as they were typed."""

    system: str | None = None
    batch: str = "1"
    precision: str = "amp"
    sequence: int | None = None
    zero: int = 0
    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    data_parallel: int = 1
    attention: str = "flash"
    recompute: str = "none"
    efficiency: str = "40%"
    checkpoint_bandwidth: str | None = None
    mean_time_between_failures: str | None = None


def is_decoder(model: str) -> bool:
    """Whether a name means one: built in, a file, or nearly the name of one."""
    if ":" in model or model in NETWORKS or model in ALIASES:
        return False
    alike = model.lower().startswith(_FAMILIES) or closest(model, [*NETWORKS, *ALIASES, *DECODERS]) in DECODERS
    return model.endswith(_FILES) or alike


def require_decoder(model: str, wanted: DecoderOptions) -> DecoderNeeds:
    batches = option_values.read_batches(wanted.batch)
    if len(batches) > 1:
        raise UserError(f"--batch {wanted.batch}: one batch at a time for a transformer; use e.g. --batch {batches[0]}")
    efficiency = _above(parse_fraction, "--efficiency", wanted.efficiency, "40%")
    if efficiency > 1:
        raise UserError(f"--efficiency {wanted.efficiency}: must be at most 100%, e.g. 40%")
    bandwidth, failures = wanted.checkpoint_bandwidth, wanted.mean_time_between_failures
    if failures is not None and bandwidth is None:
        raise UserError(
            "--mean-time-between-failures: needs --checkpoint-bandwidth, e.g. --checkpoint-bandwidth 10GB/s"
        )
    save = SaveWish(
        None if bandwidth is None else _above(parse_bandwidth, "--checkpoint-bandwidth", bandwidth, "10GB/s"),
        None if failures is None else _above(parse_seconds, "--mean-time-between-failures", failures, "12h"),
    )
    shape = load_decoder(model) if model.endswith(_FILES) else find_decoder(model)
    split = Split(wanted.tensor_parallel, wanted.pipeline_parallel, wanted.data_parallel, wanted.zero)
    refuse_split(shape, split)
    if split.devices > MOST_DEVICES:
        raise UserError(
            f"--data-parallel {split.data}: makes {split.devices:,} devices; at most {MOST_DEVICES:,} are supported"
        )
    work = DecoderWork(
        batches[0],
        _length(shape, wanted.sequence),
        narrow=wanted.precision == "amp",
        flash=wanted.attention == "flash",
        recompute=wanted.recompute == "full",
    )
    return decoder_needs(shape, work, split, _system(wanted.system or DEFAULT_SYSTEM)[1], efficiency, save)


def _length(shape: Decoder, wanted: int | None) -> int:
    if wanted is not None and shape.positions and wanted > shape.positions:
        raise UserError(
            f"--sequence {wanted}: {shape.name} has {shape.positions:,} positions; use at most that many tokens"
        )
    return wanted or shape.sequence


def _above(parse: Callable[[str], float], option: str, text: str, example: str) -> float:
    try:
        value = parse(text)
    except ValueError as error:
        raise UserError(f"{option} {text}: {error}") from None
    if not value > 0:
        raise UserError(f"{option} {text}: must be above 0, e.g. {example}")
    return value


def decoder_json(needs: DecoderNeeds) -> JsonObject:
    return needs_json(needs)
