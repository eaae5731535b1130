"""The model on storage that nobody tuned it for (bed_models.py): calibrated on a few runs, asked for what was not run.

The way of a user: `calibrate` writes a system, `simulate` and `explore` take it. Asked are other cache rates, the best of them, twice the
ranks, another file size, and a far tier that is twice as fast; intervals are counted at the points inside what was calibrated.
"""

import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from tierscope.commands.calibrate import Calibrated, write_system
from tierscope.errors import TierscopeError
from tierscope.plan.plan import Plan
from tierscope.plan.reading import reading_of
from tierscope.predict.calibrate import calibrate
from tierscope.predict.case import Case, with_slowest_weights
from tierscope.predict.explore_simulated import simulate_combination
from tierscope.predict.modelled import improved
from tierscope.predict.rates import without_rates
from tierscope.predict.schedule import lay_out
from tierscope.spec.known import KnownSystem, load_system
from tierscope.spec.load import load_study
from tierscope.spec.study import Study
from validation.bed_models import BESIDE, FAR, NEAR, Bed, draw_bed, run_bed
from validation.measuring import median
from validation.table import Row

RATES = tuple(number / 10 for number in range(11))
FEW, MORE = (0.0, 0.5, 1.0), (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
KIB16, KIB128, MIB2 = 2**14, 2**17, 2**21
_FILES = {KIB16: 1024, KIB128: 512, MIB2: 96}
_SEEDS, _SHORT_SEEDS = (3,), (1,)
_EPOCHS = (2, 3)
_MANY = 30  # points: with fewer nobody can speak of coverage


@dataclass(frozen=True, slots=True)
class Asked:
    """A point that was not calibrated on."""

    bed: str
    question: str
    rate: float
    truth: float
    predicted: float
    low: float
    high: float
    told: str = ""  # why the answer is no plain number

    @property
    def error(self) -> float:
        return 100 * (self.predicted / self.truth - 1)

    @property
    def holds(self) -> bool:
        return self.low <= self.truth <= self.high

    @property
    def width(self) -> float:
        return self.high / max(self.low, 1e-12)


@dataclass(frozen=True, slots=True)
class BedAnswers:
    asked: tuple[Asked, ...]
    regrets: dict[str, float]  # by question, percent
    seconds: list[float]  # of each calibration
    refused: list[str]  # files that simulate does not take


@lru_cache(maxsize=4096)
def study_of(bed: Bed, size: int, ranks: int, rate: float) -> Study:
    settings = [
        "sweep={}", f"cache_rate={rate}", f"record_length_bytes={size}", f"num_files_train={_FILES[size]}", "format=raw",
        "nodes=1", f"ranks_per_node={ranks}", "lfs.capacity=null", "lfs.device_shared_by=1", f"gfs.servers={bed.servers}",
    ]  # fmt: skip
    study = load_study("demo", settings)
    return replace(study, system=without_rates(study.system))


@lru_cache(maxsize=4096)
def case_of(bed: Bed, size: int, ranks: int, rate: float, epoch: int) -> Case:
    """What a run of the bed leaves to `calibrate`."""
    study = study_of(bed, size, ranks, rate)
    reading = reading_of(study)
    schedule = lay_out(study, Plan.of(study, reading.file_bytes), epoch)
    turn = hash((size, ranks, round(10 * rate), epoch)) % 10_000
    busy = run_bed(bed, schedule.tiers, schedule.files, [nbytes for _, nbytes in reading.pieces], turn)
    where = f"{size}-{ranks}-{rate:.0%}"
    return Case(study, reading, schedule, busy, BESIDE, name=where, point=where, sweep={"cache_rate": rate})


def cases_of(bed: Bed, sizes: Sequence[int], rates: Sequence[float], ranks: int = 4) -> list[Case]:
    return [case_of(bed, size, ranks, rate, epoch) for size in sizes for rate in rates for epoch in _EPOCHS]


def calibrated(cases: Sequence[Case]) -> KnownSystem:
    """By the file that `calibrate -o` writes."""
    fitted = Calibrated("bed", cases[0].study, calibrate(with_slowest_weights(cases)), (), len(cases))
    with tempfile.TemporaryDirectory(prefix="tierscope-beds-") as folder:
        path = os.path.join(folder, "system.yaml")
        write_system(fitted, path)
        return load_system(path)


def ask(bed: Bed, known: KnownSystem, question: str, size: int, ranks: int, rate: float, faster: float = 0.0) -> Asked:
    """`faster`: percent by which the far tier is said to be."""
    study = study_of(bed, size, ranks, rate)
    tiers = tuple(
        replace(tier, servers=own.servers) for tier, own in zip(known.system.tiers, study.system.tiers, strict=True)
    )
    system = replace(known.system, ranks_per_node=ranks, tiers=tiers)
    if faster:
        system = improved(system, {"GFS-READ": faster, "GFS-META": faster})
    combination = simulate_combination({}, replace(study, system=system), "events", known)
    truth = float(case_of(bed.doubled() if faster else bed, size, ranks, rate, 2).io.max())
    told = "; ".join(getattr(combination, "unidentified", ()))
    return Asked(
        bed.name, question, rate, truth, combination.io_seconds, combination.low_seconds, combination.high_seconds, told
    )


def answers_of(bed: Bed, short: bool = False) -> BedAnswers:
    """All questions to one bed. The short form has one calibration, and every second rate."""
    asked: list[Asked] = []
    regrets: dict[str, float] = {}
    seconds: list[float] = []
    refused: list[str] = []
    rates = RATES[::2] if short else RATES

    def known_from(name: str, sizes: Sequence[int], of: Sequence[float]) -> KnownSystem | None:
        start = time.process_time()
        try:
            return calibrated(cases_of(bed, sizes, of))
        except TierscopeError as error:
            refused.append(f"{bed.name}, {name}: {error}")
            return None
        finally:
            seconds.append(time.process_time() - start)

    for name, of in (("3 rates", FEW), ("6 rates", MORE))[: 1 if short else 2]:
        known = known_from(name, [KIB128], of)
        if known is None:
            continue
        answers = [ask(bed, known, f"rates from {name}", KIB128, 4, rate) for rate in rates]
        asked += [answer for answer in answers if answer.rate not in of]
        regrets[name] = regret_of(answers)
        if name == "3 rates":
            asked += [ask(bed, known, "twice the ranks", KIB128, 8, rate) for rate in rates]
            asked += [
                ask(bed, known, "another size from one", MIB2, 4, rate) for rate in rates[:: 5 if not short else 2]
            ]
        if name == "6 rates" or short:
            asked += [ask(bed, known, "far rate doubled", KIB128, 4, rate, 100.0) for rate in rates]
    for name, sizes, other in (("16 KiB, 2 MiB", [KIB16, MIB2], KIB128), ("16, 128 KiB", [KIB16, KIB128], MIB2))[
        : 0 if short else 2
    ]:
        known = known_from(name, sizes, FEW)
        if known is not None:
            asked += [ask(bed, known, f"another size from {name}", other, 4, rate) for rate in rates]
    return BedAnswers(tuple(asked), regrets, seconds, refused)


def regret_of(answers: Sequence[Asked]) -> float:
    """Percent that the recommended cache rate costs more than the best one."""
    chosen = min(answers, key=lambda answer: answer.predicted)
    return 100 * (chosen.truth / min(answer.truth for answer in answers) - 1)


def beds(short: bool, seeds: Sequence[int] = ()) -> Iterator[Bed]:
    for seed in seeds or (_SHORT_SEEDS if short else _SEEDS):
        for near in NEAR[:1] if short else NEAR:
            for far in FAR[:2] if short else FAR:
                yield draw_bed(far, near, seed)


_GOALS = {  # mean and worst error, percent
    "rates from 3 rates": (5.0, 10.0),
    "rates from 6 rates": (5.0, 10.0),
    "twice the ranks": (5.0, None),
    "another size from one": (None, None),
    "another size from 16 KiB, 2 MiB": (10.0, None),
    "another size from 16, 128 KiB": (10.0, None),
    "far rate doubled": (10.0, None),
}


_BRICKS = (
    "bricks only: files lie where a hash of their names says, the model has a hash of its own, or takes them in turns"
)
_KNOWN = {  # why a miss is no fault of a change
    "rates from 3 rates": _BRICKS,
    "rates from 6 rates": _BRICKS,
}


def rows(short: bool, seeds: Sequence[int] = ()) -> list[Row]:
    _warm_up()
    answers = [(bed, answers_of(bed, short)) for bed in beds(short, seeds)]
    asked = [question_asked for _, bed_answers in answers for question_asked in bed_answers.asked]
    table_rows: list[Row] = []
    for question, goals in _GOALS.items():
        if here := [question_asked for question_asked in asked if question_asked.question == question]:
            table_rows += _errors(question, here, *goals)
    table_rows += _intervals(
        [question_asked for question_asked in asked if question_asked.question.startswith("rates from")]
    )
    table_rows.append(
        _told([question_asked for question_asked in asked if question_asked.question == "another size from one"])
    )
    for name in ("3 rates", "6 rates"):
        regrets = {bed.name: bed_answers.regrets[name] for bed, bed_answers in answers if name in bed_answers.regrets}
        if regrets:
            worst = max(regrets, key=lambda bed: regrets[bed])
            value = f"worst {regrets[worst]:.1f} % ({worst}), mean {np.mean(list(regrets.values())):.1f} %, n={len(regrets)}"
            table_rows.append(
                Row("beds", f"recommended cache rate from {name} against the best", value, "≤ 5 %", regrets[worst] <= 5)
            )
    seconds = [some for _, bed_answers in answers for some in bed_answers.seconds]
    table_rows.append(
        Row(
            "beds",
            "seconds of a calibration",
            f"median {median(seconds):.1f} s, longest {max(seconds):.1f} s, n={len(seconds)}",
        )
    )
    refused = [some for _, bed_answers in answers for some in bed_answers.refused]
    table_rows.append(
        Row("beds", "systems that simulate refuses", str(len(refused)), "0", not refused, "; ".join(refused[:3]))
    )
    return table_rows


def _errors(question: str, here: Sequence[Asked], mean: float | None, worst: float | None) -> list[Row]:
    """Of points that got a plain number; where the calibration says that it cannot tell, there is nothing to be off."""
    plain = [asked for asked in here if not asked.told]
    if not plain or mean is None:
        errors = [abs(asked.error) for asked in here]
        return [
            Row(
                "beds",
                f"{question}, mean error",
                f"{np.mean(errors):.1f} %, n={len(errors)}",
                note="printed with bounds",
            )
        ]
    errors = [abs(asked.error) for asked in plain]
    top = plain[int(np.argmax(errors))]
    beds_asked = dict.fromkeys(asked.bed for asked in plain)
    by_bed = {bed: float(np.mean([abs(asked.error) for asked in plain if asked.bed == bed])) for bed in beds_asked}
    note = ", ".join(f"{bed} {value:.1f}" for bed, value in by_bed.items())
    if told := [asked for asked in here if asked.told]:
        held = sum(asked.holds for asked in told)
        note += f"; {len(told)} more said to be not identified, {held} of them within their bounds"
    mean_error = float(np.mean(errors))
    known = _KNOWN.get(question, "")
    value = f"{top.error:+.1f} % at {top.rate:.0%} of {top.bed}"
    met = None if worst is None else max(errors) <= worst
    return [
        Row("beds", f"{question}, mean error", f"{mean_error:.1f} %, n={len(errors)}", f"≤ {mean:g} %", mean_error <= mean, note, known),
        Row("beds", f"{question}, worst error", value, f"≤ {worst:g} %" if worst else "", met, known=known),
    ]  # fmt: skip


def _intervals(here: Sequence[Asked]) -> list[Row]:
    held = 100 * np.mean([asked.holds for asked in here])
    widths = sorted(asked.width for asked in here)
    wide = widths[int(0.9 * (len(widths) - 1))]
    return [
        Row("beds", "90 % intervals at unseen cache rates that hold", f"{held:.0f} %, n={len(here)}", "80–97 %", None if len(here) < _MANY else bool(80 <= held <= 97)),
        Row("beds", "their width, high over low", f"median {median(widths):.2f}, 90 % below {wide:.2f}, widest {widths[-1]:.2f}", "≤ 1.4", wide <= 1.4, widths_by_bed(here)),
    ]  # fmt: skip


def widths_by_bed(here: Sequence[Asked]) -> str:
    by_bed: dict[str, list[float]] = {}
    for asked in here:
        by_bed.setdefault(asked.bed, []).append(asked.width)
    return "by bed: " + ", ".join(
        f"{bed} {median(widths):.2f}, widest {max(widths):.2f}" for bed, widths in by_bed.items()
    )


def _told(here: Sequence[Asked]) -> Row:
    """Another size from one size: not identified, and said so."""
    told = sum(bool(asked.told) for asked in here)
    held = sum(asked.holds for asked in here)
    return Row(
        "beds",
        "another size from one: said to be not identified",
        f"{told} of {len(here)}, {held} within their bounds",
        "all",
        told == len(here),
    )


def _warm_up() -> None:
    """The compiler's time belongs to no calibration."""
    bed = draw_bed("fuse", "memory", 0)
    case = case_of(bed, KIB128, 4, 0.0, 2)
    tiers = tuple(replace(tier, bandwidth=1e8) for tier in case.study.system.tiers)
    simulate_combination({}, replace(case.study, system=replace(case.study.system, tiers=tiers)), "events", None)
