"""Emulation: 64 ranks on this machine saturate each kind of station; what they get beside what was configured."""

import statistics
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import Result, memory_folder
from tierscope.bench.crew import LocalCrew
from tierscope.bench.run import RunTask
from tierscope.bench.tasks import ClaimTask, StageTask, SurveyTask
from tierscope.loaders.choose import choose_loader
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tierscope.storage.emulated import Board
from tierscope.storage.stations import map_stations

RANKS = 64
FILES = 1024
NBYTES = 16 * 1024
EPOCHS = 3
STUDY = f"""
study: bench
workload:
  dataset: {{format: raw, num_files_train: {FILES}, record_length_bytes: {NBYTES}}}
  reader: {{batch_size: 4}}
  train: {{epochs: {EPOCHS}}}
system:
  nodes: 16
  ranks_per_node: 4
  tiers: {{gfs: {{path: "{{out}}/gfs", emulate: true, %s}}}}
"""
# what saturates → (its configuration, operations per second that follow from it)
STATIONS = {
    "one metadata server": ("metadata_ops: 500/s", 500.0),
    "4 object servers, by operations": ("servers: 4, read_ops: 125/s", 500.0),
    "4 object servers, by bytes": (f"servers: 4, bandwidth: {125 * NBYTES}", 500.0),
    "4 devices of 4 nodes each": ("device_shared_by: 4, read_ops: 125/s", 500.0),
    "4 gateways of 4 nodes each": (f"gateway_shared_by: 4, gateway_bandwidth: {125 * NBYTES}", 500.0),
}


def emulation() -> Iterator[Result]:
    with memory_folder() as folder, LocalCrew(RANKS) as crew:
        for name, (configuration, rate) in STATIONS.items():
            study = parse_study(STUDY % configuration, "bench")
            errors = [seconds * rate / FILES - 1 for seconds in _epochs(crew, study, folder)]
            median = statistics.median(errors)
            yield Result(
                name=f"{RANKS} ranks, {name}: time / configured − 1",
                value=100 * median,
                unit="%",
                low=100 * min(errors),
                high=100 * max(errors),
                n=len(errors),
                goal="within ±3 %",
                met=abs(median) <= 0.03,
            )


def _epochs(crew: LocalCrew, study: Study, folder: Path) -> list[float]:
    """The longest rank of every epoch."""
    for task in (ClaimTask(study, str(folder)), SurveyTask(study, str(folder)), StageTask(study, str(folder))):
        crew.call(task, lambda _: None)
    board = Board(map_stations(study.system, study.seed).count)
    try:
        ranks = crew.call(RunTask(study, choose_loader(study), str(folder), board.path, "none", None), lambda _: None)
    finally:
        board.close()
    return [max(rank.epochs[epoch].seconds for rank in ranks) for epoch in range(EPOCHS)]
