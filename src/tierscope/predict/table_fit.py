"""Fit what a published table tells of a system: few keys, only those that the table asks for.

All keys are searched over their ranges, one after another, in as many orders as there are keys, then moved together by strides from the best two. Then each is left out again, the last first, unless the misfit
(root of the mean squared error, relative; of AU in shares) is larger by more than a key of its own is worth (Akaike's rule: e^(1/figures)) without it: of keys that can stand in for one another the first in this list stays, and the
table does not tell which it is. Keys that are left out stay as the study's system has them. Of a bandwidth that is left out because nothing ran into it, what it is at least is kept:
with more ranks it may be the limit.

    startup_time, process_overhead, step_jitter (with sync: step), step_overhead: what the client costs (client.py)
    node_bandwidth, device_bandwidth of the last tier  where nodes, or all of storage together, are the limit
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tierscope.predict.measured_table import FIRST_MAX, FIRST_MEAN
from tierscope.predict.spread import DEVIATIONS
from tierscope.predict.table_alike import alike, on_other_systems, other_fits
from tierscope.predict.table_intervals import residuals
from tierscope.predict.table_points import TablePoint
from tierscope.spec.study import System

_GOOD = 0.002
_GRID = 9
_STRIDES = (0.5, 0.15)  # in logarithms
_TURNS = 12  # of a simplex, for each key
_SAME = 1e-4  # misfits
_AS_WELL = 1.5  # times the misfit, or this much more: values that fit about as well
_MORE = 0.003
_KNOWN_ERROR, _BEFORE = (
    0.05,
    4,
)  # of the model on tables with many rows (docs/validation.md), and as how many figures that counts: few rows may be hit by chance
POOR = 0.15  # misfit: what a table is fitted so badly tells nothing of what storage gives
FARTHEST = 64.0  # times a value, where its interval is searched
_HALVINGS = 8  # of a range, in logarithms
CLIENT = ("startup_time", "process_overhead", "step_jitter", "step_overhead")


@dataclass(frozen=True, slots=True)
class TableKey:
    """A key that may be fitted, and where it is searched."""

    path: str
    low: float
    high: float

    def grid(self) -> list[float]:
        ratio = (self.high / self.low) ** (1 / (_GRID - 1))
        return [self.low * ratio**step for step in range(_GRID)]


@dataclass(frozen=True, slots=True)
class FittedTable:
    """`values` by key path, `ends`: within which a key fits about as well, others unchanged (None: open). `misfit`: of the fit; `before`: of the system as it was.

    `served`: by key of the last tier, the least with which the table fits about as well, where it has no such limit. `alike`: values of other fits that are
    about as good, of these keys or of others in their place; `values` first.
    """

    system: System
    values: Mapping[str, float]
    ends: Mapping[str, tuple[float | None, float | None]]
    misfit: float
    before: float
    served: Mapping[str, float] = field(default_factory=dict)
    alike: tuple[Mapping[str, float], ...] = ()


class TableFitSoFar:
    """Whoever is interrupted has this: the best values so far, and the misfit without any."""

    def __init__(self) -> None:
        self.values: Mapping[str, float] = {}
        self.misfit = self.before = math.inf

    def told(self, values: Mapping[str, float], misfit: float) -> None:
        self.before = misfit if not values else self.before
        if misfit < self.misfit:
            self.values, self.misfit = values, misfit

    def fitted(self, base: System) -> FittedTable:
        """Within which ends a key fits about as well is not known yet."""
        ends = dict.fromkeys(self.values, (None, None))
        return FittedTable(apply_values(base, self.values), self.values, ends, self.misfit, self.before)


def steps_of(keys: Sequence[TableKey]) -> int:
    """As many as `fit_table` tells of at most: every key in every order, then each left out, then each in the place of others."""
    return len(keys) * (len(keys) + 2)


def fit_table(
    points: Sequence[TablePoint],
    base: System,
    advance: Callable[[int], None],
    keys: Sequence[TableKey] | None = None,
    so_far: TableFitSoFar | None = None,
    assumed: Sequence[tuple[System, Mapping[str, float]]] = (),
) -> FittedTable:
    """`advance`: told after every key that was searched or left out. `so_far` has the best fit when it is interrupted. `assumed`: the system with other values
    of what is assumed, and these values."""
    problem = TableProblem(points, base, so_far or TableFitSoFar())
    tried = list(keys_of(points, base) if keys is None else keys)
    before = problem.misfit({})
    starts: list[tuple[dict[str, float], float]] = [({}, before)]
    for place in range(len(tried)) if before > _GOOD else ():
        starts.append(problem.started([*tried[place:], *tried[:place]], advance))
    starts.sort(key=lambda start: start[1])
    figures = sum(len(point.measured.figures) for point in points)
    worth = math.exp(1 / figures)
    values, least = min((problem.polished(*start, _STRIDES) for start in starts[:2]), key=lambda polished: polished[1])
    for path in [key.path for key in reversed(tried) if key.path in values]:
        fewer = {other: value for other, value in values.items() if other != path}
        without = problem.polished(fewer, problem.misfit(fewer), _STRIDES)
        if without[1] <= max(_GOOD, least * worth):
            values, least = without
        advance(1)
    ends = {path: problem.ends(values, path, least) for path in values}
    no_limits = _no_limits(points, base, values) if least < POOR else []
    served = {key.path.rpartition(".")[2]: problem.enough(values, key, least) for key in no_limits}
    most = _alike(least, figures, len(values))
    fits = alike(problem, (values, *other_fits(problem, tried, values, most, advance)), most)
    others = [(TableProblem(points, system, TableFitSoFar()), drawn) for system, drawn in assumed]
    fits += on_other_systems(others, values, most)
    return FittedTable(apply_values(base, values), values, ends, least, before, served, fits)


def keys_of(points: Sequence[TablePoint], base: System) -> list[TableKey]:
    """What tables of these figures can tell of; ranges are around what was measured."""
    figures = {figure for point in points for figure in point.measured.figures}
    study = points[0].study
    reader, waits = study.workload.reader, _waits(points)
    keys = []
    if waits:
        keys.append(TableKey("startup_time", min(waits) / 50, min(waits)))
        keys.append(TableKey("process_overhead", min(waits) / reader.batch_size / 50, min(waits) / reader.batch_size))
    if figures - {FIRST_MEAN, FIRST_MAX}:
        step = max(study.workload.train.computation_time, 1e-4)
        if study.workload.train.sync == "step":
            keys.append(TableKey("step_jitter", step / 1000, step / 3))
        keys.append(TableKey("step_overhead", step / 300, step))
    return keys + (_bandwidths(points, base) if any(point.measured.ranks > 1 for point in points) else [])


def _waits(points: Sequence[TablePoint]) -> list[float]:
    """First batches, seconds."""
    return [
        point.measured.figures[figure][0]
        for point in points
        for figure in (FIRST_MEAN, FIRST_MAX)
        if figure in point.measured.figures
    ]


def _bandwidths(points: Sequence[TablePoint], base: System) -> list[TableKey]:
    """Of a node and of all together."""
    last, workload = base.tiers[-1].name, points[0].study.workload
    batch_seconds = max(_waits(points), default=max(workload.train.computation_time, 1e-3))
    rate = workload.dataset.record_length_bytes * workload.reader.batch_size / batch_seconds  # of a rank
    on_node = max(point.measured.ranks // point.measured.nodes for point in points)
    most = max(point.measured.ranks for point in points)
    return [
        TableKey(f"tiers.{last}.node_bandwidth", rate * on_node / 8, rate * on_node * 32),
        TableKey(f"tiers.{last}.device_bandwidth", rate * most / 8, rate * most * 8),
    ]


def _no_limits(points: Sequence[TablePoint], base: System, values: Mapping[str, float]) -> list[TableKey]:
    """Bandwidths that neither the study gives, nor the table, nor the fit."""
    given = {"device_bandwidth"} if any("provisioned" in point.measured.settings for point in points) else set()
    return [
        key
        for key in _bandwidths(points, base)
        if key.path not in values
        and (name := key.path.rpartition(".")[2]) not in given
        and getattr(base.tiers[-1], name) is None
    ]


def apply_values(system: System, values: Mapping[str, float]) -> System:
    """The system with these keys set."""
    changed = replace(system, **{path: value for path, value in values.items() if path in CLIENT})  # type: ignore[arg-type]
    tiers = list(changed.tiers)
    for path, value in values.items():
        if path not in CLIENT:
            key = path.rpartition(".")[2]
            tiers[-1] = replace(tiers[-1], **{key: value})  # type: ignore[arg-type]
    return replace(changed, tiers=tuple(tiers))


class TableProblem:
    """Misfits of systems, each simulated once."""

    def __init__(self, points: Sequence[TablePoint], base: System, so_far: TableFitSoFar) -> None:
        self._points, self._base, self._so_far = points, base, so_far
        self._known: dict[tuple[tuple[str, float], ...], float] = {}

    def misfit(self, values: Mapping[str, float]) -> float:
        key = tuple(sorted((path, float(f"{value:.4g}")) for path, value in values.items()))
        if key not in self._known:
            system = replace(apply_values(self._base, dict(key)), model_error=0.0)
            errors = list(residuals(self._points, system).values())
            self._known[key] = math.sqrt(math.fsum(error**2 for error in errors) / max(1, len(errors)))
            self._so_far.told(dict(key), self._known[key])
        return self._known[key]

    def started(self, keys: Sequence[TableKey], advance: Callable[[int], None]) -> tuple[dict[str, float], float]:
        """From one key to the next in this order; another order may end elsewhere."""
        values, least = dict[str, float](), self.misfit({})
        for key in keys:
            values, least = self.searched(values, least, key)
            advance(1)
        return self.polished(values, least, _STRIDES[:1])

    def searched(self, values: Mapping[str, float], least: float, key: TableKey) -> tuple[dict[str, float], float]:
        """One key over its whole range, others unchanged; left out where it is better without."""
        best = min(({**values, key.path: value} for value in key.grid()), key=self.misfit)
        return (best, self.misfit(best)) if self.misfit(best) < least else (dict(values), least)

    def adjusted(self, values: Mapping[str, float]) -> tuple[Mapping[str, float], float]:
        return self.polished(values, self.misfit(values), _STRIDES[:1])

    def instead(self, values: Mapping[str, float], key: TableKey, most: float) -> Mapping[str, float] | None:
        """The best fit of this key and of these values; None: it is worse than `most`."""
        fit, misfit = self.searched(values, math.inf, key)
        if misfit > most:
            fit, misfit = self.polished(fit, misfit, _STRIDES[:1])
        return fit if misfit <= most else None

    def beside(self, values: Mapping[str, float], key: TableKey, most: float) -> Mapping[str, float] | None:
        """As much of this key as there may be beside the others, which make room for it; None: the rows leave none."""
        costs = key.path in CLIENT
        weak, strong = (key.low, key.high) if costs else (key.high, key.low)
        best: Mapping[str, float] | None = None
        for _ in range(_HALVINGS // 2):
            middle = math.sqrt(weak * strong)
            fit = {**(best or values), key.path: middle}
            fit, misfit = self.polished(fit, self.misfit(fit), _STRIDES[:1], held=key.path)
            weak, strong = (middle, strong) if misfit <= most else (weak, middle)
            best = fit if misfit <= most else best
        return best

    def polished(
        self, values: Mapping[str, float], least: float, strides: Sequence[float], held: str | None = None
    ) -> tuple[dict[str, float], float]:
        """By a simplex (Nelder and Mead) in logarithms, begun anew with every stride: keys that can stand in for one another make narrow valleys. `held`: a key that stays."""
        best, paths = dict(values), [path for path in values if path != held]
        for stride in strides if paths else ():

            def at(logs: Sequence[float]) -> dict[str, float]:
                return {**values, **{path: math.exp(log) for path, log in zip(paths, logs, strict=True)}}

            logs, misfit = self._simplex(
                lambda logs: self.misfit(at(logs)), [math.log(best[path]) for path in paths], stride
            )
            if misfit < least:
                best, least = at(logs), misfit
        return best, least

    def _simplex(
        self, misfit: Callable[[Sequence[float]], float], start: Sequence[float], stride: float
    ) -> tuple[list[float], float]:

        def towards(this: Sequence[float], other: Sequence[float], share: float) -> list[float]:
            return [a + share * (b - a) for a, b in zip(this, other, strict=True)]

        corners = [list(start)] + [
            [log + stride * (other == place) for other, log in enumerate(start)] for place in range(len(start))
        ]
        ranked = sorted((misfit(corner), corner) for corner in corners)
        for _ in range(_TURNS * len(start)):
            centre = [
                sum(coordinates) / len(start)
                for coordinates in zip(*(corner for _, corner in ranked[:-1]), strict=True)
            ]
            worst = ranked[-1][1]
            moved = min((misfit(tried), tried) for tried in (towards(centre, worst, -1.0),))
            if moved[0] < ranked[0][0]:
                moved = min(moved, (misfit(far := towards(centre, worst, -2.0)), far))
            elif moved[0] >= ranked[-2][0]:
                moved = min(moved, (misfit(near := towards(centre, worst, 0.5)), near))
            if moved[0] < ranked[-1][0]:
                ranked[-1] = moved
            else:
                best = ranked[0][1]
                ranked = [ranked[0]] + [(misfit(c := towards(best, corner, 0.5)), c) for _, corner in ranked[1:]]
            ranked.sort()
            if ranked[-1][0] - ranked[0][0] < _SAME:
                break
        return ranked[0][1], ranked[0][0]

    def enough(self, values: Mapping[str, float], key: TableKey, least: float) -> float:
        """The smallest value of a key with which the fit is about as good as without it."""
        low, high, most = key.low, key.high, _about(least)
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high)
            if self.misfit({**values, key.path: middle}) > most:
                low = middle
            else:
                high = middle
        return high

    def ends(self, values: Mapping[str, float], path: str, least: float) -> tuple[float | None, float | None]:
        """How far one key can be moved alone until the fit is clearly worse; None: as far as anybody looks."""
        most = _about(least)

        def end(sign: int) -> float | None:
            factor = 1.0
            while factor < FARTHEST:
                factor *= 1.1 if factor < 1.5 else 2.0
                if self.misfit({**values, path: values[path] * factor**sign}) > most:
                    return values[path] * factor**sign
            return None

        return end(-1), end(1)


def _about(misfit: float) -> float:
    """The largest that is about as good."""
    return max(_AS_WELL * misfit, misfit + _MORE)


def model_error(misfit: float, figures: int, keys: int) -> float:
    """How far the model is off, as a normal deviation: by these rows, each key less one figure, and by what it is known to be off on others, which counts as some more."""
    freedom = max(0, figures - keys) + _BEFORE
    variance = (_BEFORE * _KNOWN_ERROR**2 + figures * misfit**2) / freedom
    return math.sqrt(variance) * (1 + 1 / freedom)


def _alike(misfit: float, figures: int, keys: int) -> float:
    """Where 90 % of the fits are that these rows do not tell from the best one, by one key at a time."""
    deviation = DEVIATIONS * model_error(misfit, figures, keys)
    return max(_about(misfit), math.sqrt(misfit**2 + deviation**2 / figures))
