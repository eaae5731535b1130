"""What a simulation writes is what ranks write: the same bytes and operations of every rank, tier, kind and lane."""

from pathlib import Path

import polars as pl
import pytest

from tests.measure.test_run import run, traces
from tests.tiny import tiny
from tierscope.commands.simulate import simulate_study
from tierscope.spec.study import Study
from tierscope.trace.ops import BACKGROUND_LANE, CHECKPOINT_LANE
from tierscope.trace.trace import Trace
from tierscope.watch import Silent

pytestmark = pytest.mark.whole

RATES = ("lfs.bandwidth=1 GB/s", "gfs.bandwidth=1 GB/s", "gfs.metadata_ops=unlimited", "lfs.capacity=null")
STUDIES = {
    "one rank": ("steps_between_checkpoints=1",),
    "many steps": ("steps_between_checkpoints=1", "batch_size=1", "num_files_train=24"),
    "all ranks": ("steps_between_checkpoints=2", "mode=all_ranks", "model_parameters=30000", "zero_stage=1"),
    "to the near tier": ("epochs_between_checkpoints=2", "mode=all_ranks", "checkpoint.tier=lfs", "fsync=true"),
    "in the background": ("steps_between_checkpoints=1", "mode=all_ranks", "checkpoint.background=true"),
    "in the background, one rank": ("epochs_between_checkpoints=1", "checkpoint.background=true", "fsync=true"),
    "split": (
        *("steps_between_checkpoints=2", "mode=all_ranks", "model_parameters=40000", "tensor_parallel=2"),
        *("pipeline_parallel=2", "data_parallel=2", "zero_stage=1"),
    ),
    "first-touch": ("policy=first-touch", "cache_rate=100%"),
    "first-touch and checkpoints": ("policy=first-touch", "cache_rate=50%", "steps_between_checkpoints=1"),
    "no data is read": ("format=synthetic", "cache_rate=0%", "steps_between_checkpoints=1"),
}


def study(*settings: str) -> Study:
    return tiny("sweep={}", "cache_rate=50%", "epochs=3", "checkpoint.fsync=false", *RATES, *settings)


def written(trace: Trace) -> dict[tuple[object, ...], tuple[int, int]]:
    """By rank, tier, kind and lane, over all epochs: what goes on behind training may end in a later one."""
    lane = pl.when(pl.col("lane").is_in([CHECKPOINT_LANE, BACKGROUND_LANE])).then(pl.col("lane")).otherwise(0)
    rows = (
        trace.io.with_columns(lane.alias("lane"))
        .group_by("rank", "tier", "kind", "lane")
        .agg(pl.col("ops", "bytes").sum())
    )
    return {tuple(row[:4]): (row[4], row[5]) for row in rows.iter_rows()}


@pytest.mark.parametrize("name", STUDIES)
def test_the_same_operations_and_bytes(name: str, tmp_path: Path) -> None:
    wanted = study(*STUDIES[name])
    run(wanted, tmp_path / "measured")
    (measured,) = traces(tmp_path / "measured")
    for method in ("events", "bound"):
        simulate_study(wanted, str(tmp_path / method), method, Silent())
        (simulated,) = traces(tmp_path / method)
        assert written(simulated) == written(measured), method
        about, theirs = simulated.about.checkpoint, measured.about.checkpoint
        if theirs is not None:
            assert about is not None
            same = ("tier", "count", "bytes", "writers")
            assert [getattr(about, key) for key in same] == [getattr(theirs, key) for key in same]
