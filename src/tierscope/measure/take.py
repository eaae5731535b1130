"""Runs that were handed over (`measure/away.py`), made a result of ours: one trace each, sealed as any other."""

import os

from msgspec import to_builtins

from tierscope.errors import ResultError, UserError
from tierscope.measure.away import NAME, STUDY
from tierscope.measure.described import about_run
from tierscope.output.handed import load
from tierscope.output.handover import HandedRun
from tierscope.output.result import open_result
from tierscope.spec import sweep
from tierscope.spec.load import load_study
from tierscope.spec.study import Point, Study
from tierscope.trace.check import wrong_in_table
from tierscope.trace.decode import decode
from tierscope.trace.description import Measured, OwnCost
from tierscope.trace.ops import KINDS
from tierscope.trace.rank_trace import RankTrace
from tierscope.trace.trace import RunKey, Trace, gather

_AGAIN = "repeat --hand-over"


def take_runs(folder: str, out: str) -> Study:
    """All of them into OUT; those that are there already are left alone."""
    text = os.path.join(folder, STUDY)
    if not os.path.isfile(text):
        raise UserError(f"{folder}: holds no {STUDY}, so it is not from --hand-over; name the directory of --hand-over")
    study = load_study(text)
    handed_over = {
        RunKey(point.index, repetition): (point, path)
        for repetition in range(1, study.repetitions + 1)
        for point in sweep.points(study)
        if os.path.lexists(path := os.path.join(folder, NAME.format(point=point.index, repetition=repetition)))
    }
    if not handed_over:
        raise UserError(f"{folder}: holds no finished run of --hand-over; name its directory, or repeat --hand-over")
    with open_result(out, study) as store:
        for key, (point, path) in handed_over.items():
            if key in store.finished():
                continue
            handed, ranks = load(path)
            if (handed.point, handed.repetition) != (key.point, key.repetition):
                raise ResultError(f"{path}: contains another run than its name says; {_AGAIN}")
            store.save(_trace_of(path, key, point, handed, ranks))
    return study


def _trace_of(path: str, key: RunKey, point: Point, handed: HandedRun, ranks: list[RankTrace]) -> Trace:
    """Checked as a run is that was written by somebody else."""
    if point.study.workload.model.network is not None and any(rank.training is None for rank in ranks):
        raise ResultError(f"{path}: contains no training; {_AGAIN}")
    tiers = [tier.name for tier in point.study.system.tiers]
    if any(len(lane.ops) != len(tiers) * len(KINDS) for rank in ranks for epoch in rank.epochs for lane in epoch.lanes):
        raise ResultError(f"{path}: has other tiers than the study; {_AGAIN}")
    about = about_run(point, "real", ranks, handed.provenance, _own_cost(path, handed))
    try:
        about = decode(to_builtins(about, str_keys=True), Measured, _AGAIN)
    except ResultError as error:
        raise error.prefixed(path) from None
    trace = gather(key, about, tiers, ranks)
    if wrong := wrong_in_table(trace.table, key, about):
        raise ResultError(f"{path}: {wrong}; {_AGAIN}")
    return trace


def _own_cost(path: str, handed: HandedRun) -> OwnCost:
    try:
        return decode(dict(handed.overhead), OwnCost, _AGAIN)
    except ResultError as error:
        raise error.prefixed(path) from None
