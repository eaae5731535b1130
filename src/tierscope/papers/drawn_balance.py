"""Operations against bytes through a device's memory, on axes of powers, with lines of machine balance: the Architecture study's figure 2."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tierscope.papers.charts import TOTAL
from tierscope.report.drawn.logs import LabelRoom, LogAxis, bytes_word, draw_log_x, draw_log_y, short_word
from tierscope.report.svg import HEIGHT, WIDTH, Canvas, Frame, Legend, LegendEntry, Sample, text_width

_ALONG = (0.85, 0.7, 0.55, 0.4, 0.25)  # of a line: where its words may be


@dataclass(frozen=True, slots=True)
class BalancePoint:
    """`css`: hue of its network; `shape`: of what was counted. `is_hollow`: modelled."""

    network: str
    what: str
    nbytes: float
    operations: float
    css: str
    shape: int
    is_hollow: bool


def draw_balance(
    name: str, title: str, caption: str, points: Sequence[BalancePoint], balances: Mapping[str, float]
) -> str:
    """`balances`: operations for each byte, by name; a point above the line is bound by its units, one below by its memory."""
    canvas = Canvas(name, title, caption)
    legend = Legend(_entries(points))
    across = LogAxis.over([point.nbytes for point in points], "bytes of a sample through HBM", bytes_word, 2, room=3.0)
    upward = LogAxis.over([point.operations for point in points], "operations of a sample", short_word, room=3.0)
    frame = Frame(upward.room(), legend.height + 8, WIDTH - 24, HEIGHT - 58)
    up, along, room = draw_log_y(canvas, frame, upward), draw_log_x(canvas, frame, across), LabelRoom(frame)
    room.add_marks((along(point.nbytes), up(point.operations)) for point in points)
    ends = {}
    for words, balance in balances.items():
        first, last = max(across.low, upward.low / balance), min(across.high, upward.high / balance)
        ends[words] = (along(first), up(first * balance)), (along(last), up(last * balance))
        canvas.path(ends[words], "outline")
        room.add(ends[words])
    for point in points:
        tip = f"{point.network}, {point.what}: {point.operations / point.nbytes:,.3g} FLOP/B"
        _draw_mark(canvas, point, (along(point.nbytes), up(point.operations)), tip)
    for words, (start, end) in ends.items():
        places = [
            (x + part * (to_x - x), y + part * (to_y - y)) for part in _ALONG for (x, y), (to_x, to_y) in [(start, end)]
        ]
        sides = [(x - text_width(words) - 10, y) for x, y in places] + [(x + 10, y + 20) for x, y in places]
        room.put(canvas, words, sides)
    legend.draw(canvas)
    return canvas.to_text()


def _entries(points: Sequence[BalancePoint]) -> list[LegendEntry]:
    """Hues of networks, then shapes of what was counted."""
    hues = {point.network: replace(point, shape=1, is_hollow=False) for point in points}
    shapes = {point.what: replace(point, css=TOTAL) for point in points}
    return [LegendEntry(_sample(point), words) for words, point in [*hues.items(), *shapes.items()]]


def _draw_mark(canvas: Canvas, point: BalancePoint, place: tuple[float, float], tip: str = "") -> None:
    canvas.marker(point.shape, place, 5.5, f"mark {'whole' if point.is_hollow else 'io'} {point.css}", tip)


def _sample(point: BalancePoint) -> Sample:
    def draw(canvas: Canvas, x: float, y: float) -> None:
        _draw_mark(canvas, point, (x, y))

    return draw
