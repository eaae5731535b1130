"""Steps predicted from a measured device: the function through measured sizes, the step, the file, and what is refused."""

import math
import random
import re
from dataclasses import replace
from functools import cache
from itertools import islice

import numpy as np
import pytest

from tests.arch.machines import named
from tierscope.arch.device_file import AllReduce, DeviceFile, DeviceOrigin, WorkRow, dump_device
from tierscope.arch.device_links import all_reduce_seconds, with_measured_links
from tierscope.arch.device_match import refuse_other_device
from tierscope.arch.device_parse import parse_device
from tierscope.arch.movement import ring_seconds
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.smooth import MOST_VARIANCE, Smooth, SmoothPart, Surface, _Search, fit, left_out
from tierscope.arch.step_time import guess_seconds, predict_step
from tierscope.arch.step_work import step_work
from tierscope.arch.work_draws import draws
from tierscope.arch.work_kinds import KINDS
from tierscope.errors import TierscopeError

FP32 = PRECISIONS["fp32"]
HOST = (
    *("conv", "conv_bias", "depthwise", "norm", "relu", "leaky", "dropout", "max_pool", "avg_pool"),
    *("add", "concat", "resize", "linear", "view", "step"),
)


@cache
def device(slower: float = 2.0, host: float = 0.0) -> DeviceFile:
    """One that takes so many times the simple guess for everything."""
    ceilings = {"memory_bandwidth": 4e12, "fp32": 5e13, "tf32": 4e14, "bf16": 8e14}
    empty = DeviceFile(DeviceOrigin("fake", 2**34, "2", "9", "2026-01-01"), ceilings, {}, {}, {})
    rows, smooth = {}, {}
    for kind in KINDS.values():
        for precision in PRECISIONS:
            sizes = list(islice(draws(kind.name), 40))
            rows[kind.name, precision] = tuple(
                WorkRow(size, (slower * guess_seconds(empty, kind.name, precision, size),) * len(kind.ways))
                for size in sizes
            )
            for way in kind.ways:
                smooth[kind.name, precision, way] = Smooth(
                    (SmoothPart((4.0,) * kind.feature_count, 0.01), SmoothPart((1.0,) * kind.feature_count, 1e-6)), 1e-6
                )
    costs = {precision: {**dict.fromkeys(HOST, (host,) * 3), "mixed": (1.0,) * 3} for precision in PRECISIONS}
    return replace(empty, rows=rows, smooth=smooth, host=costs)


def test_points_left_out_of_a_smooth_function_are_found_again() -> None:
    rng = random.Random(3)
    points = np.array([[rng.uniform(0, 8), rng.uniform(0, 8)] for _ in range(60)])
    values = np.sin(points[:, 0] / 3) + 0.1 * points[:, 1]
    smooth = fit(points, values)
    errors, doubts = left_out(points, values, smooth)
    assert np.median(abs(errors)) < 0.05
    assert np.mean(abs(errors) < 2 * doubts) > 0.8


def test_the_search_goes_downhill() -> None:
    """Slopes by formula beside differences: a wrong one ends the search early, and nothing else would tell."""
    rng = np.random.default_rng(1)
    points = 2 * rng.normal(size=(40, 3))
    values = np.sin(points[:, 0]) + 0.1 * rng.normal(size=40)
    search = _Search(points, values - values.mean())
    place = search.start + 0.3 * rng.normal(size=len(search.start))
    _, slopes = search.loss(place)
    apart = 1e-5 * np.eye(len(place))
    differences = [(search.loss(place + step)[0] - search.loss(place - step)[0]) / 2e-5 for step in apart]
    assert slopes == pytest.approx(differences, abs=1e-6)


def test_what_is_fitted_is_no_wider_than_a_file_may_say() -> None:
    """Seconds over a simple guess that span e**40: the probe's own file would be refused."""
    points = np.linspace(0, 10, 40)[:, None]
    smooth = fit(points, 4 * points[:, 0])
    assert max(smooth.noise, *(part.spread for part in smooth.parts)) <= MOST_VARIANCE


