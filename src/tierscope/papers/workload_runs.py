"""The eight workloads, small, run for real on an emulated tier, with every operation recorded: how they read."""

import os
from dataclasses import dataclass

import polars as pl

from tierscope.analysis.characterise import Character
from tierscope.commands.characterise import characterise_path
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.papers.work_folder import work_folder
from tierscope.papers.workload_studies import small_study
from tierscope.spec.study import Study
from tierscope.trace.ops import STATISTICS_LANE
from tierscope.watch import Silent


@dataclass(frozen=True, slots=True)
class WorkloadRun:
    """`ops`: rank, epoch, lane, step, kind, file, offset, bytes and start of every operation."""

    study: Study
    character: Character
    ops: pl.DataFrame

    def reads(self, beside: bool = False) -> pl.DataFrame:
        """Of samples, or of the small file beside them."""
        of_side = pl.col("lane") == STATISTICS_LANE
        return self.ops.filter((pl.col("kind") == "read") & (of_side if beside else ~of_side))

    @property
    def hidden(self) -> float | None:
        return self.character.hidden.share

    @property
    def io_share(self) -> float | None:
        percent = self.character.io_percent.value
        return None if percent is None else percent / 100

    def share_of_reads(self, low: int, high: int, beside: bool = False) -> float:
        """With so many bytes, both included."""
        reads = self.reads(beside)
        return float(reads["bytes"].is_between(low, high).mean() or 0.0) if len(reads) else 0.0  # type: ignore[arg-type]


def run_workload(name: str) -> WorkloadRun:
    study, crews = small_study(name), Crews()
    with work_folder() as folder:
        out = os.path.join(folder, "out")
        try:
            run_study(study, out, crews, Silent(), ops=True)
        finally:
            crews.close()
        lists = os.path.join(out, "ops")
        tables = [pl.read_parquet(os.path.join(lists, part)) for part in sorted(os.listdir(lists)) if "-r" in part]
        return WorkloadRun(study, characterise_path([out]).character, pl.concat(tables))
