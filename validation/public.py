"""Public measurements: the first batch of UNet3D on Polaris, 1–32 ranks on Lustre, carried to 64.

The model. Up to eight ranks of a node share one station, the node's way to the file system; nodes share the file system. Reading a rank's first
batch is `work` seconds of the node's station, and `fixed` is what it takes beside.

    max over ranks  = fixed + work · ranks per node + between_nodes · d(nodes) + shared · (ranks − 1)
    mean over ranks = fixed + work + waiting · (ranks per node − 1) + shared · (ranks − 1)

A station that never idles while work is left is done with the last rank of its node after the work of all, in whatever order it
serves. So the maximum is over nodes, not over ranks: d(nodes) is the expected largest of as many standard normals, and `between_nodes` how
much nodes' work differs (files of this workload do). The order decides what a rank waits for another on average, so `waiting` is
free: work/2 if one is served after another, near work if all are at once. `shared` is what each further rank costs everybody at the
file system. All are at least 0 and fitted to 1–32 ranks by least squares of relative errors; they are linear.

The form was written down after the 64-rank figures had been seen. They are not fitted, but this is no blind prediction. The other
form considered, every rank an independent draw, is printed beside it.
"""

import csv
import math
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from validation.table import Row

MEASURED = Path(__file__).resolve().parents[2] / "shared" / "data" / "public" / "polaris_unet3d_first_batch.csv"
TIER, FITTED, PREDICTED = "lustre", 32, 64
GOAL = 0.1
NAMES = ("fixed", "work", "waiting", "between_nodes", "shared")
FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Runs:
    """First batches on some nodes: means over all runs and epochs, and the standard error of each, epochs being the independent draws."""

    nodes: int
    ranks: int
    mean: float
    largest: float
    mean_error: float = 0.0
    largest_error: float = 0.0


