"""Any module of torch as layers: parameters and operations exact, kept bytes as autograd has them, and one clear line for what cannot be traced."""

import itertools
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np
import pytest

from tierscope.arch.kept_activations import kept_bytes
from tierscope.arch.layer import JOINS, VIEWS, Layer
from tierscope.arch.network import Network
from tierscope.arch.networks import NETWORKS, build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.traced import saved_bytes_per_sample, trace_network
from tierscope.errors import UserError

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")

FP32, AMP = PRECISIONS["fp32"], PRECISIONS["amp"]
_numbers = itertools.count()


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module of Python into the current directory and gives its name, never the same twice."""
    monkeypatch.chdir(tmp_path)

    def write(source: str) -> str:
        name = f"traced_module_{next(_numbers)}"
        head = "import torch\nfrom torch import nn\nfrom torch.nn import functional\n"
        (tmp_path / f"{name}.py").write_text(head + dedent(source))
        return name

    return write


def shipped(modules: Any, name: str) -> str:
    module = modules(f"""
        from tierscope.arch.networks import build_network
        from tierscope.train.model import NetworkModule

        def build():
            return NetworkModule(build_network({name!r}))
    """)
    return f"{module}:build"


def built(modules: Any, expression: str) -> str:
    return f"{modules(f'def build(): return {expression}')}:build"


def refusal(target: str, shape: tuple[int, ...]) -> str:
    with pytest.raises(UserError) as caught:
        trace_network(target, shape)
    message = str(caught.value)
    assert "\n" not in message
    return message


def one(network: Network, kind: str) -> Layer:
    (found,) = [layer for layer in network.layers if layer.kind == kind]
    return found


def counted(layer: Layer) -> tuple[object, ...]:
    shape = (layer.kernel, layer.stride, layer.padding, layer.dilation, layer.groups, layer.bias, layer.inplace)
    products = (layer.forward_flops, layer.backward_flops, layer.parameters)
    return (layer.kind, layer.in_shape, layer.out_shape, *shape, *products, layer.output_padding)


@pytest.mark.parametrize("name", NETWORKS)
def test_shipped_networks_come_back(name: str, modules: Any) -> None:
    network = build_network(name)
    begin = time.monotonic()
    traced = trace_network(shipped(modules, name), network.input_shape)
    assert time.monotonic() - begin < 30
    assert traced.parameters == network.parameters
    assert traced.forward_flops == network.forward_flops
    assert traced.backward_flops == network.backward_flops
    aside = JOINS | VIEWS | {"TrainableAffine", "Scale"}  # an affine layer is a product and a sum
    ours = [layer for layer in network.layers if layer.kind not in aside]
    theirs = [layer for layer in traced.layers if layer.kind not in aside]
    assert [counted(layer) for layer in theirs] == [counted(layer) for layer in ours]


def test_layers_read_those_that_they_read(modules: Any) -> None:
    """Every layer of a network of blocks and shortcuts, by its place among those that are no views."""
    network = build_network("resnet50")
    traced = trace_network(shipped(modules, "resnet50"), network.input_shape)
    assert [layer.inputs for layer in traced.layers] == [layer.inputs for layer in network.layers]


@pytest.mark.parametrize("name", NETWORKS)
def test_kept_bytes_are_those_that_autograd_keeps(name: str, modules: Any) -> None:
    network = build_network(name)
    target = shipped(modules, name)
    assert saved_bytes_per_sample(target, network.input_shape, FP32) == kept_bytes(network, 4)
    # of DeepCAM, the 256 values behind the learned scale stay in 32 bits
    assert saved_bytes_per_sample(target, network.input_shape, AMP) == pytest.approx(kept_bytes(network, 2), rel=1e-6)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_rule_holds_for_what_was_traced(name: str, modules: Any) -> None:
    network = build_network(name)
    assert kept_bytes(trace_network(shipped(modules, name), network.input_shape), 4) == kept_bytes(network, 4)


def torch_counts(module: Any, sample: Any) -> tuple[int, int]:
    """By torch's own counter: forward, backward."""
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415

    with FlopCounterMode(display=False) as forward:
        loss = module(sample).sum()
    with FlopCounterMode(display=False) as backward:
        loss.backward()
    return forward.get_total_flops(), backward.get_total_flops()


