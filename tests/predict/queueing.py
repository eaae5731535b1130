"""Small systems to simulate, the event engine as tests call it, and queueing theory's own answers."""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from tierscope.plan.plan import Plan
from tierscope.plan.reading import Reading, reading_of
from tierscope.plan.stations import Stations, stations_of, stripes
from tierscope.predict import events
from tierscope.predict.engine.inputs import Requests, StartInputs
from tierscope.predict.outcome import Load, Outcome
from tierscope.predict.schedule import Schedule, lay_out
from tierscope.spec.study import Dataset, Placement, Reader, Study, System, Tier, Train, Workload

FloatArray = npt.NDArray[np.float64]

RECORD = 1000  # bytes of a sample, where nothing else is said


def tier(name: str = "gfs", **keys: Any) -> Tier:
    return Tier(name=name, path=f"/{name}", **keys)


def study_of(
    *tiers: Tier,
    files: int = 24,
    per_file: int = 1,
    nodes: int = 1,
    ranks_per_node: int = 1,
    batch: int = 1,
    threads: int = 1,
    prefetch: int = 2,
    compute: float = 0.0,
    overhead: float = 0.0,
    cache_rate: float = 0.0,
    seed: int = 7,
    record: int = RECORD,
    transfer: int = 2**40,
    shuffle: str = "global",
) -> Study:
    return Study(
        study="queueing",
        seed=seed,
        workload=Workload(
            dataset=Dataset(
                format="raw", num_files_train=files, num_samples_per_file=per_file, record_length_bytes=record
            ),
            reader=Reader(
                batch_size=batch, read_threads=threads, prefetch_size=prefetch, transfer_size=transfer, shuffle=shuffle
            ),
            train=Train(epochs=1, computation_time=compute),
        ),
        system=System(nodes=nodes, ranks_per_node=ranks_per_node, process_overhead=overhead, tiers=tiers),
        placement=Placement(cache_rate=cache_rate),
    )


@dataclass(frozen=True, slots=True)
class Case:
    """An epoch to simulate, and when each rank begins."""

    study: Study
    stations: Stations
    reading: Reading
    schedule: Schedule
    starts: FloatArray

    @property
    def ranks(self) -> int:
        return self.study.system.ranks

    def node_of(self, rank: int) -> int:
        return rank // self.study.system.ranks_per_node


def case_of(study: Study, *, apart: int | None = None, pieces: Sequence[tuple[int, int]] | None = None) -> Case:
    """The study's first epoch. `apart`: a seed to start ranks at different times and to let no two stations be alike.

    Nothing happens at the same time then, but for what one rank does itself.
    """
    reading = reading_of(study) if pieces is None else Reading(tuple(pieces), sum(nbytes for _, nbytes in pieces))
    stations = stations_of(study.system, study.seed)
    starts = np.zeros(study.system.ranks)
    if apart is not None:
        rng = np.random.default_rng(apart)
        starts = rng.uniform(0, 2, study.system.ranks)
        factors = rng.uniform(0.7, 1.4, (2, stations.count))
        stations = replace(stations, per_op=stations.per_op * factors[0], per_byte=stations.per_byte * factors[1])
    return Case(study, stations, reading, lay_out(study, Plan.of(study, reading.file_bytes), 1), starts)


def by_events(case: Case, *, barrier: bool = False, seed: int = 0) -> Outcome:
    """The epoch by events; its ranks begin when the case says."""
    run_epoch = events.engine()

    def staggered(requests: Requests, start: StartInputs, *others: Any) -> Any:
        assert not start.seconds.any()
        return run_epoch(requests, start._replace(seconds=case.starts), *others)

    with mock.patch.object(events, "engine", return_value=staggered):
        options = events.EventOptions(step_barrier=barrier, seed=seed)
        return events.simulate(case.study, case.stations, case.reading, case.schedule, options)


def visits(case: Case, rank: int, sample: int) -> list[list[tuple[int, float]]]:
    """The operations of a sample, the open first, if there is one: (station, bytes) of all that each passes."""
    tier_number, file = int(case.schedule.tiers[rank, sample]), int(case.schedule.files[rank, sample])
    queues, node = case.stations.tiers[tier_number], case.node_of(rank)
    found: list[list[tuple[int, float]]] = []
    if case.schedule.opens[rank, sample]:
        found.append([(queues.metadata_of(node, file), 0.0)])
    for shift, offset, nbytes, share in _reads(case, rank, sample):
        parts = stripes(offset, nbytes, queues.stripe_count, queues.stripe_size)
        on_servers = [
            (queues.server_of(node, file, (number + shift) % queues.stripe_count), part * share)
            for number, part in enumerate(parts)
            if part
        ]
        found.append([*on_servers, *((link, nbytes * share) for link in queues.links_of(node))])
    return [[(station, nbytes) for station, nbytes in operation if station >= 0] for operation in found]


