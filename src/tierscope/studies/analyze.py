"""From a result directory or a CSV to a breakdown with its findings."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from tierscope.analysis.breakdown import Breakdown, break_down
from tierscope.analysis.conditions import Conditions, conditions
from tierscope.analysis.findings import Finding, find
from tierscope.analysis.times import ClassTimes, from_csv, from_traces
from tierscope.errors import UserError
from tierscope.studies.result import read_study, refuse_other_runs
from tierscope.trace.store import RunStore
from tierscope.trace.trace import Trace


@dataclass(frozen=True, slots=True)
class Analysis:
    name: str
    times: ClassTimes
    breakdown: Breakdown
    findings: list[Finding]
    conditions: Conditions
    goal: float | None


def analyze(path: str, basis: str = "busy") -> Analysis:
    if os.path.isdir(path):
        return _analyze_result(path, basis)
    if not os.path.exists(path):
        raise UserError(f"{path}: no such directory or file; give the --out of a 'tierscope run', or a CSV of times")
    if basis != "busy":
        raise UserError(f"{path}: a CSV has one kind of seconds only; leave --basis out")
    times = from_csv(path)
    breakdown = break_down(times)
    given = Conditions()
    return Analysis(os.path.basename(path), times, breakdown, find(times, breakdown, given, None, None), given, None)


def _analyze_result(out: str, basis: str) -> Analysis:
    study = read_study(out)
    cold: list[pl.DataFrame] = []

    def traces() -> Iterator[Trace]:
        for trace in RunStore(out).load_all():
            cold.append(trace.cold.select("point", "repetition", "epoch", "tier", "checked_bytes", "resident_bytes"))
            yield trace

    if not RunStore(out).finished():
        raise UserError(f"{out}: no run is finished yet; 'tierscope run' with this --out goes on where it stopped")
    refuse_other_runs(study, out)
    times = from_traces(traces(), [tier.name for tier in study.system.tiers], basis)
    breakdown = break_down(times)
    expected = math.prod(len(axis.values) for axis in study.sweep) * study.repetitions
    given = conditions(times, pl.concat(cold))
    findings = find(times, breakdown, given, expected, study.goal)
    return Analysis(study.study, times, breakdown, findings, given, study.goal)
