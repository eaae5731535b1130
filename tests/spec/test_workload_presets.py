"""Presets of workloads: the figures that were published."""

import pytest

from tierscope.plan.checkpoints import checkpoint_bytes
from tierscope.plan.file_format import make_format
from tierscope.plan.plan import Plan
from tierscope.predict.simulation import Simulation, check_rates
from tierscope.spec import presets
from tierscope.spec.load import load_study
from tierscope.spec.scale import scale_study
from tierscope.spec.study import Study

pytestmark = pytest.mark.whole

PAPER = ("cosmic-tagger", "dffn", "cosmoflow", "candle", "frnn", "imagenet", "climate", "l2hmc")
MLPERF = ("unet3d", "resnet50", "bert", "llama-checkpoint")
MEMORY = ("climate", "l2hmc", "llama-checkpoint")

# format, files, samples of a file, batch, steps of a rank in all
FIGURES = {
    "cosmic-tagger": ("hdf5", 1, 43_000, 32, 150),
    "dffn": ("hdf5", 1, 18_678, 32, 400),
    "cosmoflow": ("tfrecord", 1024, 256, 1, 4 * 512),
    "candle": ("csv", 1, 1120, 20, 60 * 56),
    "frnn": ("npz", 2800, 1, 1, 5 * 5),
    "imagenet": ("tfrecord", 1024, 1024, 32, 100),
    "climate": ("synthetic", 1, 512 * 1200, 1, 1200),
    "l2hmc": ("synthetic", 1, 512 * 32 * 150, 32, 150),
    "unet3d": ("npz", 168, 1, 7, 5 * 6),
    "resnet50": ("tfrecord", 1024, 1251, 400, 5 * 801),
    "bert": ("tfrecord", 500, 313_532, 48, 1000),
    "llama-checkpoint": ("synthetic", 1, 1280, 16, 10),
}
# bytes of the data as published, or as the preset says that they differ
STORED = {
    "cosmic-tagger": 1.72e9,
    "dffn": 2.28 * 2**30,
    "cosmoflow": 2e12,
    "candle": 807e6,
    "frnn": 5.87e9,
    "imagenet": 256 * 2**30,
    "unet3d": 168 * 146_600_628,
    "resnet50": 1024 * 1251 * 114_660,
    "bert": 500 * 313_532 * 2516,
}


def plan_of(study: Study) -> Plan:
    return Plan.of(study, make_format(study).file_bytes)


def test_all_are_there() -> None:
    assert set(FIGURES) == {*PAPER, *MLPERF} <= set(presets.names())


@pytest.mark.parametrize("name", FIGURES)
def test_figures(name: str) -> None:
    study = load_study(name)
    dataset, plan = study.workload.dataset, plan_of(study)
    steps = plan.steps * study.workload.train.epochs
    found = (dataset.format, dataset.num_files_train, dataset.num_samples_per_file, plan.batch_size, steps)
    assert found == FIGURES[name]


@pytest.mark.parametrize("name", STORED)
def test_bytes_on_disk(name: str) -> None:
    study = load_study(name)
    files = study.workload.dataset.num_files_train
    assert make_format(study).file_bytes * files == pytest.approx(STORED[name], rel=0.01)


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_ranks(name: str) -> None:
    system = load_study(name).system
    assert (system.nodes, system.ranks_per_node) == (128, 4)


@pytest.mark.parametrize("name", FIGURES)
def test_directories_are_below_the_results(name: str) -> None:
    assert all(tier.path.startswith("{out}/") and not tier.emulate for tier in load_study(name).system.tiers)


@pytest.mark.parametrize("name", STORED)
def test_can_be_simulated(name: str) -> None:
    study = load_study(name)
    if study.workload.reader.rank_reads == "all":  # so much of each that fewer ranks will do
        study = load_study(name, ("nodes=2",))
    check_rates(study)
    epoch = Simulation.of(study).epoch(1, "bound")
    assert epoch.hit_rate == 0


@pytest.mark.parametrize("name", [*PAPER, *MLPERF])
def test_the_preset_says_how_to_try_it_small(name: str) -> None:
    preamble = "\n".join(presets.preamble(name))
    assert f"tierscope run {name} --scale 0." in preamble
    assert "ublished" in preamble


def test_climate_draws_samples_from_statistics() -> None:
    statistics = load_study("climate").workload.dataset.statistics
    assert (statistics.file_bytes, statistics.reads, statistics.read_bytes) == (4096, 50, 500)
    scaled = scale_study(load_study("climate"), 0.001).workload.dataset
    assert scaled.statistics == statistics


def test_climate_writes_4_mb_of_every_rank() -> None:
    checkpoint = load_study("climate").workload.checkpoint
    assert {checkpoint_bytes(checkpoint, [rank], 512) for rank in (0, 1, 511)} == {4_000_000}


def test_llama_writes_112_gb() -> None:
    checkpoint = load_study("llama-checkpoint").workload.checkpoint
    assert checkpoint_bytes(checkpoint, range(8), 8) == 8_030_261_248 * 14
    assert {checkpoint_bytes(checkpoint, [rank], 8) for rank in range(8)} == {8_030_261_248 * 14 // 8}
