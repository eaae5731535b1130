"""Class times of ranks whose epochs, stalls and steps are known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from tests.traces import CLASSES, times_of
from tierscope.analysis.times import ClassTimes

Rank = Mapping[str, Any]  # class → seconds; epoch, stall, compute; also steps: (stall, compute) of each, payload


def clocked(
    points: Sequence[tuple[Mapping[str, Any], Sequence[Sequence[Rank]]]], sweep: Sequence[str] = ("cache_rate",)
) -> ClassTimes:
    """(swept values, of each epoch its ranks)."""
    rows: list[dict[str, Any]] = []
    epochs: list[dict[str, Any]] = []
    for values, each_epoch in points:
        for number, ranks in enumerate(each_epoch, start=1):
            for rank, about in enumerate(ranks):
                at = {**values, "epoch": number, "rank": rank}
                rows += [
                    {**at, "class": name, "seconds": about.get(name, 0.0), "ops": 1, "bytes": 1} for name in CLASSES
                ]
                epochs.append({**at, "repetition": 1, **_row(about)})
    schema = {name: pl.List(pl.Float64) for name in ("step_read_seconds", "step_stall_seconds", "step_compute_seconds")}
    table = pl.DataFrame(epochs, schema_overrides=schema)
    return replace(times_of(rows, list(sweep)), epochs=table, basis="wall")


def _row(about: Rank) -> dict[str, Any]:
    steps = about.get("steps")
    return {
        "epoch_seconds": float(about["epoch"]),
        "stall_seconds": float(about.get("stall", 0.0)),
        "compute_seconds": float(about.get("compute", 0.0)),
        "checkpoint_seconds": float(about.get("checkpoint", 0.0)),
        "samples": 10,
        "payload_bytes": about.get("payload", 1000),
        "steps_per_entry": 1,
        "step_read_seconds": None,
        "step_stall_seconds": [stall for stall, _ in steps] if steps else None,
        "step_compute_seconds": [compute for _, compute in steps] if steps else None,
    }
