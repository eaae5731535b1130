"""How figures look: colours and CSS, and the marks that several of them share."""

from collections.abc import Iterator

from tierscope.analysis.statistics import Interval
from tierscope.report.svg import FONT, SAMPLE, Canvas, Sample, Scale

_HUES = 6
STEPS = 10  # of the sequential palette
MARKS_FROM = 9.0  # pixels between points; nearer ones are drawn without marks

# Okabe and Ito's colours, which colour-blind people can tell apart too.
LIGHT = {
    "--ink": "#1a1a1a",
    "--muted": "#767676",
    "--line": "#dcdcdc",
    "--paper": "#ffffff",
    "--tier0": "#0072b2",
    "--tier1": "#e69f00",
    "--tier2": "#009e73",
    "--tier3": "#cc79a7",
    "--tier4": "#56b4e9",
    "--tier5": "#d55e00",
    "--accent": "#c2185b",
}
_CIVIDIS = (
    *("#00224e", "#123570", "#3b496c", "#575d6d", "#707173"),
    *("#8a8678", "#a59c74", "#c3b369", "#e1cc55", "#fee838"),
)
_EPOCH_HUES = (0, 5, 2, 3, 1)
DASHES = ("none", "11 3", "11 3 2 3", "2 3", "7 2 2 2 2 2")


def _rules() -> Iterator[str]:
    plain = {
        "text": f"font-family:Helvetica,Arial,'DejaVu Sans',sans-serif;font-size:{FONT:g}px;fill:var(--ink)",
        ".middle": "text-anchor:middle",
        ".end": "text-anchor:end",
        ".halo": "paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round",
        ".heading": "font-weight:600",
        ".footnote": "text-anchor:end;font-size:12px;fill:var(--muted)",
        ".paper": "fill:var(--paper)",
        ".axis": "fill:none;stroke:var(--ink);stroke-width:1.2",
        ".grid": "fill:none;stroke:var(--line);stroke-width:1",
        ".pale": "fill-opacity:.2",
        ".outline": "fill:none;stroke:var(--muted);stroke-width:1.4",
        ".whisker": "fill:none;stroke:var(--ink);stroke-width:1.2",
        ".fine": "stroke-width:.7",
        ".goal": "fill:none;stroke:var(--accent);stroke-width:2;stroke-dasharray:8 5",
        ".best": "fill:var(--ink);stroke:var(--ink);stroke-width:1",
        ".former": "fill:none;stroke:var(--ink);stroke-width:1.3",
        ".curve": "fill:none;stroke-width:2;stroke-linejoin:round",
        ".whole": "stroke-width:1.2",
        ".mark": "stroke-width:1.6",
        ".mark.whole": "fill:var(--paper)",
        ".any": "stroke:var(--ink)",
        ".mark.io.any": "fill:var(--ink)",
        ".first": "stroke:var(--muted)",
        ".curve.first": "stroke-dasharray:5 4",
        ".mark.io.first": "fill:var(--muted)",
        ".band": "fill:var(--tier0);fill-opacity:.18",
        ".half": "fill:var(--tier0);fill-opacity:.38",
        ".median": "fill:none;stroke:var(--tier0);stroke-width:2.4",
        ".slowest": "fill:none;stroke:var(--ink);stroke-width:2",
        ".slowest.mark": "fill:var(--ink);stroke-width:1",
        ".dot": "stroke:var(--muted);stroke-width:.6",
        ".met": "fill:var(--tier0)",
        ".unmet": "fill:none;stroke:var(--muted);stroke-width:1",
        ".ring": "fill:none;stroke:var(--accent);stroke-width:2.2",
        ".note": "fill:var(--paper);fill-opacity:.9;stroke:var(--line)",
    }
    yield from (f"{name}{{{rule}}}" for name, rule in plain.items())
    for index, (dash, hue) in enumerate(zip(DASHES, _EPOCH_HUES, strict=True)):
        yield f".later{index}{{stroke:var(--tier{hue})}}"
        yield f".mark.io.later{index}{{fill:var(--tier{hue})}}"
        yield f".curve.later{index}{{stroke-dasharray:{dash}}}"
    yield from (f".tier{hue}{{fill:var(--tier{hue})}}" for hue in range(_HUES))
    yield from (f".edge{hue}{{stroke:var(--tier{hue});stroke-width:1}}" for hue in range(_HUES))
    yield from (f".q{step}{{fill:{colour}}}" for step, colour in enumerate(_CIVIDIS))


FIGURE_CSS = "\n".join(f".ts-figure {rule}" for rule in _rules()) + "\n"


def class_marks(classes: tuple[str, ...]) -> list[tuple[str, int, bool]]:
    """Of each class: name, hue of its tier, and whether it is hatched, as META is."""
    tiers: list[str] = []
    marks = []
    for name in classes:
        tier, _, kind = name.rpartition("-")
        if tier not in tiers:
            tiers.append(tier)
        marks.append((name, tiers.index(tier) % _HUES, kind == "META"))
    return marks


def draw_whisker(canvas: Canvas, place: float, scale: Scale, spread: Interval, css: str, cap: float = 0.0) -> None:
    """`cap`: half the width of its ends; none has none."""
    top, bottom = scale(spread.high), scale(spread.low)
    canvas.line((place, bottom), (place, top), f"whisker {css}")
    if cap:
        for end in (top, bottom):
            canvas.line((place - cap, end), (place + cap, end), f"whisker {css}")


def box(css: str, fill: str = "") -> Sample:
    """For a legend; `fill` is the id of a pattern."""
    return lambda canvas, x, y: canvas.rect(x - 10, y - 7, 20, 14, f"sample {css}", fill=fill)


def stroke(css: str) -> Sample:
    """For a legend."""
    return lambda canvas, x, y: canvas.line((x - SAMPLE / 2, y), (x + SAMPLE / 2, y), f"sample {css}")
