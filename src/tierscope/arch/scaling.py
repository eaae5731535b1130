"""What changes with the number of nodes: a node's share of the data, where it fits, what must be read, and what waits for what.

Strong scaling: the data set stays, so a node's share shrinks with every node, and when it fits main memory reads stop after the first epoch.
Weak scaling: every node has the share that it has with all nodes of the system. The batch of an accelerator stays, so the global batch
grows with the nodes. Lower bounds: perfect overlap, so an epoch takes the slowest of compute, input and exchange; files on the near tier are a
node's own share, so nothing is read from other nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tierscope.arch.machine import Machine
from tierscope.arch.movement import Compression, SampleLoad, movement, ring_seconds, server_seconds, unpack_seconds

MEMORY_SHARE = 0.8  # of main memory that files may fill
MEMORY = "memory"  # of the host, as a place that samples come from
UNPACKING = "unpacking"  # what is waited for where reads are faster
HARDLY = 1.03  # times as long is not longer: so little is lost in what the model leaves out
_NO_STORAGE = ("compute", "exchange", MEMORY, UNPACKING)


@dataclass(frozen=True, slots=True)
class Scaled:
    """One number of nodes. Seconds of an epoch, unless said otherwise; None: the system does not say."""

    nodes: int
    samples_per_node: float
    share_bytes: float  # of files, of a node
    fits_memory: bool | None
    fits_near: bool | None
    compute_seconds: float
    exchange_seconds: float | None
    server_seconds: float | None
    staging_seconds: float | None  # far tier to near tier, once
    input_rate: float  # bytes per second that a node must read to keep its accelerators busy
    far_seconds: float | None  # to read the share from the far tier
    near_seconds: float | None  # from the near tier, if it fits there
    memory_seconds: float | None  # to copy it from main memory, if it fits there, and unpack it, as files lie there
    first_seconds: float  # from the far tier
    later_seconds: float  # from where it comes fastest, of the places where the share fits
    later_from: str
    waits_for: str  # in later epochs: compute, exchange, unpacking or the place that samples come from
    checkpoint_seconds: float | None  # of writing weights and optimizer state to the far tier, by one node
    storage_seconds: float | None = None  # of later epochs, as modelled by the tiers' stations; None: no model
    first_storage_seconds: float | None = None  # of the first
    unpack_seconds: float | None = None  # part of those from tiers and memory; None: nothing is unpacked, or at no cost

    @property
    def others_seconds(self) -> float:
        """What reads are hidden by."""
        return max(self.compute_seconds, self.exchange_seconds or 0.0)

    @property
    def without_storage_seconds(self) -> float:
        """An epoch, if reads took no time: unpacking would still be there."""
        return max(self.others_seconds, self.unpack_seconds or 0.0)

    @property
    def storage_times(self) -> float:
        """How many times as long a later epoch takes with storage as everything else takes."""
        return self.later_seconds / self.without_storage_seconds

    @property
    def source_known(self) -> bool:
        """Whether anything is known of how fast samples of later epochs come."""
        return self.later_from == MEMORY or self.far_seconds is not None or self.near_seconds is not None

    @property
    def reads_seconds(self) -> float:
        """Of later epochs from the tiers, whatever they are hidden by; none from main memory."""
        if self.later_from == MEMORY:
            return 0.0
        return min((seconds for seconds in (self.far_seconds, self.near_seconds) if seconds is not None), default=0.0)

    @property
    def far_times(self) -> float | None:
        """How many times as long a later epoch takes if it is read from the far tier again; None: nothing says how fast that is."""
        if self.far_seconds is None or not self.later_seconds:
            return None
        return max(self.others_seconds, self.far_seconds) / self.later_seconds

    @property
    def storage_matters(self) -> bool:
        """Whether later epochs wait for a tier."""
        return self.waits_for not in _NO_STORAGE

    @property
    def first_matters(self) -> bool:
        """Whether the first epoch waits for the far tier."""
        return self.first_seconds > HARDLY * self.others_seconds

    @property
    def first_waits_for_unpacking(self) -> bool:
        return self.unpack_seconds is not None and self.unpack_seconds >= (self.far_seconds or 0.0)

    @property
    def staging_gain(self) -> float | None:
        """How many times as fast an epoch is from the near tier as from the far one."""
        if self.far_seconds is None or self.near_seconds is None:
            return None
        slower, faster = (max(self.others_seconds, seconds) for seconds in (self.far_seconds, self.near_seconds))
        return slower / faster if faster else None


@dataclass(frozen=True, slots=True)
class ScaledTraining:
    """What is scaled. `step_seconds`: of one accelerator's batch, without input and exchange."""

    load: SampleLoad
    samples: int
    step_seconds: float
    state_bytes: int = 0
    servers: int = 1  # parameter servers, to compare with the ring
    weak: bool = False
    compression: Compression | None = None


