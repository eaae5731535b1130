"""What we cost by ourselves: the recorder per operation, and the whole harness per sample on storage that costs nothing."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tierscope.bench.group import Alone
from tierscope.bench.loading import make_loader, null_source
from tierscope.bench.pull import pull
from tierscope.bench.resolved import ResolvedRun
from tierscope.bench.work import EmulatedWork
from tierscope.formats import LIBRARY
from tierscope.formats.raw import Raw
from tierscope.loaders import LOADERS
from tierscope.plan.plan import Block, Plan
from tierscope.spec.study import Reader
from tierscope.trace import native_lanes
from tierscope.trace.recorder import Recording, cost_per_op_seconds

_SAMPLES = 4000
_SECONDS = 0.15
_REPEATS = 3
_MOST_BYTES = 512 << 20  # of batches in memory


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds; the least of a few tries, since everything else on the machine only adds.

    `threads_per_op`: what an operation takes longer because the rank's other reading threads run too: in Python they want
    the interpreter. It is recorded as time of the operation, which no timer above the interpreter can avoid.
    """

    recorder_per_op: float
    harness_per_sample: float
    threads_per_op: float


def described(overhead: Overhead) -> dict[str, float]:
    """As traces have it."""
    return {
        "recorder_seconds_per_op": overhead.recorder_per_op,
        "harness_seconds_per_sample": overhead.harness_per_sample,
        "threads_seconds_per_op": overhead.threads_per_op,
    }


def measure_overhead(run: ResolvedRun) -> Overhead:
    """With the loader that the run really uses."""
    run = _with_small_batches(run)
    reader = run.study.workload.reader
    recorder = min(_recorder_cost(run.loader, reader.read_threads) for _ in range(_REPEATS))
    harness = min(_drive(run, "nothing")[0] for _ in range(_REPEATS))
    lost = 0.0
    if reader.read_threads > 1:
        single_thread = _with_reader(run, replace(reader, read_threads=1))
        together, apart = (
            min(_drive(driven, "null device")[1] for _ in range(_REPEATS)) for driven in (run, single_thread)
        )
        lost = max(0.0, together - apart)
    return Overhead(recorder, harness, lost)


def _with_reader(run: ResolvedRun, reader: Reader) -> ResolvedRun:
    return run.with_study(replace(run.study, workload=replace(run.study.workload, reader=reader)))


def _with_small_batches(run: ResolvedRun) -> ResolvedRun:
    """Memory of very large samples takes longer to get than the loop takes that is to be measured: then fewer are held at a time."""
    reader, sample = run.study.workload.reader, run.format.slot_bytes
    if reader.batch_size * (reader.prefetch_size + 1) * sample <= _MOST_BYTES:
        return run
    prefetch = 0 if (reader.prefetch_size + 1) * sample > _MOST_BYTES else reader.prefetch_size
    batch = max(1, min(reader.batch_size, _MOST_BYTES // ((prefetch + 1) * max(1, sample))))
    return _with_reader(run, replace(reader, batch_size=batch, prefetch_size=prefetch))


def _recorder_cost(loader: str, threads: int) -> float:
    return native_lanes.cost_per_op_seconds() if LOADERS[loader].in_c else max(cost_per_op_seconds(5000, threads > 1))


def _drive(run: ResolvedRun, storage: str) -> tuple[float, float]:
    """The run's own loop, loader and plan on storage that does nothing: seconds per sample, busy ones per operation."""
    if run.format.reading == LIBRARY:  # nobody's library opens a file that is not there: what is left is our own part
        run = run.with_study(run.study, Raw(run.format.shape))
    plan, tiers = run.plan, len(run.study.system.tiers)
    loader = make_loader(run, null_source(run, storage), Recording(tiers))
    tally = pull(loader.batches(_enough(plan)), EmulatedWork(lambda _: None, lambda: 0.0), Alone())
    tables, _ = loader.finish()
    ops, busy = sum(int(table.ops.sum()) for table in tables), sum(int(table.busy_ns.sum()) for table in tables)
    return tally.seconds / tally.samples, busy / max(1, ops) / 1e9


def _enough(plan: Plan) -> Iterator[Block]:
    """Epoch after epoch of rank 0, until starting threads no longer matters, by number or by time."""
    given, end = 0, time.monotonic() + _SECONDS
    for epoch in itertools.count(1):
        for block in plan.reads(0, epoch):
            yield block
            given += len(block.samples)
            if given >= _SAMPLES or time.monotonic() > end:
                return
