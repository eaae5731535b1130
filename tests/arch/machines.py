"""Machines and networks that are small enough to compute by hand."""

from dataclasses import replace

from tierscope.arch.machine import Machine, StorageRates, machine_of
from tierscope.arch.network import Builder, Network
from tierscope.arch.roofline import Device
from tierscope.spec.known import load_system


def named(name: str) -> Machine:
    return machine_of(name, load_system(name).system)


def storage(
    name: str, node_bandwidth: float | None, device: float | None = None, capacity: int | None = None
) -> StorageRates:
    return StorageRates(name, node_bandwidth, device, None, None, None, capacity)


# 2 accelerators of 10 operations/s and 5 bytes/s behind a host of 1 byte/s each; round numbers everywhere
ROUND = Machine(
    name="round",
    nodes=4,
    accelerators=2,
    device=Device(fp32=10.0, memory_bandwidth=5.0, tensor=40.0),
    memory=1000,
    l2=100,
    host_bandwidth=1.0,
    peer_bandwidth=2.0,
    far_bandwidth=None,
    network_bandwidth=4.0,
    node_memory=100,
    cores=4,
    near=storage("lfs", 0.5, capacity=400),
    far=storage("gfs", 0.25, 0.5),
)


def changed(**values: object) -> Machine:
    return replace(ROUND, **values)  # type: ignore[arg-type]


def small() -> Network:
    """A convolution, an activation, a pool, a shortcut and a linear layer."""
    net = Builder("small", (2, 8, 8))
    first = net.conv("conv1", 4, 3, padding=1, bias=True)
    net.norm("norm1")
    act = net.activation("relu1", inplace=True)
    second = net.conv("conv2", 4, 3, padding=1)
    net.add("add", act, second)
    net.activation("relu2")
    net.pool("pool", 2)
    net.flatten("flatten")
    net.linear("fc", 10)
    assert first == 0
    return net.network()
