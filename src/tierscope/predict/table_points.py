"""Points of a measured table as simulations: the study in the point's shape, a few steps of it, and the figures that the table has too.

Not all of an epoch is simulated: the first batch needs the batches that are read beside it, a steady state some dozens of steps. What an epoch takes follows
from its first step and the mean of the others. Events decide: mean values know no steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tierscope.errors import UserError
from tierscope.plan.plan import Plan
from tierscope.plan.reading import Reading, reading_of, reads_of
from tierscope.plan.stations import stations_of
from tierscope.predict import events
from tierscope.predict.client import batches_ahead
from tierscope.predict.measured_table import (
    EPOCH,
    FIRST_MAX,
    FIRST_MEAN,
    SAMPLES,
    SHARE,
    THROUGHPUT,
    MeasuredFigures,
    MeasuredTable,
)
from tierscope.predict.outcome import Outcome
from tierscope.predict.schedule import Schedule, lay_out
from tierscope.spec.check import find_problem
from tierscope.spec.keys import leaf_keys
from tierscope.spec.study import Study, System
from tierscope.spec.vary import value_at
from tierscope.units import counted

EPOCHS = 5  # simulated of points with first batches: each is another shuffle
_BESIDE_FIRST = 2  # steps beyond those that are read ahead
_STEADY, _FEWEST = 256, 8  # steps
_PERIODS = 3  # at least, between the start and the end
_MOST_OPERATIONS = 400_000  # of one epoch of one point
_MOST_OF_A_POINT, _MOST_OF_A_TABLE = 5 * 10**7, 10**10  # where even the fewest steps are many
_FROM_TABLE = ("workload.reader.read_threads", "workload.reader.batch_size", "system.nodes", "system.ranks_per_node")


@dataclass(frozen=True, slots=True)
class TablePoint:
    """A measured point, ready to be simulated on any system. `steps`: of its whole epoch; the study has fewer."""

    measured: MeasuredFigures
    study: Study
    steps: int
    reading: Reading
    schedules: tuple[Schedule, ...]

    def simulate(self, system: System, epochs: int | None = None) -> dict[str, list[float]]:
        """Figure → its value in every epoch, or in so many."""
        study = replace(self.study, system=_shaped(system, self.measured))
        stations = stations_of(study.system, study.seed).with_stock(self._share)
        by_figure: dict[str, list[float]] = {}
        for number, schedule in enumerate(self.schedules[:epochs]):
            options = events.EventOptions(study.workload.train.sync == "step", study.seed + number)
            outcome = events.simulate(study, stations, self.reading, schedule, options)
            for figure, value in self._figures(study, outcome).items():
                by_figure.setdefault(figure, []).append(value)
        return by_figure

    @property
    def tells(self) -> set[str]:
        """Which of its measured figures a simulation has too: of a single step there is no AU."""
        return set(self.measured.figures) - ({SHARE} if self.steps == 1 else set())

    @property
    def _share(self) -> float:
        """Of its epoch that is simulated: so much of what servers have to begin with; first batches alone have all of it."""
        if set(self.measured.figures) <= {FIRST_MEAN, FIRST_MAX}:
            return 1.0
        return min(1.0, (self.study.workload.train.total_training_steps or self.steps) / self.steps)

    def _figures(self, study: Study, outcome: Outcome) -> dict[str, float]:
        assert outcome.first_batch is not None
        waits, whole = outcome.first_batch, whole_epoch(study, outcome, self.steps)
        seconds = float(whole.seconds.max())
        samples = self.steps * study.workload.reader.batch_size * study.system.ranks
        figures = {
            FIRST_MEAN: float(waits.mean()),
            FIRST_MAX: float(waits.max()),
            EPOCH: seconds,
            THROUGHPUT: samples * study.workload.dataset.record_length_bytes / seconds,
            SAMPLES: samples / seconds,
        }
        if self.steps > 1 and (shares := whole.rank_au) is not None:
            figures[SHARE] = float(shares.mean())
        return figures


def whole_epoch(study: Study, outcome: Outcome, steps: int) -> Outcome:
    """An epoch of so many steps, of which fewer were simulated: its clock and its AU. Steps that were not are as long as those between the start, when all
    threads read at once, and the end, when fewer and fewer do; of these whole periods, because what threads read arrives in groups."""
    assert outcome.steps is not None
    simulated = outcome.steps.shape[1]
    if steps == simulated:
        return outcome
    ahead, period = batches_ahead(study), _period(study)
    periods = max(1, (simulated - 1 - 2 * ahead) // period)
    seconds = outcome.steps[:, :, 1] + outcome.steps[:, :, 2]
    if study.workload.train.sync == "step":  # who is done waits for all
        seconds = np.broadcast_to(seconds.max(axis=0), seconds.shape)
    end = simulated - ahead
    steady = seconds[:, max(1, end - periods * period) : end].mean(axis=1)
    more = steps - simulated
    return replace(
        outcome,
        seconds=outcome.seconds + more * steady,
        compute=outcome.compute + more * study.workload.train.computation_time,
    )


def _period(study: Study) -> int:
    """Steps after which what a rank's threads do begins anew."""
    return max(1, batches_ahead(study), study.workload.reader.read_threads)


