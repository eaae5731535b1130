"""OUT/summary.json: DLIO's metrics of a result, by DLIO's names; one entry per point of the sweep.

Schema history
    1  first version
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Annotated

import msgspec
from msgspec import Meta

from tierscope.analysis.metrics import MB, PointMetrics, metric_json, metric_lines, point_metrics
from tierscope.errors import ResultError, UserError
from tierscope.jsonable import JsonObject
from tierscope.output import manifest
from tierscope.output.disk_errors import explained, plain
from tierscope.output.result import has_study, read_study, refuse_other_runs
from tierscope.output.store import RunStore
from tierscope.output.typed_documents import DocumentKind, read_typed
from tierscope.spec import sweep
from tierscope.spec.dlio_making import MetricOptions
from tierscope.trace.trace import Trace

SCHEMA_VERSION = 1
_NAME = "summary.json"


@dataclass(frozen=True, slots=True)
class Summary:
    """`document`: what summary.json holds. `accelerators`: of each of its points."""

    wanted: MetricOptions
    points: tuple[PointMetrics, ...]
    accelerators: tuple[int, ...]
    document: JsonObject

    def lines(self) -> list[str]:
        """DLIO's `[METRIC]` lines, of every point."""
        lines: list[str] = []
        for point, accelerators in zip(self.points, self.accelerators, strict=True):
            if point.sweep:
                lines.append("[METRIC] " + ", ".join(f"{name} = {value}" for name, value in point.sweep.items()))
            lines += metric_lines(point, accelerators, self.wanted.au)
        return lines


def summarise(out: str, wanted: MetricOptions, store: RunStore | None = None) -> Summary:
    """Of the runs that are finished; `store`: those of this result, where some were read before."""
    if not os.path.isdir(out) or not has_study(out):
        raise UserError(f"{out}: is not the result of a study; --metrics needs the --out of 'tierscope run'")
    store = store or RunStore(out)
    if not store.finished():
        raise UserError(f"{out}: no run has finished yet; 'tierscope run' with this --out resumes it")
    study = read_study(out)
    refuse_other_runs(study, store)
    studies = [point.study for point in sweep.points(study)]
    seen: list[Trace] = []

    def traces() -> Iterator[Trace]:
        for trace in store.load_all():
            seen.append(Trace(trace.key, trace.about, trace.ranks.select("epoch", "epoch_seconds")))
            yield trace

    metrics = point_metrics(traces(), wanted)
    points = [
        _point(of_point, wanted, [run for run in seen if run.key.point == of_point.point]) for of_point in metrics
    ]
    for entry, of_point in zip(points, metrics, strict=True):
        here = studies[of_point.point]
        entry |= {
            "num_accelerators": here.system.ranks,
            "num_hosts": here.system.nodes,
            "num_files_train": here.workload.dataset.num_files_train,
            "num_samples_per_file": here.workload.dataset.num_samples_per_file,
        }
    only = points[0] if len(points) == 1 else {}
    origin = seen[0].about.provenance
    document = {
        "schema_version": SCHEMA_VERSION,
        "study": study.study,
        "kind": seen[0].about.kind,
        "emulated_tiers": list(
            dict.fromkeys(tier.name for point_study in studies for tier in point_study.system.tiers if tier.emulate)
        ),
        "hostname": origin.host if origin else None,
        "bytes_per_MB": MB,
        "wanted": asdict(wanted),
        **({name: only[name] for name in only if name not in ("point", "sweep")} if only else {"metric": None}),
        "points": points,
    }
    return Summary(
        wanted, tuple(metrics), tuple(studies[of_point.point].system.ranks for of_point in metrics), document
    )


def _point(metrics: PointMetrics, wanted: MetricOptions, runs: Sequence[Trace]) -> JsonObject:
    start, end = _times(runs)
    return {
        "point": metrics.point,
        "sweep": dict(metrics.sweep),
        "start": start,
        "end": end,
        "epochs": len(metrics.epochs),
        "metric": metric_json(metrics, wanted.au),
    }


def _times(runs: Sequence[Trace]) -> tuple[str | None, str | None]:
    """When the first run began and the last one ended. Its begin is its end less its epochs: what lies between them is not known."""
    spans = []
    for run in runs:
        origin = run.about.provenance
        if origin is None or origin.time is None:
            return None, None
        ended = datetime.fromisoformat(origin.time)
        slowest = run.table.group_by("epoch").max()["epoch_seconds"]
        spans.append((ended - timedelta(seconds=float(slowest.sum() or 0.0)), ended))
    first, last = min(start for start, _ in spans), max(end for _, end in spans)
    return first.isoformat(timespec="seconds"), last.isoformat(timespec="seconds")


def write_summary(out: str, wanted: MetricOptions, store: RunStore | None = None) -> Summary:
    """Written anew, whatever was there."""
    summary = summarise(out, wanted, store)
    with explained(os.path.join(out, _NAME), plain("make it writable")):
        manifest.put(out, {_NAME: (json.dumps(summary.document, indent=1, allow_nan=False) + "\n").encode()})
    return summary


def wanted_before(out: str) -> MetricOptions:
    """How the metrics of a result were wanted when it was run; what cannot be read is as if nobody had said anything."""
    try:
        written = read_typed(os.path.join(out, _NAME), _WRITTEN).wanted
    except (FileNotFoundError, ResultError):
        return MetricOptions()
    return MetricOptions(written.au, written.exclude_start_steps, written.exclude_end_steps)


class _WrittenOptions(msgspec.Struct, frozen=True):
    au: Annotated[float, Meta(ge=0, le=1)] | None
    exclude_start_steps: Annotated[int, Meta(ge=0, le=10**12)]
    exclude_end_steps: Annotated[int, Meta(ge=0, le=10**12)]


class _WrittenSummary(msgspec.Struct, frozen=True):
    """As much of summary.json as is read again."""

    schema_version: Annotated[int, Meta(ge=1, le=SCHEMA_VERSION)]
    wanted: _WrittenOptions


_WRITTEN = DocumentKind(_WrittenSummary, "remove it: every run writes it again", most_bytes=16 << 20)
