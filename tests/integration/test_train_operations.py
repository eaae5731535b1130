"""Networks as torch runs them: as many operations as the layer tables say, forward and backward; the same result when activations are recomputed."""

import pytest

torch = pytest.importorskip("torch")

from tierscope.arch.efficiency import COUNTED, histogram  # noqa: E402
from tierscope.arch.networks import NETWORKS, build_network  # noqa: E402
from tierscope.arch.precision import PRECISIONS  # noqa: E402
from tierscope.train.ceilings import measure_ceilings  # noqa: E402
from tierscope.train.model import NetworkModule  # noqa: E402
from tierscope.train.operations import as_kernels, watch_step  # noqa: E402
from tierscope.train.steps import Trainer, measure_steps  # noqa: E402

pytestmark = pytest.mark.torch
CPU = torch.device("cpu")
SMALL = {
    "cosmoflow": (4, 32, 32, 32),
    "deepcam": (16, 32, 48),
    "resnet50": (3, 32, 32),
    "resnet101": (3, 32, 32),
    "alexnet": (3, 63, 63),
    "lenet5": (1, 28, 28),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_operations_of_a_step_are_those_of_the_layers(name: str) -> None:
    """Counted from what torch dispatched, backward too: an independent witness of the tables."""
    network = build_network(name, SMALL[name])
    trainer = Trainer(network, 2, PRECISIONS["fp32"], "sgd", CPU)
    operations = watch_step(trainer)
    assert sum(operation.flops for operation in operations) == 2 * (network.forward_flops + network.backward_flops)
    found = histogram(as_kernels(operations, measure_ceilings(CPU)), COUNTED)
    assert found.total_seconds == pytest.approx(sum(operation.seconds for operation in operations))


@pytest.mark.parametrize("name", NETWORKS)
def test_parameters_and_output_are_those_of_the_layers(name: str) -> None:
    network = build_network(name)
    with torch.device("meta"):
        module = NetworkModule(network)
        output = module(torch.empty(2, *network.input_shape))
    assert sum(weight.numel() for weight in module.parameters()) == network.parameters
    assert tuple(output.shape[1:]) == network.layers[-1].out_shape


@pytest.mark.parametrize("name", ["resnet50", "deepcam", "alexnet"])
def test_recomputed_activations_change_no_gradient(name: str) -> None:
    network = build_network(name, SMALL[name])
    torch.manual_seed(3)
    plain, again = NetworkModule(network), NetworkModule(network, checkpointed=True)
    again.load_state_dict(plain.state_dict())
    sample = torch.rand(2, *network.input_shape)
    for module in (plain, again):
        module.eval()  # no dropout: it draws anew
        module(sample).square().sum().backward()
    for one, other in zip(plain.parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(one.grad, other.grad)


def test_steps_have_times_and_on_a_cpu_no_peak() -> None:
    found = measure_steps(Trainer(build_network("lenet5"), 4, PRECISIONS["amp"], "adam", CPU), 3)
    assert len(found.seconds) == 3
    assert min(found.seconds) > 0
    assert found.peak_bytes is None
