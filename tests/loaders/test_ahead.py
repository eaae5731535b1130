"""`read_ahead: all`: everything once, before the first step."""

from dataclasses import replace

import numpy as np
import pytest

from tests.accesses import Counting
from tests.small_study import loader_of, plan_of, planned_samples, small_study, source_of, stage
from tierscope.dataset import content
from tierscope.loaders.ahead import AheadLoader, SamplesInMemory
from tierscope.plan.file_format import make_format
from tierscope.spec.study import Study
from tierscope.storage.access import Punctuality

CASES = {
    "tfrecord": (),
    "npz": ("format=npz", "num_files_train=6", "num_samples_per_file=4"),
    "varying": ("format=raw", "num_files_train=6", "num_samples_per_file=4", "record_length_bytes_stdev=100"),
    "hdf5": ("format=hdf5", "num_files_train=6", "num_samples_per_file=4"),
}


def loaders_of(study: Study, out: str, access: Counting) -> tuple[AheadLoader, AheadLoader]:
    """Of the first epoch and of a later one."""
    plan, batch = plan_of(study), study.workload.reader.batch_size
    samples = plan.order.reachable(0)
    held = SamplesInMemory(samples, make_format(study).slot_bytes)
    loader = loader_of(study, source_of(study, out, lambda: access))
    return AheadLoader(held, batch, loader, plan.blocks_of(samples)), AheadLoader(held, batch, None, iter(()))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [0, 2])
def test_all_is_read_once_and_every_epoch_gets_its_own_order(
    tmp_path_factory: pytest.TempPathFactory, case: str, threads: int
) -> None:
    out, access = str(tmp_path_factory.mktemp("staged")), Counting()
    study = small_study(*CASES[case], f"read_threads={threads}")
    stage(study, out)
    plan, sizes = plan_of(study), make_format(study).shape
    for epoch, loader in enumerate(loaders_of(study, out, access), start=1):
        found, read_ns = [], []
        for step, batch in enumerate(loader.batches(plan.reads(0, epoch))):
            assert batch.step == step
            found += [bytes(payload) for payload in batch.payloads]
            read_ns.append(batch.read_ns)
        planned = planned_samples(plan, 0, epoch)
        per_file = study.workload.dataset.num_samples_per_file
        expected = [(sample, int(sizes.of_file(sample // per_file)[sample % per_file])) for sample in planned]
        assert found == [b"".join(content.payload(study.seed, sample, size)) for sample, size in expected]
        assert (read_ns[0] > 0, sum(read_ns[1:])) == (epoch == 1, 0)
        tables, punctuality = loader.finish()
        assert bool(tables) == (epoch == 1)
        assert punctuality == Punctuality()
        if epoch == 1:
            files = study.workload.dataset.num_files_train
            assert len(set(access.opened)) == files
            opened, read = len(access.opened), len(access.reads)
    assert (len(access.opened), len(access.reads)) == (opened, read)
    assert access.open_fds == set()


def test_a_rank_holds_what_it_may_ever_read() -> None:
    shared, own = (plan_of(small_study(f"shuffle={name}", "nodes=3")).order for name in ("global", "local"))
    assert shared.reachable(1).tolist() == list(range(24))
    parts = [own.reachable(rank).tolist() for rank in range(3)]
    assert [len(part) for part in parts] == [8, 8, 8]
    assert sorted(sum(parts[1:], parts[0])) == list(range(24))


def test_samples_keep_their_own_sizes() -> None:
    held = SamplesInMemory(np.array([3, 7, 40]), 10)
    for sample, payload in ((40, b"forty"), (3, b"three"), (7, b"seven plus")):
        held.put(sample, memoryview(payload))
    assert [bytes(held.get(sample)) for sample in (3, 7, 40)] == [b"three", b"seven plus", b"forty"]


def test_blocks_of_some_samples_hold_whole_batches() -> None:
    plan = replace(plan_of(small_study("num_files_train=10000")), batch_size=1000)
    blocks = list(plan.blocks_of(np.arange(10_000)))
    assert [len(block.samples) for block in blocks] == [4000, 4000, 2000]
    assert np.concatenate([block.samples for block in blocks]).tolist() == list(range(10_000))
