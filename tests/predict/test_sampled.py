"""Epochs that are simulated in part: close to every operation by events, from parts however they are read, at any size."""

import resource
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tierscope.cli.main import main
from tierscope.errors import UserError
from tierscope.plan.order import Order
from tierscope.predict import spread
from tierscope.predict.sampled_schedule import _part_of, drawn_positions, sampled
from tierscope.predict.simulation import Simulation
from tierscope.spec.load import load_study, parse_study
from tierscope.spec.study import Study, Tier

pytestmark = pytest.mark.whole

COMPUTE = "computation_time=500ms"
PACKED = ("num_files_train=2304", "num_samples_per_file=128")
# What is read, and how far the slowest rank and the epoch may be from events: a part of a small epoch is a small part.
READ = {
    "from afar": (("cache_rate=0%",), 0.02),
    "from both": (("cache_rate=50%",), 0.04),
    "from near": (("cache_rate=100%",), 0.02),
    "chunked": (("cache_rate=50%", "shuffle=chunked", "shuffle_nodes=8"), 0.04),
    "local": (("cache_rate=50%", "shuffle=local"), 0.04),
    "partition": (("cache_rate=50%", "policy=partition", "shuffle=local"), 0.02),
    "packed": (("cache_rate=50%", *PACKED), 0.04),
    "ahead of compute": (("cache_rate=100%", COMPUTE), 0.05),
    "beside compute": (("cache_rate=50%", COMPUTE, "read_threads=0"), 0.1),
    "in step": (("cache_rate=50%", COMPUTE, "sync=step"), 0.05),
    "four threads": (("cache_rate=50%", "read_threads=4"), 0.05),
}

QUEUED = """
study: queued
workload:
  dataset: {format: raw, num_files_train: 245760, record_length_bytes: 150 kB}
  reader: {batch_size: 32, read_threads: 4}
  train: {epochs: 1}
system:
  nodes: 16
  ranks_per_node: 4
  tiers:
    lfs: {path: /lfs, visible_to: node, bandwidth: 3 GB/s}
    gfs: {path: /gfs, metadata_ops: 400/s, servers: 8, bandwidth: 250 MB/s, latency: 1 ms}
placement: {cache_rate: 1%}
"""


def fugaku(*changes: str) -> Study:
    """An eighth of its nodes, with an eighth of the servers."""
    small = ("nodes=96", "num_files_train=294912", "gfs.servers=8", "gfs.metadata_ops=6000")
    return load_study("fugaku-small-60ost", ["sweep={}", *small, *changes])


@pytest.fixture
def in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierscope.predict.simulation.SAMPLED_FROM", 1000)
    monkeypatch.setattr("tierscope.predict.simulation.DRAWN_FROM", 1000)
    monkeypatch.setattr("tierscope.predict.sampled_schedule.MOST_OPERATIONS", 60_000)


@pytest.mark.parametrize("changes", READ)
def test_a_part_stands_for_all(changes: str, request: pytest.FixtureRequest) -> None:
    study, close = fugaku(*READ[changes][0]), READ[changes][1]
    every = Simulation.of(study).epoch(2, "events")
    request.getfixturevalue("in_part")
    part = Simulation.of(study).epoch(2, "events")
    assert part.sampled_share is not None
    assert part.sampled_share < 0.45
    assert part.ops[:, :, 1].sum() == every.ops[:, :, 1].sum()
    assert part.io.max() == pytest.approx(every.io.max(), rel=close)
    assert part.seconds.max() == pytest.approx(every.seconds.max(), rel=close)
    assert part.busy[part.slowest].argmax() == every.busy[every.slowest].argmax()
    assert (
        part.wall.sum(axis=(1, 2)) <= part.seconds * (1 + 1e-9)
    ).all()  # nobody reads for longer than the epoch takes


