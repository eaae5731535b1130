"""Drawings in SVG: a canvas, scales, axes and a legend.

Looks come from CSS classes alone, so that a page can give light and dark colours to the same drawing. Text is escaped by the XML library.
There are no font metrics here: widths of text are estimates on the safe side.
"""

import copy
import math
import re
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tierscope.analysis.breakdown import value_text
from tierscope.spec.shown import has_unit

WIDTH, HEIGHT = 640.0, 400.0
FONT = 16.0  # in the units of the drawing: 6 pt when it is printed 8.5 cm wide
ROW = 23.0  # from one line of a legend to the next
SAMPLE = 28.0  # the width of a legend's sample

# What XML forbids, and what turns the direction of the text that follows.
_UNFIT = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_LONGEST = 400  # characters; more is never drawn
_SHAPES = ("circle", "square", "triangle", "diamond", "down", "bar")
_MOST_PARTS = 7  # between the ticks of an axis
_STRIDES = (1, 2, 5, 10, 20, 50, 100)
_SHORT = 7  # characters of a label that always fit

Place = tuple[float, float]


def clean(text: str) -> str:
    """The same text, fit for XML on one line."""
    return _UNFIT.sub("\ufffd", text).replace("\n", " ").replace("\r", " ").replace("\t", " ")


def text_width(text: str) -> float:
    return FONT * sum(_ems(character) for character in text)


def _ems(character: str) -> float:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0.2
    if unicodedata.east_asian_width(character) in "WF" or unicodedata.category(character) == "So":
        return 1.3
    if character in "mwMW%@—…+×":
        return 0.95
    if character in " iIjl.,:;|!'/":
        return 0.34
    if character in "()[]-ftr":
        return 0.42
    return 0.72 if character.isupper() else 0.64


def fit(text: str, width: float) -> str:
    """The text, or as much of its beginning as fits, with an ellipsis."""
    text = clean(text[:_LONGEST])
    if text_width(text) <= width:
        return text
    room = width - text_width("…")
    kept = 0
    while kept < len(text) and (room := room - FONT * _ems(text[kept])) >= 0:
        kept += 1
    return f"{text[:kept].rstrip()}…"


def short(value: float) -> str:
    """A coordinate: two decimals are a tenth of what a printer can show."""
    return f"{round(value, 2) + 0.0:.2f}".rstrip("0").rstrip(".")


def nice_ticks(top: float) -> list[float]:
    """From zero to at most `top`."""
    step = _nice_step(top)
    return [number * step for number in range(int(top / step * (1 + 1e-9)) + 1)]


def _nice_step(span: float) -> float:
    """The smallest of 1, 2, 5 times a power of ten that divides the span into few enough parts."""
    power = 10.0 ** math.floor(math.log10(span / _MOST_PARTS))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor * _MOST_PARTS >= span * (1 - 1e-9))


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Size:
    """Of a drawing, or of a panel of it."""

    width: float = WIDTH
    height: float = HEIGHT


@dataclass(frozen=True, slots=True)
class Frame:
    """Where the data are drawn."""

    left: float
    top: float
    right: float
    bottom: float


