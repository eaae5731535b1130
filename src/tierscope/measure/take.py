"""Runs that were handed over (`measure/away.py`), made a result of ours: one trace each, sealed as any other."""

import os

from tierscope.errors import ResultError, UserError
from tierscope.measure.away import NAME, STUDY
from tierscope.measure.described import about_run
from tierscope.output.handed import load
from tierscope.output.handover import HandedRun
from tierscope.output.result import open_result
from tierscope.spec import sweep
from tierscope.spec.load import load_study
from tierscope.spec.study import Study
from tierscope.trace.decode import decode
from tierscope.trace.description import OwnCost
from tierscope.trace.trace import RunKey, gather


def take_runs(folder: str, out: str) -> Study:
    """All of them into OUT; those that are there already are left alone."""
    text = os.path.join(folder, STUDY)
    if not os.path.isfile(text):
        raise UserError(
            f"{folder}: holds no {STUDY}, so no runs were handed over there; give the folder of --hand-over"
        )
    study = load_study(text)
    points = list(sweep.points(study))
    with open_result(out, study) as store:
        for repetition in range(1, study.repetitions + 1):
            for point in points:
                key = RunKey(point.index, repetition)
                path = os.path.join(folder, NAME.format(point=point.index, repetition=repetition))
                if key in store.finished() or not os.path.exists(path):
                    continue
                handed, ranks = load(path)
                if (handed.point, handed.repetition) != (point.index, repetition):
                    raise ResultError(f"{path}: holds another run than its name says; hand it over again")
                own_cost = _own_cost(path, handed)
                about = about_run(point, "real", ranks, handed.provenance, own_cost)
                store.save(gather(key, about, [tier.name for tier in point.study.system.tiers], ranks))
    return study


def _own_cost(path: str, handed: HandedRun) -> OwnCost:
    try:
        return decode(dict(handed.overhead), OwnCost, "hand it over again")
    except ResultError as error:
        raise error.prefixed(path) from None