@pytest.mark.parametrize("changes", [{}, {"read_threads": 0}, {"read_threads": 4, "prefetch_size": 4}])
def test_beginning_and_end_of_a_part_count_once(changes: dict[str, int], request: pytest.FixtureRequest) -> None:
    """All threads wait for opens: the first ones of a part find no queue, the last ones leave none behind."""
    study = parse_study(QUEUED, "queued.yaml")
    reader = replace(study.workload.reader, **changes)  # type: ignore[arg-type]
    study = replace(study, workload=replace(study.workload, reader=reader))
    every = Simulation.of(study).epoch(1, "events")
    request.getfixturevalue("in_part")
    part = Simulation.of(study).epoch(1, "events")
    assert part.sampled_share is not None
    assert part.sampled_share < 0.3
    assert part.io.max() == pytest.approx(every.io.max(), rel=0.01)
    assert part.seconds.max() == pytest.approx(every.seconds.max(), rel=0.01)


@pytest.mark.parametrize("seconds", [0.05, 1.0, 4.0, 8.0])
def test_a_part_has_no_more_credit_than_its_epoch(seconds: float, request: pytest.FixtureRequest) -> None:
    """What servers make up for at the beginning is made up for once, not once for every part that would fit into the epoch."""
    study = fugaku("cache_rate=0%", "gfs.metadata_ops=60000", f"gfs.credit={seconds}s", "gfs.bandwidth=100MB/s")
    every = Simulation.of(study).epoch(2, "events")
    request.getfixturevalue("in_part")
    part = Simulation.of(study).epoch(2, "events")
    assert part.sampled_share is not None
    assert part.io.max() == pytest.approx(every.io.max(), rel=0.05)
    assert part.seconds.max() == pytest.approx(every.seconds.max(), rel=0.05)
    assert part.first_batch is not None
    assert every.first_batch is not None
    assert part.first_batch.max() == pytest.approx(every.first_batch.max(), rel=0.1)


