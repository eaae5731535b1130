"""How long ranks wait for their first batch of an epoch, as simulated: the mean and the longest, beside the points of a breakdown."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tierscope.trace.description import RunDescription, Simulated

if TYPE_CHECKING:  # which calls us
    from tierscope.analysis.breakdown import SweepPoint


def with_first_batches(summary: "list[SweepPoint]", about: Sequence[RunDescription]) -> "list[SweepPoint]":
    """The points with the mean over their epochs: every epoch begins anew, also the first."""
    first_batches: dict[tuple[Any, ...], list[tuple[float, float]]] = {}
    for run in about:
        if isinstance(run, Simulated) and run.first_batch:
            first_batches.setdefault(tuple(run.sweep.values()), []).extend(run.first_batch.values())
    return [
        replace(
            point,
            first_batch=(statistics.fmean(mean for mean, _ in waits), statistics.fmean(most for _, most in waits)),
        )
        if (waits := first_batches.get(tuple(point.sweep.values())))
        else point
        for point in summary
    ]
