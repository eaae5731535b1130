"""How much there is to simulate, counted before it begins: what would take far too long is refused with the keys that make it so."""

from collections.abc import Sequence

from tierscope.errors import UserError
from tierscope.plan.reading import reads_of, refuse_many_reads
from tierscope.plan.stations import count_servers
from tierscope.predict.schedule import MOST_SAMPLES
from tierscope.spec.study import Point, Study

# Hours of one core. A study of 589,824 files, 100 points, 5 epochs and 10 repetitions is a tenth of it.
MOST_OPERATIONS = 10**11
_OF_AN_EPOCH = (
    20_000  # operations that could be simulated in the time of what every epoch takes, with its draws and its table
)
_OF_A_SERVER = 15  # and of what it takes for each server


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
    each = _OF_AN_EPOCH + _OF_A_SERVER * count_servers(study.system)
    samples = study.workload.dataset.samples
    times = study.repetitions * study.workload.train.epochs if epochs is None else epochs
    if method == "events":
        return times * (each + samples * (1 + reads_of(study)))
    return times * (each + (samples if samples <= MOST_SAMPLES else 0))  # of more, counts are drawn
