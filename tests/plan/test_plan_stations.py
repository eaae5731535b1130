"""The stations of a system: how many there are, who shares which, how fast each is, and which bytes are where."""

import itertools
import statistics
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tierscope.plan.stations import NONE, Stations, TierQueues, stations_of, stripes
from tierscope.spec.study import System, Tier


def tier(name: str = "gfs", **keys: Any) -> Tier:
    return Tier(name=name, path=f"/{name}", **keys)


def built(*tiers: Tier, nodes: int = 1, seed: int = 1) -> Stations:
    return stations_of(System(nodes=nodes, tiers=tiers), seed)


ALL_RATES: dict[str, Any] = {
    "metadata_ops": 10,
    "bandwidth": 100,
    "node_bandwidth": 400,
    "device_bandwidth": 300,
    "gateway_bandwidth": 200,
}


@pytest.mark.parametrize(
    ("keys", "devices"),
    [
        ({"visible_to": "node"}, [0, 1, 2, 3, 4, 5, 6]),
        ({"visible_to": "global"}, [0] * 7),
        ({"visible_to": "node", "device_shared_by": 3}, [0, 0, 0, 1, 1, 1, 2]),
        ({"visible_to": "global", "device_shared_by": 3}, [0, 0, 0, 1, 1, 1, 2]),
        ({"visible_to": "node", "device_shared_by": 100}, [0] * 7),
    ],
)
@pytest.mark.parametrize(
    ("gateway_shared_by", "gateways"), [(None, [0] * 7), (2, [0, 0, 1, 1, 2, 2, 3]), (50, [0] * 7)]
)
def test_who_shares_a_device_a_gateway_and_a_link(
    keys: dict[str, Any], devices: list[int], gateway_shared_by: int | None, gateways: list[int]
) -> None:
    stations = built(tier(**ALL_RATES, **keys, gateway_shared_by=gateway_shared_by, servers=2), nodes=7)
    (queues,) = stations.tiers
    count = devices[-1] + 1
    assert stations.count == count + 2 * count + 7 + count + gateways[-1] + 1
    assert [queues.metadata_of(node, 0) - queues.metadata for node in range(7)] == devices
    assert [queues.server_of(node, 0) - queues.servers_first for node in range(7)] == [2 * device for device in devices]
    for node in range(7):
        assert queues.links_of(node) == [
            queues.node_link + node,
            queues.device_link + devices[node],
            queues.gateway + gateways[node],
        ]


def everybodys(queues: TierQueues, nodes: int, files: int) -> list[tuple[str, int]]:
    """(what it is, its number) of all that any node needs for any file."""
    found: set[tuple[str, int]] = set()
    for node, file in itertools.product(range(nodes), range(files)):
        found.add(("metadata", queues.metadata_of(node, file)))
        found |= {("server", queues.server_of(node, file, stripe)) for stripe in range(queues.stripe_count)}
        found |= {(f"link {place}", link) for place, link in enumerate(queues.links_of(node))}
    return sorted(found)


@given(
    nodes=st.integers(1, 9),
    device=st.sampled_from([None, 1, 2, 4]),
    gateway=st.sampled_from([None, 1, 3]),
    metadata_servers=st.integers(1, 3),
    servers=st.integers(1, 5),
    stripe_count=st.integers(1, 6),
    visible_to=st.sampled_from(["node", "global"]),
    given_rates=st.sets(st.sampled_from(sorted(ALL_RATES))),
)
@settings(max_examples=examples(100))
def test_every_station_is_somebodys_and_belongs_to_one_kind(
    nodes: int, device: int | None, gateway: int | None, given_rates: set[str], **keys: Any
) -> None:
    rates = {name: ALL_RATES[name] for name in given_rates}
    one = tier("lfs", **rates, **keys, device_shared_by=device, gateway_shared_by=gateway)
    stations = built(one, tier(**rates, **keys), nodes=nodes)
    numbers = [number for queues in stations.tiers for _, number in everybodys(queues, nodes, 30) if number != NONE]
    assert sorted(numbers) == list(range(stations.count))  # each once: no two kinds share a number
    for name in ALL_RATES.keys() - given_rates:
        place = {"metadata_ops": "metadata", "bandwidth": "servers_first", "node_bandwidth": "node_link"}
        place |= {"device_bandwidth": "device_link", "gateway_bandwidth": "gateway"}
        assert [getattr(queues, place[name]) for queues in stations.tiers] == [NONE, NONE]


def test_files_take_turns_over_servers_and_metadata_servers() -> None:
    (queues,) = built(tier(metadata_ops=1, metadata_servers=3, bandwidth=1, servers=4)).tiers
    assert Counter(queues.server_of(0, file) for file in range(40)) == {queues.servers_first + n: 10 for n in range(4)}
    assert Counter(queues.metadata_of(0, file) for file in range(30)) == {queues.metadata + n: 10 for n in range(3)}
    assert [queues.server_of(0, 3, stripe) - queues.servers_first for stripe in range(4)] == [3, 0, 1, 2]


def test_a_file_has_no_more_stripes_than_there_are_servers() -> None:
    assert built(tier(bandwidth=1, servers=3, stripe_count=8)).tiers[0].stripe_count == 3


