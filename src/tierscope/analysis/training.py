"""What real training took: samples per second, where the time of an epoch goes, and whether storage matters to it.

Of every repetition, over the epochs after the first: samples of all ranks over the seconds of the longest rank. The mean over
repetitions has Student's 95 % interval. Phases are those of the rank whose epoch was the longest; they add up to its epoch. What
goes on beside them (reading and preprocessing in the loader, all-reduce during backward) is given too, and no part of that sum.

Whether storage matters is answered by difference (Mohan et al., "Analyzing and Mitigating Data Stalls in DNN Training", VLDB 2021): the
same training with samples from the tiers, from memory, and made on the device. Assumptions: nothing but the samples' origin differs,
and runs of one repetition are as good as those of another (each has a random order of its own).
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce

import polars as pl

from tierscope.analysis.breakdown import counted_epochs, sweep_text
from tierscope.analysis.statistics import Mean, difference_of, mean_of
from tierscope.analysis.storage_stall import MATTERS, NO, UNCLEAR, YES, StorageStall, stall_json
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.training_limits import Limit, Waits, limit_of, loader_text, untold_limit
from tierscope.analysis.wording import Finding, finding_json
from tierscope.jsonable import JsonObject, SweepValues
from tierscope.trace.description import StudyRun, TrainingSummary

SCHEMA_VERSION = 1
ENOUGH = 5  # repetitions
LOW_UTILISATION = 0.8
SAME_LOSS = 1e-6  # relative
PHASES = ("stall", "copy", "forward", "backward", "optimizer", "checkpoint", "sync", "other")  # add up to the epoch
BESIDE = ("read", "preprocess", "exchange")  # go on during them
_COMPUTING = ("forward", "backward", "optimizer")
_TIERS, _MEMORY, _SYNTHETIC = "tiers", "memory", "synthetic"


@dataclass(frozen=True, slots=True)
class TrainingPoint:
    """One point of a sweep. `about`: what its runs say of network, device, loss and memory."""

    sweep: SweepValues
    samples_per_second: Mean
    epoch_seconds: tuple[float, ...]  # of each repetition, the mean over epochs
    phases: dict[str, float]  # seconds of an epoch
    beside: dict[str, float]
    about: TrainingSummary
    ranks: int = 1

    @property
    def exchange(self) -> str | None:
        """Over what ranks exchange gradients; None: there is one."""
        return None if self.ranks == 1 else "nccl" if self.by_events else "gloo"

    @property
    def seconds(self) -> float:
        return math.fsum(self.epoch_seconds) / len(self.epoch_seconds)

    @property
    def n(self) -> int:
        return len(self.epoch_seconds)

    @property
    def variability(self) -> float | None:
        """The longest over the shortest repetition."""
        return max(self.epoch_seconds) / min(self.epoch_seconds) if self.n > 1 and min(self.epoch_seconds) else None

    @property
    def utilisation(self) -> float:
        return sum(self.phases[name] for name in _COMPUTING) / (sum(self.phases.values()) or 1.0)

    @property
    def by_events(self) -> bool:
        """Phases were timed by the device itself; else by the host's clock."""
        return self.about.device != "cpu"

    @property
    def memory_error(self) -> float | None:
        """Predicted over measured, less one; None: the device does not say what it took."""
        measured, predicted = self.about.peak_memory_bytes, self.about.predicted_memory_bytes
        return predicted / measured - 1 if measured and predicted else None

    def share(self, phase: str) -> float:
        return self.phases[phase] / (sum(self.phases.values()) or 1.0)


@dataclass(frozen=True, slots=True)
class Training:
    network: str
    points: tuple[TrainingPoint, ...]
    stalls: tuple[StorageStall, ...]

    @property
    def answer(self) -> str | None:
        """Whether storage matters at any point; None: nobody asked."""
        answers = {stall.answer for stall in self.stalls if stall.storage is not None}
        if not answers:
            return None
        return YES if YES in answers else UNCLEAR if UNCLEAR in answers else NO


def training_of(times: ClassTimes) -> Training | None:
    """None where nothing was trained for real."""
    by_point: dict[int, tuple[SweepValues, TrainingSummary]] = {}
    networks: list[str] = []
    for about in times.about:
        if isinstance(about, StudyRun) and about.training is not None:
            first_sweep, _ = by_point.get(about.point, (about.sweep, None))
            by_point[about.point] = first_sweep, about.training
            networks.append(about.training.network)
    if not networks:
        return None
    points = tuple(_point(times, *by_point[number]) for number in sorted(by_point))
    return Training(networks[0], points, tuple(_stalls(points)))


