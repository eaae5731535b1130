"""Candidates of a tuning: every combination of the varied keys, as a study of its own; those that cannot be run, with the line why."""

import itertools
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tierscope.analysis.breakdown import sweep_text
from tierscope.dataset.capacity import check_capacity
from tierscope.errors import UserError
from tierscope.jsonable import SweepValues
from tierscope.loaders.choose import choose_loader
from tierscope.measure.checkpoints import check_checkpoints
from tierscope.measure.collective import check_collective
from tierscope.measure.first_touch import check_policies, staged_as
from tierscope.measure.preloaded import check_preload
from tierscope.measure.storages import check_dropping, check_storages
from tierscope.plan.inert import effective, inert_keys
from tierscope.spec import dump, keys
from tierscope.spec.check import find_problem
from tierscope.spec.study import Axis, Study
from tierscope.spec.vary import EXAMPLE
from tierscope.spec.vary import read_vary as read_axes
from tierscope.tuning.tuning import Refused
from tierscope.units import counted

MOST_COMBINATIONS = 10_000
_FIXED = ("workload.train.", "workload.reader.preprocess_time", "seed")  # what training is, not how it reads
_WHY_FIXED = "changes the training itself, not its I/O; use --set to change it"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Number 0 is the default, without settings. `settings` are by short name, as in JSON; `study` is a whole study. `inert`: names of settings without any effect in this combination."""

    number: int
    settings: SweepValues
    study: Study
    inert: frozenset[str] = frozenset()

    @property
    def effective_settings(self) -> SweepValues:
        return {name: value for name, value in self.settings.items() if name not in self.inert}


def read_vary(base: Study, vary: Sequence[str]) -> tuple[Axis, ...]:
    """`KEY=A,B,C` or `KEY=A:B:STEP`, with any unambiguous suffix of a key."""
    axes = read_axes(base, vary, dict.fromkeys(_FIXED, _WHY_FIXED))
    if not axes:
        raise UserError(f"nothing varies; add the keys to try, e.g. --vary {EXAMPLE}")
    combinations = math.prod(len(axis.values) for axis in axes)
    if combinations > MOST_COMBINATIONS:
        raise UserError(
            f"--vary: {combinations:,} combinations; at most {MOST_COMBINATIONS:,}: use fewer values or keys"
        )
    return axes


@dataclass(frozen=True, slots=True)
class TuningChoice:
    """What is tried, the default first; what cannot be run; and what is not tried because it does what another combination does."""

    candidates: list[Candidate]
    refused: list[Refused]
    inert: list[Refused]


def candidates_of(base: Study, axes: Sequence[Axis], out: str, launcher: str) -> TuningChoice:
    """Tiers are under OUT for all of them, so data is written once."""
    plain = replace(base, sweep=(), goal=None, repetitions=1)
    check_runnable(plain, launcher, out)
    candidates, refused, inert = [Candidate(0, {}, in_common(plain, out))], list[Refused](), list[Refused]()
    effects: list[tuple[Study, str]] = [(effective(plain), "the default")]
    names = keys.short_names([axis.path for axis in axes])
    for values in itertools.product(*(axis.values for axis in axes)):
        settings = {axis.path: value for axis, value in zip(axes, values, strict=True)}
        short = {names[path]: value for path, value in settings.items()}
        try:
            study = replace(dump.with_settings(plain, settings), sweep=())
            if study == plain:
                continue
            _check_same_work(plain, study)
            check_runnable(study, launcher, out)
        except UserError as error:
            refused.append(Refused(short, str(error)))
            continue
        effect = effective(study)
        if same := next((name for other, name in effects if other == effect), None):
            inert.append(Refused(short, _same_effect(study, settings, names, same)))
            continue
        effects.append((effect, sweep_text(short)))
        idle = frozenset(names[path] for path in _without_effect(plain, settings, study))
        candidates.append(Candidate(len(candidates), short, in_common(study, out), idle))
    if len(candidates) == 1:
        if refused:
            raise UserError(f"none of {counted(len(refused), 'combination')} can run; the first: {refused[0].line}")
        if inert:
            raise UserError(f"nothing to tune: {inert[0].line}")
        raise UserError("nothing varies: the only combination is the unchanged study; add other values with --vary")
    return TuningChoice(candidates, refused, inert)


def _without_effect(plain: Study, settings: SweepValues, study: Study) -> Iterator[str]:
    """Keys that this combination could leave as they are in the study, and do the same."""
    idle = {inert.path for inert in inert_keys(study)} & settings.keys()
    wanted, left = effective(study), dict(settings)
    for path in sorted(idle):
        fewer = {other: value for other, value in left.items() if other != path}
        try:
            same = effective(replace(dump.with_settings(plain, fewer), sweep=())) == wanted
        except UserError:  # the study's own value does not go with the others
            continue
        if same:
            left = fewer
            yield path


def _same_effect(study: Study, settings: SweepValues, names: Mapping[str, str], same: str) -> str:
    why = {inert.path: inert.why for inert in inert_keys(study)}
    reasons = "; ".join(f"{names[path]} changes nothing here: {why[path]}" for path in settings if path in why)
    return f"same effect as {same}{f' ({reasons})' if reasons else ''}"


def check_runnable(study: Study, launcher: str, out: str) -> None:
    """All that is refused before anything is touched."""
    problem = find_problem(study)
    if problem is not None:
        raise UserError(problem.text)
    check_storages([study], out)
    check_dropping([study], out)
    check_policies([study])
    check_checkpoints([study])
    check_collective([study], launcher)
    check_preload([study], ops=False, launcher=launcher)
    choose_loader(study)
    check_capacity(staged_as(study))


def _check_same_work(base: Study, study: Study) -> None:
    for what, this, other in _work(base, study):
        if this != other:
            raise UserError(
                f"{what} would be {other} instead of {this}: times of different work are not comparable; keep it"
            )


def _work(base: Study, study: Study) -> Iterator[tuple[str, Any, Any]]:
    before, after = base.workload.dataset, study.workload.dataset
    yield "samples of the dataset", before.samples, after.samples
    for name in ("record_length_bytes", "record_length_bytes_stdev", "compressibility"):
        yield f"workload.dataset.{name}", getattr(before, name), getattr(after, name)


def in_common(study: Study, out: str) -> Study:
    """`{out}` of a tier would be another directory in every trial."""
    place = os.path.join(out, "tiers")
    tiers = study.system.tiers
    if any("{out}" in tier.path for tier in tiers) and any(sign in place for sign in "${"):
        raise UserError(f"{out}: contains $ or {{, which have a special meaning in tier paths; choose another --out")
    paths = tuple(replace(tier, path=tier.path.replace("{out}", place)) for tier in tiers)
    return replace(study, system=replace(study.system, tiers=paths))