def points_of(table: MeasuredTable, study: Study, epochs: int | None = None) -> tuple[TablePoint, ...]:
    """Every point of the table that tells something, in its own shape. `epochs`: so many shuffles of each; None: few where steady steps are what counts."""
    _refuse_no_compute(table, study)
    epochs = epochs or (EPOCHS if {FIRST_MEAN, FIRST_MAX} & set(table.figures) else 1)
    shaped = [(point, *_small(table, point, study)) for point in table.points]
    _refuse_endless(table, [small for _, small, _ in shaped], epochs)
    return tuple(_point(table, point, small, steps, epochs) for point, small, steps in shaped)


def _refuse_endless(table: MeasuredTable, studies: Sequence[Study], epochs: int) -> None:
    """Counted before anything is laid out; a table may say any number."""
    work = [epochs * study.workload.dataset.samples * (1 + reads_of(study)) for study in studies]
    if max(work) > _MOST_OF_A_POINT or sum(work) > _MOST_OF_A_TABLE:
        largest = table.points[work.index(max(work))]
        raise UserError(
            f"{table.name}: {counted(len(work), 'point')} take about {sum(work):.2g} operations to simulate, of which {largest.name} take {max(work):.2g}; "
            f"at most {_MOST_OF_A_TABLE:.2g} and {_MOST_OF_A_POINT:.2g}: choose fewer rows with --where"
        )


def _refuse_no_compute(table: MeasuredTable, study: Study) -> None:
    if SHARE in table.figures and not study.workload.train.computation_time:
        raise UserError(
            f"{table.name}: has AU, but {study.study} has no compute; set workload.train.computation_time to the time of a step"
        )
    if study.placement.policy != "pinned":
        raise UserError(
            f"placement.policy = {study.placement.policy}; tables can only be compared with pinned files: set pinned"
        )


def _point(table: MeasuredTable, measured: MeasuredFigures, shaped: Study, steps: int, epochs: int) -> TablePoint:
    problem = find_problem(shaped)
    if problem:
        raise UserError(f"{table.name}: {measured.name}: {problem.text}")
    reading = reading_of(shaped)
    plan = Plan.of(shaped, reading.file_bytes)
    schedules = tuple(lay_out(shaped, plan, epoch) for epoch in range(1, epochs + 1))
    return TablePoint(measured, shaped, steps, reading, schedules)


def _small(table: MeasuredTable, measured: MeasuredFigures, study: Study) -> tuple[Study, int]:
    """The study at this point with as few steps as its figures need, and the steps of the whole."""
    dataset, reader = study.workload.dataset, study.workload.reader
    given = measured.settings
    reader = replace(
        reader,
        read_threads=given.get("workload.reader.read_threads", reader.read_threads),
        batch_size=given.get("workload.reader.batch_size", reader.batch_size),
    )
    of_step = reader.batch_size * measured.ranks
    files = given.get("workload.dataset.num_files_train", dataset.num_files_train)
    steps = given.get("steps", files * dataset.num_samples_per_file // of_step)
    if steps < 1:
        raise UserError(
            f"{table.name}: {measured.name} need {of_step:,} samples for a step, and {study.study} has {files * dataset.num_samples_per_file:,}; "
            "raise workload.dataset.num_files_train, or add a column files or steps"
        )
    laid = replace(study, workload=replace(study.workload, reader=reader), system=_shaped(study.system, measured))
    _refuse_beyond_limits(table, measured, laid)
    few = min(steps, _steps_wanted(laid, measured, steps))
    files_per_rank = -(-few * reader.batch_size // dataset.num_samples_per_file)  # files of a rank
    enough = files_per_rank * measured.ranks
    train = replace(study.workload.train, total_training_steps=few, epochs=1)
    workload = replace(
        study.workload,
        dataset=replace(dataset, num_files_train=enough, num_subfolders_train=0),
        reader=reader,
        train=train,
        checkpoint=type(study.workload.checkpoint)(),
    )
    return replace(laid, workload=workload, sweep=(), cases=(), repetitions=1), steps


def _refuse_beyond_limits(table: MeasuredTable, measured: MeasuredFigures, study: Study) -> None:
    """What a table sets has the limits that a study has."""
    last = study.system.tiers[-1].name
    kinds = leaf_keys(Study, [tier.name for tier in study.system.tiers])
    for path in (*_FROM_TABLE, f"system.tiers.{last}.device_bandwidth"):
        value = value_at(study, path)
        if value is None:
            continue
        try:
            kinds[path].kind.parse(kinds[path].kind.format(value))
        except ValueError as problem:
            raise UserError(f"{table.name}: {measured.name}: {path} = {value}; {problem}; correct the table") from None


def _steps_wanted(study: Study, measured: MeasuredFigures, steps: int) -> int:
    ahead = batches_ahead(study) + _BESIDE_FIRST
    if set(measured.figures) <= {FIRST_MEAN, FIRST_MAX}:
        return ahead
    least = max(_FEWEST, 2 * batches_ahead(study) + _PERIODS * _period(study))
    reads = len(reading_of(study).pieces)
    of_step = study.workload.reader.batch_size * measured.ranks * (1 + reads)
    few = max(least, min(_STEADY + 2 * ahead, _MOST_OPERATIONS // of_step))
    return few + (steps - few) % _period(study)  # what is left out is whole periods


def _shaped(system: System, measured: MeasuredFigures) -> System:
    """With the point's nodes and ranks, and storage as much as was provisioned for it."""
    tiers = system.tiers
    if provisioned := measured.settings.get("provisioned"):
        tiers = (*tiers[:-1], replace(tiers[-1], device_bandwidth=provisioned * 1e6))
    return replace(system, nodes=measured.nodes, ranks_per_node=measured.ranks // measured.nodes, tiers=tiers)
