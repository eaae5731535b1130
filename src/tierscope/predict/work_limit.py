"""How much there is to simulate, counted before it begins: what would take far too long is refused with the keys that make it so."""

from collections.abc import Sequence

from tierscope.errors import UserError
from tierscope.plan.reading import reads_of, refuse_many_reads
from tierscope.plan.stations import count_servers
from tierscope.predict.sampled_schedule import SAMPLED_POLICIES
from tierscope.predict.simulation import DRAWN_FROM, SAMPLED_FROM
from tierscope.spec.scale import reads_all
from tierscope.spec.study import Point, Study

# Hours of one core. A study of 589,824 files, 100 points, 5 epochs and 10 repetitions is a tenth of it.
MOST_OPERATIONS = 10**11
_OF_AN_EPOCH = (
    20_000  # operations that could be simulated in the time of what every epoch takes, with its draws and its table
)
_OF_A_SERVER = 15  # and of what it takes for each server
_OF_A_SAVE = 10  # operations of a rank for a checkpoint, at least


def refuse_endless(points: Sequence[Point], method: str, epochs: int | None = None) -> None:
    """`epochs`: so many of every point are simulated; None: those of all repetitions."""
    for point in points:
        refuse_many_reads(point.study, reads_of(point.study))
    total = sum(operations(point.study, method, epochs) for point in points)
    if total <= MOST_OPERATIONS:
        return
    study = points[0].study
    dataset = study.workload.dataset
    times = (
        "" if epochs else f", repetitions = {study.repetitions}, workload.train.epochs = {study.workload.train.epochs}"
    )
    raise UserError(
        f"workload.dataset.num_files_train = {dataset.num_files_train}{times} and {len(points):,} points of the sweep take about {total:.2g} "
        f"operations to simulate; at most {MOST_OPERATIONS:.2g}: lower one of them{', or use --method bound' if method == 'events' else ''}"
    )


def operations(study: Study, method: str, epochs: int | None = None) -> int:
    """About as many as the event engine would simulate in that time."""
    per_run = _OF_AN_EPOCH + _OF_A_SERVER * count_servers(study.system)
    samples = study.workload.dataset.samples * (study.system.ranks if reads_all(study.workload.reader) else 1)
    times = study.repetitions * study.workload.train.epochs if epochs is None else epochs
    most = 0 if method == "bound" and samples > DRAWN_FROM else SAMPLED_FROM  # of more, a part stands for all
    wanted = samples * (1 + reads_of(study)) if method == "events" else samples
    wanted = min(wanted, most) if study.placement.policy in SAMPLED_POLICIES else wanted
    return times * (per_run + wanted + (_saving(study) if method == "events" else 0))


def _saving(study: Study) -> int:
    """Of the checkpoints of an epoch."""
    wanted, ranks = study.workload.checkpoint, study.system.ranks
    if not wanted.wanted:
        return 0
    steps = study.workload.dataset.samples // ranks // study.workload.reader.batch_size
    steps = min(steps, study.workload.train.total_training_steps or steps)
    every = wanted.steps_between_checkpoints
    return (steps // every if every else 1) * ranks * _OF_A_SAVE
