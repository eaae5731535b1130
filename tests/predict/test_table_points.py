"""Points of a table are simulated with few steps: what comes of it is what `simulate` says of the whole epoch."""

from dataclasses import replace

import pytest

from tierscope.predict.measured_table import EPOCH, SHARE, MeasuredFigures, MeasuredTable
from tierscope.predict.simulation import Simulation
from tierscope.predict.table_points import points_of
from tierscope.spec.load import parse_study

pytestmark = pytest.mark.whole

STUDY = """
study: grouped
workload:
  dataset: {{format: npz, num_files_train: {files}, record_length_bytes: 146600628, record_length_bytes_stdev: {deviation}}}
  reader: {{batch_size: 7, read_threads: {threads}, prefetch_size: {prefetch}, transfer_size: 1 MiB, data_loader: {loader}}}
  train: {{epochs: 1, computation_time: 0.323, sync: {sync}}}
system:
  tiers:
    gfs: {{path: /lustre/p, metadata_ops: 25000/s, servers: 8, latency: {latency} ms}}
"""


@pytest.mark.parametrize("ranks", [2, 8])
@pytest.mark.parametrize(
    ("threads", "prefetch", "loader", "sync", "latency", "deviation"),
    [
        (4, 1, "pytorch", "step", 4, 0),  # workers deliver in groups of four
        (4, 2, "pytorch", "step", 4, 0),
        (4, 3, "pytorch", "epoch", 4, 0),
        (3, 2, "pytorch", "epoch", 2, 0),
        (4, 1, "native", "step", 4, 0),
        (0, 1, "pytorch", "step", 1, 0),
        (4, 1, "pytorch", "step", 4, 40_000_000),
    ],
)
def test_a_part_of_the_steps_tells_the_utilisation_of_all(
    threads: int, prefetch: int, loader: str, sync: str, latency: int, deviation: int, ranks: int
) -> None:
    words = {"threads": threads, "prefetch": prefetch, "loader": loader, "sync": sync, "latency": latency}
    study = parse_study(STUDY.format(files=300 * 7 * ranks, deviation=deviation, **words), "study.yaml")
    blank = MeasuredFigures(1, ranks, {SHARE: (0.5, 0.0), EPOCH: (1.0, 0.0)}, {}, 1)
    (point,) = points_of(MeasuredTable("made", (blank,)), study)
    assert (point.study.workload.train.total_training_steps or 0) < point.steps == 300
    figures = point.simulate(study.system)
    whole = Simulation.of(replace(study, system=replace(study.system, ranks_per_node=ranks))).epoch(1, "events")
    assert whole.rank_au is not None
    close = 0.003 if not deviation else 0.02
    assert figures[SHARE][0] == pytest.approx(float(whole.rank_au.mean()), abs=close)
    assert figures[EPOCH][0] == pytest.approx(float(whole.seconds.max()), rel=2 * close)
