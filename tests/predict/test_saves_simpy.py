"""Checkpoints by the event engine beside the same program in SimPy: ranks that read inline, compute, and save, by themselves or in a process of its own."""

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.queueing import Case, case_of, tier, visits, work
from tests.predict.saving import saved, saving
from tierscope.plan.checkpoints import (
    leads,
    manifest_document,
    meets,
    parts_of,
    ranks_together,
    receipt_document,
    tier_of,
)
from tierscope.plan.stations import stripes
from tierscope.predict import events
from tierscope.predict.saves import save_plan, when
from tierscope.spec.study import Study

pytest.importorskip("numba", reason="the event engine needs numba")
simpy = pytest.importorskip("simpy", reason="the other simulator is not installed")
from tests.predict.test_engine_simpy import AllAtOnce, Barrier, OneAfterAnother  # noqa: E402

Process = Generator[Any, Any, None]
MANIFEST = 0x5BCA5D5F  # any server; there is one


class Saver:
    """A rank's checkpoints: `write` its files, then `commit` with all others."""

    def __init__(self, epoch: "Epoch", rank: int) -> None:
        self._epoch, self._rank = epoch, rank
        study = epoch.case.study
        self._study, self._wanted = study, study.workload.checkpoint
        self._parts = parts_of(self._wanted, rank, study.system.ranks)
        self._together, self._leads = meets(study), leads(study, rank)
        self.takes_part = bool(self._parts) or self._together
        self.busy = np.zeros(4)

    def write(self) -> Process:
        for part in self._parts:
            yield from self._file(part.number, part.nbytes)
        if self._together and not self._leads:
            sums = {part.number: 0 for part in self._parts}
            yield from self._file(self._rank, len(receipt_document(1, self._parts, sums)))

    def commit(self) -> Process:
        if self._together:
            yield self._epoch.meeting.wait(self._rank)
        if self._leads:
            sums = {part.number: 0 for part in self._parts}
            ranks = ranks_together(self._study, self._epoch.case.node_of(self._rank))
            yield from self._file(MANIFEST, len(manifest_document(self._study, ranks, 1, self._parts, sums)))
            for _ in range(2 if self._wanted.fsync else 0):
                yield from self._timed(3, self._epoch.env.timeout(self._queues.latency))
        if self._together:
            yield self._epoch.meeting.wait(self._rank)

    @property
    def _queues(self) -> Any:
        return self._epoch.case.stations.tiers[tier_of(self._study)]

    def _timed(self, kind: int, event: Any) -> Process:
        begun = self._epoch.env.now
        yield event
        self.busy[kind] += self._epoch.env.now - begun

    def _file(self, file: int, nbytes: int) -> Process:
        env, queues, node = self._epoch.env, self._queues, self._epoch.case.node_of(self._rank)
        yield from self._timed(0, env.process(self._at(list(self._opening(file, node)), queues.metadata_latency)))
        piece = min(self._study.workload.reader.transfer_size, 8 << 20)
        for offset in range(0, nbytes, piece):
            where = list(self._writing(file, node, offset, min(piece, nbytes - offset)))
            yield from self._timed(2, env.process(self._at(where, queues.latency)))
        if self._wanted.fsync:
            yield from self._timed(3, env.timeout(queues.latency))

    def _opening(self, file: int, node: int) -> Iterator[tuple[int, float]]:
        if (station := self._queues.metadata_of(node, file)) >= 0:
            yield station, float(self._epoch.case.stations.per_op[station])

    def _writing(self, file: int, node: int, offset: int, nbytes: int) -> Iterator[tuple[int, float]]:
        queues, stations = self._queues, self._epoch.case.stations
        parts = stripes(offset, nbytes, queues.stripe_count, queues.stripe_size)
        places = [(queues.server_of(node, file, number), part) for number, part in enumerate(parts) if part]
        for station, size in (*places, *((link, nbytes) for link in queues.links_of(node))):
            if station >= 0:
                yield station, float(stations.write_per_op[station] + size * stations.write_per_byte[station])

    def _at(self, where: list[tuple[int, float]], latency: float) -> Process:
        env = self._epoch.env
        yield env.all_of([env.process(self._epoch.stations[station].serve(seconds)) for station, seconds in where])
        yield env.timeout(latency)