def test_what_each_kind_serves() -> None:
    stations = built(
        tier(
            **ALL_RATES,
            read_ops=50,
            latency=0.1,
            metadata_latency=0.2,
            metadata_variation=0.3,
            service_variation=0.4,
            discipline="sharing",
            background=0.25,
        )
    )
    columns = ("per_op", "per_byte", "variation", "sharing", "background", "latency")
    rows = list(zip(*(getattr(stations, name).tolist() for name in columns), strict=True))
    assert rows == [
        (0.1, 0.0, 0.3, True, 0.25, 0.2),
        (0.02, 0.01, 0.4, True, 0.25, 0.1),
        (0.0, 1 / 400, 0.0, False, 0.0, 0.1),
        (0.0, 1 / 300, 0.0, False, 0.0, 0.1),
        (0.0, 1 / 200, 0.0, False, 0.0, 0.1),
    ]
    assert (stations.tiers[0].latency, stations.tiers[0].metadata_latency) == (0.1, 0.2)


def test_names_say_tier_kind_and_number() -> None:
    stations = built(
        tier("lfs", visible_to="node", device_shared_by=2, read_ops=1), tier(**ALL_RATES, servers=2), nodes=3
    )
    assert [stations.name_of(number) for number in range(stations.count)] == [
        *("lfs server 0", "lfs server 1"),
        *("gfs metadata server 0", "gfs server 0", "gfs server 1"),
        *("gfs link of node 0", "gfs link of node 1", "gfs link of node 2"),
        *("gfs link of device 0", "gfs gateway 0"),
    ]


def test_tiers_that_are_not_marked_have_no_stations() -> None:
    system = System(nodes=2, tiers=(tier("lfs", **ALL_RATES), tier(metadata_ops=5)))
    stations = stations_of(system, 1, [False, True])
    assert stations.count == 1
    lfs, gfs = stations.tiers
    assert (lfs.metadata_of(0, 0), lfs.server_of(1, 3), lfs.links_of(1), lfs.latency) == (NONE, NONE, [], 0.0)
    assert gfs.metadata_of(1, 0) == 0
    assert stations_of(system, 1, [True, True]).count == stations_of(system, 1).count > 1


# Speeds


def speeds(variation: float, seed: int, servers: int = 1, nodes: int = 1) -> list[float]:
    one = tier(visible_to="node", read_ops=10, bandwidth=1000, servers=servers, variation=variation)
    stations = built(one, nodes=nodes, seed=seed)
    np.testing.assert_allclose(stations.per_op * 10, stations.per_byte * 1000)  # a slow server is slow in all
    return [float(value) for value in 0.1 / stations.per_op]


@pytest.mark.parametrize("variation", [0.05, 0.15])
def test_speeds_of_servers_vary_as_stated(variation: float) -> None:
    count = 4000
    found = speeds(variation, seed=3, servers=40, nodes=100)
    assert len(set(found)) == count
    assert statistics.mean(found) == pytest.approx(1.0, abs=4 * variation / count**0.5)
    # The standard deviation of a normal sample has a relative error of 1/√(2n).
    assert statistics.stdev(found) == pytest.approx(variation, rel=4 / (2 * count) ** 0.5)


def test_speeds_depend_on_the_seed_alone() -> None:
    assert speeds(0.2, seed=3, servers=5) == speeds(0.2, seed=3, servers=5)
    assert speeds(0.2, seed=3, servers=5) != speeds(0.2, seed=4, servers=5)
    assert speeds(0.2, seed=3, nodes=2) == speeds(0.2, seed=3, nodes=9)[:2]  # more nodes bring new devices, not others
    assert speeds(0.0, seed=3, servers=5) == pytest.approx([1.0] * 5)


def test_no_server_stands_still() -> None:
    found = speeds(0.9, seed=1, servers=1000)
    assert min(found) == pytest.approx(0.1)
    assert max(found) > 2


# Stripes


def byte_by_byte(offset: int, nbytes: int, count: int, size: int) -> list[int]:
    found = [0] * count
    for position in range(offset, offset + nbytes):
        found[position // size % count] += 1
    return found


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 7), st.integers(1, 40))
@settings(max_examples=examples(300))
def test_stripes_are_dealt_in_turn(offset: int, nbytes: int, count: int, size: int) -> None:
    assert stripes(offset, nbytes, count, size) == byte_by_byte(offset, nbytes, count, size)


@given(st.integers(0, 2**50), st.integers(0, 2**50), st.integers(1, 100), st.integers(512, 2**40))
def test_stripes_keep_every_byte(offset: int, nbytes: int, count: int, size: int) -> None:
    found = stripes(offset, nbytes, count, size)
    assert len(found) == count
    assert min(found) >= 0
    assert sum(found) == nbytes
    assert max(found) - min(found) <= 2 * size or count == 1


@given(
    st.integers(0, 1000), st.lists(st.integers(0, 500), min_size=1, max_size=5), st.integers(2, 6), st.integers(1, 90)
)
def test_reads_one_after_another_are_one_read(offset: int, sizes: list[int], count: int, size: int) -> None:
    summed, place = [0] * count, offset
    for nbytes in sizes:
        summed = [a + b for a, b in zip(summed, stripes(place, nbytes, count, size), strict=True)]
        place += nbytes
    assert summed == stripes(offset, sum(sizes), count, size)