def rows(short: bool) -> list[Row]:  # noqa: ARG001  (it is short)
    if not MEASURED.is_file():
        return [
            Row(
                "public",
                "first batch on Polaris",
                "skipped",
                note="no measurements beside the project (../shared/data)",
            )
        ]
    measured = {runs.ranks: runs for runs in read(MEASURED)}
    found = carried_to(measured, FITTED, PREDICTED)
    figures = ", ".join(f"{name} {found.model[name]:.2f} s" for name in NAMES)
    beside = f"ranks as independent draws: {found.independent:.2f} s ({100 * (found.independent / found.true.largest - 1):+.1f} %)"
    return [
        _prediction("mean over ranks", found.mean, found.true.mean, f"fitted to 1–{FITTED} ranks: {figures}"),
        _prediction("max over ranks", found.largest, found.true.largest, beside),
        *_against_last(found, goal=True),
        *_against_last(carried_to(measured, FITTED // 2, PREDICTED // 2), goal=False),
    ]


@dataclass(frozen=True, slots=True)
class Carried:
    """A prediction for more ranks than were fitted to, and what there is to compare it with."""

    model: dict[str, float]
    mean: float
    largest: float
    independent: float  # the largest, by the other form
    last: Runs
    true: Runs


def carried_to(measured: Mapping[int, Runs], fitted: int, predicted: int) -> Carried:
    seen = [runs for runs in measured.values() if runs.ranks <= fitted]
    model, true = fit(seen), measured[predicted]
    mean, largest = predict(model, true.nodes, true.ranks)
    return Carried(model, mean, largest, largest_of_independent(seen, predicted), measured[fitted], true)


def _prediction(what: str, found: float, true: float, note: str) -> Row:
    off = found / true - 1
    value = f"{found:.2f} s, measured {true:.2f} s: {100 * off:+.1f} %"
    return Row("public", f"Polaris, Lustre, {what} of {PREDICTED}", value, f"≤ {GOAL:.0%}", abs(off) <= GOAL, note)


def _against_last(found: Carried, goal: bool) -> Iterator[Row]:
    true, last = found.true, found.last
    for what, ours, theirs, seconds, error in (
        ("mean", found.mean, last.mean, true.mean, true.mean_error),
        ("max", found.largest, last.largest, true.largest, true.largest_error),
    ):
        off, last_off = abs(ours / seconds - 1), abs(theirs / seconds - 1)
        yield Row(
            "public",
            f"{what} of {true.ranks}: error of the model, of carrying {last.ranks} ranks forward",
            f"{100 * off:.2f} %, {100 * last_off:.2f} %",
            "model closer" if goal else "",
            off < last_off if goal else None,
            f"standard error of what was measured: {100 * error / seconds:.1f} %"
            + ("; form not chosen blind" if goal else ""),
            "both errors are below that standard error" if max(off, last_off) < error / seconds else "",
        )


def read(path: Path) -> list[Runs]:
    """All Lustre runs by number of ranks, all epochs."""
    found: dict[tuple[int, int], list[dict[str, str]]] = {}
    with path.open(encoding="utf-8", newline="") as text:
        for line in csv.DictReader(text):
            if line["tier"] == TIER:
                found.setdefault((int(line["hosts"]), int(line["n_ranks"])), []).append(line)
    return [_runs(nodes, ranks, lines) for (nodes, ranks), lines in sorted(found.items(), key=lambda each: each[0][1])]


def _runs(nodes: int, ranks: int, lines: list[dict[str, str]]) -> Runs:
    """Every run shuffles alike, so the same epoch of another run is no independent draw."""

    def figures(column: str) -> tuple[float, float]:
        epochs: dict[str, list[float]] = {}
        for line in lines:
            epochs.setdefault(line["epoch"], []).append(float(line[column]))
        means = [statistics.fmean(values) for values in epochs.values()]
        error = statistics.stdev(means) / math.sqrt(len(means)) if len(means) > 1 else 0.0
        return statistics.fmean(float(line[column]) for line in lines), error

    (mean, mean_error), (largest, largest_error) = figures("first_load_mean_s"), figures("first_load_max_s")
    return Runs(nodes, ranks, mean, largest, mean_error, largest_error)


def fit(seen: list[Runs]) -> dict[str, float]:
    from scipy.optimize import nnls  # noqa: PLC0415  (only here)

    terms = np.vstack([_terms(runs.nodes, runs.ranks) for runs in seen])
    seconds = np.array([value for runs in seen for value in (runs.mean, runs.largest)])
    found, _ = nnls(terms / seconds[:, None], np.ones(len(seconds)))
    return dict(zip(NAMES, found.tolist(), strict=True))


def predict(model: Mapping[str, float], nodes: int, ranks: int) -> tuple[float, float]:
    """Mean and maximum over ranks."""
    mean, largest = _terms(nodes, ranks) @ np.array([model[name] for name in NAMES])
    return float(mean), float(largest)


def _terms(nodes: int, ranks: int) -> FloatArray:
    """What each of NAMES is multiplied by, in the mean and in the maximum."""
    here = ranks / nodes
    return np.array([(1.0, 1.0, here - 1, 0.0, ranks - 1), (1.0, here, 0.0, largest_normal(nodes), ranks - 1)])


def largest_of_independent(seen: list[Runs], ranks: int) -> float:
    """The other form: full nodes alike, and every rank an independent draw around their mean."""
    full = [runs for runs in seen if runs.ranks > runs.nodes]
    spread = statistics.fmean((runs.largest - runs.mean) / largest_normal(runs.ranks) for runs in full)
    return statistics.fmean(runs.mean for runs in full) + spread * largest_normal(ranks)


@cache
def largest_normal(count: int) -> float:
    """The expected largest of so many standard normals: the integral of x d(Φ(x)^count)."""
    x = np.linspace(-9.0, 9.0, 20_001)
    below = np.array([0.5 * math.erfc(-value / math.sqrt(2)) for value in x])
    middle = (x[1:] + x[:-1]) / 2
    return float((middle * np.diff(below**count)).sum())
