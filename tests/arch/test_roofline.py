"""Bytes and operations of layers, and the least time that they take."""

import pytest

from tests.arch.machines import ROUND, small
from tierscope.arch.layer import VIEWS
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS, Precision
from tierscope.arch.roofline import Device, bound_by, layer_costs, roofline_seconds
from tierscope.arch.traffic import traffic, uses_tensor_cores

FP32, AMP = PRECISIONS["fp32"], PRECISIONS["amp"]


def test_traffic_of_a_small_network_by_hand() -> None:
    network = small()
    one, sample = 4 * 8 * 8, 2 * 8 * 8
    moved = {layer.name: traffic(network, index, 1) for index, layer in enumerate(network.layers)}
    assert (moved["conv1"].forward, moved["conv1"].backward) == (sample + one, one + sample)  # no gradient of a sample
    assert (moved["norm1"].forward, moved["norm1"].backward) == (3 * one, 5 * one)
    assert (moved["conv2"].forward, moved["conv2"].backward) == (2 * one, 4 * one)
    assert (moved["add"].forward, moved["add"].backward) == (3 * one, 0)
    assert (moved["flatten"].forward, moved["flatten"].backward) == (0, 0)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_layer_reads_what_it_is_given_and_writes_what_it_makes(name: str) -> None:
    network = build_network(name)
    for index, layer in enumerate(network.layers):
        moved = traffic(network, index, 2)
        if layer.kind not in VIEWS:
            assert moved.forward >= 2 * (layer.in_elements + layer.elements)
        wide = traffic(network, index, 4)
        assert (wide.forward, wide.backward) == (2 * moved.forward, 2 * moved.backward)


@pytest.mark.parametrize("precision", PRECISIONS.values(), ids=PRECISIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_is_the_sum_of_its_layers_and_no_faster_than_either_limit(name: str, precision: Precision) -> None:
    network = build_network(name)
    costs = layer_costs(network, precision)
    assert sum(cost.forward_flops for cost in costs) == network.forward_flops
    assert sum(cost.backward_flops for cost in costs) == network.backward_flops
    device = Device(15.7e12, 900e9, 125e12)
    seconds = roofline_seconds(costs, device, precision)
    assert seconds >= sum(cost.nbytes for cost in costs) / device.memory_bandwidth
    assert seconds >= sum(cost.flops / device.peak(precision, cost.tensor_cores) for cost in costs)


def test_what_bounds_it_turns_with_the_machine() -> None:
    costs = layer_costs(build_network("resnet50"), FP32)
    assert bound_by(costs, Device(1e12, 1e12), FP32) == "fp32"
    assert bound_by(costs, Device(1e15, 1e12), FP32) == "memory"
    narrow = layer_costs(build_network("resnet50"), AMP)
    assert bound_by(narrow, Device(1e11, 1e12, 1e12), AMP) == "tensor"
    assert bound_by(narrow, Device(1e12, 1e12), AMP) == "fp32"  # it has no units for 16 bits


def test_matrix_units_are_for_matrix_products_in_sixteen_bits() -> None:
    device = ROUND.device
    assert (device.peak(FP32), device.peak(AMP), device.peak(AMP, tensor_cores=False)) == (10, 40, 10)
    deepcam = build_network("deepcam")
    depthwise = [layer for layer in deepcam.layers if layer.multiplies and layer.groups == layer.in_shape[0] > 1]
    assert depthwise
    assert not any(map(uses_tensor_cores, depthwise))


def test_one_layer_by_hand() -> None:
    cost = layer_costs(small(), FP32)[3]
    device = Device(fp32=1000.0, memory_bandwidth=1e9)
    assert cost.seconds(device, FP32) == pytest.approx(cost.flops / 1000)
    assert not cost.memory_bound(device, FP32)
    slow = Device(fp32=1e12, memory_bandwidth=10.0)
    assert cost.seconds(slow, FP32) == pytest.approx(cost.nbytes / 10)
    assert cost.memory_bound(slow, FP32)
