"""What we cost by ourselves: the recorder per operation, and the whole harness per sample on storage that costs nothing."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tierscope.bench.loading import make_loader, null_source
from tierscope.data.stage import make_format
from tierscope.plan.plan import Block, Plan
from tierscope.spec.study import Study
from tierscope.trace.recorder import cost_per_op_seconds

_SAMPLES = 4000
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds; the least of a few tries, since everything else on the machine only adds."""

    recorder_per_op: float
    harness_per_sample: float


def measure_overhead(study: Study) -> Overhead:
    recorder = min(max(cost_per_op_seconds(5000)) for _ in range(_REPEATS))
    harness = min(_seconds_per_sample(study) for _ in range(_REPEATS))
    return Overhead(recorder, harness)


def _seconds_per_sample(study: Study) -> float:
    """The study's own loader and plan, with reads that return at once."""
    form = make_format(study)
    plan = Plan.of(study, form.file_bytes)
    loader = make_loader(study, null_source(study, form))
    done = 0
    start = time.monotonic()
    for batch in loader.batches(_enough(plan)):
        done += len(batch.samples)
    return (time.monotonic() - start) / done


def _enough(plan: Plan) -> Iterator[Block]:
    """Epoch after epoch of rank 0, until starting threads no longer matters."""
    given = 0
    for epoch in itertools.count(1):
        for block in plan.reads(0, epoch):
            yield block
            given += len(block.samples)
            if given >= _SAMPLES:
                return
