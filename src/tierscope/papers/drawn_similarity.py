"""Figure 8 as a table of bars: a row for each pair of runs, a column for each metric's difference, and the similarity."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tierscope.report.svg import Canvas, Size

_LEFT, _CELL, _ROW, _HEAD = 330.0, 108.0, 26.0, 34.0


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """`differences`: by metric; one that is missing is left blank."""

    title: str
    differences: Mapping[str, float]
    cosine: float


def draw_differences(rows: Sequence[DrawnRow], names: Mapping[str, str], caption: str) -> str:
    size = Size(_LEFT + (len(names) + 1) * _CELL + 8, _HEAD + len(rows) * _ROW + 12)
    canvas = Canvas("dlio-f8", "Differences and similarity", caption, size)
    columns = [*names.values(), "similarity"]
    for place, title in enumerate(columns):
        canvas.text(_LEFT + (place + 0.5) * _CELL, _HEAD - 12, title, "tick middle")
    for number, row in enumerate(rows):
        top = _HEAD + number * _ROW
        canvas.text(_LEFT - 8, top + _ROW / 2 + 4, row.title, "tick end")
        for place, metric in enumerate(names):
            if metric in row.differences:
                _draw_cell(canvas, _LEFT + place * _CELL, top, row.differences[metric])
        canvas.text(_LEFT + (len(names) + 0.5) * _CELL, top + _ROW / 2 + 4, f"{row.cosine:.2f}", "middle")
        canvas.line((_LEFT, top + _ROW), (size.width - 8, top + _ROW), "grid")
    return canvas.to_text()


def _draw_cell(canvas: Canvas, left: float, top: float, difference: float) -> None:
    """A bar from the middle: to the right where the first has more."""
    half = (_CELL - 8) / 2
    middle, width = left + _CELL / 2, abs(difference) * half
    canvas.rect(middle if difference > 0 else middle - width, top + 4, width, _ROW - 8, "tier0 pale")
    canvas.text(middle, top + _ROW / 2 + 4, f"{difference:+.2f}".replace("-", "−"), "tick middle")
