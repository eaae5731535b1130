"""What an option costs: for more of a key at all its places, in whichever unit."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.planning import FILE_BYTES, loaded, systems
from tierscope.errors import UserError
from tierscope.plan.room import feasibility_of
from tierscope.predict.costs import cost_of, unpriced
from tierscope.spec.dump import with_settings
from tierscope.spec.prices import UnitPrice, read_key_prices
from tierscope.spec.study import Study
from tierscope.units import format_money

GFS = "system.tiers.gfs"
LFS = "system.tiers.lfs"


def cost(base: Study, settings: dict[str, Any], *texts: str) -> float:
    option = with_settings(base, settings)
    prices = read_key_prices(base, texts, settings)
    varied = replace(base, sweep=tuple(axis for axis in VARIED.sweep if axis.path in settings))
    return cost_of(varied, option, feasibility_of(option), prices)


VARIED = loaded(
    ("gfs.servers=2", "gfs.bandwidth=100 MB/s", "gfs.metadata_ops=1/s", "lfs.capacity=1 B", "lfs.bandwidth=1 MB/s", "nodes=4", "gfs.latency=1ms")
).study  # fmt: skip
BASE = replace(loaded().study, sweep=())


@pytest.mark.parametrize(
    ("settings", "price", "expected"),
    [
        ({f"{GFS}.servers": 5}, "gfs.servers=20000/server", 3 * 20000),
        ({f"{GFS}.servers": 5}, "gfs.servers=10/%", 1500),
        ({f"{GFS}.bandwidth": 300e6}, "gfs.bandwidth=1000/GB/s", 2 * 0.2 * 1000),  # of two servers
        ({f"{GFS}.bandwidth": 300e6}, "gfs.bandwidth=1/%", 200),
        ({f"{GFS}.metadata_ops": 5000.0}, "gfs.metadata_ops=8/kop/s", 24),
        ({f"{GFS}.latency": 50e-6}, "gfs.latency=3/us", 150),  # less is more
        ({f"{GFS}.latency": 50e-6}, "gfs.latency=3/%", 150),
        ({f"{LFS}.capacity": 10**12}, "lfs.capacity=90/TB", 4 * 90),  # on each of four nodes, and the study gives none
        ({f"{LFS}.bandwidth": 500e6}, "lfs.bandwidth=10/GB/s", 4),  # on four devices
        ({"system.nodes": 6}, "nodes=7/node", 14),
        ({f"{GFS}.servers": 1}, "gfs.servers=20000/server", -20000),
    ],
)
def test_more_costs_at_all_places(settings: dict[str, Any], price: str, expected: float) -> None:
    assert cost(BASE, settings, price) == pytest.approx(expected)


def test_what_is_cached_has_a_price_on_every_node() -> None:
    """Half of 64 files on each of four nodes."""
    cached = replace(BASE, placement=replace(BASE.placement, cache_rate=0.5))
    found = cost(cached, {f"{GFS}.servers": 2}, "lfs.capacity=3/GB")
    assert found == pytest.approx(3 * 4 * 32 * FILE_BYTES / 1e9)


UNITS = {
    f"{GFS}.bandwidth": (("GB/s", 1e9), ("MB/s", 1e6), ("GiB/s", 2**30), ("B/s", 1)),
    f"{GFS}.metadata_ops": (("kop/s", 1e3), ("op/s", 1), ("Mop/s", 1e6)),
    f"{LFS}.bandwidth": (("GB/s", 1e9), ("TiB/s", 2**40)),
    f"{GFS}.latency": (("ms", 1e-3), ("us", 1e-6), ("s", 1)),
}


@settings(max_examples=examples(100))
@given(st.data(), st.sampled_from(sorted(UNITS)), st.floats(0.1, 10), st.floats(1, 1e5))
def test_the_unit_of_a_price_changes_nothing_but_the_number(
    data: st.DataObject, path: str, factor: float, price: float
) -> None:
    """Whatever else the option has more of: per GB/s, per MB/s and per percent are the same money."""
    base = replace(loaded(**data.draw(systems())).study, sweep=())
    here = {f"{GFS}.bandwidth": 100e6, f"{GFS}.metadata_ops": 2000.0, f"{LFS}.bandwidth": 400e6, f"{GFS}.latency": 1e-4}
    settings = {path: here[path] * factor, f"{GFS}.servers": data.draw(st.integers(1, 9))}
    (first, size), *others = UNITS[path]
    name = path.removeprefix("system.tiers.")
    expected = cost(base, settings, f"{name}={price!r}/{first}")
    for unit, other in others:
        assert cost(base, settings, f"{name}={price * other / size!r}/{unit}") == pytest.approx(expected, rel=1e-9)
    whole = cost(base, {**settings, path: 2 * here[path], f"{GFS}.servers": base.system.tiers[-1].servers}, f"{name}={price!r}/{first}")  # fmt: skip
    percent = abs(whole) / 100  # doubling it is a hundred percent
    assert cost(base, settings, f"{name}={percent!r}/%") == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({f"{GFS}.metadata_servers": 8, f"{GFS}.servers": 5}, [f"{GFS}.metadata_servers"]),
        ({f"{GFS}.metadata_servers": 1, f"{GFS}.servers": 5}, []),
        ({f"{GFS}.latency": 50e-6}, [f"{GFS}.latency"]),
        ({f"{GFS}.latency": 1.0}, []),
        ({f"{GFS}.node_bandwidth": 1e9}, []),  # a limit where there is none
        ({f"{GFS}.stripe_count": 2, "workload.reader.read_threads": 9}, []),  # nobody sells those
        ({"system.nodes": 6}, ["system.nodes"]),
    ],
)
def test_what_an_option_has_more_of_without_a_price_is_named(settings: dict[str, Any], missing: list[str]) -> None:
    base = loaded(tuple(f"{path}=1" for path in settings)).study
    option = with_settings(base, settings)
    prices = read_key_prices(base, ["gfs.servers=1/server"] if f"{GFS}.servers" in settings else [], settings)
    assert list(unpriced(base, option, prices)) == missing


def test_a_limit_that_the_study_does_not_have_cannot_be_bought() -> None:
    path = f"{GFS}.node_bandwidth"
    with pytest.raises(UserError, match="the study does not set") as error:
        read_key_prices(BASE, ["gfs.node_bandwidth=300/GB/s"], [path])
    assert "system.tiers.gfs.node_bandwidth" in str(error.value)
    limited = with_settings(BASE, {path: 1e9})
    assert cost(limited, {path: 3e9}, "gfs.node_bandwidth=300/GB/s") == pytest.approx(4 * 2 * 300)


@pytest.mark.parametrize(("amount", "text"), [(4.8e6, "4,800,000"), (999_999.9, "1,000,000"), (0.125, "0.125"), (-3e7, "-30,000,000"), (1e-5, "0.00001"), (-1.5e-7, "-0.00000015"), (0.0, "0")])  # fmt: skip
def test_money_has_no_powers_of_ten(amount: float, text: str) -> None:
    assert format_money(amount) == text
    assert UnitPrice(4.8e6, "server", 1.0).text == "4800000/server"
