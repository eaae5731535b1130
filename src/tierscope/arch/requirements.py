"""What a network demands of a machine, all in one: memory, operations, bytes, movement, scaling."""

from dataclasses import dataclass, replace

from tierscope.arch.kept_activations import kept_bytes
from tierscope.arch.machine import Machine
from tierscope.arch.movement import (
    Compression,
    Movement,
    SampleLoad,
    byte_costs,
    gather_seconds,
    movement,
    ring_seconds,
)
from tierscope.arch.network import Network
from tierscope.arch.networks import TrainingSet
from tierscope.arch.precision import OPTIMIZER_STATES, PARAMETER_BYTES, Precision
from tierscope.arch.roofline import LayerCost, bound_by, layer_costs, roofline_seconds
from tierscope.arch.scaling import Scaled, ScaledTraining, scaled
from tierscope.arch.step_memory import CUDNN, Policy, StepMemory, step_memory
from tierscope.arch.step_seconds import StepSeconds, from_roofline
from tierscope.errors import UserError
from tierscope.spec.storage_ends import UncertainFigure

MOST_BATCH = 1 << 20
AT_PEAK = 0.9  # of the roofline: no step is shorter; caches may save some bytes
YES, NO, UNCLEAR = "yes", "no", "unclear"  # does storage matter?


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked, beside network and machine. `kept`: the rule by which kept activations are counted (`arch/kept_activations.py`)."""

    precision: Precision
    batches: tuple[int, ...] = (1,)
    nodes: tuple[int, ...] = (1,)
    optimizer: str = "sgd"
    kept: str = "autograd"
    checkpointed: bool = False
    policy: Policy = CUDNN
    compression: Compression = Compression()
    servers: int = 1
    weak: bool = False


@dataclass(frozen=True, slots=True)
class BatchNeeds:
    batch: int
    memory: StepMemory
    fits: bool
    fits_l2: bool | None


@dataclass(frozen=True, slots=True)
class StorageTurn:
    """What turns the verdict of a number of nodes round, within its interval: figures that do so alone, those that change reads most first; or tiers whose figures do together."""

    figures: tuple[UncertainFigure, ...]
    tiers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StorageSpan:
    """Every number of nodes with storage at the ends of its uncertain figures (`spec/storage_ends.py`). `turns`: None where the verdict stays."""

    figures: tuple[UncertainFigure, ...]
    slow: tuple[Scaled, ...]  # with the shortest step
    fast: tuple[Scaled, ...]  # with the longest
    turns: tuple[StorageTurn | None, ...]


@dataclass(frozen=True, slots=True)
class Requirements:
    network: Network
    machine: Machine
    data: TrainingSet
    wish: Wish
    sample_bytes: int
    costs: tuple[LayerCost, ...]
    kept_bytes: int  # activations of a sample
    hbm_limit_bytes: int
    hbm_modelled_bytes: int
    bound_by: str
    movement: Movement
    byte_costs: dict[str, float]
    allreduce_seconds: dict[str, float | None]  # of one step, by kind
    batches: tuple[BatchNeeds, ...]
    max_batch: int
    step_seconds: float  # roofline, of the first batch
    node_sample_bandwidth_at_peak: float
    node_file_bandwidth_at_peak: float
    scaling: tuple[Scaled, ...]
    step: StepSeconds
    fast: tuple[Scaled, ...]  # the same with the shortest step that may be
    slow: tuple[Scaled, ...]  # and with the longest
    job: ScaledTraining
    storage: StorageSpan | None = None  # None: no figure of its tiers is uncertain

    @property
    def verdicts(self) -> tuple[str, ...]:
        """For every number of nodes, whether storage matters: yes, no, or unclear where that depends on how long a step takes or on uncertain figures of storage, where nothing says how fast storage is, and for a batch that does not fit."""
        return tuple(
            verdict if turn is None else UNCLEAR
            for verdict, turn in zip(self.described_verdicts, self.turns, strict=True)
        )

    @property
    def described_verdicts(self) -> tuple[str, ...]:
        """With storage as the system's file describes it, whatever the intervals of its figures."""
        return tuple(map(self._verdict, self.fast, self.slow))

    @property
    def turns(self) -> tuple[StorageTurn | None, ...]:
        """For every number of nodes, what of storage's uncertain figures turns the verdict round."""
        return (None,) * len(self.scaling) if self.storage is None else self.storage.turns

    def _verdict(self, fast: Scaled, slow: Scaled) -> str:
        if not (self.batches[0].fits and fast.source_known) or fast.storage_matters != slow.storage_matters:
            return UNCLEAR
        return YES if fast.storage_matters else NO

    @property
    def plausible_step(self) -> StepSeconds:
        """Between these ends a step is where nothing better is known."""
        return from_roofline(self.step_seconds, len(self.network.layers))

    @property
    def step_plausible(self) -> bool:
        """Whether the known step is neither shorter than the device's peak allows nor longer than any that is known."""
        thought = self.plausible_step
        return self.step.high >= AT_PEAK * thought.low and self.step.low <= thought.high

    @property
    def flops(self) -> int:
        return self.network.forward_flops + self.network.backward_flops


