"""The model on real file systems that nobody tuned it for (bed_runs.py), by the commands that a user has.

`tierscope run` measures, `calibrate` writes a system, `simulate --system` is asked for what was not calibrated on, `estimate --with-model` for a
far tier that is twice as fast; all of that was measured too. Other load on the machine makes truths scatter: how much is printed.
"""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tools.cluster_record import ClusterError
from validation.bed_runs import (
    BETWEEN,
    EVERYTHING,
    FASTER,
    FIT,
    MORE_RANKS,
    RATES,
    SECOND_SIZE,
    SHORT,
    SMALLER,
    RealBed,
    Runs,
    Wanted,
    beds,
    measure,
    missing,
)
from validation.beds import Asked, regret_of, widths_by_bed
from validation.by_command import calibrated, said, simulated
from validation.measuring import median, scratch
from validation.table import Row

SECTION = "real beds"
_SEED = 1
_MANY, _ENOUGH = 10, 34  # points: with fewer nobody can speak of coverage; nor tell 97 % from all of them
_GOALS: dict[str, tuple[float, float | None]] = {  # mean and worst error, percent
    "unseen cache rates": (5.0, 10.0),
    "twice the ranks": (5.0, None),
    "another size between two": (10.0, None),
    "a size below two": (10.0, None),
    "far rate doubled": (10.0, None),
}
_HASHED = "not explained; perhaps GlusterFS, where which brick holds which file is not in the model, and whose epochs differ most from each other"
_KNOWN = {  # why a miss is no fault of a change
    "unseen cache rates": _HASHED,
    "twice the ranks": f"{_HASHED}; with one number of ranks a queue and a latency look alike",
    "far rate doubled": "perhaps a queue was fitted as latency, see twice the ranks",
    "a size below two": "nothing was measured below: what an operation itself takes hardly shows in files of 128 KiB and more",
}


@dataclass(frozen=True, slots=True)
class RealAnswers:
    bed: RealBed
    asked: tuple[Asked, ...]
    regret: float  # percent
    scatter: tuple[float, ...]  # of measured epochs, percent


def rows(short: bool, keep: str | None = None) -> list[Row]:
    """`keep`: a folder where measured results stay, and are gone on with."""
    seed = int(os.environ.get("BED_SEED", _SEED))
    table_rows: list[Row] = []
    answers: list[RealAnswers] = []
    with scratch() if keep is None else nullcontext(keep) as folder:
        for bed in beds(short, seed):
            if reasons := missing(bed):
                table_rows.append(Row(SECTION, f"{bed.name}: not measured", "; ".join(reasons)))
                continue
            try:
                runs = measure(bed, Path(folder) / f"{bed.folder}-{seed}", SHORT if short else EVERYTHING)
                answers.append(_answers(bed, runs, short))
            except ClusterError as error:
                table_rows.append(Row(SECTION, f"{bed.name}: not measured", str(error).replace("\n", " ")))
    return [*table_rows, *(_rows(answers) if answers else ())]


def _answers(bed: RealBed, runs: Runs, short: bool) -> RealAnswers:
    fit, unseen = SHORT if short else (FIT, RATES)
    system = _calibrated(runs, "system", fit)
    asked = _ask(bed, runs, "unseen cache rates", unseen, system)
    both = [*asked, *_ask(bed, runs, "fitted cache rates", fit, system)]
    measured = [fit, unseen]
    if not short:
        two_sizes = _calibrated(runs, "two-sizes", FIT, SECOND_SIZE)
        asked += _ask(bed, runs, "twice the ranks", MORE_RANKS, system)
        asked += _ask(bed, runs, "another size between two", BETWEEN, two_sizes)
        asked += _ask(bed, runs, "a size below two", SMALLER, two_sizes)
        asked += _ask_faster(bed, runs, system)
        measured = list(EVERYTHING)
    scatter = [some for wanted in measured for some in runs.scatter(wanted)]
    return RealAnswers(bed, tuple(asked), regret_of(both), tuple(scatter))


def _calibrated(runs: Runs, name: str, *known: Wanted) -> str:
    return calibrated(runs.folder / f"{name}.system", [runs.path(run) for run in known])


def _ask(bed: RealBed, runs: Runs, question: str, wanted: Wanted, system: str) -> list[Asked]:
    truth = runs.truth(wanted)
    return [
        Asked(bed.name, question, point.rate, truth[point.rate], point.seconds, point.low, point.high, told=point.told)
        for point in simulated(runs.study(wanted), system, f"ranks_per_node={wanted.ranks}")
    ]


