"""The systems that ship: every number is accounted for."""

from collections.abc import Iterator

import pytest

from tierscope.spec import keys, presets, systems
from tierscope.spec.figures import is_number
from tierscope.spec.known import dump_system, load_system, parse_system
from tierscope.spec.load import parse_study
from tierscope.spec.study import System
from tierscope.spec.tree import Node, parse_yaml

NAMES = systems.names()


def written_keys(name: str) -> Iterator[str]:
    """Paths of what the file says about the system."""

    def walk(node: Node, path: str) -> Iterator[str]:
        if isinstance(node.value, dict):
            for key, child in node.value.items():
                yield from walk(child, f"{path}.{key}" if path else key)
        else:
            yield path

    root = parse_yaml(systems.text(name), name)
    assert isinstance(root.value, dict)
    ours = Node({key: node for key, node in root.value.items() if key not in ("system", "figures", "draws")}, "")
    return walk(ours, "")


def test_the_systems_that_are_promised() -> None:
    assert set(NAMES) >= {"fugaku", "cori-gpu", "summitdev", "theta", "polaris", "laptop", "h200-node"}


def test_no_system_is_called_like_a_study() -> None:
    assert not set(NAMES) & set(presets.names())


@pytest.mark.parametrize("name", NAMES)
def test_every_system_bears_its_own_name_and_says_what_it_is(name: str) -> None:
    assert load_system(name).name == name
    assert systems.text(name).startswith(f"# {systems.summary(name)}\n")
    assert 20 < len(systems.summary(name)) < 120


@pytest.mark.parametrize("name", NAMES)
def test_every_number_has_a_source_or_an_interval(name: str) -> None:
    known = load_system(name)
    leaves = keys.leaf_keys(System, [tier.name for tier in known.system.tiers])
    assert {path for path in written_keys(name) if is_number(leaves[path])} == set(known.figures)
    for path, figure in known.figures.items():
        assert figure.low is None or figure.low <= figure.value, path
        assert figure.high is None or figure.value <= figure.high, path
        if figure.kind == "source":
            assert any(sign.isdigit() for sign in figure.text) or "documentation" in figure.text, path
        else:
            assert figure.low is not None, path
            assert figure.high is not None, path


@pytest.mark.parametrize("name", NAMES)
def test_every_system_has_a_near_and_a_far_tier_and_is_not_emulated(name: str) -> None:
    tiers = load_system(name).system.tiers
    assert [(tier.name, tier.visible_to) for tier in tiers] == [("lfs", "node"), ("gfs", "global")]
    assert not any(tier.emulate for tier in tiers)


@pytest.mark.parametrize("name", NAMES)
def test_every_system_round_trips_and_serves_a_study(name: str) -> None:
    known = load_system(name)
    assert parse_system(dump_system(known), "again") == known
    workload = "{dataset: {num_files_train: 100000, record_length_bytes: 1 MiB}}"
    study = parse_study(f"study: x\nworkload: {workload}\nsystem: {name}\nplacement: {{cache_rate: 50%}}\n", "x")
    assert study.system == known.system


def test_figures_that_were_published() -> None:
    fugaku, cori, summitdev, theta, polaris = (
        load_system(name).system for name in ("fugaku", "cori-gpu", "summitdev", "theta", "polaris")
    )
    assert (fugaku.nodes, fugaku.ranks_per_node) == (768, 4)
    assert (fugaku.tiers[0].device_shared_by, fugaku.tiers[1].gateway_shared_by) == (16, 192)
    assert (fugaku.tiers[1].servers, fugaku.tiers[1].gateway_bandwidth) == (60, 12.5e9)
    assert (cori.tiers[0].bandwidth, cori.tiers[0].read_ops) == (3.2e9, 279_500)
    assert aggregate(cori) == pytest.approx(700e9, rel=0.01)
    assert (summitdev.nodes, summitdev.tiers[0].capacity) == (54, 800 * 10**9)
    assert 7.0e9 <= (summitdev.tiers[0].bandwidth or 0) <= 7.3e9
    assert (theta.tiers[1].servers, theta.tiers[1].stripe_count, theta.tiers[1].stripe_size) == (56, 48, 2**20)
    assert aggregate(theta) == pytest.approx(240e9, rel=0.01)
    assert aggregate(polaris) == pytest.approx(650e9, rel=0.01)


def test_hardware_that_was_published() -> None:
    cori, summitdev, fugaku, h200 = (
        load_system(name).system.hardware for name in ("cori-gpu", "summitdev", "fugaku", "h200-node")
    )
    volta, pascal = cori.accelerator, summitdev.accelerator
    assert (volta.count, volta.fp32, volta.tensor, volta.memory_bandwidth) == (8, 15.7e12, 125e12, 900e9)
    assert (cori.memory, cori.network_bandwidth, volta.host_bandwidth) == (384 * 10**9, 100e9, 16e9)
    assert (pascal.count, pascal.memory_bandwidth, pascal.host_bandwidth) == (4, 732e9, 31.8e9)
    assert (pascal.peer_bandwidth, pascal.far_bandwidth) == (35.1e9, 21.5e9)
    assert (fugaku.accelerator.memory, fugaku.accelerator.memory_bandwidth) == (32 * 2**30, 1024e9)
    assert (h200.accelerator.memory, h200.accelerator.memory_bandwidth) == (143_771 * 2**20, 4.8e12)


@pytest.mark.parametrize("name", NAMES)
def test_figures_of_hardware_come_last(name: str) -> None:
    """So that draws of the others are what they were before there was any."""
    paths = list(load_system(name).figures)
    hardware = [path for path in paths if path.startswith("hardware.")]
    assert paths[len(paths) - len(hardware) :] == hardware


def aggregate(system: System) -> float:
    return system.tiers[-1].servers * (system.tiers[-1].bandwidth or 0)


def test_fugakus_ssds_serve_as_many_small_files_as_was_fitted() -> None:
    near = load_system("fugaku").system.tiers[0]
    assert near.read_ops
    assert near.bandwidth
    assert 1 / (1 / near.read_ops + 128 * 1024 / near.bandwidth) == pytest.approx(1178, rel=0.001)