def requirements(
    network: Network, machine: Machine, data: TrainingSet, wish: Wish, known_step: StepSeconds | None = None
) -> Requirements:
    """Refuses a network that multiplies nothing: there is no operation to compare with. `known_step`: better than the roofline."""
    if not network.forward_flops:
        raise UserError(
            f"{network.name}: has neither convolutions nor linear layers, so there is nothing to compute; use another network"
        )
    precision, batch = wish.precision, wish.batches[0]
    costs = layer_costs(network, precision)
    kept = kept_bytes(network, precision.activation_bytes, wish.kept)
    limit = 2 * kept  # written once, read once
    sample_bytes = network.input_elements * data.element_bytes
    load = SampleLoad(limit, network.parameters, sample_bytes, data.file_bytes, batch)
    roofline = batch * roofline_seconds(costs, machine.device, precision)
    step = known_step or from_roofline(roofline, len(network.layers))
    state = network.parameters * PARAMETER_BYTES * (1 + OPTIMIZER_STATES[wish.optimizer])
    job = ScaledTraining(load, data.samples, step.seconds, state, wish.servers, wish.weak, wish.compression)
    at_peak = machine.accelerators / sum(
        cost.flops / machine.device.peak(precision, cost.tensor_cores) for cost in costs
    )
    most = wish.nodes[-1]
    return Requirements(
        network=network,
        machine=machine,
        data=data,
        wish=wish,
        sample_bytes=sample_bytes,
        costs=tuple(costs),
        kept_bytes=kept,
        hbm_limit_bytes=limit,
        hbm_modelled_bytes=sum(cost.nbytes for cost in costs),
        bound_by=bound_by(costs, machine.device, precision),
        movement=movement(load, machine, most, wish.compression),
        byte_costs=byte_costs(machine),
        allreduce_seconds={
            "ring": ring_seconds(load.gradient_bytes, machine, most),
            "gather": gather_seconds(load.gradient_bytes, machine),
        },
        batches=tuple(_needs(network, machine, data, wish, size) for size in wish.batches),
        max_batch=max_batch(network, machine, data, wish),
        step_seconds=roofline,
        node_sample_bandwidth_at_peak=at_peak * sample_bytes,
        node_file_bandwidth_at_peak=at_peak * data.file_bytes,
        scaling=tuple(scaled(job, machine, nodes) for nodes in wish.nodes),
        step=step,
        fast=tuple(scaled(replace(job, step_seconds=step.low), machine, nodes) for nodes in wish.nodes),
        slow=tuple(scaled(replace(job, step_seconds=step.high), machine, nodes) for nodes in wish.nodes),
        job=job,
    )


def _needs(network: Network, machine: Machine, data: TrainingSet, wish: Wish, batch: int) -> BatchNeeds:
    memory = _memory(network, data, wish, batch)
    return BatchNeeds(
        batch, memory, memory.peak <= machine.memory, None if machine.l2 is None else memory.peak <= machine.l2
    )


def _memory(network: Network, data: TrainingSet, wish: Wish, batch: int) -> StepMemory:
    return step_memory(
        network, batch, wish.precision, wish.optimizer, wish.policy, wish.checkpointed, data.target_bytes
    )


def max_batch(network: Network, machine: Machine, data: TrainingSet, wish: Wish) -> int:
    """The largest batch that fits an accelerator; 0: not even one sample does. More than MOST_BATCH is not looked for."""

    def fits(batch: int) -> bool:
        return _memory(network, data, wish, batch).peak <= machine.memory

    if not fits(1):
        return 0
    low, high = 1, 2
    while high < MOST_BATCH and fits(high):
        low, high = high, 2 * high
    if high >= MOST_BATCH and fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def curve(required: Requirements) -> tuple[BatchNeeds, ...]:
    """Memory against batch size: powers of two up to twice the largest batch that fits, and that one. Takes a while for large networks."""
    powers = {1 << place for place in range(max(2, 2 * required.max_batch).bit_length())}
    sizes = sorted(powers | ({required.max_batch} if required.max_batch else set()))
    return tuple(_needs(required.network, required.machine, required.data, required.wish, size) for size in sizes)


def movements(required: Requirements) -> dict[int, Movement]:
    """Of every batch that was asked, with all accelerators of the most nodes at work."""
    shares = (required.hbm_limit_bytes, required.network.parameters, required.sample_bytes, required.data.file_bytes)
    nodes, packed = required.wish.nodes[-1], required.wish.compression
    return {
        batch: movement(SampleLoad(*shares, batch), required.machine, nodes, packed) for batch in required.wish.batches
    }
