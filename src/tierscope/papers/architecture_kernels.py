"""The hardware-efficiency histogram (A-F3): run time by how much of the device a kernel uses, by hardware counters on one H200.

16-bit steps are those of counters.json, which has what each bin would take at full efficiency; 32-bit ones were all counted in kernels.json only.
"""

from collections.abc import Mapping

from tierscope.papers.architecture_model import absent, beside, judge
from tierscope.papers.architecture_printed import NAMES, TITLES, by_network
from tierscope.papers.measured_h200 import CountedStep, MeasuredH200, MeasuredKernels, measured_h200
from tierscope.papers.measured_similarity import MissingMeasurement
from tierscope.papers.section import PaperFigure, PaperTable, Section
from tierscope.papers.verdict import Verdict
from tierscope.report.drawn.efficiency import draw_efficiency

ROWS = ("A-F3", "A-F3-1", "A-F3-2", "A-F3-3", "A-F3-4", "A-F3-5")
LEAST = 0.4  # utilisation that the study finds in all three
_MOST_IN_ONE = 1 / 3  # of the time in one bin is still spread over them
HistogramRow = CountedStep | MeasuredKernels
_WHERE = "one H200, 16-bit (AMP), batch"


def make(short: bool) -> Section:
    del short  # nothing here takes long
    return section(measured_h200())


def section(measured: MeasuredH200 | MissingMeasurement) -> Section:
    if isinstance(measured, MissingMeasurement):
        return Section(tuple(absent(row, measured.reason) for row in ROWS))
    narrow = {name: measured.counted(name) for name in NAMES}
    wide = {name: row for name in NAMES if (row := measured.kernels(name, "fp32")) is not None}
    made = measured.counters_file.origin.day
    figures = tuple(_figure(row) for row in narrow.values())
    verdicts = (*_verdicts(narrow, wide, made), _by_name(measured))
    return Section(verdicts, figures, (_table({"16-bit": narrow, "32-bit": wide}),))


def share_above(row: HistogramRow, efficiency: float) -> float:
    """Of the time, in kernels of at least that efficiency: a whole tenth."""
    seconds = row.histogram.seconds
    return sum(seconds[round(10 * efficiency) :]) / sum(seconds)


def utilisation(row: HistogramRow) -> float:
    return row.histogram.ideal_seconds / row.histogram.total_seconds


def _where(row: HistogramRow) -> str:
    return f"{_WHERE} {row.batch}"


def _verdicts(narrow: dict[str, CountedStep], wide: dict[str, MeasuredKernels], made: str) -> list[Verdict]:
    cosmo, deepcam, resnet = (narrow[name] for name in NAMES)
    above, below = share_above(cosmo, 0.4), 1 - share_above(deepcam, 0.5)
    in_32 = f"; in 32 bits {share_above(wide['cosmoflow'], 0.4):.0%}" if "cosmoflow" in wide else ""
    seconds = resnet.histogram.seconds
    largest, used = max(seconds) / sum(seconds), sum(spent > 0 for spent in seconds)
    used_shares = {name: utilisation(row) for name, row in narrow.items()}
    wide_shares = {name: f"{utilisation(row):.0%}" for name, row in wide.items()}
    return [
        beside("A-F3", f"{len(narrow)} histograms by hardware counters", "measured", "the study's bars are a V100's and not published; kernels by name were counted for a whole step, not by bin", made),
        judge("A-F3-1", f"{above:.0%} of the time above 40 %{in_32}", above > 0.5, "measured", f"{_where(cosmo)}; perhaps because convolutions of few channels leave its faster tensor cores idle", made),
        judge("A-F3-2", f"{below:.0%} of the time below 50 %", below > 0.5, "measured", _where(deepcam), made),
        judge("A-F3-3", f"{used} of 10 bins have time, the fullest {largest:.0%}", used >= 8 and largest <= _MOST_IN_ONE, "measured", f"{_where(resnet)}; spread: at least 8 bins, none with more than a third", made),
        judge("A-F3-4", f"{by_network({name: f'{share:.0%}' for name, share in used_shares.items()})}; in 32 bits {by_network(wide_shares)}", min(used_shares.values()) > LEAST, "measured", "one H200, 16-bit (AMP); the same layers on 6 to 8 times the tensor peak and 5 times the memory bandwidth of a V100", made),
    ]  # fmt: skip


def _by_name(measured: MeasuredH200) -> Verdict:
    step = measured.counted("deepcam")
    ours = f"{step.unique_kernels:,} kernels by name, {step.kernels:,} calls in a step of batch {step.batch}"
    why = f"{_WHERE} {step.batch}; which of them the gains need is not published"
    return beside("A-F3-5", ours, "measured", why, measured.counters_file.origin.day)


def _figure(row: CountedStep) -> PaperFigure:
    title = TITLES[row.network]
    drawn = draw_efficiency(row.histogram, f"{title}, batch {row.batch}, 16-bit (AMP), one H200")
    assert drawn.svg is not None
    return PaperFigure("A-F3", f"f3-efficiency-{row.network}", drawn.svg, "measured", drawn.caption)


def _table(precisions: Mapping[str, Mapping[str, HistogramRow]]) -> PaperTable:
    columns = ("network", "precision", "batch", "kernel calls", "utilisation, %", *(f"{10 * place} %" for place in range(10)))  # fmt: skip
    lines: list[tuple[str | float | int, ...]] = []
    for precision, rows in precisions.items():
        for name, row in rows.items():
            shares = [round(100 * spent / row.histogram.total_seconds, 1) for spent in row.histogram.seconds]
            about = (TITLES[name], precision, row.batch, row.kernels, round(100 * utilisation(row), 1))
            lines.append((*about, *shares))
    return PaperTable(
        "A-F3",
        "efficiency",
        columns,
        tuple(lines),
        "measured",
        "share of a step's time by efficiency, each bin by its lower edge",
    )
