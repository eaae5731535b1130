"""The model against emulated tiers whose discipline is not its own.

The demo's system is measured with servers that share themselves, with heavy-tailed services, under a background load, and plainly; the model is
calibrated on cache rates 0, 50 and 100 % at 16 ranks and one object server, and predicts all other rates, four servers,
8 and 32 ranks. Its object servers are slower than the demo's, so that one of them is busy enough to be seen.
"""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import EpochPoint, SweepPoint
from tierscope.commands.calibrate import cases_of
from tierscope.predict import spread
from tierscope.predict.calibrate import Calibration, calibrate
from tierscope.predict.outcome import CATEGORIES
from tierscope.predict.rates import apply
from tierscope.predict.simulation import Simulation
from tierscope.spec import sweep
from tierscope.spec.study import Study
from validation.lateness import Lateness, judged, lateness_percent
from validation.measuring import leader_is_clear, measure, median, scratch
from validation.table import Row

MODES: dict[str, tuple[str, ...]] = {
    "plain FIFO": (),
    "sharing": ("gfs.discipline=sharing", "lfs.discipline=sharing"),
    "heavy-tailed": ("gfs.service_variation=1.5", "lfs.service_variation=1.5", "gfs.metadata_variation=1.5"),
    "background 30 %": ("gfs.background=30%", "lfs.background=30%"),
}
_SYSTEM = ("gfs.bandwidth=60 MiB/s", "lfs.capacity=null")
_CALIBRATION = (4, 1)  # nodes of four ranks, and object servers
_OTHERS = ((4, 4), (2, 1), (2, 4), (8, 1), (8, 4))
_MEDIAN_GOAL, _COVERED = 5.0, (80.0, 97.0)
_THROWS = 5  # of the dice, for a prediction
_EPOCHS = {"heavy-tailed": 5}  # more where an epoch differs more from the next; elsewhere three


@dataclass(frozen=True, slots=True)
class Compared:
    where: str
    measured: float
    predicted: float
    low: float
    high: float
    leader_right: bool | None  # None: the two largest are too close to call
    lead: str = ""  # of the largest class over the next one, as measured: of the medians, and of single epochs
    late: float = 0.0  # percent that this machine's lateness may add to what was measured

    @property
    def error(self) -> float:
        return 100 * abs(self.predicted / self.measured - 1)


def rows(short: bool, keep: str | None = None) -> list[Row]:
    """`keep`: a folder where measured results stay, and are gone on with."""
    modes = {name: MODES[name] for name in (("sharing",) if short else MODES)}
    table_rows: list[Row] = []
    few = short  # too few points to speak of coverage
    everything: list[Compared] = []
    for name, settings in modes.items():
        with scratch() if keep is None else nullcontext(os.path.join(keep, name.split()[0])) as folder:
            compared = _mode(folder, (*settings, f"epochs={_EPOCHS.get(name, 3)}"), short)
        everything += compared
        table_rows.append(_errors(f"emulated, {name}", compared))
    return [*table_rows, *_overall(everything, few)]


def _mode(folder: str, settings: Sequence[str], short: bool) -> list[Compared]:
    nodes, servers = _CALIBRATION
    with Lateness() as lateness:
        calibrated = _measure(folder, nodes, servers, settings, "[0%, 50%, 100%]")
    calibration, late = calibrate(cases_of([calibrated[0]]).to_fit), _late_percent(calibrated, lateness)
    rates = "[25%, 75%]" if short else "[0%, 10%, 20%, 30%, 40%, 50%, 60%, 70%, 80%, 90%, 100%]"
    inside = "[25%, 75%]" if short else "[10%, 20%, 30%, 40%, 60%, 70%, 80%, 90%]"
    points = _compared(folder, nodes, servers, settings, inside, calibration)
    for nodes, servers in _OTHERS[:2] if short else _OTHERS:
        points += _compared(folder, nodes, servers, settings, rates, calibration)
    return [replace(point, late=max(point.late, late)) for point in points]


def _late_percent(measured: tuple[str, Analysis], lateness: Lateness) -> float:
    """Of what was measured meanwhile, by its first point."""
    study = measured[1].study
    assert study is not None
    return lateness_percent(next(iter(sweep.points(study))).study, lateness.seen)


def _compared(
    folder: str, nodes: int, servers: int, settings: Sequence[str], rates: str, calibration: Calibration
) -> list[Compared]:
    with Lateness() as lateness:
        measured = _measure(folder, nodes, servers, settings, rates)
    late = _late_percent(measured, lateness)
    return [replace(point, late=late) for point in compare(measured, calibration)]


def _measure(folder: str, nodes: int, servers: int, settings: Sequence[str], rates: str) -> tuple[str, Analysis]:
    count = rates.count(",") + 1
    out = os.path.join(folder, f"{nodes}-nodes-{servers}-servers-{count}-rates")
    fixed = (f"nodes={nodes}", f"gfs.servers={servers}", "sweep={}", f"sweep.cache_rate={rates}")
    return out, measure("demo", [*_SYSTEM, *fixed, *settings], out)


