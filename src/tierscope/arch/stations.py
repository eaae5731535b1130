"""How long a node's share of the data takes to read, by the stations of a system's tiers.

The bound of `predict/bound.py` on counts that are drawn instead of laid out, so an epoch of any size takes milliseconds. Assumptions: one
process for each accelerator, with so many reading threads; reads of 4 MiB; a packed file is read from start to end by one process.
"""

from collections.abc import Sequence
from dataclasses import replace

from tierscope.arch.machine import Machine
from tierscope.arch.requirements import Requirements
from tierscope.arch.scaling import Scaled, with_stations
from tierscope.spec.study import Dataset, Placement, Reader, Study, System, Tier, Train, Workload

TRANSFER_BYTES = 4 * 2**20
_MOST_THREADS = 8
_MOST_RANKS = 16_384  # beyond that it would take seconds
_MOST_PIECES = 1024  # of one file: larger ones are read in larger pieces
_SEED = 42

_Times = tuple[float | None, float | None]  # of the far tier and of the near one


def reading_threads(machine: Machine) -> int:
    """Of each process: the node's cores divided by its accelerators, but not more than loaders usually start."""
    return max(1, min(_MOST_THREADS, (machine.cores or _MOST_THREADS) // machine.accelerators))


def with_station_times(requirements: Requirements, system: System) -> Requirements:
    """Every point of the scaling with what its storage needs; unchanged where the tiers have no rates."""
    times = [_point_times(requirements, system, point) for point in requirements.scaling]
    return replace(
        requirements,
        scaling=_settled(requirements, requirements.scaling, times),
        fast=_settled(requirements, requirements.fast, times),
        slow=_settled(requirements, requirements.slow, times),
    )


def with_stations_of(requirements: Requirements, system: System, points: Sequence[Scaled]) -> tuple[Scaled, ...]:
    """Other points of the same training, on the requirements' machine."""
    return _settled(requirements, points, [_point_times(requirements, system, point) for point in points])


def _settled(requirements: Requirements, points: Sequence[Scaled], times: Sequence[_Times]) -> tuple[Scaled, ...]:
    return tuple(
        point if far is None else with_stations(point, requirements.machine, far, near)
        for point, (far, near) in zip(points, times, strict=True)
    )


def _point_times(requirements: Requirements, system: System, point: Scaled) -> _Times:
    """They do not depend on how long a step takes."""
    if point.nodes * requirements.machine.accelerators > _MOST_RANKS:
        return None, None
    far = _seconds(requirements, system, point, len(system.tiers) - 1)
    near = None
    if point.fits_near and requirements.machine.near is not None:
        number = next(place for place, tier in enumerate(system.tiers) if tier.name == requirements.machine.near.name)
        near = _seconds(requirements, system, point, number)
    return far, near


def _seconds(requirements: Requirements, system: System, point: Scaled, tier: int) -> float | None:
    """Of an epoch that reads everything from one tier; None: nothing says how fast it is, or it has more servers than are modelled."""
    only = system.tiers[tier]
    if not _has_rates(only):
        return None
    from tierscope.plan.plan import Plan  # noqa: PLC0415  (NumPy)
    from tierscope.plan.reading import Reading  # noqa: PLC0415
    from tierscope.plan.stations import MOST_STATIONS, count_servers, stations_of  # noqa: PLC0415
    from tierscope.predict.bound import simulate_drawn  # noqa: PLC0415

    ranks = point.nodes * requirements.machine.accelerators
    samples = max(ranks, round(point.samples_per_node * point.nodes))
    together = min(
        requirements.data.samples_per_file, samples // ranks
    )  # of a file, or of the part of it that one process reads
    nbytes = max(1, round(requirements.data.file_bytes / requirements.wish.compression.ratio * together))
    transfer = max(TRANSFER_BYTES, -(-nbytes // _MOST_PIECES))
    study = Study(
        study="require",
        seed=_SEED,
        workload=Workload(
            dataset=Dataset(format="raw", num_files_train=max(ranks, samples // together), record_length_bytes=nbytes),
            reader=Reader(read_threads=reading_threads(requirements.machine), transfer_size=transfer),
            train=Train(epochs=1),
        ),
        system=replace(system, nodes=point.nodes, ranks_per_node=requirements.machine.accelerators, tiers=(only,)),
        placement=Placement(),
    )
    if count_servers(study.system) > MOST_STATIONS:
        return None
    pieces = tuple((start, min(transfer, nbytes - start)) for start in range(0, nbytes, transfer))
    plan = Plan.of(study, nbytes)
    outcome = simulate_drawn(study, stations_of(study.system, _SEED), Reading(pieces, nbytes), plan, _SEED)
    whole = samples / max(1, plan.order.samples_per_rank * ranks * together)  # what did not divide over the processes
    return float(outcome.seconds.max()) * max(1.0, whole)


def _has_rates(tier: Tier) -> bool:
    rates = (tier.read_ops, tier.bandwidth, tier.node_bandwidth, tier.device_bandwidth, tier.gateway_bandwidth)
    return any(rates)
