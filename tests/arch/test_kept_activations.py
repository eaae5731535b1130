"""What is kept for the backward pass, by every rule."""

import pytest

from tests.arch.machines import small
from tierscope.arch.kept_activations import RULES, kept_bytes, kept_elements, storages
from tierscope.arch.layer import INPUT
from tierscope.arch.networks import NETWORKS, build_network


def test_autograd_of_a_small_network_by_hand() -> None:
    network = small()
    one = 4 * 8 * 8  # elements of an activation
    # conv1's output (for the norm), the norm's output that relu1 wrote over (for conv2 and itself), relu2's output (itself and the pool), the pooled ones (fc)
    expected = {INPUT: 2 * 8 * 8, 0: one, 1: one, 5: one, 6: one // 4}
    assert kept_elements(network) == expected
    indices = 8 * one // 4
    assert kept_bytes(network, 4) == 4 * (3 * one + one // 4) + indices
    assert kept_bytes(network, 2) == 2 * (3 * one + one // 4) + indices


def test_the_other_rules_of_a_small_network_by_hand() -> None:
    network = small()
    one = 4 * 8 * 8
    assert kept_bytes(network, 4, "outputs") == 4 * (6 * one + one // 4 + 10)
    assert kept_bytes(network, 4, "fused") == 4 * (3 * one + one // 4 + 10)
    assert kept_bytes(network, 4, "products") == 4 * (2 * one + 10)


def test_what_is_written_in_place_has_one_storage() -> None:
    own = storages(small())
    assert own[2] == 1  # relu1 over norm1
    assert own[7] == 6  # flatten only views
    assert own[5] == 5


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", NETWORKS)
def test_sixteen_bits_keep_less(name: str, rule: str) -> None:
    network = build_network(name)
    assert 0 < kept_bytes(network, 2, rule) < kept_bytes(network, 4, rule)
    assert kept_bytes(network, 4, "products") <= kept_bytes(network, 4, "fused") <= kept_bytes(network, 4, "outputs")


@pytest.mark.parametrize(
    ("name", "rule", "nbytes", "published"),
    [
        ("cosmoflow", "outputs", 4, 0.72),
        ("deepcam", "outputs", 2, 2.9),
        ("resnet50", "autograd", 2, 0.042),
        ("resnet50", "fused", 2, 0.042),
    ],
)
def test_the_studys_figures_within_a_tenth_by_a_named_rule(name: str, rule: str, nbytes: int, published: float) -> None:
    assert kept_bytes(build_network(name), nbytes, rule) / 2**30 == pytest.approx(published, rel=0.1)
