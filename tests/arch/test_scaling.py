"""Shares, where they fit, and what epochs wait for."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arch.machines import ROUND, changed, named
from tests.arch.test_movement import LOAD
from tierscope.arch.movement import Compression
from tierscope.arch.network import Builder
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.requirements import MOST_BATCH, Wish, requirements
from tierscope.arch.scaling import ScaledTraining, fits_from, scaled, with_stations
from tierscope.errors import UserError

JOB = ScaledTraining(LOAD, samples=64, step_seconds=100.0, state_bytes=80)


@given(nodes=st.integers(1, 5000), samples=st.integers(1, 10**7))
def test_shares_add_up_to_the_data_set(nodes: int, samples: int) -> None:
    point = scaled(replace(JOB, samples=samples), ROUND, nodes)
    assert point.samples_per_node * nodes == pytest.approx(samples)
    assert point.share_bytes * nodes == pytest.approx(samples * LOAD.file_bytes)


def test_one_point_by_hand() -> None:
    point = scaled(JOB, ROUND, 1)
    assert point.compute_seconds == 64 / 2 / 4 * 100
    assert point.exchange_seconds == pytest.approx(8 * 40 / 2)
    assert (point.fits_memory, point.fits_near) == (False, False)
    assert point.far_seconds == pytest.approx(64 * 16 / 0.25)
    assert (point.later_from, point.waits_for, point.storage_matters) == ("gfs", "gfs", True)
    assert point.first_seconds == point.later_seconds == pytest.approx(4096)
    assert point.checkpoint_seconds == pytest.approx(80 / 0.25)
    assert point.input_rate == pytest.approx(64 * 16 / 800)
    assert point.staging_seconds is None


def test_the_share_moves_nearer_with_more_nodes() -> None:
    points = [scaled(JOB, ROUND, nodes) for nodes in (1, 4, 16)]
    assert [point.later_from for point in points] == ["gfs", "lfs", "memory"]
    assert fits_from(points) == 16
    assert [point.storage_matters for point in points] == [True, True, False]
    assert points[1].staging_seconds == pytest.approx(256 / (0.5 / 4))
    assert not points[2].storage_matters
    assert points[2].first_matters


@pytest.mark.parametrize(("times", "matters"), [(1.02, False), (1.04, True)])
def test_hardly_longer_is_no_waiting(times: float, matters: bool) -> None:
    """ "Yes: an epoch waits for gfs, 1 × as long as everything else takes" is no answer."""
    far = scaled(JOB, ROUND, 1).far_seconds
    assert far is not None
    point = scaled(replace(JOB, step_seconds=far / times / 8), ROUND, 1)
    assert point.later_seconds == pytest.approx(times * point.compute_seconds)
    assert point.storage_matters is point.first_matters is matters
    assert point.waits_for == ("gfs" if matters else "compute")


def test_weak_scaling_keeps_the_share() -> None:
    points = [scaled(replace(JOB, weak=True), ROUND, nodes) for nodes in (1, 4, 16)]
    assert {point.samples_per_node for point in points} == {16.0}
    assert points[0].compute_seconds == points[2].compute_seconds


def test_compression_may_make_it_fit() -> None:
    assert scaled(JOB, ROUND, 1).fits_memory is False
    assert scaled(replace(JOB, compression=Compression(16.0)), ROUND, 1).fits_memory is True


def test_files_are_unpacked_in_every_epoch_and_that_is_no_storage() -> None:
    """Those in main memory are packed too, or they would not fit."""
    point = scaled(replace(JOB, compression=Compression(16.0, decode_bandwidth=0.1)), ROUND, 1)
    assert point.later_from == "memory"
    assert point.unpack_seconds == point.memory_seconds == point.later_seconds == pytest.approx(64 * 16 / 0.1)
    assert (point.waits_for, point.storage_matters, point.first_waits_for_unpacking) == ("unpacking", False, True)
    fast = scaled(replace(JOB, compression=Compression(16.0, decode_bandwidth=1e9)), ROUND, 1)
    assert (fast.waits_for, fast.first_waits_for_unpacking) == ("compute", False)


@pytest.mark.parametrize(("decode", "waits", "times"), [(0.252, "unpacking", 1.0), (0.5, "gfs", 2.0)])
def test_storage_is_compared_with_unpacking_too(decode: float, waits: str, times: float) -> None:
    """Reads that take hardly longer than unpacking what they bring are not what an epoch waits for."""
    point = scaled(replace(JOB, compression=Compression(1.0, decode_bandwidth=decode)), ROUND, 1)
    assert point.others_seconds < 0.25 * point.later_seconds
    assert (point.waits_for, point.storage_matters) == (waits, waits == "gfs")
    assert point.storage_times == pytest.approx(times, rel=0.01)


def test_what_is_not_known_is_not_decided() -> None:
    point = scaled(JOB, changed(node_memory=None, near=None, network_bandwidth=None), 4)
    assert (point.fits_memory, point.fits_near, point.exchange_seconds, point.server_seconds) == (None,) * 4
    assert point.later_from == "gfs"


def test_a_far_tier_that_is_faster_is_read_from() -> None:
    assert ROUND.near is not None
    slow = changed(near=replace(ROUND.near, node_bandwidth=0.01))
    assert scaled(JOB, slow, 4).later_from == "gfs"


def test_stations_hold_where_they_take_longer() -> None:
    plain = scaled(JOB, ROUND, 4)
    held = with_stations(plain, ROUND, far=1e4, near=5e3)
    assert (held.later_seconds, held.later_from, held.storage_seconds) == (5e3, "lfs", 5e3)
    assert (held.first_seconds, held.first_storage_seconds) == (1e4, 1e4)
    same = with_stations(plain, ROUND, far=1.0, near=1.0)
    assert same.later_seconds == plain.later_seconds


def test_cosmoflow_on_cori_gpu_as_the_study_saw_it() -> None:
    """49,152 samples: staging gains about twice on one node, and with four the share fits main memory."""
    data = replace(NETWORKS["cosmoflow"].data, samples=49_152)
    wish = Wish(PRECISIONS["amp"], nodes=(1, 2, 4))
    found = requirements(build_network("cosmoflow"), named("cori-gpu"), data, wish)
    one, two, four = found.scaling
    assert one.fits_near
    assert one.staging_gain == pytest.approx(2.0, rel=0.1)
    assert [one.fits_memory, two.fits_memory, four.fits_memory] == [False, False, True]
    assert (one.later_from, four.later_from) == ("lfs", "memory")


def test_the_largest_batch_is_the_last_that_fits() -> None:
    network, machine, data = build_network("resnet50"), named("cori-gpu"), NETWORKS["resnet50"].data
    wish = Wish(PRECISIONS["fp32"])
    most = requirements(network, machine, data, wish).max_batch
    found = requirements(network, machine, data, replace(wish, batches=(most, most + 1)))
    assert [needs.fits for needs in found.batches] == [True, False]
    tiny = requirements(network, replace(machine, memory=2**20), data, wish)
    assert tiny.max_batch == 0
    lenet = requirements(build_network("lenet5"), replace(machine, memory=2**50), NETWORKS["lenet5"].data, wish)
    assert lenet.max_batch == MOST_BATCH


def test_bandwidth_that_a_node_at_peak_needs() -> None:
    network, machine = build_network("cosmoflow"), named("cori-gpu")
    found = requirements(network, machine, NETWORKS["cosmoflow"].data, Wish(PRECISIONS["fp32"]))
    samples_per_second = 8 * 15.7e12 / found.flops
    assert found.node_sample_bandwidth_at_peak == pytest.approx(samples_per_second * 16 * 2**20)
    assert found.node_file_bandwidth_at_peak == pytest.approx(samples_per_second * 17e6)


def test_a_network_without_products_is_refused() -> None:
    net = Builder("still", (3, 8, 8))
    net.pool("pool", 2)
    with pytest.raises(UserError, match="still: has neither convolutions nor linear layers"):
        requirements(net.network(), named("cori-gpu"), NETWORKS["lenet5"].data, Wish(PRECISIONS["fp32"]))
