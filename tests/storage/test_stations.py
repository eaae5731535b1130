"""Who shares which queue, and how long each serves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.spec.studies import tiers
from tierscope.plan import stations as planned
from tierscope.spec.emulation import python_only
from tierscope.spec.study import System, Tier
from tierscope.storage.stations import Station, StationMap, TierStations, map_stations


def tier(name: str = "gfs", **keys: Any) -> Tier:
    return Tier(name=name, path="/t", emulate=True, **keys)


def stations_of(*tiers: Tier, nodes: int = 1, seed: int = 1) -> StationMap:
    return map_stations(System(nodes=nodes, tiers=tiers), seed)


def views_of(one: Tier, nodes: int, seed: int = 1) -> tuple[TierStations, ...]:
    views = stations_of(one, nodes=nodes, seed=seed).views[0]
    assert views is not None
    return views


def number(stations: tuple[Station, ...]) -> int:
    return stations[0].number


def sharing(numbers: Sequence[int]) -> list[int]:
    """Equal stations as equal small numbers in order of appearance: [7, 7, 9] → [0, 0, 1]."""
    return [list(dict.fromkeys(numbers)).index(value) for value in numbers]


@pytest.mark.parametrize(
    ("keys", "devices"),
    [
        ({"visible_to": "node"}, [0, 1, 2, 3, 4]),
        ({"visible_to": "global"}, [0, 0, 0, 0, 0]),
        ({"visible_to": "node", "device_shared_by": 2}, [0, 0, 1, 1, 2]),
        ({"visible_to": "global", "device_shared_by": 2}, [0, 0, 1, 1, 2]),
        ({"visible_to": "global", "device_shared_by": 1}, [0, 1, 2, 3, 4]),
        ({"visible_to": "node", "device_shared_by": 100}, [0, 0, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize(
    ("gateway_keys", "gateways"), [({}, [0] * 5), ({"gateway_shared_by": 3}, [0, 0, 0, 1, 1])], ids=["one", "by3"]
)
def test_seeing_device_and_gateway_are_shared_by_different_nodes(
    keys: dict[str, Any], devices: list[int], gateway_keys: dict[str, Any], gateways: list[int]
) -> None:
    views = views_of(tier(metadata_ops=100, bandwidth=1e6, gateway_bandwidth=1e7, **keys, **gateway_keys), nodes=5)
    assert sharing([number(view.metadata) for view in views]) == devices
    assert sharing([number(view.servers) for view in views]) == devices
    assert sharing([number(view.links) for view in views]) == gateways


def test_every_station_has_its_own_number_and_the_count_covers_all() -> None:
    mapped = stations_of(
        tier("lfs", visible_to="node", device_shared_by=2, metadata_ops=10, read_ops=10),
        tier("gfs", metadata_ops=10, servers=4, bandwidth=1, gateway_bandwidth=1, gateway_shared_by=2),
        nodes=5,
    )
    views = [view for views in mapped.views for view in views or ()]
    found = {station.number for view in views for station in (*view.metadata, *view.servers, *view.links)}
    # lfs: 3 devices of a metadata and an object server; gfs: 1 of 1 + 4, and 3 gateways
    assert found == set(range(3 * 2 + 5 + 3))
    assert mapped.count == len(found)


def test_only_emulated_tiers_have_views() -> None:
    real = Tier(name="lfs", path="/l", read_ops=100, emulate=False)
    mapped = stations_of(real, tier(metadata_ops=10), nodes=2)
    assert mapped.views[0] is None
    assert len(mapped.views[1] or ()) == 2
    assert mapped.count == 1
    assert stations_of(real).count == 0


def test_a_read_takes_its_operation_and_its_bytes() -> None:
    view = views_of(tier(metadata_ops=900, read_ops=800, bandwidth=100 * 2**20, gateway_bandwidth=2**30), nodes=1)[0]
    (metadata,), (server,), (gateway,) = view.metadata, view.servers, view.links
    nbytes = 128 * 1024
    assert server.service_ns(nbytes) == round(1e9 / 800 + 1e9 * nbytes / (100 * 2**20))
    assert server.service_ns(0) == 1_250_000
    assert gateway.service_ns(nbytes) == round(1e9 * nbytes / 2**30)
    assert metadata.service_ns(0) == metadata.service_ns(nbytes) == round(1e9 / 900)


def test_rates_that_are_not_given_do_not_limit() -> None:
    view = views_of(tier(latency=0.002, servers=3), nodes=1)[0]
    assert view == TierStations(latency_ns=2_000_000)


@pytest.mark.parametrize(("keys", "service"), [({"read_ops": 100.0}, 10_000_000), ({"bandwidth": 1e6}, 1_000_000)])
def test_one_of_the_two_rates_of_a_server_is_enough(keys: dict[str, Any], service: int) -> None:
    (server,) = views_of(tier(**keys), nodes=1)[0].servers
    assert server.service_ns(1000) == service


def speeds(variation: float, seed: int, servers: int = 400, read_ops: float = 1.0) -> list[float]:
    view = views_of(tier(servers=servers, read_ops=read_ops, bandwidth=1e9, variation=variation), nodes=1, seed=seed)[0]
    return [1e9 / station.per_op_ns for station in view.servers]


def test_servers_vary_around_the_configured_rate() -> None:
    drawn = speeds(0.2, seed=3)
    mean = sum(drawn) / len(drawn)
    deviation = (sum((speed - mean) ** 2 for speed in drawn) / len(drawn)) ** 0.5
    assert mean == pytest.approx(1.0, abs=0.05)
    assert deviation == pytest.approx(0.2, rel=0.25)


def test_variation_depends_on_the_seed_and_server_only() -> None:
    assert speeds(0.2, seed=3) == speeds(0.2, seed=3)
    assert speeds(0.2, seed=3) != speeds(0.2, seed=4)
    assert speeds(0.2, seed=3, servers=10) == speeds(0.2, seed=3, servers=400)[:10]  # more servers change no other
    assert speeds(0.0, seed=3) == [1.0] * 400
    # Pinned: results of other versions and machines stay comparable.
    assert speeds(0.2, seed=3, servers=2) == pytest.approx([1.134804984, 1.172004125], rel=1e-8)


def test_a_slow_server_is_slow_in_operations_and_bytes_alike() -> None:
    view = views_of(tier(servers=20, read_ops=1000, bandwidth=1e6, variation=0.3), nodes=1)[0]
    for station in view.servers:
        assert station.per_op_ns / 1e6 == pytest.approx(station.per_byte_ns / 1e3)


def test_devices_of_one_tier_vary_independently() -> None:
    first, second = views_of(tier(visible_to="node", servers=3, read_ops=100, variation=0.2), nodes=2)
    assert [s.per_op_ns for s in first.servers] != [s.per_op_ns for s in second.servers]


@given(st.integers(0, 2**63 - 1), st.floats(0.01, 0.9))
def test_no_server_is_slower_than_a_tenth(seed: int, variation: float) -> None:
    assert min(speeds(variation, seed, servers=8)) >= 0.1 * 0.999


def test_more_metadata_servers_and_links() -> None:
    views = views_of(
        tier(
            metadata_servers=3,
            metadata_ops=10,
            metadata_latency=0.25,
            device_shared_by=2,
            node_bandwidth=1e6,
            device_bandwidth=2e6,
            gateway_bandwidth=4e6,
        ),
        nodes=4,
    )
    assert [len(view.metadata) for view in views] == [3] * 4
    assert views[0].metadata == views[1].metadata
    assert not set(views[0].metadata) & set(views[2].metadata)
    node, device, gateway = ([view.links[place].number for view in views] for place in range(3))
    assert [sharing(numbers) for numbers in (node, device, gateway)] == [[0, 1, 2, 3], [0, 0, 1, 1], [0, 0, 0, 0]]
    assert [link.per_byte_ns for link in views[0].links] == pytest.approx([1000, 500, 250])
    assert views[0].metadata_latency_ns == 250_000_000


def test_stripes_need_servers_that_limit() -> None:
    striped: dict[str, Any] = {"servers": 8, "stripe_count": 4, "stripe_size": 4096}
    view = views_of(tier(bandwidth=1e6, **striped), nodes=1)[0]
    assert (view.stripe_count, view.stripe_size) == (4, 4096)
    assert views_of(tier(latency=1, **striped), nodes=1)[0].stripe_count == 1


def test_only_servers_vary_share_and_are_used_by_others() -> None:
    view = views_of(
        tier(
            metadata_ops=10,
            metadata_variation=0.5,
            read_ops=10,
            service_variation=2.0,
            node_bandwidth=1e6,
            gateway_bandwidth=1e6,
            discipline="sharing",
            background=0.25,
        ),
        nodes=1,
    )[0]
    (metadata,), (server,) = view.metadata, view.servers
    assert (metadata.variation, server.variation) == (0.5, 2.0)
    assert metadata.room == server.room > 0
    assert metadata.background == server.background == 0.25
    assert {(link.variation, link.room, link.background) for link in view.links} == {(0.0, 0, 0.0)}


def test_a_station_that_serves_all_at_once_has_room_for_every_thread() -> None:
    system = System(nodes=2, ranks_per_node=3, tiers=(tier(metadata_ops=10, read_ops=10, discipline="sharing"),))
    for threads, clients in ((0, 6), (1, 6), (5, 30)):
        mapped = map_stations(system, 1, threads)
        view = (mapped.views[0] or ())[0]
        first, second = *view.metadata, *view.servers
        assert clients < first.room < clients + 100
        assert second.number - first.number > first.room  # and its own place on the board
        assert mapped.count > second.number + second.room
    assert stations_of(tier(read_ops=10, discipline="sharing", background=0.9)).count > 40


@given(tiers("gfs", st.just(True)).filter(lambda one: one.servers * one.metadata_servers < 10**6))
def test_queues_are_plain_where_no_key_needs_python(one: Tier) -> None:
    """Two ways to say the same: of keys, for messages; of queues, before C gets them."""
    few = replace(one, servers=min(one.servers, 50), metadata_servers=min(one.metadata_servers, 3))
    few = replace(few, stripe_count=min(few.stripe_count, few.servers))
    assert views_of(few, nodes=1)[0].plain == (python_only(few) is None)


def test_numbers_and_speeds_are_those_of_the_plan() -> None:
    one = tier(servers=5, metadata_ops=7, bandwidth=1e6, read_ops=11, variation=0.3, gateway_bandwidth=1e6)
    system = System(nodes=3, tiers=(one,))
    found = planned.stations_of(system, 9)
    mapped = map_stations(system, 9)
    assert mapped.count == found.count
    for node, view in enumerate(mapped.views[0] or ()):
        for file in range(7):
            assert view.servers[file % 5].number == found.tiers[0].server_of(node, file)
            assert view.servers[file % 5].per_op_ns == found.per_op[found.tiers[0].server_of(node, file)] * 1e9
