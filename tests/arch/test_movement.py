"""What moving bytes costs: by hand, and the published relative costs."""

import pytest

from tests.arch.machines import ROUND, changed, named
from tierscope.arch.machine import StorageRates, machine_of
from tierscope.arch.movement import (
    Compression,
    SampleLoad,
    byte_costs,
    gather_seconds,
    movement,
    ring_seconds,
    server_seconds,
)
from tierscope.errors import UserError
from tierscope.spec import systems
from tierscope.spec.known import load_system

LOAD = SampleLoad(memory_bytes=60, parameters=10, sample_bytes=8, file_bytes=16, batch=4)


def test_relative_costs_of_a_byte_on_cori_gpu_as_published() -> None:
    costs = byte_costs(named("cori-gpu"))
    assert [round(costs[way]) for way in ("memory", "host", "network", "lfs")] == [1, 56, 72, 2250]


def test_movement_by_hand() -> None:
    moved = movement(LOAD, ROUND, 1)
    assert moved.memory == pytest.approx((60 + 40 / 4) / 5)
    assert moved.samples_dram == 8
    assert moved.samples_nvme == pytest.approx(16 / 0.5 * 2)  # two accelerators share it
    assert moved.samples_pfs == pytest.approx(16 / 0.25 * 2)
    assert moved.allreduce == pytest.approx(2 * (1 / 2) * 40 / 2 / 4)


def test_all_nodes_share_the_far_tier_and_not_the_near_one() -> None:
    one, four = movement(LOAD, ROUND, 1), movement(LOAD, ROUND, 4)
    assert four.samples_pfs == pytest.approx(16 / (0.5 / 4) * 2)
    assert four.samples_nvme == one.samples_nvme


def test_compression_saves_reads_until_unpacking_is_slower() -> None:
    packed = movement(LOAD, ROUND, 1, Compression(4.0))
    assert packed.samples_nvme == pytest.approx(16 / 4 / 0.5 * 2)
    slow = movement(LOAD, ROUND, 1, Compression(4.0, decode_bandwidth=0.5))
    assert slow.samples_nvme == pytest.approx(16 / 0.5 * 2)


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_ring_by_hand(nodes: int) -> None:
    ring = 2 * nodes
    link = 2.0 if nodes == 1 else 4.0 / 2
    assert ring_seconds(40, ROUND, nodes) == pytest.approx(2 * (ring - 1) / ring * 40 / link)


def test_a_ring_of_one_exchanges_nothing_and_an_unknown_link_is_not_known() -> None:
    assert ring_seconds(40, changed(accelerators=1), 1) == 0
    assert ring_seconds(40, changed(network_bandwidth=None), 2) is None
    assert ring_seconds(40, changed(peer_bandwidth=None, host_bandwidth=None), 1) is None
    assert movement(LOAD, changed(network_bandwidth=None), 2).allreduce is None


def test_a_ring_is_as_fast_as_its_slowest_link() -> None:
    assert ring_seconds(40, changed(far_bandwidth=1.0), 1) == 2 * (ring_seconds(40, ROUND, 1) or 0)


def test_gathering_on_summitdev_takes_the_long_way() -> None:
    """GPUs 2 and 3 have no link to GPU 0 and share what there is."""
    machine = named("summitdev")
    nbytes = 61_100_840 * 4
    gathered = gather_seconds(nbytes, machine)
    assert gathered is not None
    assert gathered == pytest.approx(2 * nbytes * 2 / 21.5e9)
    assert gathered > 2 * nbytes / 35.1e9
    ring = ring_seconds(nbytes, machine, 1)
    assert ring is not None
    assert gathered > ring


def test_gathering_where_all_have_links_and_where_there_is_one() -> None:
    assert gather_seconds(40, ROUND) == pytest.approx(2 * 40 / 2.0)
    assert gather_seconds(40, changed(accelerators=1)) == 0
    assert gather_seconds(40, changed(peer_bandwidth=None)) is None


def test_parameter_servers_by_hand() -> None:
    assert server_seconds(40, ROUND, workers=16, servers=1) == pytest.approx(2 * 40 * 16 / 4)
    assert server_seconds(40, ROUND, workers=16, servers=4) == pytest.approx(2 * 40 * 4 / 4)
    assert server_seconds(40, ROUND, workers=4, servers=16) == pytest.approx(2 * 40 / 4)  # a worker's own link
    assert server_seconds(40, changed(network_bandwidth=None), 4, 1) is None


def test_gateways_and_devices_are_shared_by_as_many_as_use_them() -> None:
    tier = StorageRates("gfs", None, 100.0, None, 10.0, 4, None)
    assert [tier.per_node(nodes) for nodes in (1, 2, 4, 8)] == [10, 5, 2.5, 2.5]
    assert tier.per_node(80) == 1.25
    assert StorageRates("x", None, None, None, None, None, None).per_node(3) is None


@pytest.mark.parametrize("name", ["cori-gpu", "summitdev", "theta", "fugaku", "h200-node"])
def test_every_promised_system_is_a_machine(name: str) -> None:
    machine = named(name)
    assert name in systems.names()
    assert machine.near is not None
    costs = byte_costs(machine)
    assert costs["memory"] == 1
    assert min(costs.values()) == 1
    assert costs["lfs"] > costs["host"]


def test_a_system_that_does_not_say_enough_is_refused_with_its_keys() -> None:
    with pytest.raises(
        UserError, match=r"system laptop: hardware\.accelerator\.count, .*memory_bandwidth, .*fp32 not set"
    ):
        machine_of("laptop", load_system("laptop").system)
