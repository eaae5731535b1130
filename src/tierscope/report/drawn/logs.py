"""Axes of powers, and places for words between curves."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tierscope.report.svg import FONT, HEIGHT, WIDTH, Canvas, Frame, Place, draw_y_axis, fit, text_width
from tierscope.units import about_bytes, about_seconds

_MOST_TICKS = 8
_FEW_DECADES = 2.2  # below that, 2 and 5 are ticks too
_STRIDES = (1, 2, 3, 4, 5, 10, 20)


@dataclass(frozen=True, slots=True)
class LogScale:
    """From values above zero to places."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        return self.start + math.log(value / self.low) / math.log(self.high / self.low) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class LogAxis:
    low: float
    high: float
    title: str
    word: Callable[[float], str]  # of a tick
    base: int = 10

    @classmethod
    def over(
        cls, values: Iterable[float], title: str, word: Callable[[float], str], base: int = 10, room: float = 2.0
    ) -> "LogAxis":
        """With room around the values: times so much; at least a decade."""
        known = [value for value in values if value > 0]
        low, high = min(known) / room, max(known) * room
        short = max(1.0, math.sqrt(10 * low / high))
        return cls(low / short, high * short, title, word, base)

    def ticks(self) -> list[tuple[float, str]]:
        if self.base == 10 and math.log10(self.high / self.low) < _FEW_DECADES:
            values = [mantissa * power for power in self._powers(1) for mantissa in (1, 2, 5)]
        else:
            values = next(powers for stride in _STRIDES if len(powers := self._powers(stride)) <= _MOST_TICKS + 2)
        return [(value, self.word(value)) for value in values if self.low <= value <= self.high]

    def _powers(self, stride: int) -> list[float]:
        first = math.floor(math.log(self.low, self.base) / stride) * stride
        last = math.ceil(math.log(self.high, self.base))
        return [float(self.base) ** power for power in range(first, last + 1, stride)]

    def room(self) -> float:
        """Left of the frame, when the axis runs upwards."""
        return 42 + max(text_width(text) for _, text in self.ticks())


def draw_log_y(canvas: Canvas, frame: Frame, axis: LogAxis) -> LogScale:
    scale = LogScale(axis.low, axis.high, frame.bottom, frame.top)
    draw_y_axis(canvas, frame, [(scale(value), text) for value, text in axis.ticks()], axis.title)
    return scale


def draw_log_x(canvas: Canvas, frame: Frame, axis: LogAxis) -> LogScale:
    """As many labels as can be read."""
    scale = LogScale(axis.low, axis.high, frame.left, frame.right)
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), "axis")
    end = 0.0
    for value, text in axis.ticks():
        place, half = scale(value), text_width(text) / 2
        canvas.line((place, frame.bottom), (place, frame.bottom + 4), "axis")
        if place - half > end and place + half < WIDTH:
            canvas.text(place, frame.bottom + 20, text, "tick middle")
            end = place + half + 4
    middle = (frame.left + frame.right) / 2
    canvas.text(middle, HEIGHT - 9, fit(axis.title, frame.right - frame.left), "middle")
    return scale


def bytes_word(value: float) -> str:
    return about_bytes(value)


def seconds_word(value: float) -> str:
    return about_seconds(value * (1 + 1e-9))  # 10.0 ** -3 may be a little less than a thousandth


def count_word(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:.3g}"


def short_word(value: float) -> str:
    """With the prefixes of units: 2e12 → `2 T`."""
    for prefix, factor in (("E", 1e18), ("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value * (1 + 1e-9) >= factor:
            return f"{value / factor:.3g} {prefix}"
    return f"{value:.3g}"


class LabelRoom:
    """Where words can stand: remembers what is drawn, and finds the quietest of some places."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._points: list[Place] = []

    def add_marks(self, places: Iterable[Place]) -> None:
        """With their radius."""
        self._points += [(x + dx, y + dy) for x, y in places for dx, dy in ((0, 0), (-7, 0), (7, 0), (0, -7), (0, 7))]

    def add(self, places: Sequence[Place]) -> None:
        """A curve."""
        self._points += places
        for (x, y), (to_x, to_y) in pairwise(places):
            steps = int(max(abs(to_x - x), abs(to_y - y)) / 4) + 1
            self._points += [(x + (to_x - x) * step / steps, y + (to_y - y) * step / steps) for step in range(steps)]

    def put(self, canvas: Canvas, text: str, corners: Sequence[Place]) -> None:
        """`corners`: lower left ones. The first of the quietest places within the frame is taken; what still crosses it is interrupted."""
        width, height = text_width(text), 1.05 * FONT
        fitted = [self._within(corner, width, height) for corner in corners]
        x, y = min(fitted, key=lambda corner: self._met(corner, width, height))
        canvas.text(x, y - 0.2 * FONT, text, "halo")
        self.add([(x, y - height / 2), (x + width, y - height / 2)])
        self.add([(x, y), (x + width, y)])
        self.add([(x, y - height), (x + width, y - height)])

    def _within(self, corner: Place, width: float, height: float) -> Place:
        x = max(self._frame.left + 3, min(corner[0], self._frame.right - width - 3))
        return x, max(self._frame.top + height, min(corner[1], self._frame.bottom - 2))

    def _met(self, corner: Place, width: float, height: float) -> int:
        left, bottom = corner
        return sum(left - 2 <= x <= left + width + 2 and bottom - height <= y <= bottom for x, y in self._points)


def near_line(frame: Frame, y: float, width: float) -> list[Place]:
    """Places along a level line, above and below it; the ends come first."""
    free = frame.right - frame.left - width - 12
    xs = [frame.left + 6 + free * share for share in (0, 1, *(step / 16 for step in range(1, 16)))]
    return [(x, y + down) for down in (-3.0, -8.0, 1.05 * FONT + 8) for x in xs]
