"""What `--method auto` takes, beside every operation by events: a part of an epoch that stands for all of it, and the bound, which it takes only without numba.

Workloads are those of the presets, also with compute between reads, with barriers after every step, packed, shuffled locally and partitioned; each as
large as events can do whole in seconds. Left out are presets that read nothing in later epochs (candle, climate, l2hmc), only write (llama-checkpoint),
or are the Hierarchy study's in miniature. The slowest rank's I/O time and the epoch are compared, whichever is farther off, and whether the same class leads.
"""

import resource
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from tierscope.predict import sampled_schedule, simulation
from tierscope.predict.combining import simulate_combination, with_staging
from tierscope.predict.method import why_far_off
from tierscope.predict.outcome import Outcome
from tierscope.predict.simulation import Simulation
from tierscope.spec.load import load, load_study
from tierscope.spec.study import Study
from validation.table import Row

MEDIAN, WORST = 0.02, 0.10
PART = 1_500_000  # operations
SECONDS, MEMORY = 10.0, 2 * 2**30  # of a point of any size
FUGAKU, COMPUTE = "fugaku-small-60ost", "computation_time=500ms"
PACKED = ("num_files_train=18432", "num_samples_per_file=128")
MANY = "num_files_train=1179648"
# Preset, system, changes.
WORKLOADS: tuple[tuple[str, str | None, tuple[str, ...]], ...] = (
    ("frnn", "theta", ("nodes=64", "ranks_per_node=1", "num_files_train=200000")),
    ("unet3d", "polaris", ("nodes=16", "num_files_train=20000")),
    ("resnet50", "polaris", ("nodes=32",)),
    ("imagenet", "theta", ("nodes=64",)),
    ("fugaku-small-1ost", None, ("num_files_train=2359296",)),
    ("fugaku-large-60ost", None, ("num_files_train=300000",)),
    (FUGAKU, None, (MANY, "shuffle=local")),
    (FUGAKU, None, PACKED),
    (FUGAKU, None, (*PACKED, "shuffle=local", "sample_shuffle=off")),
    (FUGAKU, None, (MANY, "policy=partition", "shuffle=local")),
    (FUGAKU, None, (MANY, COMPUTE)),
    (FUGAKU, None, (MANY, COMPUTE, "sync=step")),
    (FUGAKU, None, (MANY, COMPUTE, "read_threads=0")),
    (FUGAKU, None, (MANY, "read_threads=4")),
    ("dffn", "theta", ("nodes=128", "ranks_per_node=1")),  # one shared file, and a small one beside it
    ("cosmic-tagger", "theta", ("nodes=32", "ranks_per_node=1", "num_samples_per_file=8600")),
    ("bert", "theta", ("nodes=32", "ranks_per_node=1", "num_samples_per_file=12000")),
)
LARGEST = ("nodes=10000", "cache_rate=50%")
ALONE, TOGETHER = ("num_files_train=1000000000",), ("num_files_train=1000000", "num_samples_per_file=1000")
LARGE: dict[str, tuple[str, ...]] = {
    "global shuffle": ALONE,
    "chunked": (*ALONE, "shuffle=chunked", "shuffle_nodes=100"),
    "local, partitioned": (*ALONE, "shuffle=local", "policy=partition"),
    "packed": TOGETHER,
    "packed, files in order": (*TOGETHER, "sample_shuffle=off"),
    "packed, local": (*TOGETHER, "shuffle=local"),
}


@dataclass(frozen=True, slots=True)
class _Compared:
    name: str
    error: float
    same_leader: bool


def rows(short: bool) -> list[Row]:
    workloads = WORKLOADS[:5] if short else WORKLOADS
    points = [
        (f"{name} {' '.join(changes)}", load_study(name, ["sweep={}", *changes, f"cache_rate={rate}%"], system))
        for name, system, changes in workloads
        for rate in ((0, 50, 100) if name.startswith("fugaku") else (0,))
    ]
    parts, bounds, taken = [], [], []
    for name, study in points:
        every = _epoch(study, "events", whole=True)
        parts.append(_compared(name, every, _epoch(study, "events", whole=False)))
        bounds.append(_compared(name, every, _epoch(study, "bound", whole=True)))
        taken += bounds[-1:] if why_far_off(study) is None else []
    table_rows = [*_rows("a part of the operations", parts, judged=True), *_rows("the bound", bounds, judged=False)]
    table_rows += _rows("the bound where auto takes it without numba", taken, judged=True) if taken else []
    return table_rows if short else [*table_rows, *_any_size()]


def _epoch(study: Study, method: str, whole: bool) -> Outcome:
    with _limits(10**12 if whole else 1000):
        return Simulation.of(study).epoch(2, method, seed=1)


@contextmanager
def _limits(sampled_from: int) -> Iterator[None]:
    kept = simulation.SAMPLED_FROM, sampled_schedule.MOST_OPERATIONS
    simulation.SAMPLED_FROM, sampled_schedule.MOST_OPERATIONS = sampled_from, PART
    try:
        yield
    finally:
        simulation.SAMPLED_FROM, sampled_schedule.MOST_OPERATIONS = kept


def _compared(name: str, every: Outcome, other: Outcome) -> _Compared:
    pairs = ((other.io.max(), every.io.max()), (other.seconds.max(), every.seconds.max()))
    error = max(abs(float(ours / theirs) - 1) for ours, theirs in pairs)
    leads = [int(outcome.busy[outcome.slowest].argmax()) for outcome in (every, other)]
    return _Compared(name, error, leads[0] == leads[1])


def _rows(what: str, compared: Sequence[_Compared], judged: bool) -> list[Row]:
    median, worst = (
        statistics.median(comparison.error for comparison in compared),
        max(compared, key=lambda comparison: comparison.error),
    )
    same = sum(comparison.same_leader for comparison in compared)
    note = f"n = {len(compared)}, simulated" if judged else "auto takes it only without numba"

    def row(name: str, value: str, goal: str, met: bool, more: str = "") -> Row:
        return Row("methods", f"{what}: {name}", value, goal if judged else "", met if judged else None, more or note)

    return [
        row("median error", f"{median:.1%}", f"≤ {MEDIAN:.0%}", median <= MEDIAN),
        row("worst error", f"{worst.error:.1%}", f"≤ {WORST:.0%}", worst.error <= WORST, worst.name),
        row("same leading class", f"{same} of {len(compared)}", "all", same == len(compared)),
    ]


def _any_size() -> list[Row]:
    """A point as `explore --simulate` has it: with its interval, and what staging takes."""
    table_rows = []
    for name, changes in LARGE.items():
        loaded = load(FUGAKU, ["sweep={}", *LARGEST, *changes])
        start = time.process_time()
        option = with_staging(simulate_combination({}, loaded.study, "events", loaded.known), None)
        seconds = time.process_time() - start
        what = f"10⁹ samples on 10,000 nodes, {name}: CPU seconds of a point"
        note = f"{option.io_seconds:,.0f} s of I/O, staging {option.staging_seconds or 0:,.0f} s; warm compiler cache"
        table_rows.append(Row("methods", what, f"{seconds:.1f} s", f"≤ {SECONDS:.0f} s", seconds <= SECONDS, note))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    note = "the most that this process had until here, other sections included"
    value = f"{most / 2**30:.1f} GiB"
    return [*table_rows, Row("methods", "10⁹ samples on 10,000 nodes: memory", value, "≤ 2 GiB", most <= MEMORY, note)]
