"""DLIO's similarity test (Figure 8) and what follows from its printed differences.

Published is the similarity of six applications with DLIO's emulation of them. The applications are not here. Measured instead, from dated files: DLIO's own run beside Tierscope's run of
the same YAML, which is another quantity; and, for two small applications of ours that really train, the published quantity, application beside DLIO.
"""

import math
import re
from collections.abc import Mapping, Sequence

from tierscope.analysis.similarity import Compared, cosine_of
from tierscope.papers.drawn_similarity import DrawnRow, draw_differences
from tierscope.papers.measured_similarity import (
    ComparedRuns,
    MeasuredWorkload,
    MissingMeasurement,
    Share,
    SimilarityFile,
    Spread,
    measured_similarity,
)
from tierscope.papers.rows import rows_of
from tierscope.papers.section import PaperFigure, Section
from tierscope.papers.verdict import Verdict

APPLICATIONS = tuple(f"D-F8-{number}" for number in range(1, 7))
ABOVE = 0.90
_OURS, _DLIO = "application-ours", "application-dlio"
_BOTH = "dlio-ours"
_NUMBER = re.compile(r"[−-]?\d+\.\d+")
# Which metrics move together, for the question what a missing similarity comes from.
_GROUPS = {
    "request sizes": frozenset(("transfer_min", "transfer_max", "transfer_mean", "transfer_median")),
    "time and bandwidth": frozenset(("io_seconds", "bandwidth_per_operation", "bandwidth_median", "bandwidth_mean")),
    "order": frozenset(("sequential_percent", "consecutive_percent")),
    "amounts": frozenset(("bytes", "files")),
}
_PRINTED = (
    *("io_seconds", "files", "sequential_percent", "consecutive_percent", "transfer_median", "transfer_mean"),
    *("bandwidth_median", "bandwidth_mean"),
)
SHORT_NAMES = {
    "io_seconds": "I/O time",
    "bytes": "bytes",
    "transfer_min": "min read",
    "transfer_max": "max read",
    "transfer_mean": "mean read",
    "transfer_median": "median read",
    "bandwidth_per_operation": "bandwidth",
    "sequential_percent": "sequential",
    "consecutive_percent": "consecutive",
    "files": "files",
}


def make(short: bool) -> Section:  # noqa: ARG001  (nothing here takes time)
    return section(measured_similarity())


def section(measured: SimilarityFile | MissingMeasurement) -> Section:
    arithmetic = _recomputed()
    if isinstance(measured, MissingMeasurement):
        missing = ("D-F8", *APPLICATIONS, "D-F8-7", "D-F8-8")
        return Section((*(Verdict(row, "–", "not available here", why=measured.reason) for row in missing), arithmetic))
    by_row = {workload.row: workload for workload in measured.workloads if workload.row}
    verdicts = [_table(measured), *(_application(row, by_row) for row in APPLICATIONS), _above(measured)]
    return Section((*verdicts, _from_sizes(measured), arithmetic), (_figure(measured),))


# ---- what follows from the printed differences ----


def printed_differences() -> dict[str, tuple[Compared, ...]]:
    """The eight of every application, as two values of which the larger is 1."""
    table: dict[str, tuple[Compared, ...]] = {}
    for row in APPLICATIONS:
        numbers = _numbers(rows_of("dlio")[row].published)[: len(_PRINTED)]
        table[row] = tuple(
            Compared(name, 1 + min(0.0, difference), 1 - max(0.0, difference), difference)
            for name, difference in zip(_PRINTED, numbers, strict=True)
        )
    return table


def _numbers(text: str) -> list[float]:
    return [float(number.replace("−", "-")) for number in _NUMBER.findall(text)]


def _recomputed() -> Verdict:
    """D-X-1: without and with three more metrics that are equal in both runs."""
    published = _numbers(rows_of("dlio")["D-X-1"].published)
    rows = printed_differences().values()
    equal = [Compared(name, 1.0, 1.0, 0.0) for name in ("bytes", "transfer_min", "transfer_max")]
    cosines = [*(cosine_of(row) or 0.0 for row in rows), *(cosine_of([*row, *equal]) or 0.0 for row in rows)]
    ours = ", ".join(f"{cosine:.3f}" for cosine in cosines)
    holds = [f"{cosine:.3f}" for cosine in cosines] == [f"{number:.3f}" for number in published]
    return Verdict("D-X-1", ours, "holds" if holds else "does not hold", "arithmetic", "by D-E-1, from rows 1–6")


# ---- what was measured ----


def _spread(spread: Spread[Share]) -> str:
    return f"{spread.median:.2f} ({spread.low:.2f}–{spread.high:.2f}, n={spread.n})"


def _differences(runs: ComparedRuns) -> str:
    return ", ".join(
        f"{SHORT_NAMES[metric.metric]} {metric.difference.median:+.2f}" for metric in runs.metrics
    ).replace("-", "−")


def _lowering(runs: ComparedRuns) -> tuple[str, float]:
    """The group of metrics without which the cosine of the medians rises most, and by how much."""
    whole = runs.cosine_without(frozenset()) or 0.0
    rises = {name: (runs.cosine_without(group) or whole) - whole for name, group in _GROUPS.items()}
    return max(rises.items(), key=lambda pair: pair[1])


def _conditions(measured: SimilarityFile) -> str:
    return f"{measured.ranks} rank, emulated storage ({', '.join(measured.storage)}), DLIO {measured.versions.get('dlio-benchmark', '?')}"


