"""Tables of published measurements beside what is predicted, for the terminal and as JSON."""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.jsonable import JsonObject
from tierscope.predict.measured_table import EPOCH, FIRST_MAX, FIRST_MEAN, SAMPLES, SHARE, THROUGHPUT
from tierscope.predict.table_intervals import PredictedFigure
from tierscope.predict.too_slow import TooSlow
from tierscope.report.parts import Column, fitting, table
from tierscope.spec.figures import KnownFigure, number_keys
from tierscope.spec.known import KnownSystem
from tierscope.units import about_seconds, counted, format_bandwidth

SCHEMA_VERSION = 1
_NAMES = {
    FIRST_MEAN: "first batch, mean",
    FIRST_MAX: "first batch, max",
    SHARE: "AU",
    EPOCH: "epoch",
    THROUGHPUT: "throughput",
    SAMPLES: "samples",
}


@dataclass(frozen=True, slots=True)
class PredictedTableView:
    """Measured and predicted, row by row. `title` says whether the rows were fitted to."""

    title: str
    figures: Sequence[PredictedFigure]

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        rows = self.figures
        yield Text(self.title, style="bold")
        inside = sum(row.low <= row.measured <= row.high for row in rows)
        bounds = any(row.unidentified for row in rows)
        yield Text(
            f"{inside} of {counted(len(rows), 'measurement')} inside the {'intervals or bounds' if bounds else 'interval'}.",
            style="bold",
        )
        columns = [
            Column("", [Text(row.point.name) for row in rows], right=False),
            Column("figure", [Text(_NAMES[row.figure]) for row in rows], right=False),
            Column("measured", [Text(_measured(row)) for row in rows]),
            Column("predicted", [Text(_predicted(row)) for row in rows], "bold"),
            Column(
                "90 %",
                [Text(f"{_value(row.figure, row.low)} – {_value(row.figure, row.high)}") for row in rows],
                "dim",
                1,
            ),
            Column("error", [Text("" if row.unidentified else _error(row)) for row in rows]),
            Column("rows", [Text(str(row.point.rows)) for row in rows], "dim", 2),
        ]
        yield from _unidentified_lines(rows)
        yield table(fitting(columns, options.max_width))
        for name, errors, unit in _errors(rows):
            text = f"{name}: mean error {statistics.fmean(errors):.1f} {unit}, largest {max(errors):.1f} {unit}."
            yield Text(text, style="bold")


def _unidentified_lines(rows: Sequence[PredictedFigure]) -> Iterator[Text]:
    """On top: of which rows the table that was fitted to tells only bounds."""
    for why in dict.fromkeys(why for row in rows for why in row.unidentified):
        count = sum(why in row.unidentified for row in rows)
        yield Text(
            f"Not identified, {count} of {counted(len(rows), 'row')}: {why}. What is printed there are bounds.",
            style="bold",
        )


def _errors(rows: Sequence[PredictedFigure]) -> list[tuple[str, list[float], str]]:
    """Of what is identified."""
    plain = [row for row in rows if not row.unidentified]
    shares = [abs(100 * row.error) for row in plain if row.figure == SHARE]
    others = [abs(100 * row.error) for row in plain if row.figure != SHARE]
    groups = [("AU", shares, "points"), ("Seconds and throughputs", others, "%")]
    return [group for group in groups if group[1]]


def _predicted(row: PredictedFigure) -> str:
    """Nobody takes the middle of a pair of bounds for an answer."""
    return "not identified" if row.unidentified else _value(row.figure, row.predicted)


def _measured(row: PredictedFigure) -> str:
    error = f" ± {_value(row.figure, row.standard_error)}" if row.standard_error else ""
    return _value(row.figure, row.measured) + error


def _value(figure: str, value: float) -> str:
    if figure == SHARE:
        return f"{100 * value:.2f} %"
    if figure == THROUGHPUT:
        return f"{value / 1e6:,.0f} MB/s"
    return f"{value:,.0f}/s" if figure == SAMPLES else about_seconds(value)


