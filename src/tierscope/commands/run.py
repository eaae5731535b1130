"""`tierscope run`: with ranks on this machine, and, after ranks are gone, DLIO's metrics and the analysis; each run is read once."""

from contextlib import closing
from dataclasses import dataclass, replace

from tierscope.analysis.analysis import Analysis
from tierscope.commands.analyze import analyze
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.output.store import RunStore
from tierscope.recording.recorders import BUILTIN
from tierscope.report.summary import Summary, wanted_before, write_summary
from tierscope.spec.dlio_making import MetricOptions
from tierscope.spec.load import Loaded
from tierscope.watch import Watch


@dataclass(frozen=True, slots=True)
class LocalRun:
    """How a study is run on this machine. `stall_seconds`: how long a rank may wait for storage; None: for ever."""

    ops: bool = False
    profiler: str = BUILTIN
    stall_seconds: float | None = None


def run_here(loaded: Loaded, out: str, wanted: LocalRun, watch: Watch) -> Analysis:
    """With ranks that are processes of this machine: all runs that are not finished, then the metrics and the analysis."""
    with closing(Crews(None, wanted.stall_seconds)) as crews:
        store = run_study(loaded.study, out, crews, watch, wanted.ops, wanted.profiler)
    return conclude(out, store, loaded.wanted, None)[0]


def conclude(out: str, store: RunStore, wanted: MetricOptions | None, au: float | None) -> tuple[Analysis, Summary]:
    """`wanted`, `au`: how metrics are asked for now; what nobody says is as it was said before."""
    wanted = wanted or wanted_before(out)
    summary = write_summary(out, wanted if au is None else replace(wanted, au=au), store)
    return analyze(out, store=store), summary
