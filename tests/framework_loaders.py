"""What a framework's loader must do: the samples of the plan in its order, told from their bytes; and the operations of our own loaders."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from tests.small_study import node_source, plan_of, stage
from tests.tiny import tiny
from tierscope.bench.loading import make_loader
from tierscope.bench.resolved import ResolvedRun
from tierscope.dataset.content import payload
from tierscope.loaders.held import HeldLoader
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.output.store import RunStore
from tierscope.spec.study import Study
from tierscope.trace.recorder import Recording
from tierscope.watch import Silent


def assert_samples_of_the_plan(study: Study, out: Path) -> None:
    """Two epochs, of a framework's loader with one and the same, as ranks use them."""
    stage(study, str(out))
    run = ResolvedRun.of(study)
    form = run.format
    source = node_source(study, str(out))
    lasting = make_loader(run, source, Recording(len(study.system.tiers), silent=True))
    dataset = study.workload.dataset
    for epoch in (1, 2):
        plan = plan_of(study)
        loader = lasting
        if loader.records and epoch > 1:
            loader = make_loader(run, source, Recording(len(study.system.tiers), silent=True))
        expected = [sample for block in plan.reads(0, epoch) for sample in block.samples.tolist()]
        found = 0
        for step, batch in enumerate(loader.batches(plan.reads(0, epoch))):
            assert batch.step == step
            for sample, stored in zip(batch.samples, batch.payloads, strict=True):
                assert sample == expected[found]
                whole = b"".join(payload(study.seed, int(sample), dataset.record_length_bytes))
                decoded = bytes(form.decode(stored))
                assert decoded[: len(whole)] == whole
                assert not any(decoded[len(whole) :])
                found += 1
        assert found == len(expected)
        loader.finish()


def assert_held_samples(study: Study, out: Path) -> None:
    """From memory, the loader gives the samples of the plan when their files are gone."""
    stage(study, str(out))
    run, plan = ResolvedRun.of(study), plan_of(study)
    samples = plan.order.reachable(0)
    source = replace(node_source(study, str(out)), held=samples)
    loader: Any = make_loader(run, source, Recording(len(study.system.tiers), silent=True))
    held = HeldLoader(loader, plan.blocks_of(samples))
    delivered = []
    for epoch in (1, 2):
        for batch in held.batches(plan.reads(0, epoch)):
            delivered += [int(sample) for sample in batch.samples]
            for sample, stored in zip(batch.samples, batch.payloads, strict=True):
                whole = b"".join(payload(study.seed, int(sample), study.workload.dataset.record_length_bytes))
                assert bytes(run.format.decode(stored))[: len(whole)] == whole
            assert study.workload.reader.preprocess != "decode" or len(batch.arrays) == len(batch.samples)
        for path in (out / "tiers").rglob(f"*{run.format.suffix}"):
            path.unlink()
    assert delivered == [int(sample) for epoch in (1, 2) for block in plan.reads(0, epoch) for sample in block.samples]


def assert_same_trace(name: str, settings: Sequence[str], out: Path, theirs: Sequence[str] = ()) -> None:
    """Bytes and order of a run with the framework's loader are those of our own. `theirs`: settings that only the framework knows."""
    found = {}
    for loader in (name, "threads"):
        only = theirs if loader == name else ()
        study = tiny("sweep={}", "cache_rate=50%", f"data_loader={loader}", *settings, *only)
        crews = Crews()
        try:
            run_study(study, str(out / loader), crews, Silent())
        finally:
            crews.close()
        (trace,) = RunStore(str(out / loader)).load_all()
        found[loader] = _seen(trace.io, trace.ranks)
    assert found[name] == found["threads"]


def _seen(io: pl.DataFrame, ranks: pl.DataFrame) -> dict[str, Any]:
    """A filesystem call that asks where a file ends may be one more; what is read and opened is the same."""
    sums = io.filter(pl.col("kind") == "read").group_by("epoch", "rank", "tier").agg(pl.col("bytes").sum())
    return {
        "bytes": sorted(sums.iter_rows()),
        "order": ranks.sort("epoch", "rank").select("epoch", "rank", "order_digest", "samples").rows(),
    }