def compare(measured: tuple[str, Analysis], calibration: Calibration) -> list[Compared]:
    """Every point of a measured result beside what a calibrated model says of it."""
    _, analysis = measured
    assert analysis.study is not None
    points = list(sweep.points(analysis.study))
    by_sweep = {tuple(point.sweep.values()): point for point in analysis.breakdown.summary}
    compared = [_point(point.study, by_sweep[tuple(point.sweep.values())], calibration) for point in points]
    leads = [lead_of(by_sweep[tuple(point.sweep.values())], analysis.breakdown.points) for point in points]
    return [replace(point, lead=lead) for point, lead in zip(compared, leads, strict=True)]


def lead_of(point: SweepPoint, epochs: Sequence[EpochPoint]) -> str:
    first, second = sorted(point.classes, key=lambda name: -point.classes[name])[:2]
    ratios = [
        epoch.classes[first] / epoch.classes[second]
        for epoch in epochs
        if epoch.sweep == point.sweep and epoch.classes.get(second) and (epoch.epoch > 1 or len(epochs) == 1)
    ]
    if not ratios or not point.classes[second]:
        return ""
    lead = point.classes[first] / point.classes[second]
    return f"{first} over {second} {lead:.2f} ×, {min(ratios):.2f}–{max(ratios):.2f} in {len(ratios)} epochs"


def _point(study: Study, measured: SweepPoint, calibration: Calibration) -> Compared:
    bare = cases_without_rates(study)
    fitted = replace(bare, system=calibration.system(bare.system))
    simulation = Simulation.of(fitted)
    drawn = tuple(apply(fitted.system, calibration.fit.parameters, draw) for draw in calibration.draws)
    outcomes = [simulation.epoch(epoch, "events", seed) for epoch in (2, 3) for seed in range(_THROWS)]
    predicted = median([float(outcome.io.max()) for outcome in outcomes])
    low, high = spread.relative(fitted, simulation.stations, simulation.reading, outcomes[0], drawn)
    names = [f"{tier.name.upper()}-{kind}" for tier in study.system.tiers for kind in CATEGORIES]
    slowest = sum(outcome.busy_classes[outcome.slowest].reshape(-1) for outcome in outcomes)  # a mean, but for a factor
    leader = names[int(np.argmax(slowest))]
    right = leader == measured.bottleneck if leader_is_clear(measured) else None
    where = f"{study.system.ranks} ranks, {study.system.tiers[-1].servers} servers, {measured.sweep}"
    return Compared(where, measured.io.median, predicted, predicted * low, predicted * high, right)


def cases_without_rates(study: Study) -> Study:
    from tierscope.predict.rates import without_rates  # noqa: PLC0415

    return replace(study, system=without_rates(study.system))


def _errors(section: str, compared: Sequence[Compared]) -> Row:
    middle, worst = median([point.error for point in compared]), max(compared, key=lambda point: point.error)
    late = median([point.late for point in compared])
    row = Row(
        section,
        f"slowest I/O time at {len(compared)} points not calibrated on, median error",
        f"{middle:.1f} % (largest {worst.error:.1f} % at {worst.where})",
        f"≤ {_MEDIAN_GOAL:g} %",
        note=f"lateness up to {late:.1f} %",
    )
    return judged(row, -middle, _MEDIAN_GOAL, 0.0, late)


def _overall(compared: Sequence[Compared], few: bool) -> list[Row]:
    covered = 100 * sum(point.low <= point.measured <= point.high for point in compared) / len(compared)
    clear = [point for point in compared if point.leader_right is not None]
    right = sum(bool(point.leader_right) for point in clear)
    low, high = _COVERED
    middle, late = (median([getattr(point, what) for point in compared]) for what in ("error", "late"))
    row = Row("emulated, all", f"median error at {len(compared)} points", f"{middle:.1f} %", f"≤ {_MEDIAN_GOAL:g} %")
    return [
        judged(row, -middle, _MEDIAN_GOAL, 0.0, late),
        Row("emulated, all", "90 % intervals that hold the measurement", f"{covered:.0f} %", f"{low:g}–{high:g} %", None if few else low <= covered <= high),
        Row("emulated, all", "bottleneck right where the two largest differ by more than 10 %", f"{right} of {len(clear)}", "all", None if few else right == len(clear), _wrong(clear)),
    ]  # fmt: skip


def _wrong(clear: Sequence[Compared]) -> str:
    places = [
        f"{point.where} ({point.lead})" if point.lead else point.where for point in clear if not point.leader_right
    ]
    return f"wrong: {'; '.join(places[:5])}" if places else ""
