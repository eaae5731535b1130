"""Memory of a step: what grows, what is freed, and that the peak holds everything that is there at once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arch.machines import small
from tierscope.arch.network import Network
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS, Precision
from tierscope.arch.segments import segments
from tierscope.arch.step_memory import Policy, _Step, rounded, step_memory

FP32, AMP = PRECISIONS["fp32"], PRECISIONS["amp"]
BOTH = pytest.mark.parametrize("precision", PRECISIONS.values(), ids=PRECISIONS)


@BOTH
@pytest.mark.parametrize("name", NETWORKS)
def test_after_a_step_only_gradients_stay(name: str, precision: Precision) -> None:
    assert left_over(build_network(name), precision) == gradients(build_network(name))


@BOTH
def test_after_a_step_of_a_small_network_only_gradients_stay(precision: Precision) -> None:
    assert left_over(small(), precision) == gradients(small())


def left_over(network: Network, precision: Precision) -> int:
    """Live bytes behind a forward and a backward pass, without what was there before; the sample's 16-bit copy stays with the caller's sample."""
    step = _Step(network, 3, precision, Policy())
    everything = range(len(network.layers))
    step.forward(everything)
    step.lose()
    step.backward(everything)
    assert not step._grads or not sum(step._grads.values())
    return step.live


def gradients(network: Network) -> int:
    return sum(rounded(4 * size) for size in network.parameter_tensors)


@BOTH
@pytest.mark.parametrize("checkpointed", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_memory_grows_with_the_batch(name: str, checkpointed: bool, precision: Precision) -> None:
    network = build_network(name)
    found = [step_memory(network, batch, precision, checkpointed=checkpointed) for batch in (1, 2, 4, 8)]
    peaks = [memory.peak for memory in found]
    assert peaks == sorted(peaks)
    assert [memory.activations for memory in found] == sorted(memory.activations for memory in found)
    assert len({memory.parameters for memory in found}) == 1
    assert found[2].input == pytest.approx(4 * found[0].input, rel=0.2)


@BOTH
@pytest.mark.parametrize("optimizer", ["none", "sgd", "adam"])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_peak_holds_what_is_there_at_once(name: str, optimizer: str, precision: Precision) -> None:
    memory = step_memory(build_network(name), 4, precision, optimizer)
    resident = memory.parameters + memory.optimizer + memory.input
    assert memory.peak >= resident + memory.activations
    assert memory.peak >= resident + memory.gradients
    assert memory.peak_at


@pytest.mark.parametrize("name", ["cosmoflow", "deepcam", "resnet50", "resnet101"])
def test_sixteen_bits_keep_fewer_activations_and_checkpoints_fewer_still(name: str) -> None:
    network = build_network(name)
    for batch in (4, 16):
        wide, narrow = (step_memory(network, batch, precision) for precision in (FP32, AMP))
        assert narrow.activations <= wide.activations
        again = step_memory(network, batch, FP32, checkpointed=True)
        assert again.activations < wide.activations / 2
        assert again.peak <= wide.peak  # equal where one layer is the peak by itself


def test_optimizers_keep_their_moments() -> None:
    network = build_network("resnet50")
    none, sgd, adam = (step_memory(network, 1, FP32, name) for name in ("none", "sgd", "adam"))
    assert none.optimizer == 0
    assert adam.optimizer == 2 * sgd.optimizer == 2 * sgd.gradients


def test_a_library_and_a_label_are_there_all_the_time() -> None:
    bare = step_memory(small(), 2, FP32)
    more = step_memory(small(), 2, FP32, policy=Policy(library_bytes=10**6), target_bytes=512)
    assert more.peak == bare.peak + 10**6 + 1024


def test_the_simulated_activations_are_those_of_the_rule() -> None:
    """Beside what blocks of 512 bytes and statistics add, and the output that the loss still reads."""
    from tierscope.arch.kept_activations import kept_bytes  # noqa: PLC0415

    for name in ("cosmoflow", "resnet50", "deepcam"):
        network = build_network(name)
        found = step_memory(network, 8, FP32).activations
        loss = 8 * 4 * network.layers[-1].elements
        assert found == pytest.approx(8 * kept_bytes(network, 4) + loss, rel=0.01)


@given(layers=st.integers(1, 40), kinds=st.lists(st.sampled_from(["conv", "relu", "inplace", "norm"]), min_size=40))
def test_any_chain_frees_what_it_took(layers: int, kinds: list[str]) -> None:
    from tierscope.arch.network import Builder  # noqa: PLC0415

    net = Builder("chain", (3, 6, 6))
    net.conv("first", 3, 3, padding=1)
    for number, kind in enumerate(kinds[:layers]):
        if kind == "conv":
            net.conv(str(number), 3, 3, padding=1)
        elif kind == "norm":
            net.norm(str(number))
        else:
            net.activation(str(number), inplace=kind == "inplace")
    network = net.network()
    for precision in PRECISIONS.values():
        assert left_over(network, precision) == gradients(network)


@pytest.mark.parametrize("name", NETWORKS)
def test_segments_are_all_layers_once_and_in_order(name: str) -> None:
    network = build_network(name)
    assert [index for part in segments(network) for index in part] == list(range(len(network.layers)))
