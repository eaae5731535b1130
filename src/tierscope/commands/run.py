"""`tierscope run`, after its ranks are gone: DLIO's metrics and the analysis of a result, each run read once."""

from dataclasses import replace

from tierscope.analysis.analysis import Analysis
from tierscope.commands.analyze import analyze
from tierscope.output.store import RunStore
from tierscope.report.summary import Summary, wanted_before, write_summary
from tierscope.spec.dlio_making import MetricOptions


def conclude(out: str, store: RunStore, wanted: MetricOptions | None, au: float | None) -> tuple[Analysis, Summary]:
    """`wanted`, `au`: how metrics are asked for now; what nobody says is as it was said before."""
    wanted = wanted or wanted_before(out)
    summary = write_summary(out, wanted if au is None else replace(wanted, au=au), store)
    return analyze(out, store=store), summary
