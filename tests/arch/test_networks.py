"""The networks that ship: exact against the published layer tables, and buildable from any shape that they can take."""

import csv
import math
from pathlib import Path

import pytest

from tierscope.arch.layer import INPUT, JOINS, Layer
from tierscope.arch.network import Builder
from tierscope.arch.networks import ALIASES, NETWORKS, build_network, find_network
from tierscope.errors import UserError

TABLE = Path(__file__).resolve().parents[3] / "shared" / "data" / "arch_layers.csv"
TOTALS = {  # parameters, operations forward and backward of one sample
    "cosmoflow": (8_907_556, 68_862_099_968, 123_228_685_312),
    "deepcam": (56_454_720, 655_337_666_560, 1_308_636_901_376),
    "resnet50": (25_557_032, 8_178_368_512, 16_120_709_120),
    "resnet101": (44_549_160, 15_602_810_880, 30_969_593_856),
    "alexnet": (61_100_840, 1_428_376_960, 2_716_200_320),
    "lenet5": (61_706, 833_040, 1_430_880),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_totals(name: str) -> None:
    network = build_network(name)
    assert (network.parameters, network.forward_flops, network.backward_flops) == TOTALS[name]
    assert sum(network.parameter_tensors) == network.parameters


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.skipif(not TABLE.is_file(), reason="no layer tables beside the project (../shared/data)")
def test_every_layer_is_as_in_the_table(name: str) -> None:
    with TABLE.open(encoding="utf-8", newline="") as text:
        rows = [row for row in csv.DictReader(text) if row["model"] == name]
    layers = [layer for layer in build_network(name).layers if layer.kind not in JOINS]
    assert [described(layer) for layer in layers] == [as_tabled(row) for row in rows]


def described(layer: Layer) -> tuple[object, ...]:
    return (
        layer.name,
        layer.kind,
        layer.in_shape,
        layer.out_shape,
        layer.groups if layer.kind.startswith("Conv") else 1,
        layer.parameters,
        layer.forward_flops,
        layer.backward_flops,
        layer.elements,
    )


def as_tabled(row: dict[str, str]) -> tuple[object, ...]:
    def shape(text: str) -> tuple[int, ...]:
        return tuple(map(int, text.split("x")))

    numbers = (row["params"], row["fwd_flops_per_sample"], row["bwd_flops_per_sample"], row["out_elems_per_sample"])
    shapes = (shape(row["in_shape"]), shape(row["out_shape"]))
    return (row["name"], row["type"], *shapes, int(row["groups"] or 1), *map(int, numbers))


@pytest.mark.parametrize("name", NETWORKS)
def test_layers_read_what_was_made_before_them(name: str) -> None:
    network = build_network(name)
    for index, layer in enumerate(network.layers):
        assert layer.inputs
        assert all(INPUT <= source < index for source in layer.inputs)
        source = layer.inputs[0]
        assert layer.in_shape == (network.input_shape if source == INPUT else network.layers[source].out_shape)


@pytest.mark.parametrize("name", NETWORKS)
def test_training_sets_say_what_they_are(name: str) -> None:
    data = find_network(name).data
    assert data.samples > 0
    assert data.file_bytes > 0
    assert data.about


def test_published_sizes_of_samples() -> None:
    sizes = {name: build_network(name).input_elements * NETWORKS[name].data.element_bytes for name in NETWORKS}
    assert sizes["cosmoflow"] == 16 * 2**20
    assert sizes["deepcam"] == 27 * 2**20
    assert sizes["resnet50"] / 2**20 == pytest.approx(0.14, abs=0.005)


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_other_spellings(alias: str, name: str) -> None:
    assert build_network(alias) == build_network(name)


def test_another_shape_changes_operations_and_not_convolutions() -> None:
    usual, wide = build_network("resnet50"), build_network("resnet50", (3, 448, 448))
    assert wide.parameters == usual.parameters
    assert wide.forward_flops == pytest.approx(4 * usual.forward_flops, rel=0.01)


@pytest.mark.parametrize(
    ("name", "shape", "line"),
    [
        ("resnet50", (4, 224, 224), "resnet50 takes 3 channels and 2 sides"),
        ("resnet50", (3, 224), "resnet50 takes 3 channels and 2 sides, like 3x224x224"),
        ("alexnet", (3, 16, 16), "it is too small for layer"),
        ("deepcam", (16, 770, 1152), "its sides must be multiples of 16"),
    ],
)
def test_a_shape_that_it_cannot_take_is_refused(name: str, shape: tuple[int, ...], line: str) -> None:
    with pytest.raises(UserError, match=line):
        build_network(name, shape)


def test_a_mistyped_name_gets_a_suggestion() -> None:
    with pytest.raises(UserError, match="did you mean resnet50"):
        find_network("resnet5")
    with pytest.raises(UserError, match="choose from cosmoflow"):
        find_network("x")


def test_grouped_and_transposed_convolutions_by_hand() -> None:
    net = Builder("x", (8, 10, 10))
    net.conv("grouped", 16, 3, padding=1, groups=4)
    net.transposed("turned", 4, 3, stride=2, padding=1)
    grouped, turned = net.network().layers
    assert grouped.parameters == 16 * 2 * 9
    assert grouped.forward_flops == 2 * 16 * 100 * 2 * 9
    assert grouped.backward_flops == grouped.forward_flops  # a sample needs no gradient
    assert turned.out_shape == (4, 20, 20)
    assert turned.forward_flops == 2 * math.prod((16, 10, 10)) * 4 * 9
    assert turned.backward_flops == 2 * turned.forward_flops
