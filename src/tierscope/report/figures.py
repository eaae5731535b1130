"""The figures of the Hierarchy study, and the distribution over processes: drawings for papers and for the page.

Every value comes from the source as it is; nothing is computed here but quantiles and places. The x axis is the cache rate where it was
swept. Where several keys were swept, only the slice with the best point is drawn, and the title says which it is. Cases are panels side by side.
"""

# ruff: noqa: PLC0414  (a name imported as itself is one that others import from here)

import re
from dataclasses import replace
from html import escape

from tierscope.analysis.breakdown import sweep_text
from tierscope.jsonable import SweepValues
from tierscope.report.drawn.bars import BreakdownPanel, EstimatePanel
from tierscope.report.drawn.beside import draw_beside
from tierscope.report.drawn.epochs import TimePanel
from tierscope.report.drawn.goal import GoalPanel
from tierscope.report.drawn.looks import FIGURE_CSS as FIGURE_CSS
from tierscope.report.drawn.looks import LIGHT as LIGHT
from tierscope.report.drawn.looks import class_marks as class_marks
from tierscope.report.drawn.panels import drawn_parts, figure_of_panels
from tierscope.report.drawn.processes import ProcessesPanel
from tierscope.report.drawn.view import Figure as Figure
from tierscope.report.drawn.view import View
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import clean, short

_NOTE_HEIGHT = 22.0
_PANELS = (TimePanel, BreakdownPanel, EstimatePanel, GoalPanel, ProcessesPanel)


def figures(source: ReportSource) -> list[Figure]:
    """All five, and a sixth where another result is laid beside; those that cannot be drawn say why."""
    parts = drawn_parts(source)
    others = View.of(parts[0]).others if len(parts) == 1 else {}
    drawn = [figure_of_panels(kind, source) for kind in _PANELS]
    noted = [replace(figure, note=_note(figure.name, source, others)) for figure in drawn]
    return [*noted, draw_beside(source)] if source.besides else noted


def _note(name: str, source: ReportSource, others: SweepValues) -> str:
    """The goal, the slice and the label of emulated tiers: what nobody may miss where a page's words are not around."""
    goals = {part.exploration.goal.text for part in source.parts}
    goal = goals.pop() if len(goals) == 1 else "one for each case"
    given = "goal" if source.goal_given else "an example of a goal"
    emulated = source.conditions.emulated
    parts = (
        f"{given}: {goal}" if name == "goal" else "",
        "estimated by scaling" if name in ("estimate", "goal") else "",
        sweep_text(others) if others and name != "goal" else "",
        f"emulated tiers: {', '.join(emulated)}" if emulated else "",
        f"simulated ({', '.join(source.conditions.simulated)})" if source.conditions.simulated else "",
    )
    return " · ".join(part for part in parts if part)


def standalone(figure: Figure) -> bytes:
    """A whole SVG file. Colours are written out, since not every program knows CSS variables."""
    if figure.svg is None:
        raise ValueError(f"figure {figure.name} was not drawn: {figure.missing}")
    css = re.sub(r"var\((--\w+)\)", lambda match: LIGHT[match[1]], FIGURE_CSS)
    size = figure.size
    height = size.height + (_NOTE_HEIGHT if figure.note else 0)
    box = f'viewBox="0 0 {short(size.width)} {short(size.height)}"'
    taller = f'width="{size.width:g}" height="{height:g}" viewBox="0 0 {size.width:g} {height:g}"'
    note = (
        f'<text class="footnote" x="{size.width - 8:g}" y="{height - 8:g}">{escape(clean(figure.note))}</text>'
        if figure.note
        else ""
    )
    whole = f"{figure.svg.replace(box, taller, 1).removesuffix('</svg>')}{note}<style>\n{css}</style></svg>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{whole}\n'.encode()
