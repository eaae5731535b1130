"""A system as one of its accelerators sees it: what a node's accelerators share is divided by their number."""

from dataclasses import dataclass

from tierscope.arch.roofline import Device
from tierscope.errors import UserError
from tierscope.spec.study import System, Tier


@dataclass(frozen=True, slots=True)
class Machine:
    """Bandwidths in bytes per second. None: the system does not say."""

    name: str
    nodes: int
    accelerators: int  # of a node
    device: Device
    memory: int  # of one accelerator
    l2: int | None
    host_bandwidth: float | None  # to one accelerator
    peer_bandwidth: float | None  # to another accelerator of the node that has a direct link
    far_bandwidth: float | None  # to one that has none; None: all have
    network_bandwidth: float | None  # of a node
    node_memory: int | None
    cores: int | None  # of a node
    near: "StorageRates | None"  # the nearest tier that every node has its own of
    far: "StorageRates"
    assumed_tiers: tuple[str, ...] = ()  # a bandwidth of which nobody published or measured

    @property
    def read_tiers(self) -> tuple[str, ...]:
        """Names of those that samples come from."""
        return tuple(dict.fromkeys(tier.name for tier in (self.near, self.far) if tier is not None))


@dataclass(frozen=True, slots=True)
class StorageRates:
    """A tier: links of nodes, devices and gateways, in bytes per second. None: it is no limit; of `..._shared_by`: all nodes do."""

    name: str
    node_bandwidth: float | None
    device_bandwidth: float | None
    device_shared_by: int | None
    gateway_bandwidth: float | None
    gateway_shared_by: int | None
    capacity: int | None  # for our files: of a node, or in all

    def per_node(self, nodes: int) -> float | None:
        """With so many nodes reading alike."""
        shared = ((self.device_bandwidth, self.device_shared_by), (self.gateway_bandwidth, self.gateway_shared_by))
        rates = [rate / min(nodes, sharers or nodes) for rate, sharers in shared if rate is not None]
        return min(rates if self.node_bandwidth is None else [*rates, self.node_bandwidth], default=None)


def machine_of(name: str, system: System) -> Machine:
    """Refuses a system that does not say what its accelerators are capable of."""
    accelerator = system.hardware.accelerator
    needed = {
        "count": accelerator.count,
        "memory": accelerator.memory,
        "memory_bandwidth": accelerator.memory_bandwidth,
        "fp32": accelerator.fp32,
    }
    missing = [f"hardware.accelerator.{key}" for key, value in needed.items() if value is None]
    if missing:
        raise UserError(
            f"system {name}: {', '.join(missing)} not set; add it to the system's file (for an example: 'tierscope presets cori-gpu')"
        )
    assert accelerator.count
    assert accelerator.memory
    assert accelerator.memory_bandwidth
    assert accelerator.fp32
    own = [tier for tier in system.tiers if tier.visible_to == "node"]
    return Machine(
        name=name,
        nodes=system.nodes,
        accelerators=accelerator.count,
        device=Device(accelerator.fp32, accelerator.memory_bandwidth, accelerator.tensor, accelerator.tf32),
        memory=accelerator.memory,
        l2=accelerator.l2,
        host_bandwidth=accelerator.host_bandwidth,
        peer_bandwidth=accelerator.peer_bandwidth,
        far_bandwidth=accelerator.far_bandwidth,
        network_bandwidth=system.hardware.network_bandwidth,
        node_memory=system.hardware.memory,
        cores=system.hardware.cores,
        near=_storage(own[0]) if own else None,
        far=_storage(system.tiers[-1]),
    )


def _storage(tier: Tier) -> StorageRates:
    servers = None if tier.bandwidth is None else tier.bandwidth * tier.servers
    return StorageRates(
        name=tier.name,
        node_bandwidth=tier.node_bandwidth,
        device_bandwidth=min((rate for rate in (servers, tier.device_bandwidth) if rate is not None), default=None),
        device_shared_by=tier.device_shared_by or (1 if tier.visible_to == "node" else None),
        gateway_bandwidth=tier.gateway_bandwidth,
        gateway_shared_by=tier.gateway_shared_by,
        capacity=tier.capacity,
    )
