"""Figures 1 to 4 of the Hierarchy study and every statement about them: its three cases in one study, simulated at full size, with many seeds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from tierscope.papers.hierarchy_drawings import class_table, draw_breakdown, draw_epochs, draw_goal, draw_improved
from tierscope.papers.hierarchy_facts import BETTER
from tierscope.papers.hierarchy_statements import CONDITIONAL, STATEMENTS, Cases, Statement, StatementAnswer
from tierscope.papers.hierarchy_sweeps import (
    EPOCH,
    FEW_RATES,
    LARGE_60,
    RATES,
    SMALL_1,
    SMALL_60,
    HierarchySweep,
    case_study,
    sweep_of,
    with_seed,
)
from tierscope.papers.section import PaperFigure, PaperTable, Section
from tierscope.papers.verdict import UNEXPLAINED, Verdict
from tierscope.plan.reading import reading_of
from tierscope.spec.study import Study

TITLES = {SMALL_60: "small files, 60 OSTs", SMALL_1: "small files, 1 OST", LARGE_60: "large files, 60 OSTs"}
SEEDS = (42, *range(1, 20))  # the preset's own before all: figures are drawn from it
FEW_SEEDS = 3
ENOUGH = 0.8  # 16 of 20
FULL_BANDWIDTH = 0.9
NODES = (768, 1536, 3072)
_GAP_ID, _GFS_ID, _OUTRUNS_ID, _EQUATION_ID = "H-F1-1", "H-F2-13", "H-F2-14", "H-E-5"


def make(short: bool) -> Section:
    rates, seeds = (FEW_RATES, SEEDS[:FEW_SEEDS]) if short else (RATES, SEEDS)
    studies = {case: case_study(case) for case in TITLES}
    epochs = {
        case: [sweep_of(study, _rates(case, rates), epoch) for epoch in (1, 2, 3)] for case, study in studies.items()
    }
    answers: list[dict[str, StatementAnswer]] = []
    for seed in seeds:
        if seed == SEEDS[0]:
            swept = [epochs[case][EPOCH - 1] for case in TITLES]
        else:
            swept = [sweep_of(with_seed(study, seed), _rates(case, FEW_RATES)) for case, study in studies.items()]
        cases = Cases(*swept)
        answers.append({statement.id: statement.judge(cases) for statement in STATEMENTS})
    verdicts = {statement.id: combined(statement, [answer[statement.id] for answer in answers]) for statement in STATEMENTS}  # fmt: skip
    scaled = node_counts(studies[LARGE_60])
    verdicts[_OUTRUNS_ID] = _with_nodes(verdicts[_OUTRUNS_ID], scaled)
    verdicts[_GFS_ID] = _full_bandwidth(studies, epochs)
    verdicts[_EQUATION_ID] = replace(verdicts[_GAP_ID], id=_EQUATION_ID)
    figures = draw_figures({TITLES[case]: swept for case, swept in epochs.items()}, len(rates))
    artefacts = [_artefact(figure, verdicts) for figure in figures]
    by_title = {TITLES[case]: swept for case, swept in epochs.items()}
    return Section((*artefacts, *verdicts.values()), figures, (class_table(by_title), _nodes_table(scaled)))


def _rates(case: str, rates: Sequence[float]) -> Sequence[float]:
    """All of them for large files, of which there are few."""
    return RATES if case == LARGE_60 else rates


def draw_figures(epochs: dict[str, list[HierarchySweep]], rates: int) -> tuple[PaperFigure, ...]:
    second = {title: swept[EPOCH - 1] for title, swept in epochs.items()}
    about = f"Simulated by events at {rates} cache rates, seed {SEEDS[0]}, 3,072 processes; rates of the storage are fitted to small files; of large ones only H-F2-14 bounds the SSDs' bandwidth."  # fmt: skip
    small = second[TITLES[SMALL_60]]
    return (
        draw_epochs(epochs, about),
        draw_breakdown(second, about),
        draw_improved(small, BETTER, about),
        draw_goal(small, about),
    )


def _artefact(figure: PaperFigure, verdicts: Mapping[str, Verdict]) -> Verdict:
    about = [verdict for row_id, verdict in verdicts.items() if row_id.startswith(f"{figure.id}-")]
    holding = sum(verdict.outcome == "holds" for verdict in about)
    return Verdict(figure.id, f"drawn; {holding} of {len(about)} simulated statements about it hold", "beside", "simulated", f"its values are not published; statements: seed {SEEDS[0]} as drawn, other seeds at {len(FEW_RATES)} rates of small files")  # fmt: skip


def combined(statement: Statement, answers: Sequence[StatementAnswer]) -> Verdict:
    """Over seeds: medians with the range, and in how many the statement holds."""
    count, n = sum(answer.holds for answer in answers), len(answers)
    holds = count >= ENOUGH * n
    words = [f"holds with {count} of {n} seeds, {ENOUGH:.0%} needed"]
    if not holds:
        words.append(statement.why or UNEXPLAINED)
    if statement.note:
        words.append(statement.note)
    if statement.blind:
        words.append(f"0.1.0 said before it was told the outcome: {statement.blind}")
    return Verdict(statement.id, _over_seeds(statement, answers), "holds" if holds else "does not hold", statement.source, "; ".join(words))  # fmt: skip


def _over_seeds(statement: Statement, answers: Sequence[StatementAnswer]) -> str:
    n = len(answers)
    if not answers[0].numbers:
        texts = Counter(answer.text for answer in answers).most_common()
        return "; ".join(f"{text} ({count} of {n} seeds)" for text, count in texts[:3])
    shown = []
    of_numbers = list(zip(*(answer.numbers for answer in answers), strict=True))
    formats = [statement.fmt] * len(of_numbers) if isinstance(statement.fmt, str) else statement.fmt
    for values, fmt in zip(of_numbers, formats, strict=True):
        middle, low, high = (format(value, fmt) for value in (median(values), min(values), max(values)))
        shown.append((middle if low == high else f"{middle} [{low}…{high}]").replace("inf", "∞"))
    return f"{statement.form.format(*shown)}, n = {n}"


# Large files: does the GFS give all it has, and do more nodes make the LFS pay off?


@dataclass(frozen=True, slots=True)
class NodeCount:
    nodes: int
    gfs_seconds: float  # of the slowest process, all files from the GFS
    lfs_seconds: float


def node_counts(study: Study) -> list[NodeCount]:
    """As many files for each process as in the study; gateways and SSDs grow with the nodes, OSTs do not."""
    counts = []
    per_node = study.workload.dataset.num_files_train // study.system.nodes
    for nodes in NODES:
        dataset = replace(study.workload.dataset, num_files_train=per_node * nodes)
        larger = replace(
            study, workload=replace(study.workload, dataset=dataset), system=replace(study.system, nodes=nodes)
        )
        io = sweep_of(larger, (0.0, 1.0)).io
        counts.append(NodeCount(nodes, io[0.0], io[1.0]))
    return counts


def _with_nodes(verdict: Verdict, counts: Sequence[NodeCount]) -> Verdict:
    enough = next((count.nodes for count in counts if count.lfs_seconds < count.gfs_seconds), None)
    more = f"the LFS is faster from {enough:,} nodes" if enough else f"the LFS is not faster with up to {counts[-1].nodes:,} nodes"  # fmt: skip
    holds = verdict.outcome == "holds" and enough is not None and enough > counts[0].nodes
    return replace(verdict, ours=f"{verdict.ours}; {more}", outcome="holds" if holds else "does not hold")


def _nodes_table(counts: Sequence[NodeCount]) -> PaperTable:
    return PaperTable(
        _OUTRUNS_ID,
        "nodes",
        ("nodes", "all from the GFS, s", "all from the LFS, s"),
        tuple((count.nodes, count.gfs_seconds, count.lfs_seconds) for count in counts),
        "conditional",
        "large files, 60 OSTs: I/O time of the slowest process against the number of nodes, 2 files per process",
    )


def _full_bandwidth(studies: dict[str, Study], epochs: dict[str, list[HierarchySweep]]) -> Verdict:
    """Delivered while all is read from the GFS, as a share of what its narrowest part (gateways or OSTs) can give."""
    shares, opens = [], []
    for case in (LARGE_60, SMALL_60):
        study, gfs = studies[case], studies[case].system.tiers[-1]
        assert gfs.bandwidth is not None  # as the preset has them
        assert gfs.gateway_bandwidth is not None
        assert gfs.gateway_shared_by is not None
        gateways = study.system.nodes / gfs.gateway_shared_by
        limit = min(gfs.servers * gfs.bandwidth, gateways * gfs.gateway_bandwidth)
        moved = study.workload.dataset.samples * reading_of(study).sample_bytes
        shares.append(moved / epochs[case][EPOCH - 1].io[0.0] / limit)
        opens.append(study.workload.dataset.num_files_train)
    holds = shares[0] >= FULL_BANDWIDTH and opens[1] >= 10 * opens[0]
    return Verdict(
        _GFS_ID,
        f"{opens[1] / opens[0]:.0f} times fewer opens; all from the GFS: {shares[0]:.0%} of its bandwidth, small files {shares[1]:.0%}",
        "holds" if holds else "does not hold",
        "conditional",
        f"at least {FULL_BANDWIDTH:.0%} of what gateways and OSTs can give; seed {SEEDS[0]}; {CONDITIONAL}",
    )