def reading_times(times: ClassTimes) -> tuple[ClassTimes, int]:
    """Without the points whose samples are in memory or synthetic, if there are others: their I/O is none, whatever storage can do.

    Also how many runs that leaves out.
    """
    unread = [about for about in times.about if about.training is not None and about.training.data != _TIERS]
    if not unread or len(unread) == len(times.runs):
        return times, 0
    left = [about.sweep for about in unread]
    keep = ~reduce(lambda first, second: first | second, (_at(sweep) for sweep in left))
    runs = tuple(run for run in times.runs if run.about.sweep not in left)
    return replace(times, table=times.table.filter(keep), epochs=times.epochs.filter(keep), runs=runs), len(unread)


def _at(sweep: SweepValues) -> pl.Expr:
    return pl.all_horizontal(pl.lit(True), *(pl.col(name).eq_missing(value) for name, value in sweep.items()))


def _point(times: ClassTimes, sweep: SweepValues, about: TrainingSummary) -> TrainingPoint:
    """`about`: of its last repetition."""
    rows = times.epochs.filter(_at(sweep))
    rows = rows.filter(pl.col("epoch").is_in(counted_epochs(rows["epoch"].to_list())))
    epochs = rows.group_by("repetition", "epoch").agg(pl.col("samples").sum(), pl.col("epoch_seconds").max())
    runs = epochs.group_by("repetition").agg(pl.all().exclude("epoch").sum(), pl.len()).sort("repetition")
    longest = rows.sort("epoch_seconds", "rank", descending=[True, False]).unique(["repetition", "epoch"], keep="first")
    whole = _mean(longest, "epoch_seconds")
    named = {name: _mean(longest, f"{name}_seconds") for name in PHASES if name != "other"}
    return TrainingPoint(
        sweep=sweep,
        samples_per_second=mean_of((runs["samples"] / runs["epoch_seconds"]).to_list()),
        epoch_seconds=tuple((runs["epoch_seconds"] / runs["len"]).to_list()),
        phases={**named, "other": max(0.0, whole - math.fsum(named.values()))},
        beside={
            "read": _mean(longest.with_columns(pl.col("step_read_seconds").list.sum()), "step_read_seconds"),
            "preprocess": _mean(longest, "preprocess_seconds"),
            "exchange": _mean(longest, "exchange_seconds"),
        },
        about=about,
        ranks=max(1, rows["rank"].n_unique()),
    )


def _mean(rows: pl.DataFrame, column: str) -> float:
    return float(rows[column].mean() or 0.0)  # type: ignore[arg-type]


def _stalls(points: Sequence[TrainingPoint]) -> Iterator[StorageStall]:
    """For every combination of the other keys that was trained with samples from the tiers and from elsewhere."""
    alike: dict[str, dict[str, TrainingPoint]] = {}
    for point in points:
        alike.setdefault(repr(_others(point.sweep)), {})[point.about.data] = point
    for by_source in alike.values():
        tiers, memory, synthetic = (by_source.get(name) for name in (_TIERS, _MEMORY, _SYNTHETIC))
        if tiers is None or len(by_source) == 1:
            continue
        fed = memory or tiers
        yield StorageStall(
            _others(tiers.sweep),
            tiers.seconds,
            difference_of(tiers.epoch_seconds, memory.epoch_seconds) if memory else None,
            difference_of(fed.epoch_seconds, synthetic.epoch_seconds) if synthetic else None,
            tiers.about.loader_name,
            tiers.about.loader_workers,
            tiers.share("checkpoint"),
            tiers.ranks,
        )


def _others(sweep: SweepValues) -> SweepValues:
    return {name: value for name, value in sweep.items() if name.rpartition(".")[2] != "data"}


def about_training(training: Training | None) -> list[Finding]:
    """Whether storage matters comes first: before anything is recommended."""
    if training is None:
        return []
    findings = _about_storage(training.stalls)
    points = training.points
    fewest = min(point.n for point in points)
    if fewest < ENOUGH:
        findings.append(Finding("few_repetitions", {"repetitions": fewest, "enough": ENOUGH}))
    findings += _about_utilisation(points, compared=training.answer is not None)
    compared = (
        training.answer is not None
    )  # then such points are there to be compared with, and nobody reads I/O from them
    unread = {} if compared else {point.about.data: sweep_text(point.sweep) for point in points if point.about.data != _TIERS}  # fmt: skip
    for origin, why in ((_MEMORY, "all samples are in memory after the first epoch"), (_SYNTHETIC, "samples are generated on the device")):  # fmt: skip
        if origin in unread:
            findings.append(Finding("nothing_read", {"where": unread[origin], "why": why}))
    repeated = max(point.about.repeated or 0 for point in points)
    if repeated > 1:
        findings.append(Finding("sample_repeated", {"times": repeated, "network": training.network}))
    for point in points:
        first, last = point.about.first_loss, point.about.last_loss
        if abs(first - last) <= SAME_LOSS * abs(first):
            findings.append(Finding("same_loss", {"where": sweep_text(point.sweep), "loss": first}))
            break
    return findings


