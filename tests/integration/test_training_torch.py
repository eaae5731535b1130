"""Real training on the CPU: the plan's samples in the plan's order, the arithmetic of one process, times that add up, and nothing lost by a kill."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.cli.test_commands import run
from tests.traces import as_measured, training_of
from tierscope.errors import UserError
from tierscope.output.store import RunStore
from tierscope.plan.plan import Plan
from tierscope.spec.load import load_study, parse_study
from tierscope.trace.columns import PHASES
from tierscope.trace.trace import Trace

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")

STUDY = """
study: trained
seed: 7
workload:
  dataset: {format: raw, num_files_train: 48, num_samples_per_file: 1, record_length_bytes: 784}
  reader: {batch_size: 4, read_threads: 1, prefetch_size: 2}
  train: {epochs: 2}
system:
  nodes: 1
  ranks_per_node: 2
  tiers:
    gfs: {path: "{out}/tiers/gfs"}
"""
MODEL = ("--model", "lenet", "--device", "cpu", "--quiet")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    return path


def traces(out: Path) -> list[Trace]:
    return list(RunStore(str(out)).load_all())


def train(study: Path, *more: str, repetitions: int = 1) -> list[Trace]:
    out = study.parent / "out"
    assert run("train", study, *MODEL, "--repetitions", repetitions, "--out", out, *more) == 0
    return traces(out)


def test_it_trains_on_the_samples_that_run_reads_in_the_same_order(study: Path) -> None:
    assert run("run", study, "--quiet", "--out", study.parent / "emulated") == 0
    (plain,), (trained,) = traces(study.parent / "emulated"), train(study)
    order = ["epoch", "rank", "order_digest", "samples", "payload_bytes"]
    assert trained.ranks.select(order).rows() == plain.ranks.select(order).rows()
    reads = pl.col("kind") == "read"
    assert trained.io.filter(reads)["bytes"].sum() == plain.io.filter(reads)["bytes"].sum() == 2 * 48 * 784


def test_two_ranks_learn_what_one_process_does_with_twice_the_batch(study: Path) -> None:
    """A plain loop of torch over the same files is the witness."""
    (trace,) = train(study, "--set", "epochs=3")
    log = training_of(trace)
    losses = _plain_loop(study)
    assert log.first_loss == pytest.approx(losses[0], rel=1e-5)
    assert log.last_loss == pytest.approx(losses[-1], rel=1e-4)
    assert losses[0] != losses[-1]


def _plain_loop(study: Path) -> list[float]:
    """Losses of the first rank's part of every batch."""
    from torch.nn import functional  # noqa: PLC0415

    from tierscope.arch.networks import build_network  # noqa: PLC0415
    from tierscope.train.model import NetworkModule  # noqa: PLC0415

    files = sorted((study.parent / "out" / "tiers").rglob("*.raw"))
    pixels = [np.frombuffer(path.read_bytes(), np.uint8).astype(np.float32) / 255 for path in files]
    images = torch.from_numpy(np.stack(pixels)).view(-1, 1, 28, 28)
    plan = Plan.of(load_study(str(study), ["epochs=3"]), 784)
    torch.manual_seed(7)
    module = NetworkModule(build_network("lenet5", None))
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-3, momentum=0.9)
    losses = []
    for epoch in (1, 2, 3):
        order = [np.concatenate([block.samples for block in plan.reads(rank, epoch)]) for rank in (0, 1)]
        for start in range(0, len(order[0]), 4):
            parts = [torch.from_numpy(np.asarray(each[start : start + 4], np.int64)) for each in order]
            with torch.no_grad():
                losses.append(float(functional.cross_entropy(module(images[parts[0]]), parts[0] % 10)))
            both = torch.cat(parts)
            optimizer.zero_grad()
            functional.cross_entropy(module(images[both]), both % 10).backward()
            optimizer.step()
    return losses


def test_phases_add_up_and_losses_are_numbers(study: Path) -> None:
    (trace,) = train(study)
    ranks = trace.ranks
    inside = sum(ranks[name] for name in PHASES if name != "exchange_seconds")
    assert (inside <= ranks["compute_seconds"] + 1e-6).all()
    assert (ranks["compute_seconds"] + ranks["stall_seconds"] <= ranks["epoch_seconds"] + 1e-6).all()
    assert (ranks["exchange_seconds"] > 0).all()
    assert (inside > 0.5 * ranks["compute_seconds"]).all()
    log = training_of(trace)
    assert math.isfinite(log.first_loss)
    assert math.isfinite(log.last_loss)
    assert log.parameters == 61706
    assert as_measured(trace).compute == "real"


