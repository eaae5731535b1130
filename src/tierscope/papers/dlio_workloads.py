"""The eight applications of DLIO's paper (D-F1 to D-F6, D-A): each small on an emulated tier, whole by simulation, and scaled to 8,192 processes.

What is published of I/O time, run time and bandwidth contradicts itself for most of them (D-C-8 to D-C-20). Compute times of the presets are derived from the published
share and bandwidth, so a share is called fitted: it can only tell whether the bandwidth comes out. Theta's rate of a stream is fitted to ImageNet and CosmoFlow, its
latency chosen with Cosmic Tagger in mind; DFFN, CANDLE and FRNN are fitted to nothing, but were looked at when both were chosen: no blind predictions.
"""

from collections.abc import Mapping

from tierscope.papers import workload_rows
from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.section import PaperFigure, Section
from tierscope.papers.verdict import Outcome, Source, Verdict, points_agree
from tierscope.papers.workload_runs import WorkloadRun, run_workload
from tierscope.papers.workload_scaling import scale, scaling_figure, scaling_verdicts
from tierscope.papers.workload_studies import (
    OWN_FILES,
    READING,
    SHARED_FILE,
    TITLES,
    SimulatedRun,
    simulate_run,
    study_of,
)
from tierscope.report.drawn.character import character_figures, draw_rank_bandwidth
from tierscope.report.drawn.view import Figure
from tierscope.units import counted

PUBLISHED_SHARES = {"candle": 36, "frnn": 23, "cosmic-tagger": 22, "dffn": 18, "imagenet": 15, "cosmoflow": 12}
PUBLISHED_GBS = {"cosmoflow": 36.0, "imagenet": 32.0, "frnn": 28.0, "dffn": 11.0, "candle": 8.0, "cosmic-tagger": 0.011}
FITTED_BANDWIDTH = ("imagenet", "cosmoflow", "cosmic-tagger")
FULL, NONE = 90.0, 5.0  # percent hidden: all, but for the first batch; nothing, but for chance
ACCESSES = "reads-files"
SMALL_NODES = 16  # of the short form: as many processes on a node, fewer nodes
FIGURES = {  # drawings of each published figure; reads-time has two of its panels, bandwidth and the timeline
    "cosmic-tagger": ("reads-time", "reads-sizes"),
    "dffn": ("reads-time", "reads-ranks", "reads-rates", "reads-sizes"),
    "cosmoflow": ("reads-time", "reads-rates", "reads-hidden"),
    "candle": ("reads-time", "reads-ranks", "reads-rates"),
    "frnn": ("reads-time", "reads-sizes"),
    "imagenet": ("reads-time", ACCESSES, "reads-hidden"),
}


def make(short: bool) -> Section:
    runs = {name: run_workload(name) for name in TITLES if name != "l2hmc"}
    nodes = (f"nodes={SMALL_NODES}",) if short else ()
    simulated = {name: simulate_run(study_of(name, *nodes)) for name in TITLES}
    scaled = {name: scale(name, short) for name in (*OWN_FILES, *SHARED_FILE)}
    figures = [figure for number, name in enumerate(READING, start=1) for figure in _figures(number, name, runs[name])]
    own, shared = ([scaled[name] for name in names] for names in (OWN_FILES, SHARED_FILE))
    figures.append(scaling_figure("D-F14", "Strong scaling, many files", own))
    figures.append(scaling_figure("D-F15", "Strong scaling, shared file", shared))
    verdicts = (
        *(_artefact(number, name, figures) for number, name in enumerate(READING, start=1)),
        *workload_rows.statements(runs, simulated),
        *orders(runs, simulated),
        *scaling_verdicts(scaled),
    )
    return Section(verdicts, tuple(figures))


def _figures(number: int, name: str, run: WorkloadRun) -> list[PaperFigure]:
    own = [_accesses(run)] if ACCESSES in FIGURES[name] else []
    rates = draw_rank_bandwidth(run.character)
    drawn = {figure.name: figure for figure in (*character_figures(run.character), *own, *([rates] if rates else []))}
    about = (
        f"{TITLES[name]}, {run.study.system.ranks} ranks on an emulated tier with a request's time on Theta, at scale."
    )
    return [
        PaperFigure(
            f"D-F{number}", f"f{number}-{part}", figure.svg, "emulated", f"{figure.title}. {about} {figure.caption}"
        )
        for part in FIGURES[name]
        if (figure := drawn.get(part)) is not None and figure.svg is not None
    ]