@pytest.mark.parametrize("name", ["lenet5", "resnet50", "cosmoflow"])
def test_networks_without_groups_agree_with_the_counter_of_torch(name: str) -> None:
    from tierscope.train.model import NetworkModule  # noqa: PLC0415

    network = build_network(name)
    with torch.device("meta"):
        module = NetworkModule(network)
        assert torch_counts(module, torch.empty(2, *network.input_shape)) == (
            2 * network.forward_flops,
            2 * network.backward_flops,
        )


@pytest.mark.parametrize("groups", [1, 2, 8])
def test_groups_are_counted_in_backward_and_torch_counts_them_wrong(groups: int, modules: Any) -> None:
    inner = f"nn.Conv2d(8, 16, 3, groups={groups})"
    traced = trace_network(built(modules, f"nn.Sequential(nn.Conv2d(3, 8, 1), {inner})"), (3, 10, 10))
    layer = traced.layers[1]
    assert layer.groups == groups
    assert layer.forward_flops == 2 * 16 * 8 * 8 * 9 * 8 // groups
    assert layer.backward_flops == 2 * layer.forward_flops
    module = torch.nn.Conv2d(8, 16, 3, groups=groups)
    forward, backward = torch_counts(module, torch.randn(1, 8, 10, 10, requires_grad=True))
    assert forward == layer.forward_flops
    assert backward == layer.backward_flops * (1 + groups) / 2


def transposed_by_definition(value: Any, weight: Any, stride: int, padding: int, extra: int, groups: int) -> Any:
    """Every input element times every weight of its group, put where it belongs; how many products that took."""
    inputs, side = value.shape[0], value.shape[1]
    each, kernel = weight.shape[1], weight.shape[2]
    full = (side - 1) * stride + kernel + extra
    result, products = np.zeros((each * groups, full, full)), 0
    for channel, row, column in np.ndindex(inputs, side, side):
        group = channel // (inputs // groups)
        for out, y, x in np.ndindex(each, kernel, kernel):
            place = (group * each + out, row * stride + y, column * stride + x)
            result[place] += value[channel, row, column] * weight[channel, out, y, x]
            products += 1
    return result[:, padding : full - padding, padding : full - padding], products