class Epoch:
    """Of ranks that read inline."""

    def __init__(self, case: Case) -> None:
        self.env, self.case = simpy.Environment(), case
        stations = case.stations
        self.stations = [
            (AllAtOnce if stations.sharing[number] else OneAfterAnother)(self.env, 1 - stations.background[number])
            for number in range(stations.count)
        ]
        self.meeting, self.barrier = Barrier(self.env, case.ranks), Barrier(self.env, case.ranks)
        self.savers = [Saver(self, rank) for rank in range(case.ranks)]
        self.seconds, self.standstill = np.zeros(case.ranks), np.zeros(case.ranks)

    def run(self) -> "Epoch":
        ends = [self.env.process(self._rank(rank)) for rank in range(self.case.ranks)]
        self.env.run(self.env.all_of(ends))
        return self

    def _rank(self, rank: int) -> Process:
        workload, saver, env = self.case.study.workload, self.savers[rank], self.env
        dates = set(when(self.case.study, 1, self.case.schedule.shape[1]).steps)
        under_way: Any = None
        yield env.timeout(self.case.starts[rank])
        begun = env.now
        for sample in range(self.case.schedule.shape[1]):
            for place, operation in enumerate(visits(self.case, rank, sample)):
                services = [
                    env.process(self.stations[station].serve(work(self.case, station, nbytes)))
                    for station, nbytes in operation
                ]
                yield env.all_of(services)
                queues = self.case.stations.tiers[int(self.case.schedule.tiers[rank, sample])]
                yield env.timeout(queues.latency if place else queues.metadata_latency)
            yield env.timeout(workload.train.computation_time)
            if workload.train.sync == "step":
                yield self.barrier.wait(rank)
            if sample + 1 in dates and saver.takes_part:
                stood = env.now
                if under_way is not None:
                    yield under_way
                    if meets(self.case.study):
                        yield from saver.commit()
                if workload.checkpoint.background:
                    under_way = env.process(self._behind(saver))
                else:
                    yield from saver.write()
                    yield from saver.commit()
                self.standstill[rank] += env.now - stood
        stood = env.now
        if under_way is not None:
            yield under_way
            if meets(self.case.study):
                yield from saver.commit()
        self.standstill[rank] += env.now - stood
        self.seconds[rank] = env.now - begun

    def _behind(self, saver: Saver) -> Process:
        yield from saver.write()
        if not meets(self.case.study):
            yield from saver.commit()


def by_events(case: Case) -> Any:
    study = case.study
    plan = save_plan(study, case.stations, 1)
    assert plan is not None
    saves = events.Saving(plan, when(study, 1, case.schedule.shape[1]))
    real = events.engine()

    def staggered(requests: Any, start: Any, *others: Any) -> Any:
        return real(requests, start._replace(seconds=case.starts), *others)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(events, "engine", lambda: staggered)
        options = events.EventOptions(step_barrier=study.workload.train.sync == "step")
        return events.simulate(study, case.stations, case.reading, case.schedule, options, saves)


@st.composite
def studies(draw: st.DrawFn) -> Study:
    def maybe(*values: Any) -> Any:
        return draw(st.sampled_from([None, *values]))

    gfs = tier(
        metadata_ops=draw(st.sampled_from([7.0, 40.0])),
        metadata_latency=draw(st.sampled_from([0.0, 0.017])),
        read_ops=maybe(29.0),
        bandwidth=9_000.0,
        write_ops=maybe(17.0),
        write_bandwidth=maybe(4_000.0, 30_000.0),
        stripe_size=512,
        node_bandwidth=maybe(6_000.0),
        latency=draw(st.sampled_from([0.0, 0.029])),
        background=draw(st.sampled_from([0.0, 0.2])),
        discipline=draw(st.sampled_from(["fifo", "sharing"])),
    )
    behind = draw(st.booleans())
    lfs = tier(
        "lfs", visible_to="node", bandwidth=draw(st.sampled_from([900.0, 8_000.0])), metadata_ops=11.0, latency=0.01
    )
    mode = draw(st.sampled_from(["rank_zero", "all_ranks"]))
    model = {
        "model_parameters": draw(st.sampled_from([100, 1500])),
        "optimizer": "adam",
        "mode": mode,
        "zero_stage": 0,
        "steps_between_checkpoints": draw(st.integers(1, 3)),
        "background": behind,
        "tier": "lfs"
        if behind
        else "gfs",  # who writes behind training and who reads begin at the same instant: either may be first
        "fsync": draw(st.booleans()),
    }
    nodes = draw(st.integers(1, 3))
    return saving(
        lfs,
        gfs,
        checkpoint=model,
        # behind a barrier one would write and the others read at the same instant: either may be first
        sync="epoch" if mode == "rank_zero" else draw(st.sampled_from(["epoch", "step"])),
        files=nodes * draw(st.integers(2, 5)),
        nodes=nodes,
        threads=0,
        compute=draw(st.sampled_from([0.0, 0.31])),
        record=draw(st.sampled_from([300, 1000])),
        transfer=draw(st.sampled_from([600, 2**40])),
        seed=draw(st.integers(0, 99)),
    )


@settings(max_examples=examples(60), deadline=None)
@given(studies(), st.integers(0, 1000))
def test_the_same_times_as_another_simulator(study: Study, apart: int) -> None:
    case = case_of(study, apart=apart)
    ours, theirs = by_events(case), Epoch(case).run()
    np.testing.assert_allclose(ours.seconds, theirs.seconds, rtol=1e-9)
    np.testing.assert_allclose(saved(ours).standstill, theirs.standstill, rtol=1e-9, atol=1e-9)
    busy = saved(ours).busy[0, :, tier_of(study)]
    np.testing.assert_allclose(busy, [saver.busy for saver in theirs.savers], rtol=1e-9, atol=1e-9)