def _reads(case: Case, rank: int, sample: int) -> list[tuple[int, int, int, float]]:
    """Of a sample: (stripe that it begins on, offset and bytes that decide how it is split, share of them that is read)."""
    queues = case.stations.tiers[int(case.schedule.tiers[rank, sample])]
    inside = case.schedule.inside
    if case.reading.buffer is None:
        begin = case.reading.pieces[0][0]
        behind = begin + (0 if inside is None else int(inside[rank, sample])) * case.reading.stride
        shift = (
            behind // queues.stripe_size - begin // queues.stripe_size
        )  # split as the first sample is, from there on
        return [(shift, offset, nbytes, 1.0) for offset, nbytes in case.reading.pieces]
    request, nbytes = case.reading.buffer.request_bytes, case.reading.buffer.sample_bytes
    first, stop = _run(case, rank, sample)
    place = 0 if inside is None else int(inside[rank, first]) * nbytes
    behind, whole = (sample - first) * nbytes, (stop - first) * nbytes
    return [
        ((place + at) // queues.stripe_size % queues.stripe_count, 0, request, min(request, whole - at) / request)
        for at in range(0, whole, request)
        if behind <= at < behind + nbytes  # else it was read for an earlier one, or is for a later one
    ]


def _run(case: Case, rank: int, sample: int) -> tuple[int, int]:
    """The first of the samples that are read with this one, from one file by one thread in one batch, and the one behind the last."""
    reader, samples = case.study.workload.reader, case.schedule.shape[1]
    batch = sample // reader.batch_size * reader.batch_size
    size = min(reader.batch_size, samples - batch)
    per_thread = -(-size // max(1, reader.read_threads))
    start = batch + (sample - batch) // per_thread * per_thread
    stop = min(start + per_thread, batch + size)
    files, tiers = case.schedule.files[rank], case.schedule.tiers[rank]
    same = [other for other in range(start, stop) if files[other] == files[sample] and tiers[other] == tiers[sample]]
    return same[0], same[-1] + 1


def work(case: Case, station: int, nbytes: float) -> float:
    """Seconds that an operation takes of a station that does not vary, were all its time ours."""
    return float(case.stations.per_op[station] + nbytes * case.stations.per_byte[station])


def asked(case: Case) -> Load:
    """What the schedule asks of every station, visit by visit."""
    seconds, ops = np.zeros(case.stations.count), np.zeros(case.stations.count, np.int64)
    for rank, sample in np.ndindex(case.schedule.shape):
        for operation in visits(case, rank, sample):
            for station, nbytes in operation:
                seconds[station] += work(case, station, nbytes)
                ops[station] += 1
    return Load(seconds=seconds, ops=ops)


def closed_throughput(customers: int, service: float, think: float) -> float:
    """Services per second of one station with exponential services and customers that think in between: exact mean value analysis.

    The think time's distribution does not matter, nor the service's where the station serves all at once.
    """
    throughput = queue = 0.0
    for present in range(1, customers + 1):
        response = service * (1 + queue)
        throughput = present / (response + think)
        queue = throughput * response
    return throughput


def walked_throughput(customers: int, services: Sequence[float], think: float) -> float:
    """The same of a station that serves one after another, from these very services."""
    arrivals = [0.0] * customers  # equal times are a heap
    free = cycles = 0.0
    for service in services:
        arrived = heapq.heappop(arrivals)
        free = max(free, arrived) + service
        cycles += free - arrived + think
        heapq.heappush(arrivals, free + think)
    return customers * len(services) / cycles


@st.composite
def systems(draw: st.DrawFn) -> Case:
    """Small ones of any kind."""

    def any_tier(name: str) -> Tier:
        def maybe(value: float) -> Any:
            return draw(st.sampled_from([None, value]))

        return tier(
            name,
            visible_to=draw(st.sampled_from(["node", "global"])),
            device_shared_by=draw(st.sampled_from([None, 1, 2])),
            gateway_shared_by=draw(st.sampled_from([None, 1, 3])),
            metadata_servers=draw(st.integers(1, 2)),
            metadata_ops=maybe(30.0),
            metadata_variation=draw(st.sampled_from([0.0, 1.0])),
            servers=draw(st.integers(1, 4)),
            read_ops=maybe(50.0),
            bandwidth=maybe(2e4),
            stripe_count=draw(st.integers(1, 3)),
            stripe_size=512,
            node_bandwidth=maybe(3e4),
            device_bandwidth=maybe(4e4),
            gateway_bandwidth=maybe(5e4),
            latency=draw(st.sampled_from([0.001, 0.02])),
            variation=draw(st.sampled_from([0.0, 0.2])),
            service_variation=draw(st.sampled_from([0.0, 0.7])),
            background=draw(st.sampled_from([0.0, 0.3])),
            discipline=draw(st.sampled_from(["fifo", "sharing"])),
        )

    nodes, per_node = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    study = study_of(
        any_tier("lfs"),
        any_tier("gfs"),
        files=nodes * per_node * draw(st.integers(1, 8)),
        per_file=draw(st.integers(1, 3)),
        nodes=nodes,
        ranks_per_node=per_node,
        batch=draw(st.integers(1, 5)),
        threads=draw(st.integers(0, 3)),
        prefetch=draw(st.integers(0, 2)),
        compute=draw(st.sampled_from([0.0, 0.05])),
        overhead=draw(st.sampled_from([0.0, 0.01])),
        cache_rate=draw(st.sampled_from([0.0, 0.3, 1.0])),
        seed=draw(st.integers(0, 100)),
        record=draw(st.sampled_from([400, 1900])),
        shuffle=draw(st.sampled_from(["global", "local", "off"])),
    )
    return case_of(study)
