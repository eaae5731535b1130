import pytest

from tierscope.spec import presets
from tierscope.spec.load import load_study
from tierscope.spec.sweep import points

PRESETS = presets.names()
SWEEPING = [name for name in PRESETS if name.startswith(("demo", "fugaku-", "mini-"))]  # the others are workloads


def test_the_presets_that_are_promised() -> None:
    assert set(PRESETS) >= {
        "demo",
        "fugaku-small-60ost",
        "fugaku-small-1ost",
        "fugaku-large-60ost",
        "fugaku-hierarchy",
        "mini-hierarchy",
        "mini-small-many-osts",
        "mini-small-one-ost",
        "mini-large-many-osts",
    }


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_loads_and_bears_its_own_name(name: str) -> None:
    study = load_study(name)
    assert study.study == name
    assert (len(list(points(study))) > 1) == (name in SWEEPING)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_says_what_it_is(name: str) -> None:
    assert presets.text(name).startswith(f"# {presets.summary(name)}\n")
    assert 20 < len(presets.summary(name)) < 120


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("fugaku")])
def test_full_size_is_what_was_published(name: str) -> None:
    """768 nodes × 4 processes, 16 nodes per SSD, 192 per gateway; 1 or 60 OSTs."""
    system = load_study(name).system
    near, far = system.tiers
    assert (system.nodes, system.ranks_per_node) == (768, 4)
    assert (near.visible_to, near.device_shared_by, far.gateway_shared_by) == ("node", 16, 192)
    assert far.servers == (1 if "1ost" in name else 60)


@pytest.mark.parametrize("name", [name for name in SWEEPING if not name.startswith("fugaku")])
def test_what_runs_on_a_laptop_is_emulated_and_small(name: str) -> None:
    study = load_study(name)
    dataset = study.workload.dataset
    assert all(tier.emulate for tier in study.system.tiers)
    assert dataset.samples * dataset.record_length_bytes <= 2**30
    assert study.system.ranks <= 64
