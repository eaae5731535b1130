"""The event engine beside the same system in SimPy, written as ordinary processes: threads, queues, a consumer."""

import itertools
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.predict.queueing import Case, FloatArray, by_events, case_of, study_of, tier, visits, work
from tierscope.predict.outcome import Outcome

pytest.importorskip("numba", reason="the event engine needs numba")
simpy = pytest.importorskip("simpy", reason="the other simulator is not installed")

EXACT = 1e-9
Process = Generator[Any, Any, None]
OPEN, READ = 0, 1


class OneAfterAnother:
    def __init__(self, env: Any, speed: float) -> None:
        self._env, self._speed = env, speed
        self._resource = simpy.Resource(env, capacity=1)

    def serve(self, seconds: float) -> Process:
        with self._resource.request() as turn:
            yield turn
            yield self._env.timeout(seconds / self._speed)


class AllAtOnce:
    """Processor sharing: what each one still needs shrinks, the slower the more are there."""

    def __init__(self, env: Any, speed: float) -> None:
        self._env, self._speed = env, speed
        self._needs: dict[Any, float] = {}
        self._since = 0.0
        self._changed = env.event()
        env.process(self._work())

    def serve(self, seconds: float) -> Process:
        self._progress()
        done = self._env.event()
        self._needs[done] = seconds
        self._changed.succeed()
        self._changed = self._env.event()
        yield done

    def _progress(self) -> None:
        if self._needs:
            each = (self._env.now - self._since) * self._speed / len(self._needs)
            self._needs = {done: need - each for done, need in self._needs.items()}
        self._since = self._env.now

    def _work(self) -> Process:
        while True:
            if not self._needs:
                yield self._changed
                continue
            least = min(self._needs, key=self._needs.__getitem__)
            over = self._env.timeout(max(0.0, self._needs[least]) * len(self._needs) / self._speed)
            yield over | self._changed
            self._progress()
            if over.processed:
                del self._needs[least]
                least.succeed()


@dataclass(slots=True)
class Seen:
    """What one rank did: (begin, end, tier, kind) of its operations, and its times."""

    operations: list[tuple[float, float, int, int]] = field(default_factory=list)
    seconds: float = 0.0
    stalls: list[float] = field(default_factory=list)
    parts: dict[int, list[tuple[float, float]]] = field(default_factory=dict)  # batch → (begin, end)


class Barrier:
    """All ranks wait for the last one, and go on in their order."""

    def __init__(self, env: Any, ranks: int) -> None:
        self._env, self._ranks = env, ranks
        self._waiting: dict[int, Any] = {}

    def wait(self, rank: int) -> Any:
        event = self._waiting[rank] = self._env.event()
        if len(self._waiting) == self._ranks:
            for _, waiting in sorted(self._waiting.items()):
                waiting.succeed()
            self._waiting = {}
        return event


