"""What we cost by ourselves: the recorder per operation, and the whole harness per sample on storage that costs nothing."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tierscope.data.stage import make_format
from tierscope.formats import Format
from tierscope.loaders import LOADERS, Source
from tierscope.plan.plan import Block, Plan
from tierscope.spec.study import Study
from tierscope.tiers.access import Nothing
from tierscope.tiers.files import DatasetFiles
from tierscope.trace.recorder import Lane, WallClock, cost_per_op_seconds

_SAMPLES = 4000
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds; the least of a few tries, since everything else on the machine only adds."""

    recorder_per_op: float
    harness_per_sample: float


def measure_overhead(study: Study) -> Overhead:
    recorder = min(min(cost_per_op_seconds(5000)) for _ in range(_REPEATS))
    harness = min(_seconds_per_sample(study) for _ in range(_REPEATS))
    return Overhead(recorder, harness)


def _seconds_per_sample(study: Study) -> float:
    """The study's own loader and plan, with reads that return at once."""
    form = make_format(study)
    plan = Plan.of(study, form.file_bytes)
    source = null_source(study, form)
    reader, tiers = study.workload.reader, len(study.system.tiers)
    clock = WallClock() if reader.read_threads > 1 else None
    loader = LOADERS.load("threads" if reader.read_threads else "inline")(
        source,
        reader.batch_size,
        reader.read_threads,
        reader.prefetch_size,
        lambda number: Lane(number, tiers, 1, clock),
    )
    done = 0
    start = time.monotonic()
    for batch in loader.batches(_enough(plan)):
        done += len(batch.samples)
    return (time.monotonic() - start) / done


def null_source(study: Study, form: Format) -> Source:
    """The study's samples on storage that answers at once with nothing."""
    nowhere = DatasetFiles("/nowhere", "/nowhere", form.suffix, 0)
    tiers = len(study.system.tiers)
    return Source(
        format=form,
        files=(nowhere,) * tiers,
        tier_names=tuple(tier.name for tier in study.system.tiers),
        transfer_bytes=study.workload.reader.transfer_size,
        samples_per_file=study.workload.dataset.num_samples_per_file,
        open_accesses=lambda: (Nothing(),) * tiers,
        check=False,  # memory that nothing was read into cannot pass
    )


def _enough(plan: Plan) -> Iterator[Block]:
    """Epoch after epoch of rank 0, until starting threads no longer matters."""
    given = 0
    for epoch in itertools.count(1):
        for block in plan.reads(0, epoch):
            yield block
            given += len(block.samples)
            if given >= _SAMPLES:
                return