def test_whether_storage_matters_is_answered_by_difference(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = study.parent / "out"
    runs = train(study, "--storage-matters", "--json", repetitions=2)
    found = json.loads(capsys.readouterr().out)
    assert json.loads((out / "training.json").read_text()) == found
    assert [point["data"] for point in found["points"]] == ["tiers", "memory", "synthetic"]
    assert found["storage_matters"]["answer"] in ("yes", "no", "unclear")
    assert all(point["n"] == 2 and len(point["interval"]) == 2 for point in found["points"])
    by_data = {training_of(trace).data: trace for trace in runs}
    assert by_data["synthetic"].io.is_empty()
    assert set(by_data["memory"].io["epoch"]) == {1}
    assert set(by_data["tiers"].io["epoch"]) == {1, 2}
    digests = {name: trace.ranks["order_digest"].to_list() for name, trace in by_data.items()}
    assert digests["memory"] == digests["tiers"] == digests["synthetic"]
    for command in (("analyze",), ("estimate", "--improve", "GFS-READ=50"), ("report",), ("characterise",)):
        assert run(command[0], out, *command[1:]) == 0
    said = capsys.readouterr().out
    assert "Best: data tiers" in said
    assert 'id="training"' in (out / "report.html").read_text()
    assert (out / "figures" / "training-phases.svg").exists()


def test_a_run_that_reads_nothing_says_so_everywhere(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train(study, "--data", "synthetic")
    out = study.parent / "out"
    for command in ("analyze", "estimate", "report", "characterise"):
        assert run(command, out) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "nothing is read at the only point: samples are generated on the device" in said
    assert "There was no I/O at the best point" in said
    assert "No sizes: nothing was read." in said
    for wrong in ("compute hides storage", "Do not spend on", "META times are warm"):
        assert wrong not in said


def test_keys_are_varied_one_at_a_time(study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = study.parent / "out"
    more = ("--batch", "4,8", "--vary", "read_threads=0,1", "--json", "--repetitions", "1", "--out", out)
    assert run("train", study, *MODEL, *more) == 0
    found = json.loads(capsys.readouterr().out)
    points = [(point["varied"], point.get("batch_size"), point.get("read_threads")) for point in found["points"]]
    assert points == [
        ("batch_size", 4, None),
        ("batch_size", 8, None),
        ("read_threads", None, 0),
        ("read_threads", None, 1),
    ]
    assert len(list((out / "tiers").rglob("*.raw"))) == 48  # written once for all
    assert run("analyze", out / "batch_size") == 0
    assert run("analyze", out) == 2


def test_checkpoints_between_real_steps_are_written_and_counted(study: Path) -> None:
    settings = ("steps_between_checkpoints=2", "model_parameters=100000", "checkpoint.optimizer=sgd")
    (trace,) = train(study, *(word for setting in settings for word in ("--set", setting)))
    written = trace.io.filter(pl.col("kind") == "write")
    assert written["bytes"].sum() > 0
    assert trace.ranks["checkpoint_seconds"].sum() > 0


@pytest.mark.parametrize("precision", ["fp32", "amp"])
def test_a_step_of_a_deep_network(study: Path, precision: str) -> None:
    settings = ("num_files_train=2", "batch_size=2", "ranks_per_node=1")
    more = ("--model", "resnet50", "--input", "3x32x32", "--precision", precision, "--optimizer", "adam")
    (trace,) = train(study, *more, *(word for setting in settings for word in ("--set", setting)))
    log = training_of(trace)
    assert log.network == "resnet50"
    assert (log.predicted_memory_bytes or 0) > 4 * 25e6
    assert log.repeated == 4  # 784 bytes in 3072


def test_an_input_that_the_network_cannot_take_is_the_users_mistake(study: Path) -> None:
    out = study.parent / "out"
    assert run("train", study, *MODEL, "--input", "3x1x1", "--out", out) == 2
    assert not out.exists()


def ranks_below(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(word) for word in children.read_text().split()] if children.exists() else []


def start(study: Path, *more: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tierscope.cli.main", "train", str(study), *MODEL]
    command += ["--out", str(study.parent / "out"), "--repetitions", "3", "--set", "epochs=60", *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_killed_rank_stops_the_run_with_a_line_and_the_rest_goes_on_later(study: Path) -> None:
    process = start(study)
    runs = study.parent / "out" / "runs"
    deadline = time.monotonic() + 120
    while not list(runs.glob("*.parquet")) and time.monotonic() < deadline:
        time.sleep(0.01)
    ranks = ranks_below(process.pid)
    assert len(ranks) >= 2
    os.kill(ranks[-1], signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    (line,) = err.strip().splitlines()
    assert line.startswith("tierscope: ")
    before = {path.name: path.stat().st_mtime_ns for path in runs.glob("*.parquet")}
    assert 1 <= len(before) < 3
    process = start(study, "--json")
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    found: dict[str, Any] = json.loads(out)
    assert found["points"][0]["n"] == 3
    after = {path.name: path.stat().st_mtime_ns for path in runs.glob("*.parquet")}
    assert {name: after[name] for name in before} == before


def test_a_single_value_cannot_be_normalised() -> None:
    """ResNet's last layers have one value for each channel of a small picture; with one sample that has no variance."""
    import torch  # noqa: PLC0415

    from tierscope.arch.networks import build_network  # noqa: PLC0415
    from tierscope.train.model import NetworkModule  # noqa: PLC0415

    module = NetworkModule(build_network("resnet50", (3, 32, 32)))
    with pytest.raises(UserError, match=r"^resnet50 with input 3x32x32 cannot be trained on a step of one sample"):
        module(torch.rand(1, 3, 32, 32))
    assert module(torch.rand(2, 3, 32, 32)).shape == (2, 1000)
    assert module.eval()(torch.rand(1, 3, 32, 32)).shape == (1, 1000)


@pytest.mark.parametrize(("batch", "files", "fits"), [(1, 4, False), (3, 4, False), (4, 4, True), (8, 1, False), (3, 5, True)])  # fmt: skip
def test_a_step_of_a_single_sample_is_refused_before_data_are_written(batch: int, files: int, fits: bool) -> None:
    from tierscope.train.fits import refuse_batch_of  # noqa: PLC0415

    settings = (
        f"batch_size={batch}",
        f"num_files_train={2 * files}",
        "network=resnet50",
        "input=3x32x32",
        "device=cpu",
    )
    study = parse_study(STUDY, "study.yaml", settings)
    if fits:
        refuse_batch_of(study, 1)
        return
    with pytest.raises(UserError, match=r"^resnet50 with input 3x32x32 cannot be trained on a step of one sample"):
        refuse_batch_of(study, 1)


BARE = """
import sys
sys.modules["polars"] = sys.modules["msgspec"] = None  # as where neither is installed
from tierscope.cli.main import main
main(sys.argv[1:])
"""


def test_runs_are_handed_over_where_there_are_neither_tables_nor_a_decoder(study: Path) -> None:
    folder, out = study.parent / "handed", study.parent / "taken"
    arguments = [study, *MODEL, "--repetitions", 1, "--set", "ranks_per_node=1", "--set", "epochs=1", "--hand-over", folder]  # fmt: skip
    program = [sys.executable, "-c", BARE, "train", *map(str, arguments)]
    said = subprocess.run(program, check=True, capture_output=True, text=True).stderr.splitlines()
    assert said[0] == "note: epochs: 2 instead of 1, because the first is excluded"
    assert said[-2:] == [
        f"Runs: {folder}. To make a result of them: tierscope train --take {folder} --out OUT",
        f"Data: {folder}-data. No longer needed, unless a run is to be repeated",
    ]
    assert run("train", "--take", folder, "--out", out) == 0
    (trace,) = traces(out)
    about = as_measured(trace)
    assert about.provenance is not None
    assert about.provenance.launcher == "one process, handed over"
    assert about.own_cost is not None
    assert (about.own_cost.harness_seconds_per_sample or 0) > 0
    assert training_of(trace).network == "lenet5"
