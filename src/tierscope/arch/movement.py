"""What it costs to move the bytes of one sample: bytes × gap, the gap being the time of a byte (LogGP's g).

A lower bound: perfect overlap, peak bandwidth, no preprocessing. Storage must deliver the bytes of the file, memory those of the sample as
it lies there. Gradients are 32-bit and are exchanged once a step, so their cost is divided by the local batch.
"""

from dataclasses import dataclass

from tierscope.arch.machine import Machine
from tierscope.arch.precision import PARAMETER_BYTES


@dataclass(frozen=True, slots=True)
class Compression:
    """Of samples on storage: how many times smaller, and how many bytes of them a node unpacks per second (None: at no cost)."""

    ratio: float = 1.0
    decode_bandwidth: float | None = None


@dataclass(frozen=True, slots=True)
class Movement:
    """Seconds per sample and accelerator. None: the system does not say how fast that way is."""

    memory: float
    samples_dram: float | None
    samples_nvme: float | None
    samples_pfs: float | None
    allreduce: float | None


@dataclass(frozen=True, slots=True)
class SampleLoad:
    """What one sample and one step move. `memory_bytes`: of activations, through the device's memory; `batch`: of one accelerator."""

    memory_bytes: float
    parameters: int
    sample_bytes: int
    file_bytes: float
    batch: int

    @property
    def gradient_bytes(self) -> int:
        return self.parameters * PARAMETER_BYTES


def movement(load: SampleLoad, machine: Machine, nodes: int, compression: Compression | None = None) -> Movement:
    """With all accelerators of so many nodes at work."""
    packed = compression or Compression()
    model = load.gradient_bytes / load.batch
    host = None if machine.host_bandwidth is None else load.sample_bytes / machine.host_bandwidth
    near = None if machine.near is None else machine.near.per_node(nodes)
    exchanged = ring_seconds(load.gradient_bytes, machine, nodes)
    return Movement(
        memory=(load.memory_bytes + model) / machine.device.memory_bandwidth,
        samples_dram=host,
        samples_nvme=_from_storage(load, near, machine, packed),
        samples_pfs=_from_storage(load, machine.far.per_node(nodes), machine, packed),
        allreduce=None if exchanged is None else exchanged / load.batch,
    )


def _from_storage(
    load: SampleLoad, node_bandwidth: float | None, machine: Machine, packed: Compression
) -> float | None:
    """A node's accelerators share what it reads and unpacks."""
    if node_bandwidth is None:
        return None
    read = load.file_bytes / packed.ratio / node_bandwidth * machine.accelerators
    return max(read, unpack_seconds(load, machine, packed) or 0.0)


def unpack_seconds(load: SampleLoad, machine: Machine, packed: Compression) -> float | None:
    """Of a sample, wherever its file lies: in main memory too. A node's accelerators share it. None: nothing is unpacked, or at no cost."""
    return None if packed.decode_bandwidth is None else load.file_bytes / packed.decode_bandwidth * machine.accelerators


def ring_seconds(nbytes: float, machine: Machine, nodes: int) -> float | None:
    """All-reduce of one step: each of n sends and receives 2 (n - 1) / n of the gradients over the slowest link of the ring.

    Between nodes every accelerator has its share of the node's network; within one node the links between peers.
    """
    ring = nodes * machine.accelerators
    if ring == 1:
        return 0.0
    if nodes > 1:
        if machine.network_bandwidth is None:
            return None
        link = machine.network_bandwidth / machine.accelerators
    else:
        slowest = machine.far_bandwidth or machine.peer_bandwidth or machine.host_bandwidth
        if slowest is None:
            return None
        link = slowest
    return 2 * (ring - 1) / ring * nbytes / link


def gather_seconds(
    nbytes: float, machine: Machine, pairs: tuple[tuple[int, int], ...] = ((0, 1), (2, 3))
) -> float | None:
    """Gradients of a node's accelerators to the first one and weights back, as TensorFlow did (Han et al., CLUSTER 2019).

    `pairs`: which have a direct link, where not all have. Transfers over different links go at once; those without one share the way
    through the host.
    """
    if machine.accelerators == 1:
        return 0.0
    if machine.peer_bandwidth is None:
        return None
    if machine.far_bandwidth is None:
        return 2 * nbytes / machine.peer_bandwidth
    direct = sum(1 for pair in pairs if 0 in pair and max(pair) < machine.accelerators)
    around = machine.accelerators - 1 - direct
    return 2 * nbytes * max(1 / machine.peer_bandwidth if direct else 0.0, around / machine.far_bandwidth)


def server_seconds(nbytes: float, machine: Machine, workers: int, servers: int) -> float | None:
    """Parameter servers: each takes its part of the gradients of all workers and sends as much back, over one node's network."""
    if machine.network_bandwidth is None:
        return None
    at_servers = 2 * nbytes * workers / servers / machine.network_bandwidth
    return max(at_servers, 2 * nbytes / machine.network_bandwidth)


def byte_costs(machine: Machine) -> dict[str, float]:
    """What a byte costs an accelerator on each way, relative to its own memory, with all of the system's nodes at work."""
    shares = {
        "memory": machine.device.memory_bandwidth,
        "host": machine.host_bandwidth,
        "network": None if machine.network_bandwidth is None else machine.network_bandwidth / machine.accelerators,
    }
    for storage in (machine.near, machine.far):
        rate = None if storage is None else storage.per_node(machine.nodes)
        if storage is not None and rate is not None:
            shares[storage.name] = rate / machine.accelerators
    return {way: machine.device.memory_bandwidth / rate for way, rate in shares.items() if rate}
