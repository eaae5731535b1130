"""What the Hierarchy study leaves open, and what Tierscope has for it: among that large files on one OST, which it does not report."""

from dataclasses import replace

from tierscope.papers.hierarchy_drawings import draw_breakdown
from tierscope.papers.hierarchy_statements import CONDITIONAL
from tierscope.papers.hierarchy_sweeps import FEW_RATES, LARGE_60, RATES, case_study, sweep_of
from tierscope.papers.section import Section
from tierscope.papers.verdict import Verdict

MACHINE_NODES = 158_976  # RIKEN, about Fugaku


def make(short: bool) -> Section:
    study = case_study(LARGE_60)
    lfs, gfs = study.system.tiers
    study = replace(study, system=replace(study.system, tiers=(lfs, replace(gfs, servers=1))))
    swept = sweep_of(study, FEW_RATES if short else RATES)
    leaders = list(dict.fromkeys(swept.leader(rate) for rate in swept.times))
    figure = draw_breakdown({"large files, 1 OST": swept}, f"Not reported by the study: {CONDITIONAL}.")  # fmt: skip
    ranks, batch = study.system.ranks, study.workload.reader.batch_size
    return Section(
        (
            Verdict(
                "H-D-5",
                f"{study.system.nodes} of {MACHINE_NODES:,} nodes are {study.system.nodes / MACHINE_NODES:.1%}; the global batch is {ranks * batch:,} (large) or 36,864 (small files)",
                "not available here",
                "arithmetic",
                "whether such a batch harms training needs a training at that size",
            ),
            Verdict("H-W-1", "probe measures rates in minutes, simulate needs no measurement", "listed", "simulated", "`tierscope probe`, `tierscope simulate`"),
            Verdict("H-W-2", "queueing: by events and by a bound; calibrated with intervals", "listed", "simulated", "`tierscope calibrate`, `tierscope estimate --with-model`; its error: H-D-1 and validation.md"),
            Verdict("H-W-3", f"policies: H-D-2; local shuffle: H-D-3; large files on 1 OST: best cache rate {swept.best:.0%}, led by {' then '.join(leaders)}", "listed", "conditional", f"seed 42; {CONDITIONAL}"),
        ),
        (replace(figure, id="H-W-3", name="w3", source="conditional"),),
    )  # fmt: skip
