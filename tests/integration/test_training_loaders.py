"""Training with torch's DataLoader in place of ours: the same samples and losses, and a loader that is the same from memory as from files."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from tests.cli.test_commands import run
from tests.framework_loaders import assert_held_samples
from tests.integration.test_training_torch import STUDY, traces
from tests.small_study import node_source, plan_of, stage
from tests.tiny import tiny
from tests.traces import training_of
from tierscope.bench.loading import make_loader
from tierscope.bench.resolved import ResolvedRun
from tierscope.errors import UserError
from tierscope.trace.recorder import Recording

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch installs it")

KEYS = ("sweep={}", "cache_rate=0", "nodes=1", "ranks_per_node=1", "data_loader=pytorch")


def test_two_ranks_train_on_the_same_samples_with_either_loader(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Ranks meet over gloo; every worker's reads are seen; from memory nothing is read after the first epoch."""
    (tmp_path / "study.yaml").write_text(STUDY)
    common = (
        "train",
        tmp_path / "study.yaml",
        "--model",
        "lenet",
        "--device",
        "cpu",
        "--quiet",
        "--repetitions",
        "1",
        "--json",
    )
    theirs = (
        "--loader",
        "pytorch",
        "--storage-matters",
        "--set",
        "multiprocessing_context=fork",
        "--set",
        "read_threads=2",
    )
    assert run(*common, *theirs, "--out", tmp_path / "theirs") == 0
    found = json.loads(capsys.readouterr().out)
    assert run(*common, "--out", tmp_path / "ours") == 0
    assert [(point["data"], point["loader"], point["workers"]) for point in found["points"]] == [
        ("tiers", "pytorch", 2),
        ("memory", "pytorch", 2),
        ("synthetic", "pytorch", 2),
    ]
    assert found["limits"][0]["answer"] == "unclear"  # after one repetition
    by_data = {training_of(trace).data: trace for trace in traces(tmp_path / "theirs")}
    (ours,) = traces(tmp_path / "ours")
    assert set(by_data["tiers"].io["epoch"]) == {1, 2}
    assert set(by_data["memory"].io["epoch"]) == {1}
    assert by_data["synthetic"].io.is_empty()
    reads = pl.col("kind") == "read"
    assert by_data["tiers"].io.filter(reads)["bytes"].sum() == ours.io.filter(reads)["bytes"].sum()
    order = ours.ranks["order_digest"].to_list()
    assert all(trace.ranks["order_digest"].to_list() == order for trace in by_data.values())
    for trace in (by_data["tiers"], by_data["memory"]):
        assert training_of(trace).last_loss == pytest.approx(training_of(ours).last_loss, rel=1e-5)
        assert (trace.ranks["exchange_seconds"] > 0).all()


@pytest.mark.parametrize("context", ["fork", "spawn"])
def test_workers_take_samples_from_memory_when_there_are_no_files_any_more(context: str, tmp_path: Path) -> None:
    keys = (f"multiprocessing_context={context}", "read_threads=1", "format=npz", "preprocess=decode")
    assert_held_samples(tiny(*KEYS, *keys), tmp_path)


def test_a_loader_leaves_the_networks_threads_alone(tmp_path: Path) -> None:
    """Else training on samples of the device, which has no loader, would compute with more threads and be faster for that."""
    study = tiny(*KEYS, "read_threads=0")
    stage(study, str(tmp_path))
    source = node_source(study, str(tmp_path))
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        loader = make_loader(ResolvedRun.of(study), replace(source, feeds_network=True), Recording(2, silent=True))
        next(iter(loader.batches(plan_of(study).reads(0, 1))))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_torch_pins_what_workers_hand_over(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch.utils.data._utils.pin_memory import pin_memory  # noqa: PLC0415

    from tierscope.loaders.pytorch import _collate, _Item  # noqa: PLC0415

    items = [_Item(number, torch.full((3,), number, dtype=torch.uint8), None, 0, 1, 0, 0) for number in range(2)]
    pinned = []

    def note(tensor: Any) -> Any:
        pinned.append(tuple(tensor.shape))
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", note)
    assert pin_memory(_collate(items)).samples == [0, 1]
    assert pinned == [(2, 3)]  # a batch is one tensor


def test_shared_memory_that_is_too_small_is_said_before_a_worker_dies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = tiny(*KEYS, "read_threads=2")
    stage(study, str(tmp_path))
    source = node_source(study, str(tmp_path))
    monkeypatch.setattr("tierscope.loaders.pytorch.os.statvfs", lambda _: SimpleNamespace(f_bavail=1, f_frsize=4096))
    with pytest.raises(
        UserError, match=r"^workload.reader.data_loader = pytorch; .* but 4 KiB are free; lower batch_size"
    ):
        make_loader(ResolvedRun.of(study), source, Recording(2, silent=True))