def _ask_faster(bed: RealBed, runs: Runs, system: str) -> list[Asked]:
    improve = ["--improve", "GFS-READ=100", "--improve", "GFS-META=100"]
    told = json.loads(said("estimate", runs.path(FIT), *improve, "--with-model", "--system", system, "--json"))
    truth = runs.truth(FASTER)
    (runs.folder / "faster.estimate").write_text(json.dumps(told))
    return [
        _faster_point(bed, point, truth[point["sweep"]["cache_rate"]])
        for point in told["model"]["points"]
        if point["sweep"]["cache_rate"] in FASTER.rates
    ]


def _faster_point(bed: RealBed, point: Mapping[str, Any], truth: float) -> Asked:
    """With bounds instead of a plain number where the calibration does not tell."""
    seconds, why = point["model_seconds"], "; ".join(point.get("unidentified", ()))
    ends = point.get("low_seconds", seconds), point.get("high_seconds", seconds)
    return Asked(bed.name, "far rate doubled", point["sweep"]["cache_rate"], truth, seconds, *ends, told=why)


# ---- rows


def _rows(answers: Sequence[RealAnswers]) -> list[Row]:
    asked = [question_asked for some in answers for question_asked in some.asked]
    table_rows: list[Row] = []
    for question, goals in _GOALS.items():
        if here := [question_asked for question_asked in asked if question_asked.question == question]:
            table_rows += _errors(question, here, *goals)
    table_rows += _intervals(
        [question_asked for question_asked in asked if question_asked.question == "unseen cache rates"]
    )
    regrets = {some.bed.name: some.regret for some in answers}
    worst = max(regrets, key=lambda name: regrets[name])
    value = ", ".join(f"{name} {regret:.1f} %" for name, regret in regrets.items())
    table_rows.append(Row(SECTION, "recommended cache rate against the best", value, "≤ 5 %", regrets[worst] <= 5))
    scatter = [spread for some in answers for spread in some.scatter]
    load = os.getloadavg()[0]
    note = f"load average {load:.1f} on {os.cpu_count()} cores at the end"
    value = f"median {median(scatter):.1f} %, 90 % below {np.quantile(scatter, 0.9):.1f} %"
    return [*table_rows, Row(SECTION, "two epochs of the same point differ by", value, note=note)]


def _errors(question: str, here: Sequence[Asked], mean: float, worst: float | None) -> list[Row]:
    plain, told = ([asked for asked in here if bool(asked.told) is some] for some in (False, True))
    unknown = f"{len(told)} said to be not identified, {sum(asked.holds for asked in told)} within their bounds"
    if not plain:
        return [Row(SECTION, question, unknown)]
    errors = [abs(asked.error) for asked in plain]
    top = plain[int(np.argmax(errors))]
    names = dict.fromkeys(asked.bed for asked in plain)
    by_bed = {name: [f"{asked.rate:.0%} {asked.error:+.1f}" for asked in plain if asked.bed == name] for name in names}
    note = "; ".join(f"{name}: {', '.join(texts)}" for name, texts in by_bed.items())
    note += f"; {unknown}" if told else ""
    mean_error, known = float(np.mean(errors)), _KNOWN.get(question, "")
    value = f"{top.error:+.1f} % at {top.rate:.0%} of {top.bed}"
    met = None if worst is None else max(errors) <= worst
    return [
        Row(SECTION, f"{question}, mean error", f"{mean_error:.1f} %, n={len(errors)}", f"≤ {mean:g} %", mean_error <= mean, note, known),
        Row(SECTION, f"{question}, worst error", value, f"≤ {worst:g} %" if worst else "", met, known=known),
    ]  # fmt: skip


def _intervals(here: Sequence[Asked]) -> list[Row]:
    held = 100 * float(np.mean([asked.holds for asked in here]))
    widths = sorted(asked.width for asked in here)
    met = None if len(here) < _MANY else held >= 80 and (held <= 97 or len(here) < _ENOUGH)
    return [
        Row(SECTION, "90 % intervals at unseen cache rates that hold", f"{held:.0f} %, n={len(here)}", "80–97 %", met),
        Row(SECTION, "their width, high over low", f"median {median(widths):.2f}, widest {widths[-1]:.2f}", "≤ 1.4", widths[-1] <= 1.4, widths_by_bed(here), _HASHED),
    ]  # fmt: skip
