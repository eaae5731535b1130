"""Seconds of a training step on a device that was measured (`arch/device_file.py`), with an interval.

Every piece of work takes what a smooth function through the measured sizes of its kind says (`arch/smooth.py`). The host gives pieces out one after another and the device
does each when it has it and is free: a step takes as long as the later of the two. The interval comes from that function's own doubt, which is fitted by leaving measured sizes out, drawn jointly: layers of one shape err
alike. Pieces are measured alone, and a network's layers differ in common from that: what other networks' steps were off by in common widens the interval, never the prediction.
A host is not equally fast from one minute to the next; that is in it too, as a share.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from tierscope.arch.device_file import DeviceFile
from tierscope.arch.network import Network
from tierscope.arch.precision import Precision
from tierscope.arch.smooth import Array, Surface, features_of, fit
from tierscope.arch.step_work import Issue, Piece, StepWork, step_work
from tierscope.arch.work_kinds import KINDS, Sizes

_DRAWS = 400
_SEED = 7
_LEAST_SECONDS = 3e-6  # of any piece: the simple guess that measured seconds are compared with
_TAILS = (2.5, 97.5)
_BEYOND = 0.1  # of an octave outside the measured sizes is not worth a word,
_TOLD = 0.01  # nor are pieces outside that take less of the step
_HOST_DOUBT = (
    0.2  # of a host's seconds, in logarithms: so much did two probes of the same kind of machine differ, within minutes
)
NETWORK_DOUBT = 0.076  # of the device's seconds, in logarithms: by so much were the predicted steps of whole networks off, six of them on one H200 (`python -m validation accelerator`)
_FARTHEST = 24.0  # octaves outside: beyond them nothing is known, and doubt cannot grow for ever
_OUTSIDE_DOUBT = math.log(1.25)  # more of it for every octave outside, in logarithms
_MOST_LOG = 100.0  # of seconds over the guess: what a file of absurd numbers says is absurd, and finite

Surfaces = dict[tuple[str, str, str], Surface]  # by kind, precision and way


@dataclass(frozen=True, slots=True)
class StepTime:
    """`interval`: 95 %; `device_seconds`: if the host were no limit, `host_seconds`: if the device were none. `outside`: sizes beyond what was measured, and where that ends."""

    seconds: float
    interval: tuple[float, float]
    device_seconds: float
    host_seconds: float
    outside: tuple[str, ...]
    stand_ins: tuple[str, ...]


def predict_step(
    device: DeviceFile,
    network: Network,
    batch: int,
    precision: Precision,
    optimizer: str = "sgd",
    checkpointed: bool = False,
    network_doubt: float = NETWORK_DOUBT,
    surfaces: Surfaces | None = None,
) -> StepTime:
    """`network_doubt`: what all of a network's pieces may be off by in common, as a standard deviation of logarithms. `surfaces`: of this device, kept by whoever asks again."""
    work = step_work(network, batch, precision, optimizer, checkpointed)
    counts = Counter(piece for issue in work.issues for piece in issue.pieces)
    pieces = list(counts)
    means, drawn, ends = _piece_seconds(device, pieces, precision.name, {} if surfaces is None else surfaces)
    place = {piece: number for number, piece in enumerate(pieces)}
    host = _host_seconds(device.host[precision.name])
    middle = _through(work, place, host, means[:, None], np.ones(1))
    pace = np.exp(_HOST_DOUBT * np.random.default_rng(_SEED + 1).standard_normal(_DRAWS))
    common = np.exp(network_doubt * np.random.default_rng(_SEED + 2).standard_normal(_DRAWS))
    draws = _through(work, place, host, drawn * common, pace)
    low, high = np.percentile(draws, _TAILS)
    spent = means * np.array(list(counts.values()))
    outside = tuple(end for end, numbers in ends.items() if spent[numbers].sum() > _TOLD * middle[0])
    return StepTime(
        seconds=float(middle[0]),
        interval=(float(min(low, middle[0])), float(max(high, middle[0]))),
        device_seconds=float(spent.sum()),
        host_seconds=sum(host[issue.host][issue.turn] for issue in work.issues),
        outside=outside,
        stand_ins=work.stand_ins,
    )


