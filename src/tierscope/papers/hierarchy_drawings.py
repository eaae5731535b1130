"""Figures 1 to 4 of the Hierarchy study, from simulated sweeps."""

from collections.abc import Mapping, Sequence

from tierscope.papers.charts import LOOKS, TOTAL, ChartPanel, Line, draw_chart
from tierscope.papers.hierarchy_facts import GOAL_SECONDS, processes_of
from tierscope.papers.hierarchy_sweeps import CLASSES, FloatArray, HierarchySweep, slowest
from tierscope.papers.section import PaperFigure, PaperTable
from tierscope.predict.explore import explore
from tierscope.predict.processes import factor
from tierscope.report.drawn.goal import draw_exploration
from tierscope.spec.goal import IO, Goal

GRID = tuple(float(percent) for percent in range(0, 201, 10))
_LOOK = {"LFS-READ": 0, "GFS-META": 1, "GFS-READ": 2, "LFS-META": 3}  # by class: look and shape
_X, _SECONDS = "cache rate", "s per epoch"
CaseEpochs = Mapping[str, Sequence[HierarchySweep]]  # by title of the case: epochs one after another


def draw_epochs(cases: CaseEpochs, source_text: str) -> PaperFigure:
    panels = []
    for title, epochs in cases.items():
        rates = tuple(epochs[0].times)
        lines = []
        for number, swept in enumerate(epochs):
            io = swept.io
            lines.append(Line(f"epoch {number + 1}, whole", tuple(swept.epochs[rate] for rate in rates), LOOKS[number], 0, True))  # fmt: skip
            lines.append(Line(f"epoch {number + 1}, I/O", tuple(io[rate] for rate in rates), LOOKS[number], 2))
        panels.append(ChartPanel(title, "cache_rate", _X, _SECONDS, rates, tuple(lines)))
    caption = f"Epoch time (circles) and I/O time of the slowest process (triangles) against the cache rate, three epochs. {source_text}"  # fmt: skip
    return PaperFigure("H-F1", "f1", draw_chart("hierarchy-f1", "Epoch time and I/O time", caption, panels), "simulated", caption)  # fmt: skip


def draw_breakdown(cases: Mapping[str, HierarchySweep], source_text: str) -> PaperFigure:
    panels = [_classes_panel(title, swept.times) for title, swept in cases.items()]
    caption = (
        f"Class seconds of the slowest process in epoch 2, and their sum; each panel has its own scale. {source_text}"
    )
    return PaperFigure("H-F2", "f2", draw_chart("hierarchy-f2", "Breakdown of the slowest process", caption, panels), "simulated", caption)  # fmt: skip


def draw_improved(swept: HierarchySweep, percent: float, source_text: str) -> PaperFigure:
    panels = []
    for letter, name in (("a", "GFS-META"), ("b", "LFS-READ")):
        scaled = {rate: improved(seconds, {name: percent}) for rate, seconds in swept.times.items()}
        panels.append(_classes_panel(f"({letter}) {name} {percent:+g} %", scaled))
    caption = f"Small files on 60 OSTs, epoch 2, after one improvement: every process's class time scaled, then the slowest picked again. {source_text}"  # fmt: skip
    return PaperFigure("H-F3", "f3", draw_chart("hierarchy-f3", "After one improvement", caption, panels), "simulated", caption)  # fmt: skip


def draw_goal(swept: HierarchySweep, source_text: str) -> PaperFigure:
    exploration = explore(processes_of(swept.times), Goal(IO, GOAL_SECONDS), {"GFS-META": GRID, "LFS-READ": GRID})
    caption = (
        f"Pairs of improvements with which the slowest process's I/O takes at most {GOAL_SECONDS:g} s in epoch 2; colour: smallest sufficient cache rate. "
        f"Small files on 60 OSTs. {source_text}"
    )
    return PaperFigure("H-F4", "f4", draw_exploration("hierarchy-f4", "Which improvements reach 4 s", caption, exploration), "simulated", caption)  # fmt: skip


def improved(seconds: FloatArray, improvements: Mapping[str, float]) -> FloatArray:
    scaled = seconds.copy()
    for name, percent in improvements.items():
        scaled[:, CLASSES.index(name)] *= factor(percent)
    return scaled


def _classes_panel(title: str, times: Mapping[float, FloatArray]) -> ChartPanel:
    rates = tuple(times)
    rows = [slowest(times[rate]) for rate in rates]
    lines = [Line("sum", tuple(float(row.sum()) for row in rows), TOTAL, 5)]
    for name, look in _LOOK.items():
        lines.append(Line(name, tuple(float(row[CLASSES.index(name)]) for row in rows), LOOKS[look], look))
    best = min(range(len(rates)), key=lambda place: rows[place].sum())
    return ChartPanel(title, "cache_rate", _X, "I/O (s)", rates, tuple(lines), (rates[best], f"best {rates[best]:.0%}"))


def class_table(cases: CaseEpochs) -> PaperTable:
    """What Figures 1 and 2 are drawn from."""
    lines: list[tuple[str | float | int, ...]] = []
    for title, epochs in cases.items():
        for number, swept in enumerate(epochs, start=1):
            for rate, seconds in swept.times.items():
                row = slowest(seconds)
                lines.append((title, number, rate, swept.epochs[rate], float(row.sum()), *map(float, row)))
    columns = ("case", "epoch", "cache_rate", "epoch_seconds", "io_seconds", *(f"{name} seconds" for name in CLASSES))
    return PaperTable("H-F2", "times", columns, tuple(lines), "simulated", "the slowest process's class seconds")