def _accesses(run: WorkloadRun) -> Figure:
    """Reads of each file, by all ranks in all epochs."""
    reads = sorted(workload_rows.accesses(run), reverse=True)
    caption = f"Reads of each of {counted(len(reads), 'file')} by all ranks, most first."
    line = Line("reads", tuple(map(float, reads)), LOOKS[0], 0)
    places = tuple(float(place) for place in range(1, len(reads) + 1))
    panel = ChartPanel("accesses per file", "file", "file", "reads", places, (line,))
    return Figure(ACCESSES, "Accesses per file", caption, draw_chart(ACCESSES, "Accesses per file", caption, [panel]))


def _artefact(number: int, name: str, figures: list[PaperFigure]) -> Verdict:
    row_id = f"D-F{number}"
    names = [figure.name for figure in figures if figure.id == row_id]
    missing = len(FIGURES[name]) - len(names)
    why = "its curves are not published: judged by the statements about it"
    if missing:
        why += f"; {missing} of {counted(len(FIGURES[name]), 'drawing')} cannot be made here"
    outcome: Outcome = "beside" if names else "not available here"
    return Verdict(row_id, f"drawn: {', '.join(f'{part}.svg' for part in names)}", outcome, "emulated", why)


def orders(runs: Mapping[str, WorkloadRun], simulated: Mapping[str, SimulatedRun]) -> list[Verdict]:
    return [_share_order(runs, simulated), _bandwidth_order(simulated), _overlap_order(runs, simulated)]


def _share_order(runs: Mapping[str, WorkloadRun], simulated: Mapping[str, SimulatedRun]) -> Verdict:
    ours = {name: 100 * simulated[name].io_share for name in PUBLISHED_SHARES}
    emulated = {name: 100 * (runs[name].io_share or 0.0) for name in PUBLISHED_SHARES}
    text = f"simulated {_listed(ours, '%')}; emulated {_listed(emulated, '%')}"
    close = [TITLES[name] for name, share in PUBLISHED_SHARES.items() if points_agree(ours[name], share)]
    why = f"compute times are derived from the published shares, so shares are not predictions; fitted by bandwidth too: ImageNet, CosmoFlow, Cosmic Tagger. As published, to 3 points: {', '.join(close) or 'none'}"  # fmt: skip
    return _judged("D-A-1", text, in_order(ours, PUBLISHED_SHARES), "fitted", why)


def _bandwidth_order(simulated: Mapping[str, SimulatedRun]) -> Verdict:
    ours = {name: simulated[name].bandwidth / 1e9 for name in PUBLISHED_GBS}
    far = max(ours[name] for name in ours if name != "cosmic-tagger")
    holds = in_order(ours, PUBLISHED_GBS) and ours["cosmic-tagger"] < 0.1 * far
    why = "bytes over the mean I/O time of a process; fitted: ImageNet, CosmoFlow (rate of a stream), Cosmic Tagger (latency); not fitted, but seen when these were chosen: FRNN, DFFN, CANDLE"  # fmt: skip
    return _judged("D-A-2", _listed(ours, "GB/s"), holds, "fitted", why)


def _overlap_order(runs: Mapping[str, WorkloadRun], simulated: Mapping[str, SimulatedRun]) -> Verdict:
    ours = {name: 100 * (simulated[name].hidden or 0.0) for name in READING}
    emulated = {name: 100 * (runs[name].hidden or 0.0) for name in READING}
    most_of_full, most_of_none = (
        pick(ours[name] for name in names)
        for pick, names in ((min, ("cosmoflow", "imagenet")), (max, ("dffn", "candle", "frnn")))
    )
    holds = most_of_full > FULL and NONE < ours["cosmic-tagger"] < FULL and most_of_none < NONE
    why = "no prediction: what compute hides follows from compute times, which are derived from published shares. Cosmic Tagger hides nothing here: its ranks read inline, and what hid a tenth is not published"  # fmt: skip
    return _judged("D-A-3", f"simulated {_listed(ours, '%')}; emulated {_listed(emulated, '%')}", holds, "simulated", why)  # fmt: skip


def in_order(ours: Mapping[str, float], published: Mapping[str, float]) -> bool:
    """Whether the workloads come in the order that was published, largest first."""
    wanted = sorted(published, key=lambda name: -published[name])
    return wanted == sorted(published, key=lambda name: -ours[name])


def _listed(values: Mapping[str, float], unit: str) -> str:
    largest_first = sorted(values, key=lambda name: -values[name])
    return ", ".join(f"{TITLES[name]} {values[name]:.3g}" for name in largest_first) + f" {unit}"


def _judged(row_id: str, ours: str, holds: bool, source: Source, why: str) -> Verdict:
    return Verdict(row_id, ours, "holds" if holds else "does not hold", source, why)
