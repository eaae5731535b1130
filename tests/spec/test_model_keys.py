"""Keys of a real network: what contradicts them is refused, not ignored."""

import pytest

from tests.tiny import tiny
from tierscope.errors import SpecError

NETWORK = "model.network=lenet5"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (("model.data=memory",), "workload.model.data = memory, but no network is trained"),
        (("model.arithmetic=amp",), "workload.model.arithmetic = amp, but no network"),
        (("model.solver=adam",), "workload.model.solver = adam, but no network"),
        (("model.input=1x28x28",), "workload.model.input = 1x28x28, but no network"),
        (("model.recompute=true",), "workload.model.recompute = true, but no network"),
        (("model.network=lenet6",), "lenet5"),
        ((NETWORK, "model.input=1x"), "workload.model.input = 1x"),
        ((NETWORK, "model.input=0x28x28"), "workload.model.input = 0x28x28"),
        ((NETWORK, "computation_time=1ms"), "emulates compute, but workload.model.network = lenet5 trains for real"),
        (
            (NETWORK, "model.device=cpu", "data_loader=pytorch", "pin_memory=true"),
            "device = cpu has nothing to pin for",
        ),
        ((NETWORK, "preprocess=busy"), "preprocess = busy has no effect on training"),
        ((NETWORK, "preprocess=sleep"), "preprocess = sleep has no effect on training"),
        ((NETWORK, "format=jpeg"), "jpeg must be decoded for training; set decode"),
    ],
)
def test_what_contradicts_it_is_refused(settings: tuple[str, ...], words: str) -> None:
    with pytest.raises(SpecError) as caught:
        tiny("sweep={}", *settings)
    assert words in str(caught.value)


@pytest.mark.parametrize("more", [(), ("format=png", "preprocess=decode"), ("format=png", "model.data=synthetic")])
def test_what_does_not_is_taken(more: tuple[str, ...]) -> None:
    assert tiny("sweep={}", NETWORK, *more).workload.model.network == "lenet5"


def test_where_samples_come_from_can_be_swept() -> None:
    study = tiny(NETWORK, "sweep={model.data: [tiers, memory, synthetic]}")
    assert study.sweep[0].values == ("tiers", "memory", "synthetic")
