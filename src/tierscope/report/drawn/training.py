"""Real training, drawn as in the Training study: throughput with its intervals, and the phases of an epoch, at every point."""

from collections.abc import Iterator, Sequence

from tierscope.analysis.breakdown import sweep_text
from tierscope.analysis.statistics import Interval
from tierscope.analysis.training import Training, TrainingPoint
from tierscope.report.drawn.looks import box, draw_whisker
from tierscope.report.drawn.view import Figure, SecondsAxis, brief
from tierscope.report.report_source import ReportSource
from tierscope.report.svg import (
    HEIGHT,
    WIDTH,
    Canvas,
    Frame,
    Legend,
    LegendEntry,
    Scale,
    SweptAxis,
    draw_x_axis,
    draw_y_axis,
    nice_ticks,
    text_width,
)
from tierscope.report.training import interval_text, percent, rate_digits, shown_phases, subtitle
from tierscope.units import about_seconds, counted

NAMES = ("training-throughput", "training-phases")
_MOST = 24  # points; more are too many for a figure of theirs
_HUES = {  # of each phase, and whether it is hatched
    "stall": (5, False),
    "copy": (1, False),
    "forward": (0, False),
    "backward": (4, False),
    "optimizer": (2, False),
    "checkpoint": (3, False),
    "sync": (3, True),
    "other": (2, True),
}


def draw_training(source: ReportSource) -> list[Figure]:
    """None where nothing was trained for real."""
    if source.training is None:
        return []
    emulated = source.conditions.emulated
    note = " · ".join([subtitle(source.training), *([f"emulated tiers: {', '.join(emulated)}"] if emulated else [])])
    points = source.training.points[:_MOST]
    return [
        Figure(
            figure.name,
            figure.title,
            " ".join((figure.caption, *_more(source.training, emulated))),
            figure.svg,
            note=brief(note, 96),
        )
        for figure in (_throughput(points), _phases(points))
    ]


def _more(training: Training, emulated: Sequence[str]) -> Iterator[str]:
    yield f"{subtitle(training)}."
    if len(training.points) > _MOST:
        yield f"Of {counted(len(training.points), 'point')}, the first {_MOST} are drawn."
    if emulated:
        yield f"Emulated tiers: {', '.join(emulated)}."


def _axis(points: Sequence[TrainingPoint], frame: Frame) -> tuple[SweptAxis, str]:
    names = list(points[0].sweep)
    if len(names) == 1:
        values = [point.sweep[names[0]] for point in points]
        return SweptAxis.of(names[0], values, frame.left, frame.right), names[0].replace("_", " ")
    texts = [", ".join(str(value) for value in point.sweep.values()) for point in points]
    return SweptAxis.of("", texts, frame.left, frame.right), ", ".join(name.replace("_", " ") for name in names)


def _throughput(points: Sequence[TrainingPoint]) -> Figure:
    title = "Throughput of training"
    sizes = sorted({point.n for point in points})
    n = f"n = {sizes[0]}" if len(sizes) == 1 else f"n = {sizes[0]} to {sizes[-1]}"
    whiskers = "; whiskers: Student's 95 % interval" if any(point.samples_per_second.limits for point in points) else ""
    caption = f"Samples per second of all ranks, epochs after the first: mean over repetitions ({n}{whiskers})."
    canvas = Canvas(NAMES[0], title, caption)
    top = 1.06 * max(
        max((point.samples_per_second.value, *(point.samples_per_second.limits or ()))) for point in points
    )
    ticks = [(tick, f"{tick:,.6g}") for tick in nice_ticks(top)]
    frame = Frame(42 + max(text_width(text) for _, text in ticks), 16.0, WIDTH - 24, HEIGHT - 58)
    scale = Scale(0.0, top, frame.bottom, frame.top)
    draw_y_axis(canvas, frame, [(scale(value), text) for value, text in ticks], "samples per second")
    axis, name = _axis(points, frame)
    width, digits = min(0.62 * axis.pitch, 72.0), rate_digits(points)
    for place, point in zip(axis.places, points, strict=True):
        mean = point.samples_per_second
        tip = (
            f"{sweep_text(point.sweep)}: {mean.value:,.{digits}f} samples/s ({interval_text(mean, digits)}, n={mean.n})"
        )
        canvas.rect(place - width / 2, scale(mean.value), width, frame.bottom - scale(mean.value), "bar tier0", tip)
        if mean.limits is not None:
            low, high = max(0.0, mean.limits[0]), mean.limits[1]
            draw_whisker(canvas, place, scale, Interval(mean.value, low, high, mean.n, "95%"), "", min(5.0, width / 3))
    draw_x_axis(canvas, frame, axis, name)
    return Figure(NAMES[0], title, caption, canvas.to_text())


def _phases(points: Sequence[TrainingPoint]) -> Figure:
    title = "Where the time of a training epoch goes"
    clock = "the device's own events" if points[0].by_events else "the host's clock"
    caption = (
        f"Phases of the longest rank's epoch, mean over repetitions and epochs after the first, by {clock}. Prefetching and preprocessing run "
        "in parallel, all-reduce during backward."
    )
    shown = shown_phases(points)
    canvas = Canvas(NAMES[1], title, caption)
    styles = {name: _style(canvas, name) for name in shown}
    legend = Legend([LegendEntry(box(*styles[name]), name) for name in shown])
    seconds = SecondsAxis(1.04 * max(sum(point.phases.values()) for point in points))
    frame = seconds.frame(legend.height + 8)
    scale = seconds.draw(canvas, frame, "epoch")
    axis, name = _axis(points, frame)
    width = min(0.62 * axis.pitch, 72.0)
    for place, point in zip(axis.places, points, strict=True):
        foot = 0.0
        for phase in shown:
            taken = point.phases[phase]
            if taken > 0:
                css, fill = styles[phase]
                tip = f"{sweep_text(point.sweep)}: {phase} {about_seconds(taken)}, {percent(point.share(phase))}"
                top = scale(foot + taken)
                canvas.rect(place - width / 2, top, width, scale(foot) - top, css, tip, fill)
                foot += taken
    draw_x_axis(canvas, frame, axis, name)
    legend.draw(canvas)
    return Figure(NAMES[1], title, caption, canvas.to_text())


def _style(canvas: Canvas, phase: str) -> tuple[str, str]:
    hue, hatched = _HUES[phase]
    return (f"bar edge{hue}", canvas.hatch(hue)) if hatched else (f"bar edge{hue} tier{hue}", "")
