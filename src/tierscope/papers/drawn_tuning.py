"""DLIO's figures 9 to 13, drawn: seconds and rate of an epoch against a swept key; gains on the emulation beside those of an application."""

from collections.abc import Sequence
from itertools import zip_longest

from tierscope.papers.charts import LOOKS, ChartPanel, Line, draw_chart
from tierscope.papers.section import PaperFigure
from tierscope.papers.transfer_file import AppliedSetting, MeasuredGain, TransferFile
from tierscope.papers.tuned_studies import TunedSweep
from tierscope.report.drawn.logs import LogAxis, LogScale, draw_log_y
from tierscope.report.drawn.looks import box, stroke
from tierscope.report.svg import HEIGHT, Canvas, Frame, Legend, LegendEntry, Size
from tierscope.units import about_bytes

_FEW_TICKS = 5
_WIDE = 880.0
_SIDES = ("on the emulation", "in a torch script")


def draw_tuning(
    row: str, name: str, title: str, where: str, sweeps: Sequence[TunedSweep], notes: Sequence[str] = ()
) -> PaperFigure:
    """`notes`: behind titles of the first panels, where a key alone does not say what was varied."""
    caption = f"{title}: seconds of an epoch and the rate that follows, measured; {where}"
    panels = []
    for letter, sweep, note in zip_longest("abcd"[: len(sweeps)], sweeps, notes, fillvalue=""):
        assert isinstance(sweep, TunedSweep)
        key = sweep.key.rpartition(".")[2]
        words = key.replace("_", " ")
        places = tuple(float(point.value) for point in sweep.points)
        ticks, unit = _ticks(key, places)
        panels.append(
            ChartPanel(
                f"({letter}) {words}{note}",
                key,
                f"{words}{unit}",
                "epoch, s",
                places,
                (Line("epoch", tuple(point.epoch.median for point in sweep.points), LOOKS[0], 0),),
                ticks=ticks,
                right_title="rate, MB/s",
                right_lines=(Line("rate", tuple(point.bandwidth / 1e6 for point in sweep.points), LOOKS[1], 1),),
            )
        )
    return PaperFigure(row, name, draw_chart(name, f"{title} tuning", caption, panels), "emulated", caption)


def _ticks(key: str, places: Sequence[float]) -> tuple[tuple[str, ...], str]:
    """Words of sizes, and a unit for the axis where there are too many for one at each."""
    if not key.endswith("size"):
        return (), ""
    if len(places) <= _FEW_TICKS:
        return tuple(map(about_bytes, places)), ""
    return tuple(f"{place / 1024:g}" for place in places), ", KiB"


def draw_applied(transfer: TransferFile, published: dict[str, float]) -> PaperFigure:
    """Bars from 1, up or down, with the range of what was measured. `published`: gains, by name and value of a setting."""
    name, title = "tuning-applied", "Tuning applied"
    caption = f"Times faster than before, {_SIDES[0]} and {_SIDES[1]}; lines across bars: smallest and largest of the repetitions; {transfer.tier}; {transfer.made}"
    canvas = Canvas(name, title, caption, Size(_WIDE, HEIGHT))
    sides = [LegendEntry(box(f"bar tier{side}"), words) for side, words in enumerate(_SIDES)]
    legend = Legend([*sides, LegendEntry(stroke("sample curve io later2"), "published"), LegendEntry(stroke("goal"), "no gain")], _WIDE)  # fmt: skip
    gains = [gain for setting in transfer.settings for gain in (setting.emulated, setting.application)]
    axis = LogAxis.over([1.0, *published.values(), *(end for gain in gains for end in (gain.low, gain.high))], "times faster", lambda tick: f"{tick:g}×", room=1.2)  # fmt: skip
    frame = Frame(axis.room(), legend.height + 12, _WIDE - 24, HEIGHT - 62)
    scale = draw_log_y(canvas, frame, axis)
    pitch = (frame.right - frame.left) / len(transfer.settings)
    for number, setting in enumerate(transfer.settings):
        middle = frame.left + (number + 0.5) * pitch
        _draw_setting(canvas, scale, setting, middle, min(0.3 * pitch, 44.0))
        if (gain := published.get(f"{setting.name} {setting.after}")) is not None:
            tip = f"published: {gain:g}×"
            canvas.path([(middle - 0.4 * pitch, scale(gain)), (middle + 0.4 * pitch, scale(gain))], "curve io later2", tip)  # fmt: skip
        words = setting.key.rpartition(".")[2].replace("_", " ")
        canvas.text(middle, frame.bottom + 20, words, "tick middle")
        canvas.text(middle, frame.bottom + 40, f"{setting.before} → {setting.after}", "tick middle")
    canvas.line((frame.left, scale(1.0)), (frame.right, scale(1.0)), "goal")
    legend.draw(canvas)
    return PaperFigure("D-F13", name, canvas.to_text(), "emulated", caption)


def _draw_setting(canvas: Canvas, scale: LogScale, setting: AppliedSetting, middle: float, width: float) -> None:
    pairs: tuple[MeasuredGain, ...] = (setting.emulated, setting.application)
    for side, gain in enumerate(pairs):
        left, ends = middle + (side - 1) * width, sorted((scale(1.0), scale(gain.gain)))
        tip = f"{setting.key} {setting.before} → {setting.after}, {_SIDES[side]}: {gain.text}"
        canvas.rect(left, ends[0], width, ends[1] - ends[0], f"bar tier{side}", tip)
        canvas.line((left + width / 2, scale(gain.low)), (left + width / 2, scale(gain.high)), "axis")