def _host_seconds(costs: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    """Of layers among others: what chains of equal ones say, times what mixed ones spent more."""
    return {
        kind: tuple(
            spent * more for spent, more in zip(seconds, (1.0,) * 3 if kind == "step" else costs["mixed"], strict=True)
        )
        for kind, seconds in costs.items()
    }


def guess_seconds(device: DeviceFile, kind: str, precision: str, sizes: Sizes) -> float:
    """What measured seconds are compared with, so that the function through them is flat."""
    work, narrow = KINDS[kind], precision != "fp32"
    least = work.elements(sizes) * (2 if narrow else 4) / device.ceilings["memory_bandwidth"]
    peaks = {"tensor": "bf16" if narrow else "tf32", "product": "bf16" if narrow else "fp32"}
    if work.units in peaks:
        least = max(least, work.flops(sizes) / device.ceilings[peaks[work.units]])
    return _LEAST_SECONDS + least


def measured_points(device: DeviceFile, kind: str, precision: str, way: str) -> tuple[Array, Array]:
    """Features of all measured sizes, and logarithms of their seconds over the guess."""
    rows, number = device.rows[kind, precision], KINDS[kind].ways.index(way)
    values = [math.log(row.seconds[number] / guess_seconds(device, kind, precision, row.sizes)) for row in rows]
    return features_of([KINDS[kind].features(row.sizes) for row in rows]), np.array(values)


def with_smooth(device: DeviceFile) -> DeviceFile:
    """With how each kind's seconds depend on its sizes, fitted to its own rows. Takes a minute or two."""
    smooth = {
        (kind, precision, way): fit(*measured_points(device, kind, precision, way))
        for kind, precision in device.rows
        for way in KINDS[kind].ways
    }
    return replace(device, smooth=smooth)


def _piece_seconds(
    device: DeviceFile, pieces: Sequence[Piece], precision: str, surfaces: Surfaces
) -> tuple[Array, Array, dict[str, list[int]]]:
    """Means, draws, and the ends of what was measured, with the pieces that lie beyond each."""
    rng = np.random.default_rng(_SEED)
    means, drawn = np.zeros(len(pieces)), np.zeros((len(pieces), _DRAWS))
    ends: dict[str, list[int]] = {}
    for kind, way in dict.fromkeys((piece.kind, piece.way) for piece in pieces):
        numbers = [number for number, piece in enumerate(pieces) if (piece.kind, piece.way) == (kind, way)]
        key = kind, precision, way
        if key not in surfaces:
            surfaces[key] = Surface.through(*measured_points(device, *key), device.smooth[key])
        surface = surfaces[key]
        points = surface.points
        asked = features_of([KINDS[kind].features(pieces[number].sizes) for number in numbers])
        sizes = len(KINDS[kind].feature_names)  # what they make together lies no further out than they do
        beyond = _octaves_beyond(asked[:, :sizes], points[:, :sizes])
        mean, covariance = surface.at(np.clip(asked, points.min(0), points.max(0)))
        guesses = np.array([guess_seconds(device, kind, precision, pieces[number].sizes) for number in numbers])
        covariance += np.diag(surface.smooth.noise + (_OUTSIDE_DOUBT * np.minimum(beyond.sum(1), _FARTHEST)) ** 2)
        noise = np.linalg.cholesky(covariance + _jitter(covariance)) @ rng.standard_normal((len(numbers), _DRAWS))
        means[numbers] = guesses * _exp(mean + np.diag(covariance) / 2)  # of a lognormal: sums are of means
        drawn[numbers] = guesses[:, None] * _exp(mean[:, None] + noise)
        for name, measured, wanted in zip(KINDS[kind].feature_names, points.T[:sizes], asked.T[:sizes], strict=True):
            for end, lies_beyond in _ends(f"{kind} {name}", measured, wanted):
                ends.setdefault(end, []).extend(np.array(numbers)[lies_beyond])
    return means, drawn, ends


def _exp(logs: Array) -> Array:
    return np.asarray(np.exp(np.clip(logs, -_MOST_LOG, _MOST_LOG)))


def _ends(name: str, measured: Array, asked: Array) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Where the device file ends, of a size that is asked beyond that, and what is."""
    low, high = float(measured.min()), float(measured.max())
    for lies_beyond, word, end in ((asked > high + _BEYOND, "above", high), (asked < low - _BEYOND, "below", low)):
        if lies_beyond.any():
            yield name if " odd " in name else f"{name} {word} {2**end:,.0f}", lies_beyond


def _jitter(covariance: Array) -> Array:
    lowest = float(np.linalg.eigvalsh(covariance).min())
    return np.asarray(np.eye(len(covariance)) * max(0.0, 1e-9 - lowest))


def _octaves_beyond(asked: Array, points: Array) -> Array:
    return np.asarray(np.maximum(np.maximum(points.min(0) - asked, asked - points.max(0)), 0.0))


def _through(
    work: StepWork, place: Mapping[Piece, int], host: Mapping[str, Sequence[float]], seconds: Array, pace: Array
) -> Array:
    """When the device is done, for every draw; `pace`: by how much the host is slower in it."""
    given, done = np.zeros(seconds.shape[1]), np.zeros(seconds.shape[1])
    for issue in work.issues:
        given, done = _issued(
            issue, given, done, pace * host[issue.host][issue.turn], seconds[[place[piece] for piece in issue.pieces]]
        )
    return np.maximum(done, given)


def _issued(issue: Issue, given: Array, done: Array, spent: Array, seconds: Array) -> tuple[Array, Array]:
    """Pieces are given out evenly over what the host spends on their layer."""
    for number, taken in enumerate(seconds, start=1):
        done = np.maximum(done, given + spent * number / len(issue.pieces)) + taken
    return given + spent, done