def test_a_rough_part_finds_what_a_smooth_one_cannot() -> None:
    rng = np.random.default_rng(2)
    points = rng.uniform(0, 16, size=(150, 2))
    values = points[:, 0] / 8 + 0.5 * (points[:, 1] % 4 > 2)  # a library's choice, in steps
    smooth = fit(points, values)
    alone = Smooth((smooth.parts[0],), smooth.noise + smooth.parts[1].spread)
    errors, alone_errors = (np.sqrt(np.mean(left_out(points, values, fitted)[0] ** 2)) for fitted in (smooth, alone))
    assert errors < 0.9 * alone_errors
    assert errors < 0.8 * values.std()


def test_doubt_grows_with_the_distance_from_what_was_measured() -> None:
    points = np.array([[float(place)] for place in range(5)])
    surface = Surface.through(points, np.zeros(5), Smooth((SmoothPart((1.0,), 1.0),), 1e-4))
    _, near = surface.at(np.array([[2.0]]))
    _, far = surface.at(np.array([[9.0]]))
    assert near[0, 0] < 0.01
    assert far[0, 0] > 0.9


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_every_network_is_made_of_measured_kinds_alone(name: str) -> None:
    work = step_work(build_network(name), 2, PRECISIONS["amp"], "sgd")
    assert not work.stand_ins
    pieces = [piece for issue in work.issues for piece in issue.pieces]
    assert all(piece.way in KINDS[piece.kind].ways for piece in pieces)
    assert all(len(piece.sizes) == len(KINDS[piece.kind].sizes) for piece in pieces)


def test_pieces_have_the_operations_of_the_network() -> None:
    network = build_network("resnet50")
    pieces = [piece for issue in step_work(network, 3, FP32, "sgd").issues for piece in issue.pieces]
    counted = sum(KINDS[piece.kind].flops(piece.sizes) for piece in pieces)
    assert counted == pytest.approx(3 * (network.forward_flops + network.backward_flops), rel=1e-6)


def test_a_step_is_the_sum_of_its_pieces_where_the_host_is_no_limit() -> None:
    fast, slow = (predict_step(device(slower), build_network("lenet5"), 64, FP32) for slower in (2.0, 6.0))
    assert fast.seconds == pytest.approx(fast.device_seconds)
    assert slow.seconds / fast.seconds == pytest.approx(3.0, rel=0.01)
    assert fast.interval[0] <= fast.seconds <= fast.interval[1]


def test_a_step_takes_what_the_host_takes_where_that_is_more() -> None:
    step = predict_step(device(host=1.0), build_network("lenet5"), 64, FP32)
    assert step.seconds == pytest.approx(step.host_seconds, rel=0.01)
    assert step.interval[1] > 1.2 * step.seconds  # hosts vary


def test_sizes_beyond_the_file_are_named_and_widen_the_interval() -> None:
    usual = predict_step(device(), build_network("alexnet"), 32, FP32)
    huge = predict_step(device(), build_network("alexnet"), 1 << 18, FP32)
    assert any("batch" in name for name in huge.outside)
    measured = [row.sizes[0] for row in device().rows["conv2d", "fp32"]]
    assert f"conv2d batch above {max(measured):,.0f}" in huge.outside, "where the file ends"
    assert not any("batch" in name for name in usual.outside)
    assert huge.interval[1] / huge.interval[0] > usual.interval[1] / usual.interval[0]


def test_sizes_outside_are_named_only_where_they_take_time() -> None:
    """Activations of AlexNet's last layers are few beside those of the first: a list of such ends hides those that matter."""
    drawn = device().rows["map", "fp32"]
    few = replace(device(), rows={**device().rows, ("map", "fp32"): tuple(row for row in drawn if row.sizes[0] > 1e6)})
    large, small = (predict_step(few, build_network("alexnet"), batch, FP32).outside for batch in (64, 1))
    assert not any("map elements below" in name for name in large)
    assert any("map elements below" in name for name in small)