@pytest.mark.parametrize(("stride", "padding", "extra", "groups"), [(1, 0, 0, 1), (2, 1, 1, 2), (3, 1, 2, 4)])
def test_transposed_convolutions_against_their_definition(
    stride: int, padding: int, extra: int, groups: int, modules: Any
) -> None:
    made = f"nn.ConvTranspose2d(4, 8, 3, stride={stride}, padding={padding}, output_padding={extra}, groups={groups}, bias=False)"
    layer = one(trace_network(built(modules, made), (4, 5, 5)), "ConvTranspose2d")
    generator = np.random.default_rng(1)
    value, weight = generator.normal(size=(4, 5, 5)), generator.normal(size=(4, 8 // groups, 3, 3))
    result, products = transposed_by_definition(value, weight, stride, padding, extra, groups)
    computed = torch.nn.functional.conv_transpose2d(
        torch.tensor(value)[None], torch.tensor(weight), None, stride, padding, extra, groups
    )
    np.testing.assert_allclose(result, computed[0].numpy())
    assert layer.out_shape == result.shape
    assert (layer.forward_flops, layer.backward_flops) == (2 * products, 2 * products)  # a sample needs no gradient
    assert (layer.output_padding, layer.groups, layer.parameters) == ((extra, extra), groups, weight.size)


def test_linear_layers_over_a_sequence(modules: Any) -> None:
    traced = trace_network(built(modules, "nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))"), (5, 8))
    first, second = (layer for layer in traced.layers if layer.kind == "Linear")
    assert (first.name, first.in_shape, first.out_shape, first.gemm) == ("0", (5, 8), (5, 16), (5, 16, 8))
    assert (first.parameters, second.parameters) == (144, 68)
    assert traced.parameter_tensors == (128, 16, 64, 4)
    assert (first.backward_flops, second.backward_flops) == (first.forward_flops, 2 * second.forward_flops)


def test_gelu_keeps_its_input(modules: Any) -> None:
    target = built(modules, "nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4))")
    assert kept_bytes(trace_network(target, (5, 8)), 4) == saved_bytes_per_sample(target, (5, 8), FP32) == 4 * 2 * 80


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_a_transformer_layer(dropout: float, modules: Any) -> None:
    length, width, heads, inner = 10, 64, 4, 256
    made = f"nn.TransformerEncoderLayer({width}, {heads}, {inner}, dropout={dropout}, batch_first=True)"
    target = built(modules, made)
    traced = trace_network(target, (length, width))
    projections = 2 * length * width * (3 * width)
    attention = 2 * 2 * length * length * width
    rest = 2 * length * width * width + 2 * 2 * length * width * inner
    assert traced.forward_flops == projections + attention + rest
    assert traced.backward_flops == projections + 2 * (attention + rest)  # the sample needs no gradient
    assert one(traced, "Attention").forward_flops == attention
    assert traced.parameters == sum(
        p.numel() for p in torch.nn.TransformerEncoderLayer(width, heads, inner).parameters()
    )
    statistics = (
        2 * 2 * length * 4 + heads * length * 4
    )  # of normalisations and of attention's rows, which the rule leaves out
    assert saved_bytes_per_sample(target, (length, width), FP32) == kept_bytes(traced, 4) + statistics


ATTENTION = """
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 32, 16, 16)
            self.token = nn.Parameter(torch.zeros(1, 1, 32))
            self.norm, self.qkv, self.out = nn.LayerNorm(32), nn.Linear(32, 96), nn.Linear(32, 32)
            self.wide = nn.Sequential(nn.Linear(32, 128), nn.GELU(), nn.Linear(128, 10))

        def forward(self, value):
            value = self.patch(value).flatten(2).transpose(1, 2)
            value = torch.cat([self.token.expand(len(value), -1, -1), value], 1)
            query, key, content = self.qkv(self.norm(value)).chunk(3, -1)
            weights = (query @ key.transpose(1, 2) / 32**0.5).softmax(-1)
            value = value + self.out(torch.einsum("bqk,bkc->bqc", weights, content))
            return self.wide(value[:, 0])
"""


def test_fake_tensors_keep_and_count_what_real_ones_do(modules: Any) -> None:
    """An independent witness: the same module with real tensors, two batches of them."""
    from torch.utils.flop_counter import FlopCounterMode  # noqa: PLC0415

    target, shape = f"{modules(ATTENTION)}:Attention", (3, 64, 64)
    traced = trace_network(target, shape)
    module = vars(sys.modules[target.partition(":")[0]])["Attention"]()

    def real(batch: int) -> tuple[int, int]:
        sample, kept = torch.randn(batch, *shape), {}

        def pack(tensor: Any) -> Any:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            return tensor

        with (
            torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor),
            FlopCounterMode(display=False) as counter,
        ):
            output = module(sample)
        assert output.requires_grad
        kept.pop(sample.untyped_storage().data_ptr())
        return sum(kept.values()), counter.get_total_flops()

    (less_bytes, less_flops), (more_bytes, more_flops) = real(2), real(6)
    assert saved_bytes_per_sample(target, shape, FP32) == (more_bytes - less_bytes) / 4
    assert traced.forward_flops == (more_flops - less_flops) / 4
    assert traced.parameters == sum(parameter.numel() for parameter in module.parameters())
    assert kept_bytes(traced, 4) == pytest.approx((more_bytes - less_bytes) / 4, rel=0.02)


def test_an_lstm_is_the_products_of_its_steps(modules: Any) -> None:
    traced = trace_network(built(modules, "nn.LSTM(8, 4, batch_first=True)"), (3, 8))
    assert traced.parameters == 16 * 8 + 16 * 4 + 32
    assert traced.forward_flops == 2 * 3 * (16 * 8 + 16 * 4)
    steps = 2 * 16 * 4
    assert (
        traced.backward_flops == 2 * 3 * 16 * 8 + steps + 2 * 2 * steps
    )  # neither samples nor the first state need gradients


def test_tokens_are_whole_numbers(modules: Any) -> None:
    target = built(modules, "nn.Sequential(nn.Embedding(100, 16), nn.Linear(16, 4))")
    traced = trace_network(target, (7,))
    assert [layer.kind for layer in traced.layers if layer.kind not in VIEWS] == ["Embedding", "Linear"]
    assert traced.parameters == 1600 + 68
    assert saved_bytes_per_sample(target, (7,), FP32) == 7 * 16 * 4


SHARED = """
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Linear(6, 6)
            self.two = nn.Linear(6, 6)
            self.two.weight = self.one.weight
            self.idle = nn.Linear(3, 3)

        def forward(self, value):
            return self.two(self.one(self.one(value)))
    whole = Shared()
"""


@pytest.mark.parametrize("name", ["Shared", "whole"])
def test_shared_weights_count_once_and_idle_ones_too(name: str, modules: Any) -> None:
    module = modules(SHARED)
    traced = trace_network(f"{module}:{name}", (6,))
    assert [layer.parameters for layer in traced.layers] == [12, 42, 0, 6]
    assert traced.layers[0].name == "unused: idle.weight, idle.bias"
    assert [layer.forward_flops for layer in traced.layers] == [0, 72, 72, 72]
    assert [layer.backward_flops for layer in traced.layers] == [0, 72, 144, 144]
    assert [layer.inputs for layer in traced.layers[1:]] == [(-1,), (1,), (2,)]


def test_an_instance_stays_as_it_was(modules: Any) -> None:
    module = modules(SHARED)
    trace_network(f"{module}:whole", (6,))
    weight = sys.modules[module].whole.one.weight
    assert type(weight) is torch.nn.Parameter
    assert weight.tolist()


def test_images_beside_one_another_are_all_counted(modules: Any) -> None:
    module = modules("""
        class Frames(nn.Module):
            def __init__(self):
                super().__init__()
                self.each = nn.Conv2d(3, 8, 3)

            def forward(self, value):
                return self.each(value.flatten(0, 1)).mean((2, 3))
    """)
    layer = one(trace_network(f"{module}:Frames", (4, 3, 10, 10)), "Conv2d")
    assert layer.forward_flops == 4 * 2 * 8 * 8 * 8 * 27
    assert (layer.in_shape, layer.out_shape) == ((3, 4, 10, 10), (8, 4, 8, 8))


def test_names_are_paths_of_modules_and_functions_between_them(modules: Any) -> None:
    module = modules("""
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(4, 4, 3, padding=1)

            def forward(self, value):
                return functional.relu(value + self.conv(value))

        def build():
            return nn.Sequential(Block(), Block())
    """)
    traced = trace_network(f"{module}:build", (4, 8, 8))
    assert [layer.name for layer in traced.layers] == [
        *("0.conv", "0.add", "0.relu"),
        *("1.conv", "1.add", "1.relu"),
    ]
    assert [layer.inputs for layer in traced.layers] == [(-1,), (-1, 0), (1,), (2,), (2, 3), (4,)]


def test_building_may_look_at_values(modules: Any) -> None:
    target = built(modules, "nn.Sequential(nn.Linear(4, 4), nn.Dropout(torch.linspace(0, 0.5, 3)[1].item()))")
    assert one(trace_network(target, (4,)), "Dropout").slope == 0.25


def test_frozen_weights_need_no_gradients(modules: Any) -> None:
    target = built(modules, "nn.Sequential(nn.Linear(4, 4).requires_grad_(False), nn.Linear(4, 4), nn.Linear(4, 4))")
    assert [layer.backward_flops for layer in trace_network(target, (4,)).layers] == [0, 32, 64]


def test_a_model_larger_than_memory(tmp_path: Path) -> None:
    """10^11 parameters, 400 GB of weights, in a process of its own."""
    program = """
        import resource
        from torch import nn
        from tierscope.arch.traced import trace_network

        def build():
            return nn.Sequential(*(nn.Linear(100_000, 100_000, bias=False) for _ in range(10)))

        if __name__ == "__main__":
            network = trace_network("large:build", (100_000,))
            print(network.parameters, network.forward_flops, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    """
    (tmp_path / "large.py").write_text(dedent(program))
    done = subprocess.run([sys.executable, "large.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    parameters, flops, peak_kib = map(int, done.stdout.split())
    assert (parameters, flops) == (10**11, 2 * 10**11)
    assert peak_kib < 2 << 20


GATE = """
    class Gate(nn.Module):
        def forward(self, value):
            return {}

    def build():
        return nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), Gate()))
"""


@pytest.mark.parametrize("body", ["value * 2 if value.sum() > 0 else value", "value[value > 0]"])
def test_decisions_on_values_name_the_layer(body: str, modules: Any) -> None:
    message = refusal(f"{modules(GATE.format(body))}:build", (4,))
    assert "in layer 1.1 (Gate) the computation depends on values" in message


def test_a_shape_that_does_not_fit_names_the_layer(modules: Any) -> None:
    target = built(modules, "nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Sequential(nn.Conv2d(9, 8, 3)))")
    message = refusal(target, (3, 8, 8))
    assert message.startswith(f"{target} cannot be traced with input 3x8x8")
    assert "layer 2.0 (Conv2d) fails: " in message
    assert "to have 9 channels, but got 8 channels" in message


def test_a_module_of_two_inputs_says_so(modules: Any) -> None:
    assert "the module itself (Bilinear) fails: TypeError: " in refusal(built(modules, "nn.Bilinear(2, 2, 2)"), (2,))


@pytest.mark.parametrize(
    ("source", "name", "said"),
    [
        ("", "build", "has no build"),
        ("def build_model(): ...", "build_modle", "has no build_modle; did you mean build_model?"),
        ("def build(): return 3", "build", "returns a int, not a torch.nn.Module"),
        ("def build(): raise ValueError('no depth')", "build", "fails: ValueError: no depth"),
        ("def build(depth): ...", "build", "is called without arguments: TypeError: missing a required argument"),
        ("build = 3", "build", "is not a function, but a int"),
        ("import no_such_package", "build", "cannot be imported: ModuleNotFoundError: No module named 'no_such"),
        ("raise SystemExit(2)", "build", "cannot be imported: SystemExit: 2"),
        ("def build(): return nn.Identity()", "build", "does not use its input"),
    ],
)
def test_targets_that_build_nothing(source: str, name: str, said: str, modules: Any) -> None:
    assert said in refusal(f"{modules(source)}:{name}", (4,))


@pytest.mark.parametrize(
    ("does", "said"),
    [("raise SystemExit(7)", "SystemExit: 7"), ("return self.last(x[:, :3])", "layer last (Linear) fails")],
)
def test_what_fails_is_said_once(does: str, said: str, modules: Any, tmp_path: Path) -> None:
    """Torch would print a traceback, and a program that ends would end us."""
    name = modules(f"""
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.last = nn.Linear(4, 2)

            def forward(self, x):
                {does}
    """)
    program = "from tierscope.cli.main import main; main()"
    command = [sys.executable, "-c", program, "require", f"{name}:Net", "--system", "theta", "--input", "4"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_targets_that_are_none() -> None:
    assert "no module no_such_module in the current directory" in refusal("no_such_module:build", (4,))
    assert "must be module:function" in refusal("no_such_module", (4,))


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "tierscope.arch.traced_module", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert refusal("m:build", (4,)) == "m:build needs the package torch; pip install 'tierscope[torch]'"


def test_what_a_module_prints_is_no_part_of_the_answer(modules: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """It stood before the JSON of `require --json`."""
    module = modules("""
        print("imported")

        class Loud(nn.Linear):
            def forward(self, x):
                print("forward")
                return super().forward(x)

        def build():
            print("built")
            return Loud(4, 2)
    """)
    trace_network(f"{module}:build", (4,))
    said = capsys.readouterr()
    assert not said.out
    assert set(said.err.split()) == {"imported", "built", "forward"}
