"""What decides whether a goal is met, by scaling: I/O time, epoch or AU as functions of the factors of classes.

Per rank, with f the factors and io' = f · class seconds:

    epoch' = max(epoch − standstill, epoch − io + io')
    AU'    = C / max(W − S, W − (io − io') · W / epoch)

Class seconds are wall ones; where only busy ones are known and several threads add up to more than the epoch, they are scaled down to it. C, W and S are compute, seconds and stalls of the steps that count for its AU: what the I/O gains is spread evenly over the epoch. Of an epoch, epoch' is that
of the slowest rank, AU' the mean over ranks. Both sides of a maximum are linear in the factors, so that the slowest of all ranks is the larger of one
number (the largest epoch − standstill) and of the maximum over rows [epoch − io, class seconds…], whose upper hull is enough.
"""

from collections.abc import Mapping

import numpy as np

from tierscope.analysis.clocks import has_clocks, has_compute
from tierscope.analysis.times import ClassTimes
from tierscope.errors import UserError
from tierscope.predict.hull import Floats, upper_hull
from tierscope.predict.processes import PointTimes, Processes, ProcessTimes, largest
from tierscope.spec.goal import AU, EPOCH, IO, Goal

_CELLS = 4_000_000  # of ranks × combinations, looked at together
_FEW = 256  # combinations for which all processes are looked at sooner than a hull is found
MOST_AU_CELLS = 4_000_000_000  # of ranks × epochs × combinations: the mean over ranks needs every one of them


def refuse_untold(times: ClassTimes, goal: Goal) -> None:
    """A goal that these times cannot be judged by."""
    noun = "an AU goal" if goal.kind == AU else "an epoch goal"
    if goal.kind == IO:
        return
    if not has_clocks(times.epochs):
        raise UserError(
            f"{noun} needs the {_missing(times)} of every rank, which this result does not have; use an I/O goal, e.g. --goal io=4s"
        )
    if goal.kind == AU and not has_compute(times.epochs):
        raise UserError(
            f"{noun} needs compute, but this result has none; set workload.train.computation_time and run it, or use --goal epoch=10min"
        )


def _missing(times: ClassTimes) -> str:
    epochs = times.epochs
    names = [name for name in ("epoch", "stall") if epochs.is_empty() or epochs[f"{name}_seconds"].has_nulls()]
    return f"{' and '.join(names)} seconds"


def refuse_unjudged(times: ClassTimes, goal: Goal) -> None:
    """The same for what was measured, which is not scaled: an epoch is judged by its seconds alone."""
    if goal.kind != EPOCH or times.epochs.is_empty() or times.epochs["epoch_seconds"].has_nulls():
        refuse_untold(times, goal)


def is_told(times: ClassTimes, goal: Goal) -> bool:
    try:
        refuse_untold(times, goal)
    except UserError:
        return False
    return True


def epoch_rows(times: ProcessTimes, reduced: bool = True) -> tuple[float, Floats]:
    """The shortest that an epoch can become, and rows [epoch − io, class seconds…] of the ranks that can be its slowest, or of all."""
    clocks, seconds = times.clocks, times.on_clock
    assert clocks is not None
    rest = clocks.epoch - seconds.sum(axis=1)
    rows = np.column_stack([rest, seconds])
    floor = float((clocks.epoch - clocks.standstill).max())
    if not reduced:
        return floor, rows
    shifted = np.column_stack([rest - rest.min(), seconds])  # a hull looks at what is not below zero
    return floor, rows[upper_hull(shifted)]


def au_rows(times: ProcessTimes) -> Floats:
    """Rows [C, W − S, W − io · W / epoch, class seconds · W / epoch…] of every rank of which AU is known."""
    clocks, seconds = times.clocks, times.on_clock
    assert clocks is not None
    share = np.divide(clocks.au_seconds, clocks.epoch, out=np.zeros_like(clocks.epoch), where=clocks.epoch > 0)
    rest = clocks.au_seconds - seconds.sum(axis=1) * share
    compute = np.maximum(clocks.au_compute, 0.0)
    rows = np.column_stack([compute, clocks.au_seconds - clocks.au_stall, rest, seconds * share[:, None]])
    known: Floats = rows[~np.isnan(rows).any(axis=1)]
    return known


class Judge:
    """The value of a goal's kind at a point, for many combinations. `varied` classes have factors in the columns of directions behind a column of ones;
    the others are `fixed`, in percent."""

    def __init__(self, processes: Processes, varied: tuple[str, ...], fixed: Mapping[str, float]) -> None:
        self._columns = [processes.classes.index(name) for name in varied]
        self._factors = processes.factors(fixed)
        self._factors[self._columns] = 0.0

    def values(self, kind: str, point: PointTimes, directions: Floats) -> Floats:
        """Seconds, the median over epochs; or AU, the mean over them."""
        if kind == AU:
            shares: Floats = np.mean([self._au(epoch, directions) for epoch in point.epochs], axis=0)
            return shares
        of_epoch = self._io if kind == IO else self._epoch
        seconds: Floats = np.median([of_epoch(epoch, directions) for epoch in point.epochs], axis=0)
        return seconds

    def _io(self, times: ProcessTimes, directions: Floats) -> Floats:
        rows = self._split(np.zeros(len(times.seconds)), times.seconds)
        return largest(rows[upper_hull(rows)] if len(directions) > _FEW else rows, directions)

    def _epoch(self, times: ProcessTimes, directions: Floats) -> Floats:
        floor, rows = epoch_rows(times, reduced=len(directions) > _FEW)
        split = self._split(rows[:, 0], rows[:, 1:])
        return np.maximum(floor, largest(split, directions))

    def _au(self, times: ProcessTimes, directions: Floats) -> Floats:
        rows = au_rows(times)
        if not len(rows):
            return np.zeros(len(directions))
        split = self._split(rows[:, 2], rows[:, 3:])
        au = np.empty(len(directions))
        step = max(1, _CELLS // len(rows))
        for start in range(0, len(directions), step):
            part = slice(start, start + step)
            seconds = np.maximum(rows[:, 1:2], split @ directions[part].T)
            share = np.divide(rows[:, 0:1], seconds, out=np.zeros_like(seconds), where=seconds > 0)
            au[part] = share.mean(axis=0)
        return au

    def _split(self, rest: Floats, seconds: Floats) -> Floats:
        """Classes that do not vary are one sum, so that few processes can be the slowest."""
        return np.column_stack([rest + seconds @ self._factors, seconds[:, self._columns]])


def told_kinds(processes: Processes) -> tuple[str, ...]:
    """Kinds of goal that these can be judged by."""
    epochs = [times for point in processes.points for times in point.epochs]
    if any(times.clocks is None for times in epochs):
        return (IO,)
    computes = processes.ranked_by == EPOCH and all(len(au_rows(times)) for times in epochs)
    return (IO, EPOCH, AU) if computes else (IO, EPOCH)