def test_sizes_far_beyond_the_file_give_finite_seconds() -> None:
    """A file may have been measured anywhere: doubt is wide, and no infinity."""
    far = {
        key: tuple(replace(row, sizes=(1e18,) * len(row.sizes)) for row in rows) for key, rows in device().rows.items()
    }
    time = predict_step(replace(device(), rows=far), build_network("lenet5"), 1, FP32)
    assert all(map(math.isfinite, (time.seconds, *time.interval, time.device_seconds)))


def test_a_file_is_read_as_it_was_written() -> None:
    again = parse_device(dump_device(device()), "device.yaml")
    assert again.origin == device().origin
    assert again.smooth.keys() == device().smooth.keys()
    for key, rows in device().rows.items():
        assert [row.sizes for row in again.rows[key]] == [row.sizes for row in rows]
        for row, other in zip(rows, again.rows[key], strict=True):
            assert all(math.isclose(*pair, rel_tol=1e-3) for pair in zip(row.seconds, other.seconds, strict=True))


def test_a_file_of_the_version_before_is_read() -> None:
    """Its surfaces have the smooth part alone."""
    before = {key: Smooth(smooth.parts[:1], smooth.noise) for key, smooth in device().smooth.items()}
    text = dump_device(replace(device(), smooth=before)).replace("schema_version: 3", "schema_version: 2")
    assert parse_device(text, "device.yaml").smooth == before


def without_amp() -> DeviceFile:
    """Of a device that has no kernels for it."""
    whole = device()
    rows = {key: row for key, row in whole.rows.items() if key[1] == "fp32"}
    smooth = {key: surface for key, surface in whole.smooth.items() if key[1] == "fp32"}
    return replace(whole, rows=rows, smooth=smooth, host={"fp32": whole.host["fp32"]})