@pytest.mark.parametrize("operations", [150_000, 300_000])
@pytest.mark.parametrize("compute", ["500ms", "1s"])
@pytest.mark.parametrize("rate", ["0%", "50%", "100%"])
def test_far_ahead_of_compute(
    rate: str, compute: str, operations: int, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ranks read without pause until eight batches wait, and at the pace of steps from then on: a part is past that, or the interval says so, to within 1 %."""
    study = fugaku(f"cache_rate={rate}", f"computation_time={compute}", "prefetch_size=8", "num_files_train=884736")
    every = Simulation.of(study).epoch(2, "events")
    request.getfixturevalue("in_part")
    monkeypatch.setattr("tierscope.predict.sampled_schedule.MOST_OPERATIONS", operations)
    simulation = Simulation.of(study)
    part = simulation.epoch(2, "events")
    low, high = spread.relative(study, simulation.stations, simulation.reading, part)
    assert low * 0.99 <= every.io.max() / part.io.max() <= high * 1.01
    assert part.io.max() == pytest.approx(every.io.max(), rel=0.05)
    assert part.seconds.max() == pytest.approx(every.seconds.max(), rel=0.02)


def test_a_gateway_of_all_nodes_keeps_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of nodes that share one, a part is simulated, with its part of the gateway."""
    monkeypatch.setattr("tierscope.predict.sampled_schedule.MOST_OPERATIONS", 30_000)
    study = fugaku("cache_rate=0%", "gfs.gateway_shared_by=96", "gfs.gateway_bandwidth=9.6GB/s")
    simulation = Simulation.of(study)
    part = sampled(study, simulation.plan, simulation.reading, 2)
    assert part.schedule.files.size <= 30_000
    assert part.study.system.tiers[1].gateway_bandwidth == pytest.approx(1e8 * len(part.nodes))


@pytest.mark.usefixtures("in_part")
def test_nodes_that_are_left_out_take_their_part_of_the_servers_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tierscope.predict.sampled_schedule.MOST_OPERATIONS", 40_000)
    study = fugaku("cache_rate=40%", "gfs.gateway_shared_by=24")
    simulation = Simulation.of(study)
    part = sampled(study, simulation.plan, simulation.reading, 2)
    assert len(part.nodes) < study.system.nodes
    assert len(part.nodes) % 24 == 0
    before, after = (system.tiers[1] for system in (study.system, part.study.system))
    kept = len(part.nodes) / study.system.nodes
    assert before.bandwidth
    assert after.bandwidth
    assert after.servers * after.bandwidth == pytest.approx(kept * before.servers * before.bandwidth)


@pytest.mark.parametrize("key", ["bandwidth", "read_ops", "write_bandwidth", "write_ops"])
def test_all_that_servers_do_is_shared_alike(key: str) -> None:
    tier = Tier(name="gfs", path="/gfs", servers=3, **{key: 600.0})  # type: ignore[arg-type]
    part = _part_of(tier, 4, 16)
    assert part.servers * getattr(part, key) == pytest.approx(0.25 * 3 * 600)


@pytest.mark.usefixtures("in_part")
def test_its_error_is_in_the_interval() -> None:
    study = fugaku("cache_rate=50%", COMPUTE, "read_threads=0")
    simulation = Simulation.of(study)
    outcome = simulation.epoch(2, "events")
    assert outcome.sampling_error > 0
    low, high = spread.relative(study, simulation.stations, simulation.reading, outcome)
    without = replace(outcome, sampling_error=0.0)
    least, most = spread.relative(study, simulation.stations, simulation.reading, without)
    assert low < least <= 1 <= most < high
    assert high / low > 1 + outcome.sampling_error


@pytest.mark.parametrize(
    "changes",
    [
        ("num_files_train=1000000000",),
        ("num_files_train=1000000", "num_samples_per_file=1000", "shuffle=local"),
        ("num_files_train=1000000000", "shuffle=chunked", "shuffle_nodes=24"),
        ("num_files_train=1000000", "num_samples_per_file=1000", "shuffle=chunked", "shuffle_nodes=7"),
        ("num_files_train=1000000000", "policy=partition", "shuffle=local"),
    ],
)
def test_any_size(changes: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """As many nodes as that take seconds: fewer here."""
    monkeypatch.setattr("tierscope.predict.sampled_schedule.MOST_OPERATIONS", 100_000)
    study = load_study("fugaku-small-60ost", ["sweep={}", "cache_rate=50%", "nodes=384", *changes])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    simulation = Simulation.of(study)
    outcome = simulation.epoch(2, "events")
    assert int(outcome.ops[:, :, 1].sum()) >= 10**9 - study.system.ranks
    assert (simulation.staging_seconds() or 0) > outcome.seconds.max() / 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20  # KiB


def test_caches_that_would_have_to_be_followed_are_refused() -> None:
    changes = ("policy=first-touch", "cache_rate=1%", "num_files_train=1000000000")
    study = load_study("fugaku-small-60ost", ["sweep={}", *changes])
    with pytest.raises(UserError, match=r"placement.policy = first-touch: would have to track caches of .* files"):
        Simulation.of(study).epoch(1, "events")


def test_it_is_said(tmp_path: Path, in_part: None, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("nodes=24", "num_files_train=18432", "sweep.cache_rate=[0%, 50%]", "epochs=2", "gfs.gateway_shared_by=8")
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "fugaku-small-60ost", *(f"--set={word}" for word in words), "--out", str(tmp_path / "out")])
    assert ended.value.code == 0
    assert "of the operations were simulated;" in " ".join(capsys.readouterr().out.split())


orders = st.builds(
    Order,
    samples=st.integers(200, 5000),
    samples_per_file=st.integers(1, 12),
    ranks=st.integers(1, 20),
    group_ranks=st.integers(1, 20),
    seed=st.integers(0, 99),
    shuffled=st.booleans(),
    walk=st.sampled_from(["samples", "files", "offsets"]),
    files_shuffled=st.booleans(),
    inside_shuffled=st.booleans(),
    batch=st.integers(1, 8),
)


@settings(max_examples=examples(100))
@given(orders)
def test_ranks_read_what_they_may_and_where_they_read_all_nothing_twice(order: Order) -> None:
    order = Order(
        **{name: getattr(order, name) for name in Order.__slots__}
        | {"group_ranks": min(order.group_ranks, order.ranks)}
    )
    turns = np.arange(order.samples_per_rank)
    found = drawn_positions(order, 1, np.arange(order.ranks), turns)
    for rank in range(order.ranks):
        low, high = order.stretch(rank, rank)
        assert low <= found[rank].min()
        assert found[rank].max() < high
    if order.walk == "samples" and order.samples % order.ranks == 0 and order.ranks % order.group_ranks == 0:
        assert len(np.unique(found)) == found.size
