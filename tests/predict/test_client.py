"""What a client costs: start-up, steps, decoding, workers that read whole batches, samples as large as they are."""

from dataclasses import replace

import numpy as np
import pytest

from tierscope.predict.outcome import Outcome
from tierscope.predict.simulation import Simulation
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study

TEXT = """
study: small
workload:
  dataset: {{format: raw, num_files_train: 64, num_samples_per_file: 1, record_length_bytes: 1 MB, record_length_bytes_stdev: {stdev}}}
  reader: {{batch_size: 4, read_threads: {threads}, prefetch_size: 1, transfer_size: 1 MiB, data_loader: {loader}}}
  train: {{epochs: 1, computation_time: {compute}}}
system:
  ranks_per_node: 2
  tiers:
    gfs: {{path: "{{out}}/gfs", {rate}}}
"""


def study(
    loader: str = "auto", threads: int = 2, compute: str = "20 ms", rate: str = "latency: 10 ms", stdev: int = 0
) -> Study:
    return parse_study(
        TEXT.format(loader=loader, threads=threads, compute=compute, rate=rate, stdev=stdev), "study.yaml"
    )


def simulated(wanted: Study, method: str = "events", **costs: float) -> Outcome:
    return Simulation.of(replace(wanted, system=replace(wanted.system, **costs))).epoch(1, method)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["events", "bound"])
def test_start_up_delays_all_of_an_epoch(method: str) -> None:
    plain, late = simulated(study(), method), simulated(study(), method, startup_time=1.5)
    assert late.seconds == pytest.approx(plain.seconds + 1.5)
    assert late.stall == pytest.approx(plain.stall + 1.5)
    assert plain.first_batch is not None
    assert late.first_batch == pytest.approx(plain.first_batch + 1.5)
    assert late.compute == plain.compute


def test_start_up_is_no_part_of_au() -> None:
    """DLIO leaves the first step out."""
    plain, late = simulated(study()), simulated(study(), startup_time=1.5)
    assert plain.rank_au is not None
    assert late.rank_au == pytest.approx(plain.rank_au)


@pytest.mark.parametrize("method", ["events", "bound"])
def test_a_step_costs_more_than_its_compute(method: str) -> None:
    """8 steps; what is taken over from workers is neither compute nor hidden."""
    fast = study(rate="latency: 0.01 ms")
    plain, slow = simulated(fast, method), simulated(fast, method, step_overhead=0.005)
    assert slow.seconds == pytest.approx(plain.seconds + 8 * 0.005, rel=1e-6)
    assert slow.compute == plain.compute
    assert slow.stall == pytest.approx(plain.stall + 8 * 0.005, rel=1e-6)


def test_au_of_a_client_with_a_cost_per_step() -> None:
    found = simulated(study(rate="latency: 0.01 ms"), step_overhead=0.005)
    assert found.rank_au == pytest.approx(np.full(2, 20 / 25))


@pytest.mark.parametrize(("sync", "longest"), [("epoch", 1.0), ("step", 1 + 1 / 2)])
def test_ranks_that_wait_for_one_another_wait_for_the_longest(sync: str, longest: float) -> None:
    """Two ranks, 512 steps of 20 ms, and 5 ms by chance; the mean of the longer of two exponentials is 1.5 times theirs."""
    plain = study(rate="latency: 0.01 ms")
    dataset, train = replace(plain.workload.dataset, num_files_train=4096), replace(plain.workload.train, sync=sync)
    many = replace(plain, workload=replace(plain.workload, dataset=dataset, train=train))
    found = simulated(many, step_jitter=0.005)
    assert found.seconds.mean() / 512 == pytest.approx(0.02 + 0.005 * longest, rel=0.02)
    assert found.compute == pytest.approx(512 * 0.02)
    assert found.first_batch is not None
    assert found.first_batch.max() < 0.001


