"""Simulate a study: every point of its sweep in virtual time, to the same traces as a run's.

OUT looks like that of a run, but is marked as a simulation: measured and simulated runs never mix in one directory.
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.feasible import unconstrained_best
from tierscope.errors import UserError
from tierscope.output.result import open_result
from tierscope.output.store import RunStore
from tierscope.predict.exploration import Remedy
from tierscope.predict.method import chosen_method
from tierscope.predict.missing_rates import refuse_missing_rates
from tierscope.predict.remedies import remedies
from tierscope.predict.simulation import simulate_point
from tierscope.predict.unsimulated import left_out, refuse_unsimulated
from tierscope.predict.work_limit import refuse_endless
from tierscope.spec import sweep
from tierscope.spec.goal_compute import refuse_au_without_compute
from tierscope.spec.known import KnownSystem
from tierscope.spec.load import Loaded
from tierscope.spec.study import Study
from tierscope.trace.description import Simulated
from tierscope.trace.trace import RunKey, Trace
from tierscope.watch import Watch

KIND = "simulation"


def simulate_study(study: Study, out: str, method: str, watch: Watch, known: KnownSystem | None = None) -> RunStore:
    """All points of the study; what is finished is not repeated. `known`: its draws of rates that were fitted are for the intervals."""
    points = list(sweep.points(study))
    refuse_au_without_compute(study, points)
    for point in points:
        refuse_missing_rates(point.study, known)
        refuse_unsimulated(point.study)
    method = chosen_method(points, method)
    refuse_endless(points, method)
    for line in dict.fromkeys(line for point in points for line in left_out(point.study, method)):
        watch.note(line)
    with open_result(out, study, kind=KIND) as store:
        _refuse_other_method(store, method)
        keys = [RunKey(point.index, number) for number in range(1, study.repetitions + 1) for point in points]
        todo = [key for key in keys if key not in store.finished()]
        if not todo:
            watch.note(f"{'the run is' if len(keys) == 1 else f'all {len(keys)} runs are'} simulated")
            return store
        watch.phase("simulating", sum(points[key.point].study.workload.train.epochs for key in todo), "epochs")
        with _workers(method) as simulated:
            for trace in simulated(
                lambda key: simulate_point(key, points[key.point], method, watch.advance, known), todo
            ):
                store.save(trace)
        return store


def refuse_generate_only(loaded: Loaded, name: str) -> None:
    """A file of DLIO that neither trains nor writes checkpoints."""
    if loaded.generates_only:
        raise UserError(
            f"{name}: workflow.train and workflow.checkpoint are off: it only generates data, so there is nothing to simulate; "
            "enable one of them, e.g. ++workload.workflow.train=True"
        )


def remedies_of(analysis: Analysis, known: KnownSystem | None = None) -> tuple[Remedy, ...]:
    """What would fit where the best point of a simulated result does not; simulated by the result's method, none where that point fits. `known`: of its system,
    where it is at hand; a result only says whether it was calibrated."""
    study, methods = analysis.study, analysis.conditions.simulated
    best = unconstrained_best(analysis.breakdown)
    if study is None or not methods or best.is_possible:
        return ()
    point = next(point for point in sweep.points(study) if dict(point.sweep) == dict(best.sweep))
    chosen = {name: value for name, value in point.sweep.items() if name != "cache_rate"}
    return remedies(point.study, methods[0], known, chosen, calibrated=analysis.conditions.calibrated)


def _refuse_other_method(store: RunStore, method: str) -> None:
    for key in sorted(store.finished()):
        about = store.describe(key)
        simulated_by = about.method if isinstance(about, Simulated) else None
        if simulated_by != method:
            raise UserError(
                f"{store.path(key)}: was simulated with --method {simulated_by}; choose another --out, or use that method"
            )
        return


@contextmanager
def _workers(method: str) -> Iterator[Callable[..., Iterator[Trace]]]:
    """The event engine runs without the interpreter's lock: a thread for each core."""
    if method != "events":
        yield map
        return
    with ThreadPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        try:
            yield pool.map
        finally:
            pool.shutdown(cancel_futures=True)
