"""Prices carry their units: a bare one is refused with what it meant, and a unit changes nothing but the number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.small_study import small_study
from tierscope.errors import BarePriceError, UserError
from tierscope.spec.prices import UnitPrice, read_class_prices, read_key_prices, read_limit

RATED = small_study("gfs.bandwidth=2 GB/s", "gfs.metadata_ops=1000/s", "gfs.latency=1 ms", "lfs.capacity=1 TiB")
PATHS = {
    "gfs.servers": "system.tiers.gfs.servers",
    "gfs.bandwidth": "system.tiers.gfs.bandwidth",
    "gfs.metadata_ops": "system.tiers.gfs.metadata_ops",
    "gfs.latency": "system.tiers.gfs.latency",
    "lfs.capacity": "system.tiers.lfs.capacity",
    "cache_rate": "placement.cache_rate",
    "nodes": "system.nodes",
}


def price_of(text: str) -> UnitPrice:
    ((_, found),) = read_key_prices(RATED, [text], PATHS.values()).items()
    return found


@pytest.mark.parametrize(
    ("text", "amount", "size"),
    [
        ("gfs.servers=20_000/server", 20_000, 1),
        ("gfs.servers=20000/servers", 20_000, 1),
        ("nodes=5/node", 5, 1),
        ("lfs.capacity=90/TiB", 90, 2**40),
        ("lfs.capacity=90/TB", 90, 10**12),
        ("gfs.bandwidth=1500/GB/s", 1500, 1e9),
        ("gfs.bandwidth=1.5/MB/s", 1.5, 1e6),
        ("gfs.metadata_ops=800/kop/s", 800, 1e3),
        ("gfs.metadata_ops=0.8/op/s", 0.8, 1),
        ("gfs.latency=3/ms", 3, 1e-3),
        ("gfs.bandwidth=7/%", 7, None),
        ("cache_rate=7/%", 7, 0.01),
        ("gfs.bandwidth = 7 / GB/s", 7, 1e9),
    ],
)
def test_a_price_is_for_a_unit(text: str, amount: float, size: float | None) -> None:
    found = price_of(text)
    assert (found.amount, found.size) == (amount, size)


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("gfs.servers=1000", "gfs.servers=1000/server"),
        ("gfs.metadata_ops=1", "gfs.metadata_ops=1/%"),
        ("gfs.latency=5", "gfs.latency=5/%"),
        ("lfs-gib=0.1", "lfs.capacity=0.1/GiB"),
        ("lfs.capacity=90", "lfs.capacity=90/TiB"),
        ("gfs.servers=1000/", "gfs.servers=1000/server"),
    ],
)
def test_a_bare_price_is_refused_with_what_it_meant(text: str, fixed: str) -> None:
    with pytest.raises(BarePriceError, match="a price needs its unit") as refused:
        price_of(text)
    assert refused.value.fixes == {text: fixed}
    assert fixed in str(refused.value)
    assert "\n" not in str(refused.value)
    price_of(fixed)  # and is then taken


def test_all_bare_prices_are_mended_at_once() -> None:
    with pytest.raises(BarePriceError) as refused:
        read_key_prices(RATED, ["gfs.servers=1", "nodes=2/node", "gfs.latency=3"], PATHS.values())
    assert refused.value.fixes == {"gfs.servers=1": "gfs.servers=1/server", "gfs.latency=3": "gfs.latency=3/%"}


def test_of_what_the_study_does_not_give_there_is_no_percent() -> None:
    study = small_study()
    with pytest.raises(
        UserError, match=r"does not set system\.tiers\.gfs\.bandwidth, so % is undefined; write gfs\.bandwidth=3/GB/s"
    ):
        read_key_prices(study, ["gfs.bandwidth=3/%"], PATHS.values())
    with pytest.raises(BarePriceError, match=r"gfs\.bandwidth=3/GB/s"):
        read_key_prices(study, ["gfs.bandwidth=3"], PATHS.values())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gfs.servers=5/GB", "'GB' is not a unit of gfs.servers; write gfs.servers=5/server or gfs.servers=5/%"),
        ("lfs.capacity=5/server", "write lfs.capacity=5/TiB"),
        ("gfs.bandwidth=5/GB", "write gfs.bandwidth=5/GB/s"),
        ("gfs.servers=-5/server", "a price must be"),
        ("gfs.servers=nan/server", "a price must be"),
        ("gfs.servers=x/server", "is not a number"),
        ("gfs.servers", "has no price"),
        ("gfs.serverz=1/server", "unknown key"),
        ("gfs.read_ops=1/%", "does not vary"),
        ("policy=1/%", "is not a number"),
    ],
)
def test_a_price_that_makes_no_sense_is_one_line(text: str, said: str) -> None:
    with pytest.raises(UserError) as refused:
        price_of(text)
    assert f"--cost {text}" in str(refused.value)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_key_has_one_price() -> None:
    with pytest.raises(UserError, match="given twice"):
        read_key_prices(
            RATED, ["gfs.servers=1/server", "servers=1/%".replace("servers", "gfs.servers")], PATHS.values()
        )


def test_classes_and_the_room_of_tiers_have_prices_too() -> None:
    by_class, by_tier = read_class_prices(["gfs-meta=3/%", "lfs.capacity=90/TiB"], ["GFS-META"], ["lfs"])
    assert by_class["GFS-META"].amount == 3
    assert by_tier["lfs"].of(2**40, 1) == 90


@pytest.mark.parametrize(("text", "fixed"), [("GFS-META=3", "GFS-META=3/%"), ("lfs-gib=0.1", "lfs.capacity=0.1/GiB")])
def test_a_bare_price_of_a_measured_class_is_refused_too(text: str, fixed: str) -> None:
    with pytest.raises(BarePriceError) as refused:
        read_class_prices([text], ["GFS-META"], ["lfs"])
    assert refused.value.fixes == {text: fixed}


@pytest.mark.parametrize("text", ["GFS-META=-1/%", "gfs.capacity=1/TiB", "GFS-META=x/%", "GFS-META=3/GB/s"])
def test_prices_of_classes_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(UserError, match="--cost"):
        read_class_prices([text], ["GFS-META"], ["lfs"])


@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "inf"])
def test_a_limit_is_a_price(text: str) -> None:
    with pytest.raises(UserError, match="--max-price"):
        read_limit(text)


@given(st.floats(1e-3, 1e6), st.floats(-1e12, 1e12), st.floats(1.0, 1e12))
def test_a_unit_changes_nothing_but_the_number(amount: float, more: float, whole: float) -> None:
    """1,500 per GB/s are 1.5 per MB/s, and so much for each percent of what there is."""
    by_giga = UnitPrice(amount, "GB/s", 1e9).of(more, whole)
    by_mega = UnitPrice(amount / 1000, "MB/s", 1e6).of(more, whole)
    by_percent = UnitPrice(amount * whole / 100 / 1e9, "%", None).of(more, whole)
    assert by_mega == pytest.approx(by_giga, rel=1e-9)
    assert by_percent == pytest.approx(by_giga, rel=1e-9)
