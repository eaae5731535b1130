"""Results as a notebook and a terminal show them. Strangers' text (names of studies, files, commands) is escaped in both."""

import base64
import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import Breakdown, SweepPoint, value_text
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.severity import by_severity
from tierscope.cli.terminal import console
from tierscope.commands.report import source_of
from tierscope.report.drawn.bars import BreakdownPanel
from tierscope.report.figures import figures, standalone
from tierscope.report.parts import Unit, ranked_groups

if TYPE_CHECKING:
    from rich.console import RenderableType

_WIDTH = 160  # as the commands print where there is no terminal
_CELL_WIDTH = 120  # what a notebook has room for
_MOST_ROWS = 30
_MOST_FINDINGS = 3
_PRE = '<pre style="overflow-x:auto;line-height:1.3;font-size:12px">{code}</pre>'
_CELL = "text-align:right;padding:2px 8px;white-space:nowrap"
_SIDES = "text-align:left;padding:2px 8px;white-space:nowrap"


def as_text(views: "Sequence[RenderableType]") -> str:
    """What the command prints."""
    written = io.StringIO()
    printer = console(written, width=_WIDTH, highlight=False, color_system=None)
    for view in views:
        printer.print(view)
    return written.getvalue().rstrip("\n")


def as_html(views: "Sequence[RenderableType]") -> str:
    """The same, with its colours."""
    printer = console(io.StringIO(), width=_CELL_WIDTH, highlight=False, record=True, force_terminal=True)
    for view in views:
        printer.print(view)
    return printer.export_html(inline_styles=True, code_format=_PRE)


def result_html(analysis: Analysis, labels: Sequence[str]) -> str:
    """The table of points, the figure of their classes and the first findings. `labels`: what nobody may miss, above all."""
    head = f"<div><b>{escape(analysis.name)}</b> {''.join(map(_badge, labels))}</div>"
    return f"<div>{head}{_table(analysis.breakdown, analysis.conditions)}{_figure(analysis)}{_findings(analysis)}</div>"


def frame_html(page: bytes, height: int) -> str:
    """The whole page in an iframe, without a server or a file: what it draws cannot touch the notebook."""
    document = escape(page.decode("utf-8", "replace"), quote=True)
    return (
        f'<iframe srcdoc="{document}" sandbox="allow-scripts allow-downloads" style="width:100%;height:{height}px;border:1px solid #888"'
        ' title="Tierscope report"></iframe>'
    )


def _badge(text: str) -> str:
    return (
        f'<span style="border:1px solid #b36b00;border-radius:3px;padding:0 4px;margin-left:6px">{escape(text)}</span>'
    )


def _table(breakdown: Breakdown, given: Conditions) -> str:
    points = breakdown.summary
    bests = [group.best for group in ranked_groups(breakdown, given) if len(group.points) > 1]
    unit = Unit.of(max((point.io.median for point in points), default=0.0) or 1.0)
    names = [*breakdown.sweep_keys, f"I/O {unit.name}", "interval", *breakdown.classes, "bottleneck", ""]
    rows = [_row(breakdown, point, bests, unit) for point in points[:_MOST_ROWS]]
    more = f"<div>… and {len(points) - _MOST_ROWS} more points</div>" if len(points) > _MOST_ROWS else ""
    heads = "".join(f'<th style="{_CELL}">{escape(name.replace("_", " "))}</th>' for name in names)
    return f'<div style="overflow-x:auto"><table style="border-collapse:collapse"><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>{more}'


def _row(breakdown: Breakdown, point: SweepPoint, bests: Sequence[SweepPoint], unit: Unit) -> str:
    mark = "" if point.is_possible else "does not fit"
    if point.is_possible and any(point is best for best in bests):
        mark = "◀ best"
    spread = f"{unit.span(point.io)} ({point.io.kind}, n={point.io.n})" if point.io.has_spread else f"n={point.io.n}"
    cells = [
        *(value_text(key, point.sweep[key]) for key in breakdown.sweep_keys),
        unit.text(point.io.median).plain,
        spread,
        *(unit.text(point.classes[name]).plain for name in breakdown.classes),
    ]
    sides = [point.bottleneck or "–", mark]
    return (
        "<tr>"
        + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in cells)
        + "".join(f'<td style="{_SIDES}">{escape(cell)}</td>' for cell in sides)
        + "</tr>"
    )


def _figure(analysis: Analysis) -> str:
    """As a picture of its own: its style sheet stays in it."""
    figure = next(drawn for drawn in figures(source_of(analysis, None, {})) if drawn.name == BreakdownPanel.name)
    if figure.svg is None:
        return f"<div>{escape(figure.missing)}</div>"
    encoded = base64.b64encode(standalone(figure)).decode()
    return (
        f'<img src="data:image/svg+xml;base64,{encoded}" alt="{escape(figure.title, quote=True)}" '
        'style="background:#fff;max-width:100%;padding:4px">'
    )


def _findings(analysis: Analysis) -> str:
    shown = by_severity(analysis.findings)[:_MOST_FINDINGS]
    items = "".join(f"<li>{escape(finding.text)}<br><i>→ {escape(finding.suggestion)}</i></li>" for finding in shown)
    left = len(analysis.findings) - len(shown)
    more = f"<div>{left} more in <code>.findings</code></div>" if left else ""
    return f"<ul>{items}</ul>{more}" if items else ""
