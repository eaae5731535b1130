"""Checkpoints of a simulated study, as users see them: goals, costs, and what is refused."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tierscope.analysis.checkpoint_costs import checkpoint_costs
from tierscope.cli.main import cli
from tierscope.commands.analyze import analyze
from tierscope.commands.simulate import simulate_study
from tierscope.errors import UserError
from tierscope.predict.simulation import check_rates
from tierscope.report.checkpoints import held_up_sentence
from tierscope.spec.load import load, load_study
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

SAVING = ("mode=all_ranks", "model_parameters=100000000", "gfs.write_bandwidth=100 MB/s", "steps_between_checkpoints=4")
ALONE = ("sweep={}", "cache_rate=0%", "num_files_train=512", "epochs=2", "computation_time=1 s", *SAVING)
LLAMA = """
model:
  name: llama_405b
  type: transformer
  num_layers: 126
  model_datatype: fp16
  optimizer_datatype: fp32
  parallelism: {tensor: 8, pipeline: 32, zero_stage: 1, data: 2}
  transformer: {vocab_size: 128256, hidden_size: 16384, ffn_hidden_size: 53248, num_attention_heads: 128, num_kv_heads: 8}
framework: pytorch
workflow: {generate_data: False, train: False, checkpoint: True}
checkpoint: {time_between_checkpoints: 5, num_checkpoints_write: 10, num_checkpoints_read: 10, fsync: True}
"""


@pytest.mark.parametrize("method", ["bound", "events"])
def test_costs_follow_from_what_was_simulated(method: str, tmp_path: Path) -> None:
    """1.4 GB over four servers of 100 MB/s take 3.5 s and a little, twice in an epoch of eight steps."""
    study = load_study("demo", [*ALONE, "mean_time_between_failures=1 h"])
    store = simulate_study(study, str(tmp_path / "out"), method, Silent())
    analysis = analyze(str(tmp_path / "out"), store=store)
    (costs,) = checkpoint_costs(analysis.times, analysis.breakdown, analysis.study)
    assert (costs.bytes, costs.saves_per_epoch, costs.tier) == (1_400_000_000, 2.0, "gfs")
    assert costs.standstill_seconds == pytest.approx(3.5, rel=0.05)
    assert costs.epoch_standstill_seconds == pytest.approx(7.0, rel=0.05)
    assert costs.interval_seconds == pytest.approx(4.0, rel=0.1)
    assert costs.restore_seconds == pytest.approx(1.4e9 / 4 / (160 << 20), rel=0.1)
    assert costs.best is not None
    assert costs.current is not None
    assert costs.best.seconds == pytest.approx((2 * 3.5 * 3600) ** 0.5, rel=0.1)
    assert costs.current.goodput < costs.best.goodput < 1
    assert [step.goodput <= costs.best.goodput for step in costs.ladder] == [True] * 5
    assert analysis.breakdown.best.bottleneck == "GFS-WRITE"
    assert "hidden" not in {finding.kind for finding in analysis.findings}


def goal(goal: str, *settings: str) -> dict[str, object]:
    study = ["explore", "--simulate", "demo", "--goal", goal, "--vary", "gfs.metadata_ops=400,4000", "--json"]
    done = CliRunner().invoke(cli, [*study, *(part for each in (*ALONE, *settings) for part in ("--set", each))])
    assert done.exit_code == 0, done.output
    found: dict[str, object] = json.loads(done.output)
    return found


@pytest.mark.parametrize("wanted", ["io=5s", "epoch=12s"])
def test_goals_count_checkpoints(wanted: str) -> None:
    """Reads alone meet both; two checkpoints of 3.5 s in an epoch do not."""
    without, with_saves = goal(wanted, "steps_between_checkpoints=0"), goal(wanted)
    assert all(each["met"] for each in without["grid"])  # type: ignore[attr-defined]
    assert not any(each["met"] for each in with_saves["grid"])  # type: ignore[attr-defined]
    assert {each["bottleneck"] for each in with_saves["grid"]} == {"GFS-WRITE"}  # type: ignore[attr-defined]


def test_a_file_that_only_writes_checkpoints(tmp_path: Path) -> None:
    file = tmp_path / "llama3_405b.yaml"
    file.write_text(LLAMA)
    study = load(str(file), ["nodes=128"], "polaris").study
    wanted, train = study.workload.checkpoint, study.workload.train
    assert (wanted.tensor_parallel, wanted.pipeline_parallel, wanted.data_parallel, wanted.zero_stage) == (8, 32, 2, 1)
    assert (train.total_training_steps, train.computation_time, wanted.steps_between_checkpoints) == (10, 5.0, 1)
    assert (study.workload.dataset.format, wanted.verify, study.system.ranks) == ("synthetic", True, 512)
    store = simulate_study(study, str(tmp_path / "out"), "bound", Silent())
    best = analyze(str(tmp_path / "out"), store=store).breakdown.best
    assert best.bottleneck == "GFS-WRITE"
    assert best.classes["GFS-READ"] == 0
    about = store.describe(next(iter(store.finished()))).checkpoint
    assert about is not None
    assert (about.count, about.writers) == (10, 512)
    assert about.bytes == pytest.approx(14 * 405_853_388_800, rel=1e-3)


def test_files_that_only_generate(tmp_path: Path) -> None:
    file = tmp_path / "unet.yaml"
    file.write_text("model: {name: unet}\nframework: pytorch\nworkflow: {generate_data: True, train: False}\n")
    assert load(str(file)).generates_only
    done = CliRunner().invoke(cli, ["simulate", str(file), "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, UserError)
    assert "workflow.train and workflow.checkpoint are off: it only generates data" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_a_tier_must_say_how_fast_it_writes() -> None:
    bare = ("gfs.bandwidth=null", "gfs.emulate=false", "gfs.write_bandwidth=null", "cache_rate=100%", "sweep={}")
    with pytest.raises(
        UserError,
        match=r"system.tiers.gfs: checkpoints are written to it, but it has no write rate; set write_bandwidth",
    ):
        check_rates(load_study("demo", [*bare, "steps_between_checkpoints=1"]))
    check_rates(load_study("demo", [*bare, "steps_between_checkpoints=1", "gfs.write_bandwidth=1 GB/s"]))
    check_rates(load_study("demo", list(bare)))


@pytest.mark.parametrize("method", ["bound", "events"])
@pytest.mark.parametrize("keys", [("checkpoint.background=true",), ("checkpoint.tier=lfs", "drain=true"), ("checkpoint.tier=lfs", "drain=true", "checkpoint.background=true")])  # fmt: skip
def test_what_goes_on_behind_training_is_no_io_but_is_said_first_where_training_waits_for_it(
    method: str, keys: tuple[str, ...], tmp_path: Path
) -> None:
    """Steps of a millisecond: nothing else takes as long as the checkpoints, which no class of the I/O time holds."""
    study = load_study(
        "demo",
        [*ALONE, "computation_time=1 ms", "lfs.bandwidth=10 GB/s", "lfs.read_ops=null", "lfs.capacity=null", *keys],
    )
    store = simulate_study(study, str(tmp_path / "out"), method, Silent())
    breakdown = analyze(str(tmp_path / "out"), store=store).breakdown
    best = breakdown.best
    assert best.io.median < 3.0 < (best.checkpoint_seconds or 0.0) < (best.epoch_seconds or 0.0)
    assert (best.background_seconds or 0.0) > 3.0
    assert held_up_sentence(breakdown).startswith("Checkpoints are the bottleneck: training waits ")