def test_a_file_of_one_precision_is_read() -> None:
    again = parse_device(dump_device(without_amp()), "device.yaml")
    assert {precision for _, precision in again.rows} == {precision for _, precision, _ in again.smooth} == {"fp32"}
    asked = build_network("alexnet")
    assert predict_step(again, asked, 256, FP32) == predict_step(
        parse_device(dump_device(device()), "device.yaml"), asked, 256, FP32
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: device", "kind: system", "kind: system is not device"),
        ("schema_version: 3", "schema_version: 9", "schema_version: 9"),
        ("schema_version: 3", "schema_version: [3]", "schema_version: a list"),
        ("schema_version: 3", "schema_version: 2", "must be 16 numbers, not 31"),
        ("  fp32: 5e+13", "  fp32: nan", "not a number"),
        ("  fp32: 5e+13", "  fp32: -1", "not a number"),
        ("    mixed:", "    other:", "mixed is missing"),
        ("    amp: |", "    bf16: |", "amp is missing"),
        ("host:\n", "host:\n  bf16: {}\nhosts:\n", "host: has neither fp32 nor amp"),
        ("work:", "works:", "work is missing"),
        ("kind: device", "kind: [device]", "kind: a list is not device"),
        (", 1e-06, 1e-06]", ", 1e+18, 1e-06]", "'1e\\+18' is not a number between 1e-12 and 25"),
        (", 1e-06, 1e-06]", ", 1e-06, 1e+18]", "'1e\\+18' is not a number between 1e-12 and 25"),
        ("    mixed: [1,", "    mixed: [1e+18,", "'1e\\+18' is not a number between 0 and 1e\\+06"),
        ("    amp: |\n", "    amp: |\n" + "      1: 1\n" * 3_001, "more than 3,000 sizes"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(old: str, new: str, said: str) -> None:
    text = dump_device(device())
    assert old in text
    with pytest.raises(TierscopeError, match=said) as error:
        parse_device(text.replace(old, new), "device.yaml")
    assert "device.yaml" in str(error.value)
    assert "\n" not in str(error.value)


def test_what_networks_err_by_in_common_widens_the_interval_and_moves_nothing() -> None:
    sure, doubtful = (
        predict_step(device(), build_network("alexnet"), 256, FP32, network_doubt=doubt) for doubt in (0.0, 0.5)
    )
    assert doubtful.seconds == sure.seconds
    assert doubtful.interval[0] < sure.interval[0] < sure.interval[1] < doubtful.interval[1]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("reach", [0.1, 1.0, 10.0])
def test_rows_that_contradict_one_another_still_give_a_number(reach: float) -> None:
    """Neighbours of 1 ps and of 11 days, and a file that says they differ by no noise: exponents go beyond what a float holds."""
    fake = device()
    rows = {
        key: tuple(
            replace(row, sizes=tuple(size + late * (size > 50) for size in row.sizes), seconds=(1e6 if late else 1e-12,) * len(row.seconds))
            for row in measured[:12]
            for late in (0, 1)
        )
        for key, measured in fake.rows.items()
    }  # fmt: skip
    smooth = {
        key: Smooth(tuple(SmoothPart((reach,) * len(part.reach), 1.0) for part in found.parts), 1e-12)
        for key, found in fake.smooth.items()
    }
    step = predict_step(replace(fake, rows=rows, smooth=smooth), build_network("lenet5"), 16, FP32)
    assert 0 < step.interval[0] <= step.seconds <= step.interval[1] < math.inf


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, None),
        (
            {"memory_bandwidth": 1.8e12},
            "memory was measured at 1.64 TiB/s, but accelerators of h200-node have 4.37 TiB/s",
        ),
        ({"memory_bandwidth": 7e12}, "but accelerators of h200-node have"),
        (
            {"bf16": 2.6e14},
            "16-bit products were measured at 260 TFLOP/s, but accelerators of h200-node have 989 TFLOP/s",
        ),
    ],
)
def test_a_file_of_another_device_with_as_much_memory_is_refused(changed: dict[str, float], said: str | None) -> None:
    """An A100 and an H100 have 80 GB each."""
    machine = named("h200-node")
    there = replace(
        device(),
        origin=replace(device().origin, device="other", memory_bytes=machine.memory),
        ceilings={**device().ceilings, **changed},
    )
    if said is None:
        refuse_other_device("device.yaml", there, machine)
        return
    with pytest.raises(TierscopeError, match=re.escape(said)) as error:
        refuse_other_device("device.yaml", there, machine)
    assert str(error.value).startswith("--device-file device.yaml: is of other whose ")
    assert "\n" not in str(error.value)


SHARED = AllReduce(8, "nccl", ((4096.0, 1e-5), (1048576.0, 4e-5), (268435456.0, 2e-3)))


def test_all_reduce_in_a_node_takes_what_was_measured() -> None:
    machine = named("cori-gpu")
    assert machine.accelerators == 8
    for nbytes, seconds in ((1e3, 1e-5), (1048576.0, 4e-5), (65536.0, 2e-5), (2 * 268435456.0, 4e-3)):
        assert all_reduce_seconds(SHARED, nbytes) == pytest.approx(seconds)
        linked = with_measured_links(machine, replace(device(), all_reduce=SHARED), nbytes)
        assert ring_seconds(nbytes, linked, 1) == pytest.approx(seconds)
        assert ring_seconds(nbytes, linked, 2) == ring_seconds(nbytes, machine, 2), "over the network it is modelled"
    for other in (device(), replace(device(), all_reduce=replace(SHARED, devices=4))):
        assert with_measured_links(machine, other, 1e6) is machine


def test_a_file_with_all_reduce_is_read_as_it_was_written() -> None:
    text = dump_device(replace(device(), all_reduce=SHARED))
    assert parse_device(text, "device.yaml").all_reduce == SHARED
    for old, new in (
        ("1048576: 4e-05", "4096: 4e-05"),
        ("1048576: 4e-05", "1048576 4e-05"),
        ("devices: 8", "devices: 1"),
    ):
        assert old in text
        with pytest.raises(TierscopeError, match=r"device\.yaml:\d+: ") as error:
            parse_device(text.replace(old, new), "device.yaml")
        assert "\n" not in str(error.value)