def _about_storage(stalls: Sequence[StorageStall]) -> list[Finding]:
    """Of the combination that waits most, for storage or for its loader."""
    known = [stall for stall in stalls if stall.storage is not None]
    if not known:
        return []
    limited = [stall for stall in known if YES in (stall.answer, stall.loader_answer)]
    most = max(limited or known, key=lambda stall: stall.largest_seconds / stall.seconds)
    assert most.storage is not None
    evidence: JsonObject = {"where": sweep_text(most.sweep), "percent": 100 * most.storage.value / most.seconds}
    if most.storage.limits is None:
        return [Finding("training_wait_unknown", evidence)]
    low, high = (100 * limit / most.seconds for limit in most.storage.limits)
    evidence |= {"low_percent": low, "high_percent": high, "repetitions": most.storage.n}
    kind = {YES: "training_waits", NO: "training_waits_little", UNCLEAR: "training_wait_unclear"}[most.answer]
    findings = [Finding(kind, evidence)]
    if most.loader_answer != YES or most.loader_cost is None or most.loader_cost.limits is None:
        return findings
    low, high = (100 * limit / most.seconds for limit in most.loader_cost.limits)
    share, where = 100 * most.loader_cost.value / most.seconds, sweep_text(most.sweep)
    spent = {"where": where, "percent": share, "low_percent": low, "high_percent": high}
    if most.answer != NO:
        return [*findings, Finding("input_matters", spent)]
    about = {**spent, "what": loader_text(most), "repetitions": most.loader_cost.n}
    return [Finding("loader_limits", about), *findings]


def _about_utilisation(points: Sequence[TrainingPoint], compared: bool) -> list[Finding]:
    """Of the point where the device is idle most, if that is because it waits for samples. `compared`: with training from memory."""
    point = min(points, key=lambda point: point.utilisation)
    idle, stall = 1 - point.utilisation, point.share("stall")
    if point.utilisation >= LOW_UTILISATION or 2 * stall < idle:
        return []
    clock = "its own events" if point.by_events else "the host's clock"
    evidence = {"where": sweep_text(point.sweep), "percent": 100 * point.utilisation}
    untried = [] if compared else ["--storage-matters"]
    return [Finding("low_utilisation", {**evidence, "stall_percent": 100 * stall, "clock": clock, "untried": untried})]


def limits_of(trainings: Sequence[Training]) -> list[Limit]:
    """What limits them: of every combination that was compared, or that it cannot be determined. Nothing of points that read nothing."""
    compared = [limit_of(stall) for training in trainings for stall in training.stalls]
    reading = [point for training in trainings for point in training.points if point.about.data == _TIERS]
    if compared or not reading:
        return compared
    most = max(reading, key=_waiting)
    if _waiting(most) < MATTERS:
        most = max(reading, key=lambda point: (point.share("checkpoint"), _waiting(point)))
    waits = Waits(most.sweep, _waiting(most), most.n, most.by_events, most.share("checkpoint"))
    return [untold_limit(waits, most.about.loader_name, most.about.loader_workers)]


def _waiting(point: TrainingPoint) -> float:
    """The share of an epoch in which it waits for batches and copies them."""
    return point.share("stall") + point.share("copy")


def training_json(study: str, parts: Iterable[tuple[str | None, Training]], findings: Iterable[Finding]) -> JsonObject:  # fmt: skip
    """`parts`: what was varied (None: nothing by itself), and what came out."""
    parts = list(parts)
    answers = [training.answer for _, training in parts if training.answer]
    answer = next((verdict for verdict in (YES, UNCLEAR, NO) if verdict in answers), None)
    stalls = [stall_json(stall) for _, training in parts for stall in training.stalls]
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "training",
        "study": study,
        "network": parts[0][1].network,
        "beside": list(BESIDE),
        "points": [{"varied": key, **_point_json(point)} for key, training in parts for point in training.points],
        "storage_matters": {"answer": answer, "of": stalls} if stalls else None,
        "limits": [asdict(limit) for limit in limits_of([training for _, training in parts])],
        "findings": [finding_json(finding) for finding in findings],
    }


def _point_json(point: TrainingPoint) -> JsonObject:
    about, limits = point.about, point.samples_per_second.limits
    return {
        **point.sweep,
        "n": point.n,
        "samples_per_second": point.samples_per_second.value,
        "interval": None if limits is None else list(limits),
        "variability": point.variability,
        "epoch_seconds": list(point.epoch_seconds),
        "phases": {**point.phases, **point.beside},
        "utilisation": point.utilisation,
        "clock": "device" if point.by_events else "host",
        "ranks": point.ranks,
        "exchange": point.exchange,
        "loader": about.loader_name,
        "workers": about.loader_workers,
        "device": about.device,
        "device_memory_bytes": about.device_memory_bytes,
        "software": about.software,
        "precision": about.arithmetic,
        "optimizer": about.solver,
        "data": about.data,
        "first_loss": about.first_loss,
        "last_loss": about.last_loss,
        "peak_memory_bytes": about.peak_memory_bytes,
        "predicted_memory_bytes": about.predicted_memory_bytes,
        "memory_error": point.memory_error,
    }