class Canvas:
    """A drawing in the making. Ids begin with its name, so that several drawings can be on one page."""

    def __init__(self, name: str, title: str, description: str, size: Size = Size()) -> None:  # noqa: B008  (frozen)
        self.name = name
        self.size = size
        self._root = ET.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "class": "ts-figure",
                "viewBox": f"0 0 {short(size.width)} {short(size.height)}",
                **({"role": "img"} if title else {"aria-hidden": "true"}),  # without a name it only repeats a text
                "aria-label": clean(title),
            },
        )
        ET.SubElement(self._root, "title").text = clean(title)
        ET.SubElement(self._root, "desc").text = clean(description)
        self._whole = self
        self._defs: ET.Element | None = None
        self._hatches: dict[int, str] = {}
        self.rect(0, 0, size.width, size.height, "paper")

    def inset(self, place: Place, size: Size) -> "Canvas":
        """A part of the drawing with coordinates of its own; what is drawn on it is in this drawing."""
        part = copy.copy(self)
        part.size = size
        part._root = self._add("g", "inset", transform=f"translate({short(place[0])} {short(place[1])})")
        return part

    def to_text(self) -> str:
        return ET.tostring(self._root, encoding="unicode")

    def _add(self, tag: str, css: str, tip: str = "", **attributes: str) -> ET.Element:
        element = ET.SubElement(self._root, tag, {"class": css, **attributes})
        if tip:
            ET.SubElement(element, "title").text = clean(tip)
        return element

    def rect(self, x: float, y: float, width: float, height: float, css: str, tip: str = "", fill: str = "") -> None:
        """`fill` is the id of a pattern."""
        extra = {"fill": f"url(#{fill})"} if fill else {}
        place = {"x": short(x), "y": short(y), "width": short(width), "height": short(height)}
        self._add("rect", css, tip, **place, **extra)

    def line(self, start: Place, end: Place, css: str) -> None:
        self.path([start, end], css)

    def path(self, places: Iterable[Place], css: str, tip: str = "", closed: bool = False) -> None:
        steps = " ".join(f"{short(x)},{short(y)}" for x, y in places)
        self._add("path", css, tip, d=f"M{steps}{'Z' if closed else ''}")

    def circle(self, x: float, y: float, radius: float, css: str, tip: str = "") -> None:
        self._add("circle", css, tip, cx=short(x), cy=short(y), r=short(radius))

    def text(self, x: float, y: float, text: str, css: str = "", turned: bool = False) -> None:
        """`css` may hold `middle` or `end` for the anchor. Turned text runs upwards."""
        extra = {"transform": f"rotate(-90 {short(x)} {short(y)})"} if turned else {}
        self._add("text", css, x=short(x), y=short(y), **extra).text = clean(text)

    def cross(self, x: float, y: float, radius: float, css: str, tip: str = "") -> None:
        left, right, top, bottom = (short(value) for value in (x - radius, x + radius, y - radius, y + radius))
        self._add("path", css, tip, d=f"M{left},{top} {right},{bottom}M{left},{bottom} {right},{top}")

    def marker(self, shape: int, place: Place, radius: float, css: str, tip: str = "") -> None:
        """Shapes are told apart without colour; they repeat after six."""
        (x, y), kind = place, _SHAPES[shape % len(_SHAPES)]
        if kind == "circle":
            self.circle(x, y, radius, css, tip)
            return
        outlines = {
            "square": [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            "triangle": [(0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
            "diamond": [(0, -1.3), (1.1, 0), (0, 1.3), (-1.1, 0)],
            "down": [(0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
            "bar": [(-1.2, -0.5), (1.2, -0.5), (1.2, 0.5), (-1.2, 0.5)],
        }
        self.path([(x + radius * dx, y + radius * dy) for dx, dy in outlines[kind]], css, tip, closed=True)

    def hatch(self, tier: int) -> str:
        """The id of the hatching in a tier's hue."""
        if tier not in self._hatches:
            defs = self._definitions()
            self._hatches[tier] = f"{self.name}-hatch-{tier}"
            size = {"width": "7", "height": "7"}
            pattern = ET.SubElement(
                defs,
                "pattern",
                {"id": self._hatches[tier], "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)", **size},
            )
            for css in ("paper", f"tier{tier} pale"):  # paper first: nothing behind a bar is to shine through
                ET.SubElement(pattern, "rect", {"class": css, **size})
            ET.SubElement(pattern, "rect", {"class": f"tier{tier}", "width": "2.8", "height": "7"})
        return self._hatches[tier]

    def _definitions(self) -> ET.Element:
        whole = self._whole
        if whole._defs is None:
            whole._defs = ET.Element("defs")
            whole._root.insert(2, whole._defs)
        return whole._defs


Sample = Callable[[Canvas, float, float], None]  # draws around a place


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """Of a legend."""

    sample: Sample
    text: str


class Legend:
    """Entries in rows from the left; `height` is known before anything is drawn."""

    def __init__(self, entries: Sequence[LegendEntry], width: float = WIDTH) -> None:
        left, right = 14.0, width - 14.0
        self._places: list[tuple[float, int, LegendEntry]] = []
        x, row = left, 0
        for entry in entries:
            width = SAMPLE + 8 + text_width(entry.text)
            if x > left and x + width > right:
                x, row = left, row + 1
            self._places.append((x, row, entry))
            x += width + 14
        self.height = ROW * (row + 1) + 8 if entries else 8.0

    def draw(self, canvas: Canvas) -> None:
        for x, row, entry in self._places:
            y = 6 + ROW * (row + 0.5)
            entry.sample(canvas, x + SAMPLE / 2, y)
            canvas.text(x + SAMPLE + 6, y + 0.35 * FONT, entry.text)


@dataclass(frozen=True, slots=True)
class SweptAxis:
    """A place for every value that was swept. `joined`: the values are numbers, so lines between them mean something."""

    key: str
    values: tuple[Any, ...]
    places: tuple[float, ...]
    pitch: float  # the room that each has
    joined: bool
    to_scale: bool

    @classmethod
    def of(cls, key: str, values: Sequence[Any], start: float, end: float, to_scale: bool = False) -> "SweptAxis":
        """Numbers keep their distances, unless some would be too near each other; with `to_scale`, also then."""
        count, room = len(values), end - start
        joined = all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
        if joined and count > 1:
            gap = min(after - before for before, after in pairwise(values))
            span = values[-1] - values[0]
            pitch = room * (gap / (span + gap)) if gap > 0 and math.isfinite(span + gap) else 0.0
            if pitch and (to_scale or gap * (count - 1) * 3 >= span):
                inner = Scale(values[0], values[-1], start + pitch / 2, end - pitch / 2)
                return cls(key, tuple(values), tuple(inner(value) for value in values), abs(pitch), joined, True)
        pitch = room / count
        places = tuple(start + (index + 0.5) * pitch for index in range(count))
        return cls(key, tuple(values), places, abs(pitch), joined, joined and count == 1)

    @property
    def even(self) -> bool:
        gaps = [abs(after - before) for before, after in pairwise(self.places)]
        return not gaps or max(gaps) - min(gaps) < 0.01

    def labels(self, size: float, upright: bool = False) -> list[tuple[float, str]]:
        """As many as can be read. `upright`: the axis runs upwards, so it is the height of a label that counts."""
        texts = [fit(label(self.key, value), max(self.pitch - 8, 72.0)) for value in self.values]
        extents = [1.2 * size if upright else text_width(text) + 5 for text in texts]
        if self.even:
            needed = max(extents) / self.pitch
            stride = next((stride for stride in _STRIDES if stride >= needed), math.ceil(needed))
            return list(zip(self.places, texts, strict=True))[::stride]
        labels: list[tuple[float, str]] = []
        last, taken = -math.inf, 0.0
        for place, text, extent in zip(self.places, texts, extents, strict=True):
            if abs(place - last) >= (extent + taken) / 2:
                labels.append((place, text))
                last, taken = place, extent
        return labels


def label(key: str, value: Any) -> str:
    """A swept value, short enough for an axis."""
    text = value_text(key, value)
    if not isinstance(value, float) or len(text) <= _SHORT:
        return text
    return f"{100 * value:.3g}%" if text.endswith("%") else text if has_unit(key) else f"{value:.4g}"


def draw_x_axis(canvas: Canvas, frame: Frame, axis: SweptAxis, title: str, below: float = 0.0) -> None:
    """`below`: room between the axis and its labels, for marks. Without a title there was nothing to set the data against."""
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), "axis")
    for place, text in axis.labels(FONT) if title else ():
        canvas.line((place, frame.bottom), (place, frame.bottom + 4), "axis")
        canvas.text(place, frame.bottom + below + 20, text, "tick middle")
    middle = (frame.left + frame.right) / 2
    canvas.text(middle, canvas.size.height - 9, fit(title, frame.right - frame.left), "middle")


def draw_y_axis(canvas: Canvas, frame: Frame, ticks: Sequence[tuple[float, str]], title: str) -> None:
    """With lines across, so that values can be read off."""
    for place, text in ticks:
        canvas.line((frame.left, place), (frame.right, place), "grid")
        canvas.text(frame.left - 7, place + 0.35 * FONT, text, "tick end")
    _draw_y_title(canvas, frame, title)


def _draw_y_title(canvas: Canvas, frame: Frame, title: str) -> None:
    text = fit(title, frame.bottom - frame.top + 40)
    canvas.text(20, max((frame.top + frame.bottom) / 2, text_width(text) / 2 + 4), text, "middle", turned=True)
