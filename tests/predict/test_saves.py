"""Checkpoints in the model: who stands still for how long, what is written where, and what it asks of stations."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.queueing import tier
from tests.predict.saving import epochs_of, saved, saving
from tierscope.plan.checkpoints import checkpoint_bytes
from tierscope.predict.outcome import Outcome
from tierscope.predict.simulation import Simulation
from tierscope.predict.spread import relative
from tierscope.spec.study import Study

METHODS = ("events", "bound")
WRITE = 2
MODEL = {"model_parameters": 1000, "steps_between_checkpoints": 2}  # 4,000 bytes


def one(study: Study, method: str = "events") -> Outcome:
    (found,) = epochs_of(study, method)
    return found


@pytest.mark.parametrize("method", METHODS)
def test_a_rank_stands_still_while_it_writes(method: str) -> None:
    """Four files of 1,000 bytes at 1,000 B/s, read inline; a checkpoint of 4,000 bytes and some of what it says at 2,000 B/s after every second one."""
    gfs = tier("gfs", bandwidth=1000, write_bandwidth=2000)
    outcome = one(saving(gfs, files=4, threads=0, checkpoint=MODEL), method)
    written = saved(outcome).nbytes[0, 0, 0, WRITE]
    assert 8000 < written < 8600
    assert saved(outcome).begun == 2
    assert saved(outcome).standstill == pytest.approx([written / 2000])
    assert outcome.seconds == pytest.approx([4.0 + written / 2000])
    assert outcome.stall == pytest.approx([4.0])
    assert outcome.io == pytest.approx(outcome.seconds)
    assert saved(outcome).seconds == pytest.approx([written / 4000] * 2)


@pytest.mark.parametrize("method", METHODS)
def test_without_rates_of_writing_a_write_takes_what_a_read_takes(method: str) -> None:
    plain, same = (
        one(saving(tier("gfs", bandwidth=1000, **keys), files=4, threads=0, checkpoint=MODEL), method)
        for keys in ({}, {"write_bandwidth": 1000})
    )
    assert plain.seconds == same.seconds == pytest.approx([4.0 + saved(plain).nbytes.sum() / 1000])


@pytest.mark.parametrize("method", METHODS)
def test_all_ranks_stand_still_until_the_last_one_is_done(method: str) -> None:
    """Two nodes with a link each, one of them to a slow server: all wait for whoever writes longest, and for the one that makes it count."""
    gfs = tier("gfs", bandwidth=1e9, write_bandwidth=1000)
    keys: dict[str, Any] = {"files": 4, "nodes": 2, "threads": 0}
    outcome = one(saving(gfs, checkpoint={**MODEL, "mode": "all_ranks", "zero_stage": 1}, **keys), method)
    assert (saved(outcome).nbytes[0, :, 0, WRITE] > 0).all()
    first, second = saved(outcome).standstill
    assert [first, second] == pytest.approx([saved(outcome).nbytes.sum() / 1000] * 2, rel=0.02)
    assert outcome.seconds[0] == pytest.approx(outcome.seconds[1])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sync", ["epoch", "step"])
def test_a_single_writer_holds_the_others_up_at_the_step_barrier_only(method: str, sync: str) -> None:
    lfs, gfs = tier("lfs", visible_to="node", bandwidth=1000), tier("gfs", bandwidth=1e9)
    model = {**MODEL, "tier": "lfs"}
    outcome = one(saving(lfs, gfs, files=8, nodes=2, threads=0, sync=sync, checkpoint=model), method)
    assert saved(outcome).standstill[0] > 8.0
    assert saved(outcome).standstill[1] == 0.0
    assert (outcome.seconds[1] > 3.9) == (sync == "step")


def behind(interval: float, count: int = 4, epochs: int = 1, **keys: Any) -> Study:
    """A checkpoint of four seconds and a little after every step."""
    gfs = tier("gfs", bandwidth=1e9, write_bandwidth=1000)
    model = {**MODEL, "steps_between_checkpoints": 1, "background": True}
    return saving(gfs, files=count, threads=0, compute=interval, epochs=epochs, checkpoint=model, **keys)


@pytest.mark.parametrize("method", METHODS)
def test_behind_training_nobody_waits_where_there_is_time(method: str) -> None:
    """Only the end of training waits for the last one."""
    outcome = one(behind(10.0), method)
    assert saved(outcome).standstill == pytest.approx([4.2], abs=0.1)
    assert outcome.seconds == pytest.approx([44.2], abs=0.1)
    assert outcome.io == pytest.approx([0.0], abs=1e-3)


@pytest.mark.parametrize("method", METHODS)
def test_behind_training_the_next_one_waits_for_the_one_before(method: str) -> None:
    outcome = one(behind(1.0), method)
    each = float(saved(outcome).nbytes.sum()) / 4 / 1000
    assert outcome.seconds == pytest.approx([1.0 + 4 * each], rel=0.03)
    assert saved(outcome).standstill == pytest.approx([4 * each - 3.0], rel=0.05)


def test_what_an_epoch_leaves_under_way_the_next_one_ends() -> None:
    """Steps of three seconds, two in an epoch: the save that begins with its last step is written in the next epoch; nothing is lost or written twice."""
    study = behind(3.0, count=2, epochs=3)
    first, second, third = epochs_of(study)
    whole = sum(int(saved(each).nbytes.sum()) for each in (first, second, third))
    each = checkpoint_bytes(study.workload.checkpoint, [0], 1)
    assert whole - 6 * each == 6 * 188
    assert saved(first).nbytes.sum() < 2 * each  # the second one is not written yet
    assert saved(first).standstill == pytest.approx([1.2], abs=0.1)
    assert saved(second).standstill == pytest.approx([2.4], abs=0.2)
    assert saved(third).standstill == pytest.approx([2.4 + 4.2], abs=0.2)


def test_a_drain_copies_on_behind_training() -> None:
    near = tier("lfs", visible_to="node", bandwidth=1e9)
    far = tier("gfs", bandwidth=1e9, write_bandwidth=1000)
    model = {**MODEL, "tier": "lfs", "drain": True}
    slow = saving(near, far, files=8, threads=0, compute=10.0, cache_rate=1.0, checkpoint=model)
    for method in METHODS:
        outcome = one(slow, method)
        ops, moved = saved(outcome).ops, saved(outcome).nbytes
        assert moved[1, 0, 0, 1] == moved[1, 0, 1, WRITE] == 4 * 4000  # read from the near tier, written to the far one
        assert ops[0, 0, 1].sum() == 0
        assert outcome.io == pytest.approx([0.0], abs=1e-3)
    exact = one(slow)
    assert exact.seconds == pytest.approx([80.0 + 4.0], abs=0.1)  # training ends when the last one is copied on
    fast = one(saving(near, far, files=8, threads=0, compute=1.0, cache_rate=1.0, checkpoint=model))
    assert fast.seconds == pytest.approx([2 * 1.0 + 4 * 4.0], abs=0.2)  # the next one waits for the one before


def test_reads_and_checkpoints_share_the_server() -> None:
    """Two readers, from the twentieth of 32 steps on beside one that writes: each of the three gets a third. Training ends when all is written."""
    gfs = tier("gfs", bandwidth=1000, discipline="sharing")
    model = {"model_parameters": 10_000, "steps_between_checkpoints": 20, "background": True}
    quiet, exact, quick = (
        one(saving(gfs, files=64, nodes=2, checkpoint=wanted), method)
        for wanted, method in (({}, "events"), (model, "events"), (model, "bound"))
    )
    assert quiet.seconds == pytest.approx([64.0] * 2, rel=0.02)
    assert exact.seconds == pytest.approx([104.2, 76.0], rel=0.03)
    assert quick.seconds.max() == pytest.approx(exact.seconds.max(), rel=0.05)
    assert quick.seconds[1] > quiet.seconds[1]


def test_a_checkpoint_behind_training_does_not_widen_the_interval_of_reads() -> None:
    """Nothing is random here: what is written beside reads is no reason why they could take a part of their time."""
    study = behind(1.0, nodes=2)
    simulation = Simulation.of(study)
    outcome = simulation.epoch(1, "events")
    assert outcome.io.max() > 0
    low, high = relative(study, simulation.stations, simulation.reading, outcome, (), simulation.saves)
    assert (low, high) == pytest.approx((1.0, 1.0), rel=0.05)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    tiers = [
        tier("lfs", visible_to="node", bandwidth=3e4, metadata_ops=200.0, latency=0.001),
        tier(
            "gfs",
            bandwidth=2e4,
            write_bandwidth=draw(st.sampled_from([None, 1e4])),
            metadata_ops=100.0,
            servers=3,
            stripe_count=draw(st.integers(1, 3)),
            stripe_size=512,
            discipline=draw(st.sampled_from(["fifo", "sharing"])),
            node_bandwidth=draw(st.sampled_from([None, 5e4])),
            open_bytes=draw(st.sampled_from([0, 100])),
            layout=draw(st.sampled_from(["turns", "hash"])),
        ),
    ]
    drain = draw(st.booleans())
    model = {
        "model_parameters": draw(st.sampled_from([50, 3000])),
        "mode": draw(st.sampled_from(["rank_zero", "all_ranks"])),
        "steps_between_checkpoints": draw(st.integers(0, 3)),
        "epochs_between_checkpoints": draw(st.integers(0, 2)),
        "background": draw(st.booleans()),
        "fsync": draw(st.booleans()),
        "tier": "lfs" if drain else draw(st.sampled_from(["lfs", "gfs"])),
        "drain": drain,
    }
    return saving(
        *tiers,
        epochs=draw(st.integers(1, 3)),
        sync=draw(st.sampled_from(["epoch", "step"])),
        checkpoint=model,
        files=draw(st.integers(8, 24)),
        nodes=draw(st.integers(1, 2)),
        ranks_per_node=draw(st.integers(1, 2)),
        batch=draw(st.integers(1, 3)),
        threads=draw(st.integers(0, 2)),
        compute=draw(st.sampled_from([0.0, 0.05])),
        cache_rate=draw(st.sampled_from([0.0, 0.5])),
        transfer=draw(st.sampled_from([600, 2**40])),
    )


@settings(max_examples=examples(80), deadline=None)
@given(studies())
def test_no_byte_is_lost_and_no_epoch_is_shorter_for_it(study: Study) -> None:
    """Whatever goes on behind training: all of it is written by the end, by both methods, and the stations are asked for as much."""
    plain = replace(study, workload=replace(study.workload, checkpoint=type(study.workload.checkpoint)()))
    exact, quick, without = epochs_of(study), epochs_of(study, "bound"), epochs_of(plain)
    if exact[0].saved is None:
        return
    ops, nbytes = (
        [sum(getattr(saved(each), name).sum(axis=1) for each in epochs) for epochs in (exact, quick)]
        for name in ("ops", "nbytes")
    )
    np.testing.assert_array_equal(ops[0], ops[1])
    np.testing.assert_array_equal(nbytes[0], nbytes[1])
    assert sum(each.load.ops.sum() for each in exact) == sum(each.load.ops.sum() for each in quick)
    asked = [sum(each.load.seconds for each in epochs) for epochs in (exact, quick)]
    assert asked[0] == pytest.approx(asked[1])
    for before, after in zip(without, exact, strict=True):
        assert (after.seconds >= saved(after).standstill - 1e-9).all()
        assert after.seconds.max() >= 0.999 * before.seconds.max() - 1e-9
        assert (after.seconds + 1e-9 >= after.wall_classes.sum(axis=(1, 2))).all()


def test_a_study_without_checkpoints_has_none() -> None:
    study = saving(tier("gfs", bandwidth=1000), checkpoint={})
    assert Simulation.of(study).saves is None
    assert one(study).saved is None


def test_very_many_pieces_are_simulated_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as they take, and as many as they are."""
    gfs = tier("gfs", bandwidth=1e6, write_bandwidth=5e4, write_ops=100.0, latency=0.001, servers=2)
    model = {"model_parameters": 100_000, "steps_between_checkpoints": 3, "mode": "all_ranks"}
    study = saving(gfs, files=12, nodes=2, ranks_per_node=2, transfer=600, checkpoint=model)
    fine = one(study)
    monkeypatch.setattr("tierscope.predict.saves.MOST_OPERATIONS", 40)
    coarse = one(study)
    np.testing.assert_array_equal(saved(fine).ops, saved(coarse).ops)
    np.testing.assert_array_equal(saved(fine).nbytes, saved(coarse).nbytes)
    assert coarse.seconds == pytest.approx(fine.seconds, rel=0.02)
    assert one(study, "bound").seconds.max() == pytest.approx(fine.seconds.max(), rel=0.03)