def scaled(job: ScaledTraining, machine: Machine, nodes: int) -> Scaled:
    load, packed = job.load, job.compression or Compression()
    samples = job.samples / (machine.nodes if job.weak else nodes)  # of a node
    share = samples * load.file_bytes / packed.ratio
    steps = samples / machine.accelerators / load.batch
    compute = steps * job.step_seconds
    fits_memory = None if machine.node_memory is None else share <= MEMORY_SHARE * machine.node_memory
    fits_near = None if machine.near is None or machine.near.capacity is None else share <= machine.near.capacity
    moved = movement(load, machine, nodes, packed)
    per_accelerator = samples / machine.accelerators
    unpack = _times(per_accelerator, unpack_seconds(load, machine, packed))
    far, alone = machine.far.per_node(nodes), machine.far.per_node(1)
    point = Scaled(
        nodes=nodes,
        samples_per_node=samples,
        share_bytes=share,
        fits_memory=fits_memory,
        fits_near=fits_near,
        compute_seconds=compute,
        exchange_seconds=_times(steps, ring_seconds(load.gradient_bytes, machine, nodes)),
        server_seconds=_times(steps, server_seconds(load.gradient_bytes, machine, nodes, job.servers)),
        staging_seconds=share / far if fits_near and far else None,
        input_rate=share / compute if compute else 0.0,
        far_seconds=_times(per_accelerator, moved.samples_pfs),
        near_seconds=_times(per_accelerator, moved.samples_nvme) if fits_near else None,
        memory_seconds=_longer(_times(per_accelerator, moved.samples_dram), unpack) if fits_memory else None,
        first_seconds=0.0,
        later_seconds=0.0,
        later_from="",
        waits_for="",
        checkpoint_seconds=job.state_bytes / alone if alone else None,
        unpack_seconds=unpack,
    )
    return _settled(point, machine)


def with_stations(point: Scaled, machine: Machine, far: float | None, near: float | None) -> Scaled:
    """With seconds of an epoch's reads as the stations of the tiers need them: those hold where they are longer than plain bandwidths say."""
    far_seconds = _longer(point.far_seconds, far)
    near_seconds = _longer(point.near_seconds, near) if point.fits_near else None
    settled = _settled(replace(point, far_seconds=far_seconds, near_seconds=near_seconds), machine)
    from_tier = {machine.far.name: far, MEMORY: 0.0} | ({machine.near.name: near} if machine.near else {})
    return replace(settled, first_storage_seconds=far, storage_seconds=from_tier[settled.later_from])


def _settled(point: Scaled, machine: Machine) -> Scaled:
    """Where samples of later epochs come from, and what epochs wait for: for these only where they take noticeably longer."""
    places = {machine.far.name: point.far_seconds}
    if machine.near is not None and point.near_seconds is not None:
        places[machine.near.name] = point.near_seconds
    if point.fits_memory:
        place, seconds = MEMORY, point.memory_seconds
    else:
        place, seconds = min(
            places.items(), key=lambda place_seconds: float("inf") if place_seconds[1] is None else place_seconds[1]
        )
    others, reads = point.others_seconds, seconds or 0.0
    busiest = "compute" if point.compute_seconds >= others else "exchange"
    source = place if reads > HARDLY * point.without_storage_seconds else UNPACKING
    return replace(
        point,
        first_seconds=max(others, point.far_seconds or 0.0),
        later_seconds=max(others, reads),
        later_from=place,
        waits_for=source if reads > HARDLY * others else busiest,
    )


def _times(count: float, seconds: float | None) -> float | None:
    return None if seconds is None else count * seconds


def _longer(this: float | None, other: float | None) -> float | None:
    return max((value for value in (this, other) if value is not None), default=None)


def fits_from(points: Sequence[Scaled]) -> int | None:
    """The fewest of these nodes whose share fits main memory."""
    return next((point.nodes for point in points if point.fits_memory), None)
