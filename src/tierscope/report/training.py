"""Real training for the terminal: throughput, where the time of an epoch goes, and whether storage matters; the words are the page's too."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.breakdown import sweep_text, value_text
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.statistics import Mean
from tierscope.analysis.storage_stall import StorageStall
from tierscope.analysis.training import PHASES, Training, TrainingPoint, limits_of
from tierscope.analysis.training_limits import is_framework, share_text
from tierscope.analysis.wording import Finding
from tierscope.report.findings import finding_lines
from tierscope.report.parts import Column, Unit, fitting, table, title_label
from tierscope.units import about_bytes, about_seconds

SHOWN = 5e-4  # a phase that is less of every epoch has no column
_DROP = {"other": 1, "sync": 6, "optimizer": 6, "copy": 7, "checkpoint": 8, "forward": 10, "backward": 10}  # see Column
_HARNESS = "the harness with storage that costs nothing (decoding, copying to the device)"
_BESIDE = {"read": "reading", "preprocess": "preprocessing", "exchange": "all-reduce"}


@dataclass(frozen=True, slots=True)
class Row:
    """`at`: the values of the columns that name it."""

    at: tuple[str, ...]
    point: TrainingPoint


def rows_of(parts: Sequence[tuple[str | None, Training]]) -> tuple[list[str], list[Row]]:
    """Names of the columns that say which point it is, and all points. Of several parts: what is varied, and its value."""
    if len(parts) > 1:
        rows = [
            Row((key or "", ", ".join(value_text(name, value) for name, value in point.sweep.items())), point)
            for key, training in parts
            for point in training.points
        ]
        return ["varied", "value"], rows
    points = parts[0][1].points
    names = list(points[0].sweep)
    rows = [Row(tuple(value_text(name, point.sweep[name]) for name in names), point) for point in points]
    return [name.replace("_", " ") for name in names], rows


def shown_phases(points: Sequence[TrainingPoint]) -> list[str]:
    return [name for name in PHASES if any(point.share(name) >= SHOWN for point in points)]


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def interval_text(mean: Mean, digits: int = 1) -> str:
    limits = mean.limits
    return "–" if limits is None else f"{limits[0]:,.{digits}f} – {limits[1]:,.{digits}f}"


def rate_digits(points: Sequence[TrainingPoint]) -> int:
    return 1 if min(point.samples_per_second.value for point in points) >= 10 else 3


def variability_text(point: TrainingPoint) -> str:
    return "–" if point.variability is None else f"{point.variability:.3f}"


def memory_texts(point: TrainingPoint) -> tuple[str, str, str]:
    """Measured, predicted, and how far that is off."""
    peak, predicted = point.about.peak_memory_bytes, point.about.predicted_memory_bytes
    error = point.memory_error
    return (
        about_bytes(peak) if peak else "–",
        about_bytes(predicted) if predicted else "–",
        "–" if error is None else f"{100 * error:+.1f} %",
    )


def has_memory(points: Sequence[TrainingPoint]) -> bool:
    return any(point.about.peak_memory_bytes for point in points)


def sentences(training: Training) -> Iterator[str]:
    """What the table means, and what it does not show."""
    points = training.points
    clock = "the device's own events" if points[0].by_events else "the host's clock"
    yield (
        "Samples per second: of all ranks over the longest rank's epoch, mean over repetitions with Student's 95 % interval; without the first epoch. "
        "Variability: the longest over the shortest repetition."
    )
    yield f"Phases: shares of the longest rank's epoch, by {clock}; busy: the share of time that the device computed (forward, backward, optimizer)."
    most = {name: max(point.beside[name] for point in points) for name in _BESIDE}
    beside = [f"{_BESIDE[name]} up to {about_seconds(seconds)}" for name, seconds in most.items() if seconds > 0]
    if beside:
        during = ", and all-reduce runs during backward" if most["exchange"] > 0 else ""
        yield f"In parallel, per epoch, summed over batches: {', '.join(beside)}; the loader prefetches several batches at once{during}."
    yield _devices_sentence(points)
    first, last = points[0].about.first_loss, points[0].about.last_loss
    yield f"Loss of the first and the last step at {sweep_text(points[0].sweep)}: {first:.4g} and {last:.4g}."


def _devices_sentence(points: Sequence[TrainingPoint]) -> str:
    """What was measured on one device says nothing of several."""
    most = max(points, key=lambda point: point.ranks)
    if most.ranks == 1:
        return "Measured on one device: these times say nothing about exchange between several."
    if most.by_events:
        return f"Measured on {most.ranks} devices, which exchange gradients over NCCL."
    return f"Measured with {most.ranks} ranks that share CPUs and exchange gradients over gloo: not how several devices would scale."


def stall_sentences(training: Training) -> Iterator[str]:
    for stall in training.stalls:
        where = f" at {sweep_text(stall.sweep)}" if stall.sweep else ""
        apart = "the loader apart from storage" if is_framework(stall.loader) else _HARNESS
        parts = [
            f"{what} {share_text(difference, stall.seconds)}"
            for what, difference in (("storage", stall.storage), (apart, stall.input))
            if difference is not None
        ]
        yield f"An epoch from the tiers takes {about_seconds(stall.seconds)}{where}; of that, by comparison: {'; '.join(parts)}."


def subtitle(training: Training) -> str:
    about = training.points[0].about
    devices = ", ".join(dict.fromkeys(point.about.device for point in training.points))
    return f"{training.network} on {devices}, {about.arithmetic}, {about.solver}, {about.software}"


@dataclass(frozen=True, slots=True)
class TrainingView:
    name: str
    parts: Sequence[tuple[str | None, Training]]
    findings: Sequence[Finding]
    given: Conditions
    show_all: bool = False

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        names, rows = rows_of(self.parts)
        first = self.parts[0][1]
        yield Text(f"{self.name}: training of {subtitle(first)}{title_label(self.given)}", style="bold")
        for limit in limits_of([training for _, training in self.parts]):
            yield Text(limit.text, style="bold")
        stalls = [stall for _, training in self.parts for stall in training.stalls]
        yield table(fitting(_columns(names, rows, stalls), options.max_width))
        for sentence in sentences(first):
            yield Text(sentence, style="dim")
        for _, training in self.parts:
            for sentence in stall_sentences(training):
                yield Text(sentence)
        yield from finding_lines(self.findings, self.show_all)


def _columns(names: Sequence[str], rows: Sequence[Row], stalls: Sequence[StorageStall]) -> list[Column]:
    points = [row.point for row in rows]
    digits, time = rate_digits(points), Unit.of(max(point.seconds for point in points))
    columns = [Column(name, [Text(row.at[place]) for row in rows]) for place, name in enumerate(names)]
    columns += [
        Column("samples/s", [Text(f"{point.samples_per_second.value:,.{digits}f}") for point in points], "bold"),
        Column("95 % interval", [Text(interval_text(point.samples_per_second, digits)) for point in points], "dim", 9),
        Column("n", [Text(str(point.n)) for point in points], drop=5),
        Column("variability", [Text(variability_text(point)) for point in points], drop=4),
        Column(f"epoch {time.name}", [time.text(point.seconds) for point in points], drop=3),
    ]
    columns += [
        Column(name, [Text(percent(point.share(name))) for point in points], drop=_DROP.get(name, 0))
        for name in shown_phases(points)
    ]
    columns += _cost_columns(points, stalls)
    columns.append(Column("busy", [Text(percent(point.utilisation)) for point in points], "bold"))
    if has_memory(points):
        for place, name in enumerate(("memory", "predicted", "error")):
            columns.append(Column(name, [Text(memory_texts(point)[place]) for point in points], drop=2))
    return columns


def _cost_columns(points: Sequence[TrainingPoint], stalls: Sequence[StorageStall]) -> list[Column]:
    """What storage and the loader cost by comparison, at the points that read from the tiers."""
    columns = []
    for name, cost_of in (("storage", _storage_of), ("loader", _loader_of)):
        texts = [_cost_text(point, stalls, cost_of) for point in points]
        if any(text != "–" for text in texts):
            columns.append(Column(name, [Text(text) for text in texts], drop=11))
    return columns


def _storage_of(stall: StorageStall) -> Mean | None:
    return stall.storage


def _loader_of(stall: StorageStall) -> Mean | None:
    return stall.loader_cost if is_framework(stall.loader) else None


def _cost_text(
    point: TrainingPoint, stalls: Sequence[StorageStall], cost_of: Callable[[StorageStall], Mean | None]
) -> str:
    if point.about.data != "tiers":
        return "–"
    for stall in stalls:
        cost = cost_of(stall)
        if cost is not None and stall.seconds == point.seconds and stall.sweep.items() <= point.sweep.items():
            return percent(cost.value / stall.seconds)
    return "–"
