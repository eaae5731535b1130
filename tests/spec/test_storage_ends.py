"""Storage at both ends of what is known of it."""

import pytest

from tierscope.spec import schema
from tierscope.spec.figures import is_number
from tierscope.spec.known import KnownSystem, dump_system, load_system, names, parse_system
from tierscope.spec.schema import Key
from tierscope.spec.storage_ends import (
    FAST,
    FAST_WHEN_HIGH,
    FAST_WHEN_LOW,
    LAYOUT,
    SLOW,
    moved,
    uncertain_storage,
)
from tierscope.spec.study import System, Tier

SYSTEM = """\
system: box
nodes: 2
tiers:
  lfs: {path: /lfs, visible_to: node, capacity: 1 TB, read_ops: 100/s}
  gfs: {path: /gfs, servers: 8, stripe_count: 4, bandwidth: 2 GB/s, node_bandwidth: 3 GB/s, latency: 1 ms}
figures:
  nodes: {assumed: "by size", low: 1, high: 4}
  tiers.lfs.capacity: {assumed: by age, low: 500 GB, high: 2 TB}
  tiers.lfs.read_ops: {source: a book, low: 50/s, high: 200/s}
  tiers.gfs.servers: {assumed: by age, low: 2, high: 16}
  tiers.gfs.bandwidth: {assumed: by age, low: 2 GB/s, high: 2 GB/s}
  tiers.gfs.node_bandwidth: {fitted: to a run, low: 2.5 GB/s, high: null}
  tiers.gfs.latency: {assumed: by age, low: 0.2 ms, high: 10 ms}
"""
KNOWN = parse_system(SYSTEM, "box.yaml")


def tiers_of(system: System) -> dict[str, Tier]:
    return {tier.name: tier for tier in system.tiers}


def both_ends(known: KnownSystem) -> tuple[System, System]:
    slow, fast = (moved(known.system, uncertain_storage(known), end) for end in (SLOW, FAST))
    return slow, fast


def test_every_number_of_a_tier_says_which_end_is_slow() -> None:
    """A key that is added to tiers must be put into one of the groups."""
    numbers = [field.yaml for field in schema.fields(Tier) if isinstance(field.meta, Key) and is_number(field.meta)]
    assert sorted([*FAST_WHEN_HIGH, *FAST_WHEN_LOW, *LAYOUT]) == sorted(numbers)


def test_uncertain_are_assumed_and_fitted_figures_of_tiers_with_two_ends() -> None:
    """Not what was published, not what has one value, and nothing of the nodes."""
    assert [figure.path for figure in uncertain_storage(KNOWN)] == [
        *("tiers.lfs.capacity", "tiers.gfs.servers", "tiers.gfs.node_bandwidth", "tiers.gfs.latency"),
    ]


def test_slow_is_low_for_rates_and_high_for_latencies() -> None:
    slow, fast = map(tiers_of, both_ends(KNOWN))
    assert (slow["lfs"].capacity, fast["lfs"].capacity) == (500 * 10**9, 2 * 10**12)
    assert (slow["gfs"].servers, fast["gfs"].servers) == (2, 16)
    assert (slow["gfs"].latency, fast["gfs"].latency) == (0.01, 0.0002)
    assert slow["lfs"].read_ops == fast["lfs"].read_ops == 100, "published"
    assert slow["gfs"].bandwidth == fast["gfs"].bandwidth == 2e9


def test_what_a_fit_left_open_is_as_far_off_as_its_draws() -> None:
    slow, fast = map(tiers_of, both_ends(KNOWN))
    assert (slow["gfs"].node_bandwidth, fast["gfs"].node_bandwidth) == (2.5e9, 25e9)
    text = SYSTEM.replace("{fitted: to a run, low: 2.5 GB/s, high: null}", "{fitted: x, low: null, high: 5 GB/s}")
    slow, fast = map(tiers_of, both_ends(parse_system(text, "box.yaml")))
    assert (slow["gfs"].node_bandwidth, fast["gfs"].node_bandwidth) == (0.5e9, 5e9)


def test_a_file_has_no_more_stripes_than_servers() -> None:
    slow, fast = map(tiers_of, both_ends(KNOWN))
    assert (slow["gfs"].stripe_count, fast["gfs"].stripe_count) == (2, 4)


def test_one_figure_can_be_moved_alone() -> None:
    latency = uncertain_storage(KNOWN)[-1]
    alone = tiers_of(moved(KNOWN.system, [latency], SLOW))["gfs"]
    assert (alone.latency, alone.servers) == (0.01, 8)
    assert tiers_of(moved(KNOWN.system, [latency], FAST))["gfs"].latency == 0.0002


def test_a_system_without_intervals_is_both_ends() -> None:
    plain = parse_system(SYSTEM[: SYSTEM.index("figures:")], "box.yaml")
    assert uncertain_storage(plain) == ()
    assert both_ends(plain) == (plain.system, plain.system)


@pytest.mark.parametrize("name", names())
def test_both_ends_of_systems_that_ship_are_systems(name: str) -> None:
    for end in both_ends(load_system(name)):
        text = dump_system(KnownSystem(name, end))
        assert parse_system(text, name).system == end


def test_intervals_are_told_rounded() -> None:
    words = {figure.path.split(".")[-1]: figure.interval for figure in uncertain_storage(KNOWN)}
    assert words == {
        "capacity": "500 GB to 2 TB",
        "servers": "2 to 16",
        "node_bandwidth": "at least 2.5 GB/s",
        "latency": "200 µs to 10 ms",
    }