def _error(row: PredictedFigure) -> str:
    return f"{100 * row.error:+.2f} points" if row.figure == SHARE else f"{100 * row.error:+.1f} %"


@dataclass(frozen=True, slots=True)
class FittedKeysView:
    """What was fitted to a table."""

    known: KnownSystem
    paths: Sequence[str]
    before: float
    misfit: float

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(
            f"{self.known.name}: misfit {100 * self.before:.1f} % before, {100 * self.misfit:.1f} % fitted",
            style="bold",
        )
        if not self.paths:
            yield Text("Nothing was fitted: no key clearly reduces the misfit.")
            yield from self._served()
            return
        keys = number_keys(self.known.system)
        figures = [self.known.figures[path] for path in self.paths]
        columns = [
            Column("", [Text(path) for path in self.paths], right=False),
            Column(
                "fitted",
                [
                    Text(keys[path].kind.format(_short(figure.value)))
                    for path, figure in zip(self.paths, figures, strict=True)
                ],
                "bold",
            ),
            Column("fits about as well", [Text(_range(figure)) for figure in figures], "dim"),
        ]
        yield table(fitting(columns, options.max_width))
        yield from self._served()

    def _served(self) -> Iterator[Text]:
        """What no row ran into, but more ranks may."""
        served = self.known.measured.served if self.known.measured else {}
        if served:
            last = self.known.system.tiers[-1].name
            texts = [f"{last}.{key} is at least {format_bandwidth(_short(value))}" for key, value in served.items()]
            yield Text(f"Not a limit in these rows: {', '.join(texts)}. What asks for more is not identified.")


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _range(figure: KnownFigure) -> str:
    ends = (
        "open" if end is None else f"{end / figure.value:.2f}" if figure.value else "?"
        for end in (figure.low, figure.high)
    )
    return f"{' – '.join(ends)} of it"


def too_slow_text(slow: TooSlow) -> tuple[str, str]:
    """What to look at before anything is fitted: a sentence, and what to do."""
    name, measured, predicted = (
        _NAMES[slow.figure],
        _value(slow.figure, slow.measured),
        _value(slow.figure, slow.predicted),
    )
    text = f"The study is slower than was measured, and no fit makes it faster: {name} of {slow.point.name} is {predicted}, measured {measured}."
    if slow.key is None:
        return (
            text,
            "Check workload.train.computation_time and the sizes of samples: no single figure of the system is why.",
        )
    reads = f", {counted(slow.reads, 'read')} for each sample" if slow.key.endswith("latency") else ""
    smaller = ", or raise workload.reader.transfer_size" if reads and slow.reads > 1 else ""
    without = _value(slow.figure, slow.without)
    return (
        f"{text} Mostly because of {slow.key} = {slow.value}{reads}: without it, {name} is {without}.",
        f"Correct {slow.key}{smaller}.",
    )


def predicted_json(
    kind: str, figures: Sequence[PredictedFigure], fitted: JsonObject | None = None, slow: TooSlow | None = None
) -> JsonObject:
    """`kind`: table_validation or table_calibration. `slow`: why no fit is as fast as was measured."""
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "fitted": fitted,
        "rows": [
            {
                "nodes": row.point.nodes,
                "ranks": row.point.ranks,
                "settings": dict(row.point.settings),
                "n": row.point.rows,
                "figure": row.figure,
                "measured": row.measured,
                "standard_error": row.standard_error,
                "predicted": row.predicted,
                "low": row.low,
                "high": row.high,
                "error": row.error,
                "unidentified": list(row.unidentified),
            }
            for row in figures
        ],
        "findings": [_too_slow_json(slow)] if slow else [],
    }


def _too_slow_json(slow: TooSlow) -> JsonObject:
    evidence = {
        "nodes": slow.point.nodes,
        "ranks": slow.point.ranks,
        "figure": slow.figure,
        "measured": slow.measured,
        "predicted": slow.predicted,
        "key": slow.key,
        "without": slow.without if slow.key else None,
    }
    text, suggestion = too_slow_text(slow)
    return {"kind": "slower_than_measured", "evidence": evidence, "text": text, "suggestion": suggestion}