class Epoch:
    def __init__(self, case: Case, barrier: bool) -> None:
        self.env = simpy.Environment()
        self.case = case
        stations = case.stations
        self.stations = [
            (AllAtOnce if stations.sharing[number] else OneAfterAnother)(self.env, 1 - stations.background[number])
            for number in range(stations.count)
        ]
        self.barrier = Barrier(self.env, case.ranks) if barrier else None
        self.seen = [Seen() for _ in range(case.ranks)]

    def run(self) -> list[Seen]:
        for rank in range(self.case.ranks):
            self.env.process(self._rank(rank))
        self.env.run()
        return self.seen

    def _rank(self, rank: int) -> Process:
        """The program's loop: memory for prefetch + 1 batches, each given back after its step."""
        reader = self.case.study.workload.reader
        samples, size = self.case.schedule.shape[1], reader.batch_size
        batches = [range(start, min(start + size, samples)) for start in range(0, samples, size)]
        yield self.env.timeout(self.case.starts[rank])
        todo, done = simpy.Store(self.env), simpy.Store(self.env)
        for _ in range(reader.read_threads):
            self.env.process(self._thread(rank, todo, done))
        seen, free, launched, left = self.seen[rank], reader.prefetch_size + 1, 0, {}
        begun = self.env.now
        for step in range(len(batches)):
            asked = self.env.now
            while free and launched < len(batches):
                batch = batches[launched]
                share = -(-len(batch) // reader.read_threads)
                parts = [batch[start : start + share] for start in range(0, len(batch), share)]
                for part in parts:
                    todo.put((launched, part))
                left[launched] = len(parts)
                launched, free = launched + 1, free - 1
            while left[step]:
                left[(yield done.get())] -= 1
            seen.stalls.append(self.env.now - asked)
            yield self.env.timeout(self.case.study.workload.train.computation_time)
            if self.barrier is not None:
                yield self.barrier.wait(rank)
            free += 1
        seen.seconds = self.env.now - begun

    def _thread(self, rank: int, todo: Any, done: Any) -> Process:
        while True:
            batch, part = yield todo.get()
            begun = self.env.now
            for sample in part:
                yield from self._sample(rank, sample)
                yield self.env.timeout(self.case.study.system.process_overhead)
            self.seen[rank].parts.setdefault(batch, []).append((begun, self.env.now))
            done.put(batch)

    def _sample(self, rank: int, sample: int) -> Process:
        number = int(self.case.schedule.tiers[rank, sample])
        queues = self.case.stations.tiers[number]
        operations = visits(self.case, rank, sample)
        opens = int(self.case.schedule.opens[rank, sample])
        for place, operation in enumerate(operations):
            begun = self.env.now
            services = [
                self.env.process(self.stations[station].serve(work(self.case, station, nbytes)))
                for station, nbytes in operation
            ]
            yield self.env.all_of(services)
            yield self.env.timeout(queues.metadata_latency if place < opens else queues.latency)
            kind = OPEN if place < opens else READ
            self.seen[rank].operations.append((begun, self.env.now, number, kind))


def busy_of(seen: Seen, tiers: int) -> FloatArray:
    busy = np.zeros((tiers, 3))
    for begin, end, number, kind in seen.operations:
        busy[number, kind] += end - begin
    return busy


def wall_of(seen: Seen, tiers: int) -> FloatArray:
    """Every instant is shared by the operations then active."""
    wall = np.zeros((tiers, 3))
    times = sorted({time for begin, end, _, _ in seen.operations for time in (begin, end)})
    for start, stop in itertools.pairwise(times):
        active = [(number, kind) for begin, end, number, kind in seen.operations if begin <= start and end >= stop]
        for cell in active:
            wall[cell] += (stop - start) / len(active)
    return wall


def agree(case: Case, barrier: bool = False) -> Outcome:
    """Both give the same times."""
    ours, theirs = by_events(case, barrier=barrier), Epoch(case, barrier).run()
    tiers = len(case.stations.tiers)

    def same(mine: Any, other: Any) -> None:
        np.testing.assert_allclose(mine, other, rtol=EXACT, atol=EXACT)

    same(ours.seconds, [seen.seconds for seen in theirs])
    same(ours.stall, [sum(seen.stalls) for seen in theirs])
    same(ours.busy, [busy_of(seen, tiers) for seen in theirs])
    same(ours.wall, [wall_of(seen, tiers) for seen in theirs])
    assert ours.steps is not None
    same(ours.steps[:, :, 1], [seen.stalls for seen in theirs])
    read = [
        [max(end for _, end in parts) - min(begin for begin, _ in parts) for _, parts in sorted(seen.parts.items())]
        for seen in theirs
    ]
    same(ours.steps[:, :, 0], read)
    same(ours.steps[:, :, 2], case.study.workload.train.computation_time)
    counted = np.zeros_like(ours.ops)
    for rank, seen in enumerate(theirs):
        for _, _, number, kind in seen.operations:
            counted[rank, number, kind] += 1
    np.testing.assert_array_equal(ours.ops, counted)
    return ours


GFS = tier(metadata_ops=11, metadata_latency=0.013, bandwidth=9_000, servers=3, latency=0.031)
LFS = tier("lfs", visible_to="node", device_shared_by=2, metadata_ops=23, read_ops=17, bandwidth=31_000, latency=0.007)
STRIPED = tier(metadata_ops=40, servers=5, read_ops=29, bandwidth=7_000, stripe_count=3, stripe_size=512)
LINKED = tier(
    metadata_ops=37,
    bandwidth=40_000,
    servers=4,
    node_bandwidth=9_100,
    device_shared_by=4,
    device_bandwidth=23_000,
    gateway_shared_by=3,
    gateway_bandwidth=17_000,
    latency=0.011,
)
MANY: dict[str, Any] = {"nodes": 5, "ranks_per_node": 2, "files": 110}
CASES: dict[str, Any] = {
    "one rank": case_of(study_of(GFS)),
    "one rank on a tier without queues": case_of(study_of(tier(latency=0.1), threads=2, batch=4)),
    "several ranks": case_of(study_of(GFS, **MANY), apart=1),
    "two tiers, a device for two nodes": case_of(study_of(LFS, GFS, cache_rate=0.5, **MANY), apart=2),
    "several metadata servers": case_of(
        study_of(tier(metadata_ops=3, metadata_servers=3, latency=0.1), **MANY), apart=3
    ),
    "stripes": case_of(study_of(STRIPED, record=4000, **MANY), apart=4),
    "stripes of which a file has few": case_of(study_of(STRIPED, record=700, **MANY), apart=5),
    "links": case_of(study_of(LINKED, **MANY), apart=6),
    "several reads of a sample": case_of(
        study_of(LFS, LINKED, cache_rate=0.3, record=5000, transfer=2048, **MANY), apart=7
    ),
    "samples share a file": case_of(
        study_of(LFS, GFS, per_file=6, batch=7, cache_rate=0.4, shuffle="off", nodes=3, files=25), apart=8
    ),
    "samples share a file, threads": case_of(
        study_of(LFS, GFS, per_file=6, batch=7, threads=2, cache_rate=0.4, shuffle="off", nodes=3, files=25), apart=9
    ),
    "overhead": case_of(study_of(GFS, overhead=0.09, batch=3, **MANY), apart=10),
    "all at once": case_of(
        study_of(tier(metadata_ops=5, read_ops=13, bandwidth=20_000, servers=2, discipline="sharing"), **MANY), apart=11
    ),
    "all at once, stripes and links": case_of(
        study_of(
            tier(
                metadata_ops=19,
                read_ops=30,
                servers=3,
                stripe_count=2,
                stripe_size=512,
                node_bandwidth=7_000,
                discipline="sharing",
            ),
            threads=2,
            batch=4,
            **MANY,
        ),
        apart=12,
    ),
    "others take a share": case_of(study_of(tier(metadata_ops=9, bandwidth=5_000, background=0.3), **MANY), apart=13),
    "others take a share, all at once": case_of(
        study_of(tier(metadata_ops=9, bandwidth=5_000, background=0.3, discipline="sharing"), **MANY), apart=14
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_part_of_a_system(name: str) -> None:
    assert agree(CASES[name]).seconds.min() > 0


@pytest.mark.parametrize("compute", [0.0, 0.2, 1.1])
@pytest.mark.parametrize("prefetch", [0, 1, 2])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_that_read_ahead_and_a_last_batch_that_is_smaller(threads: int, prefetch: int, compute: float) -> None:
    study = study_of(
        LFS, GFS, cache_rate=0.4, threads=threads, prefetch=prefetch, compute=compute, batch=5, overhead=0.01, **MANY
    )
    assert case_of(study).schedule.shape == (10, 11)
    agree(case_of(study, apart=100 + threads))


@pytest.mark.parametrize("compute", [0.0, 0.3])
@pytest.mark.parametrize(("threads", "prefetch"), [(1, 0), (1, 2), (3, 0), (3, 1)])
def test_ranks_that_wait_for_one_another_after_each_step(threads: int, prefetch: int, compute: float) -> None:
    study = study_of(LFS, GFS, cache_rate=0.4, threads=threads, prefetch=prefetch, compute=compute, batch=4, **MANY)
    case = case_of(study, apart=200 + threads)
    together, alone = agree(case, barrier=True), by_events(case)
    assert (together.seconds + case.starts).max() >= (alone.seconds + case.starts).max()
    ended = together.seconds + case.starts
    np.testing.assert_allclose(ended, ended[0], rtol=EXACT)


@st.composite
def tiers(draw: st.DrawFn, name: str) -> Any:
    def maybe(*values: Any) -> Any:
        return draw(st.sampled_from([None, *values]))

    return tier(
        name,
        visible_to=draw(st.sampled_from(["node", "global"])),
        device_shared_by=maybe(1, 2, 3),
        gateway_shared_by=maybe(1, 2),
        metadata_servers=draw(st.integers(1, 3)),
        metadata_ops=maybe(3.0, 20.0),
        metadata_latency=draw(st.sampled_from([0.0, 0.017])),
        servers=draw(st.integers(1, 4)),
        read_ops=maybe(7.0, 41.0),
        bandwidth=maybe(3_000.0, 50_000.0),
        stripe_count=draw(st.integers(1, 4)),
        stripe_size=draw(st.sampled_from([512, 1024])),
        node_bandwidth=maybe(6_000.0),
        device_bandwidth=maybe(11_000.0),
        gateway_bandwidth=maybe(9_000.0),
        latency=draw(st.sampled_from([0.0, 0.029])),
        background=draw(st.sampled_from([0.0, 0.2])),
        discipline=draw(st.sampled_from(["fifo", "fifo", "sharing"])),
    )


@st.composite
def cases(draw: st.DrawFn) -> Case:
    nodes, per_node = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    per_file = draw(st.integers(1, 4))
    samples = draw(st.integers(1, 9)) * nodes * per_node
    study = study_of(
        *(draw(tiers(name)) for name in ["lfs", "gfs"][draw(st.integers(0, 1)) :]),
        files=-(-samples // per_file),
        per_file=per_file,
        nodes=nodes,
        ranks_per_node=per_node,
        batch=draw(st.integers(1, 5)),
        threads=draw(st.integers(1, 3)),
        prefetch=draw(st.integers(0, 3)),
        compute=draw(st.sampled_from([0.0, 0.11, 0.9])),
        overhead=draw(st.sampled_from([0.0, 0.019])),
        cache_rate=draw(st.sampled_from([0.0, 0.5, 1.0])),
        seed=draw(st.integers(0, 1000)),
        record=draw(st.sampled_from([300, 1000, 2600])),
        transfer=draw(st.sampled_from([600, 2**40])),
        shuffle=draw(st.sampled_from(["global", "local", "off"])),
    )
    return case_of(study, apart=draw(st.integers(0, 1000)))


@given(cases(), st.booleans())
@settings(max_examples=examples(100))
def test_small_systems_of_any_kind(case: Case, barrier: bool) -> None:
    agree(case, barrier)