def _application(row: str, by_row: Mapping[str, MeasuredWorkload]) -> Verdict:
    workload = by_row.get(row)
    if workload is None or _BOTH not in workload.compared:
        return Verdict(row, "–", "not available here", why="not measured: python -m validation.measured_similarity")
    runs = workload.compared[_BOTH]
    group, rise = _lowering(runs)
    parts = [
        f"DLIO's run beside Tierscope's: {_spread(runs.cosine)}; (DLIO − Tierscope) ÷ larger: {_differences(runs)}"
    ]
    if _DLIO in workload.compared:
        parts.append(f"our small application beside DLIO: {_spread(workload.compared[_DLIO].cosine)}")
    why = (
        "not the same quantity: published is the application beside DLIO, which is not available here; "
        f"{'DLIO’s own' if workload.shipped else 'our'} {workload.yaml} for both programs, scaled down; held down most by {group} (+{rise:.2f} without); "
        f"DLIO beside itself: {_spread(workload.repeated)}"
    )
    return Verdict(row, "; ".join(parts), "beside", "emulated", why, workload.made)


def _table(measured: SimilarityFile) -> Verdict:
    compared = sum(len(workload.compared) for workload in measured.workloads)
    logs = "; ".join(
        f"{log.what}, beside our simulation: {log.cosine:.2f} (n={len(log.metrics)} of 10 metrics)"
        for log in measured.logs
    )
    ours = f"{compared} comparisons of {len(measured.workloads)} workloads, 10 differences and a similarity each" + (
        f"; real logs: {logs}" if logs else ""
    )
    return Verdict(
        "D-F8",
        ours,
        "beside",
        "emulated",
        f"other pairs than published, see its rows; {_conditions(measured)}",
        measured.made,
    )


def _above(measured: SimilarityFile) -> Verdict:
    """Not judged: programs that read through the same library as DLIO are alike for that reason alone."""
    with_dlio, beside = _pairs(measured, _DLIO), _pairs(measured, _BOTH)
    if not beside:
        return Verdict("D-F8-7", "–", "not available here", why="nothing was measured")
    above = sum(runs.cosine.median > ABOVE for _, runs in beside)
    parts = [f"DLIO beside Tierscope: above {ABOVE:.2f} in {above} of {len(beside)}: {_named(beside)}"]
    if with_dlio:
        parts.append(f"our applications beside DLIO: {_named(with_dlio)}")
        parts.append(f"our applications beside Tierscope: {_named(_pairs(measured, _OURS))}")
    why = (
        "not the same quantity: the six applications are not available here; ours really train, but read through the same library calls as DLIO; "
        f"{_conditions(measured)}"
    )
    return Verdict("D-F8-7", "; ".join(parts), "beside", "emulated", why, measured.made)


def _pairs(measured: SimilarityFile, pair: str) -> list[tuple[str, ComparedRuns]]:
    return [(workload.name, workload.compared[pair]) for workload in measured.workloads if pair in workload.compared]


def _named(pairs: Sequence[tuple[str, ComparedRuns]]) -> str:
    return ", ".join(f"{name} {_spread(runs.cosine)}" for name, runs in pairs)


def _from_sizes(measured: SimilarityFile) -> Verdict:
    """Which metrics a similarity lacks most: by the printed differences, and in what was measured. Not judged: it is about the six applications."""
    printed = [_lowering_printed(row) for row in printed_differences().values()]
    ours = [_lowering(runs)[0] for _, runs in _pairs(measured, _BOTH)]
    return Verdict(
        "D-F8-8",
        f"held down most, by the printed differences: {_counted(printed)} rows; DLIO beside Tierscope: {_counted(ours)} workloads",
        "not available here",
        "emulated",
        "needs the request sizes of the six applications; minimum and maximum are not printed",
        measured.made,
    )


def _counted(groups: Sequence[str]) -> str:
    counts = ", ".join(f"{group} in {groups.count(group)}" for group in _GROUPS if group in groups)
    return f"{counts or 'none'} of {len(groups)}"


def _lowering_printed(row: Sequence[Compared]) -> str:
    whole = cosine_of(row) or 0.0
    rises = {
        name: (cosine_of([metric for metric in row if metric.name not in group]) or whole) - whole
        for name, group in _GROUPS.items()
    }
    return max(rises, key=lambda name: rises[name])


def _figure(measured: SimilarityFile) -> PaperFigure:
    titles = {_BOTH: "DLIO − Tierscope", _DLIO: "application − DLIO", _OURS: "application − Tierscope"}
    rows = [
        DrawnRow(
            f"{workload.name}: {titles[pair]}",
            {metric.metric: metric.difference.median for metric in runs.metrics},
            runs.cosine.median,
        )
        for workload in measured.workloads
        for pair, runs in workload.compared.items()
        if pair in titles
    ]
    rows += [
        DrawnRow(
            f"{log.name}: log − simulation", {metric.metric: metric.difference for metric in log.metrics}, log.cosine
        )
        for log in measured.logs
        if math.isfinite(log.cosine)
    ]
    caption = f"Differences, (first − second) ÷ larger, and similarity. Emulated: {_conditions(measured)}; of logs: simulated. Measured {measured.made}."
    return PaperFigure("D-F8", "f8-similarity", draw_differences(rows, SHORT_NAMES, caption), "emulated", caption)
