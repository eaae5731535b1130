"""What was probed, for the terminal and as JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.wording import Finding, shown_evidence
from tierscope.jsonable import JsonObject
from tierscope.probe.measure import MeasuredLevel, Series
from tierscope.probe.probe import Probed, ProbedTier
from tierscope.probe.rates import ProbedRate
from tierscope.report.findings import finding_lines
from tierscope.report.parts import Column, fitting, table
from tierscope.units import about_bytes, about_seconds, counted, format_bytes

SCHEMA_VERSION = 1


@dataclass(frozen=True, slots=True)
class ProbeView:
    """A table of throughputs and one of rates for each tier, then what to know about them."""

    probed: Probed
    findings: Sequence[Finding]
    show_all: bool = False

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        for tier in self.probed.tiers:
            yield Text(_title(tier), style="bold")
            yield table(fitting(_throughputs(tier), options.max_width))
            yield table(fitting(_rates(tier), options.max_width))
        yield from finding_lines(self.findings, self.show_all)
        yield Text(f"Took {about_seconds(self.probed.seconds)}; the probe's files were removed.", style="dim")


def _title(tier: ProbedTier) -> str:
    pages = {True: "reads are cold", False: "reads are WARM", None: "reads may be warm"}[tier.cold]
    total = sum(size * count for size, count in tier.files.items())
    return f"{tier.name}: {tier.path} ({tier.filesystem}) · {pages} · {counted(sum(tier.files.values()), 'file', grouped=True)}, {about_bytes(total)}"


def _throughputs(tier: ProbedTier) -> list[Column]:
    levels = sorted({point.processes for series in tier.series for point in series.points})
    columns = [
        Column("MB/s · operations/s, all processes", [Text(_what(series)) for series in tier.series], right=False)
    ]
    for place, level in enumerate(levels):
        cells = [_cell(series, level) for series in tier.series]
        between = 0 < place < len(levels) - 1
        columns.append(Column(counted(level, "process"), cells, drop=1 + place if between else 0))
    columns.append(
        Column("range of the highest", [Text(_range_of(series.most)) for series in tier.series], "dim", drop=99)
    )
    columns.append(Column("n", [Text(str(series.most.n)) for series in tier.series], "dim"))
    columns.append(Column("one alone", [Text(about_seconds(series.alone.op_seconds)) for series in tier.series]))
    return columns


def _what(series: Series) -> str:
    return f"read {format_bytes(series.nbytes)}" if series.kind == "read" else series.kind


def _cell(series: Series, level: int) -> Text:
    point = next((point for point in series.points if point.processes == level), None)
    if point is None:
        return Text("–", style="dim")
    text = _short(point.ops_per_second)
    if series.kind == "read":
        text = f"{_megabytes(point.ops_per_second * point.nbytes)} · {text:>5}"
    return Text(text, style="bold" if point is series.most else "")


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _short(rate: float) -> str:
    """In three digits, for cells."""
    for factor, sign in ((1e6, "M"), (1e3, "k")):
        if rate >= factor:
            return f"{rate / factor:.0f}{sign}" if rate >= 100 * factor else f"{rate / factor:.3g}{sign}"
    return _per_second(rate)


def _megabytes(bytes_per_second: float) -> str:
    return _per_second(bytes_per_second / 1e6)


def _range_of(point: MeasuredLevel) -> str:
    return f"{_per_second(min(point.rates))}–{_per_second(max(point.rates))}/s"


def _rates(tier: ProbedTier) -> list[Column]:
    rows = list(tier.derived.items())
    return [
        Column(f"{tier.name}, {_servers(tier)}", [Text(key) for key, _ in rows], right=False),
        Column("", [Text("at least" if rate.at_least else "") for _, rate in rows]),
        Column("derived", [Text(_value(key, rate.value)) for key, rate in rows], "bold"),
        Column("range", [Text(_rate_range(key, rate)) for key, rate in rows], "dim"),
        Column("n", [Text(str(rate.n)) for _, rate in rows], "dim"),
    ]


def _servers(tier: ProbedTier) -> str:
    if tier.servers_told:
        return f"each of {counted(tier.servers, 'server')} as specified"
    return "all servers as one"


def _rate_range(key: str, rate: ProbedRate) -> str:
    low = "open" if rate.low is None else _value(key, rate.low)
    return f"{low} – {'open' if rate.high is None else _value(key, rate.high)}"


def _value(key: str, value: float) -> str:
    if key.endswith("_ops"):
        return f"{_per_second(value)}/s"
    if key.endswith("bandwidth"):
        return f"{_megabytes(value)} MB/s"
    return f"{value:.2f}" if key.endswith("variation") else about_seconds(value) if value else "0 s"


def probe_json(probed: Probed, findings: Sequence[Finding]) -> JsonObject:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "probe",
        "processes": probed.processes,
        "seconds": probed.seconds,
        "tiers": [_tier_json(tier) for tier in probed.tiers],
        "findings": [
            {
                "kind": finding.kind.removeprefix("probe_"),
                "evidence": shown_evidence(finding),
                "text": finding.text,
                "suggestion": finding.suggestion,
            }
            for finding in findings
        ],
    }


def _tier_json(tier: ProbedTier) -> JsonObject:
    derived: JsonObject = {key: _rate_json(rate) for key, rate in tier.derived.items()}
    return {
        "name": tier.name,
        "path": tier.path,
        "filesystem": tier.filesystem,
        "cold": tier.cold,
        "files": [{"bytes": size, "count": count} for size, count in tier.files.items()],
        "points": [_point_json(point) for series in tier.series for point in series.points],
        "series": [_series_json(series) for series in tier.series],
        "derived": {**derived, "servers": {"value": tier.servers, "told": tier.servers_told}},
        "own_seconds_per_operation": tier.own_seconds,
        "operations": dict(tier.operations),
    }


def _point_json(point: MeasuredLevel) -> JsonObject:
    is_read = point.kind == "read"
    return {
        "kind": point.kind,
        "bytes": point.nbytes if is_read else None,
        "processes": point.processes,
        "ops_per_second": point.ops_per_second,
        "low": min(point.rates),
        "high": max(point.rates),
        "n": point.n,
        "bytes_per_second": point.ops_per_second * point.nbytes if is_read else None,
        "op_seconds": point.op_seconds,
        "operations": sum(repetition.operations for repetition in point.repetitions),
        "repetitions": [repetition.ops_per_second for repetition in point.repetitions],
        "variations": [repetition.variation for repetition in point.repetitions],
        "on_processor": [repetition.on_processor for repetition in point.repetitions],
    }


def _series_json(series: Series) -> JsonObject:
    is_read = series.kind == "read"
    return {
        "kind": series.kind,
        "bytes": series.nbytes if is_read else None,
        "stopped": series.stopped,
        "saturated": series.saturated,
    }


def _rate_json(rate: ProbedRate) -> JsonObject:
    return {
        "value": rate.value,
        "low": rate.low,
        "high": rate.high,
        "n": rate.n,
        "at_least": rate.at_least or None,
        "text": rate.text,
    }