def test_workers_of_torch_read_whole_batches() -> None:
    """Nothing is shared: a batch of four takes four opens and reads of one worker, or two of each of two threads."""
    alone = study(compute="1 s")
    assert simulated(alone).first_batch == pytest.approx(np.full(2, 2 * 0.01))
    whole = study("pytorch", compute="1 s")
    assert simulated(whole).first_batch == pytest.approx(np.full(2, 4 * 0.01))
    assert simulated(whole).seconds.max() == pytest.approx(simulated(alone).seconds.max() + 0.02)


def test_the_first_of_many_workers_waits_for_the_others() -> None:
    """They share a link: the first batch is there when all of them are nearly done."""
    shared = "node_bandwidth: 100 MB/s"
    parts, whole = simulated(study(rate=shared, threads=4)), simulated(study("pytorch", rate=shared, threads=4))
    assert parts.first_batch is not None
    assert whole.first_batch is not None
    assert whole.first_batch.mean() > 3 * parts.first_batch.mean()
    assert whole.nbytes.sum() == parts.nbytes.sum()


def test_each_worker_has_batches_ready() -> None:
    """prefetch_size is of each: two workers with one each are two ahead, and hide what one would not."""
    step = "10 ms"
    slow = "latency: 4 ms"  # a batch takes a worker 16 ms, two of them one in 8 ms
    found = simulated(study("pytorch", compute=step, rate=slow))
    assert found.rank_au is not None
    assert found.rank_au.min() > 0.95
    assert simulated(study("pytorch", threads=1, compute=step, rate=slow)).rank_au == pytest.approx(10 / 16, rel=0.1)


def test_decoding_takes_as_long_as_a_sample_is_large() -> None:
    """Nothing but decoding: each rank's seconds are those of its bytes."""
    wanted = study(threads=1, compute="0 s", rate="latency: 0.001 ms", stdev=400_000)
    found = simulated(wanted, process_overhead=0.1)
    sizes = found.nbytes[:, 0, 1] / 1e6
    assert sizes.std() > 0
    assert found.seconds == pytest.approx(0.1 * sizes, rel=1e-3)


def test_a_larger_sample_takes_more_reads_not_larger_ones() -> None:
    """Of two that share a link read by read, the smaller is done first."""
    wanted = study("pytorch", rate="node_bandwidth: 100 MB/s", stdev=400_000)
    small = replace(
        wanted, workload=replace(wanted.workload, reader=replace(wanted.workload.reader, transfer_size=4096))
    )
    found = simulated(small)
    assert found.first_batch is not None
    assert found.first_batch.max() > 1.05 * found.first_batch.min()
    assert found.nbytes.sum() == pytest.approx(simulated(wanted).nbytes.sum(), abs=2)
    assert found.load.seconds.max() == pytest.approx(simulated(wanted).load.seconds.max(), rel=1e-6)


def test_the_mean_is_the_mean() -> None:
    """Not the size of the first sample: what is read of a usual one does not depend on which one is drawn first."""
    from tierscope.plan.reading import mean_read_bytes, reading_of  # noqa: PLC0415

    for seed in range(5):
        wanted = replace(study(stdev=400_000), seed=seed)
        assert reading_of(wanted).sample_bytes == mean_read_bytes(wanted) == 1_000_000


def test_samples_are_as_large_as_they_are_written() -> None:
    """The same sizes as the files that a run makes."""
    from tierscope.plan.sizes import SampleSizes  # noqa: PLC0415

    wanted = study(rate="node_bandwidth: 100 MB/s", stdev=400_000, compute="0 s")
    sizes = SampleSizes.of(wanted.workload.dataset, wanted.seed, ragged=True)
    total = sum(int(sizes.of_file(file)[0]) for file in range(64))
    found = simulated(wanted)
    assert found.nbytes.sum() == pytest.approx(total, abs=2)
    assert found.load.seconds.max() == pytest.approx(total / 100e6, rel=1e-6)
    assert simulated(study(rate="node_bandwidth: 100 MB/s", compute="0 s")).nbytes.sum() == 64 * 1_000_000
