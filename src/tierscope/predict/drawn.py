"""What another shuffle of the same files would ask of every station, without laying it out: counts drawn instead of orders."""

from typing import Any

import numpy as np
import numpy.typing as npt

from tierscope.plan.reading import Reading
from tierscope.plan.stations import LOCKS, NONE, Stations
from tierscope.plan.variation import mean_factors
from tierscope.predict.copies import copy_of
from tierscope.predict.events import piece_bytes
from tierscope.predict.outcome import FloatArray, Load
from tierscope.spec.study import Study


def shuffled(ops: npt.NDArray[np.int64], pieces: int, rng: np.random.Generator) -> FloatArray:
    """Opens and reads of every (rank, tier, kind) after another shuffle: who reads what changes, not what is read in all."""
    samples = ops[:, :, 1] // max(1, pieces)
    totals = samples.sum(axis=0)
    shares = totals / max(1, int(totals.sum()))
    drawn = rng.multinomial(samples.sum(axis=1), shares).astype(np.float64)
    drawn = np.maximum(0.0, drawn - (drawn.sum(axis=0) - totals) / len(drawn))
    opens = ops[:, :, 0].sum(axis=0) / np.maximum(1, totals)  # of a sample
    return np.stack([drawn * opens, drawn * pieces], axis=2)


def load_of(
    study: Study,
    stations: Stations,
    reading: Reading,
    wanted: FloatArray,
    rng: np.random.Generator,
    copies: npt.NDArray[np.int64] | None = None,
) -> Load:
    """What these operations, by (rank, tier, kind), ask of every station; `copies`: files that each rank writes to the near tier."""
    nodes = wanted.reshape(-1, study.system.ranks_per_node, *wanted.shape[1:]).sum(axis=1)
    ops, seconds = np.zeros(stations.count), np.zeros(stations.count)
    pieces = piece_bytes(stations, reading)
    place = np.arange(len(nodes))
    files = study.workload.dataset.num_files_train
    whole, together = study.workload.dataset.samples, _samples_together(study)
    for tier, queues in enumerate(stations.tiers if reading.pieces else ()):
        device = place // queues.nodes_per_device
        opens, reads = (np.bincount(device, nodes[:, tier, kind]) for kind in (0, 1))
        samples = reads / len(reading.pieces)
        opened = float(opens.sum()) / max(1.0, float(samples.sum()))  # times that a sample opens its file
        if queues.metadata != NONE:
            visits = _spread_over(opens, queues.metadata_servers, whole * opened, rng, together=together * opened)
            _add(ops, seconds, stations, queues.metadata, visits, 1, 0.0)
        if queues.locks != NONE:
            _add(ops, seconds, stations, queues.locks, _of_locks(opens, files), 1, 0.0)
        if queues.servers_first != NONE:
            touched = float((pieces[tier] > 0).sum())  # visits of servers for one sample
            at_once = touched / max(1, int((pieces[tier] > 0).any(axis=0).sum()))  # of these, to the server of a stripe
            visits = _spread_over(
                samples * touched, queues.servers, whole * touched, rng, bool(queues.hashed), together * at_once
            )
            _add(ops, seconds, stations, queues.servers_first, visits, 1, float(pieces[tier].sum()) / touched)
            if queues.open_bytes:
                asked = _spread_over(opens, queues.servers, whole * opened, rng, bool(queues.hashed), together * opened)
                _add(ops, seconds, stations, queues.servers_first, asked, 0, queues.open_bytes)
        for first, owner in (
            (queues.node_link, place),
            (queues.device_link, device),
            (queues.gateway, place // queues.nodes_per_gateway),
        ):
            if first != NONE:
                visits = np.bincount(owner, nodes[:, tier, 1]).astype(np.float64)
                if queues.open_bytes:
                    asked = np.bincount(owner, nodes[:, tier, 0]).astype(np.float64)
                    _add(ops, seconds, stations, first, asked, 0, queues.open_bytes)
                _add(ops, seconds, stations, first, visits, 1, reading.read_bytes)
    if copies is not None:
        _add_copies(ops, seconds, study, stations, reading, copies, rng)
    worked = seconds * mean_factors(stations.variation, ops, rng)
    return Load(seconds=worked, ops=np.ceil(ops).astype(np.int64))


def _add_copies(
    ops: FloatArray,
    seconds: FloatArray,
    study: Study,
    stations: Stations,
    reading: Reading,
    copies: npt.NDArray[np.int64],
    rng: np.random.Generator,
) -> None:
    """Writes to the near tier, and reads of what a filled file has beyond the sample."""
    copy = copy_of(study, stations, reading.file_bytes, reading.sample_bytes)
    nodes = copies.reshape(-1, study.system.ranks_per_node).sum(axis=1)
    place = np.arange(len(nodes))
    files = study.workload.dataset.num_files_train
    for tier in sorted({0, len(stations.tiers) - 1}):
        times, nbytes = int(copy.ops[tier]), float(copy.nbytes[tier].sum())
        if not times:
            continue
        queues = stations.tiers[tier]
        device = place // queues.nodes_per_device
        on_device = np.bincount(device, nodes)
        opened = queues.open_bytes if tier == 0 else 0.0  # a new entry is an open
        if tier == 0 and queues.metadata != NONE:
            visits = _spread_over(on_device, queues.metadata_servers, files, rng)
            _add(ops, seconds, stations, queues.metadata, visits, 1, 0.0)
        if queues.servers_first != NONE:
            wide, hashed = queues.stripe_count, bool(queues.hashed)
            visits = _spread_over(on_device * wide, queues.servers, files * wide, rng, hashed)
            _add(ops, seconds, stations, queues.servers_first, visits, times, nbytes / wide, writes=tier == 0)
            if opened:
                asked = _spread_over(on_device, queues.servers, files, rng, hashed)
                _add(ops, seconds, stations, queues.servers_first, asked, 0, opened)
        for first, owner in (
            (queues.node_link, place),
            (queues.device_link, device),
            (queues.gateway, place // queues.nodes_per_gateway),
        ):
            if first != NONE:
                visits = np.bincount(owner, nodes).astype(np.float64)
                _add(ops, seconds, stations, first, visits, times, nbytes, writes=tier == 0)
                if opened:
                    _add(ops, seconds, stations, first, visits, 0, opened)


def _of_locks(opens: npt.NDArray[Any], files: int) -> FloatArray:
    """Opens of each device over the locks of its files, evenly."""
    visits = np.zeros((len(opens), LOCKS))
    used = min(LOCKS, files)
    visits[:, :used] = opens[:, None] / used
    return visits.reshape(-1)


def _samples_together(study: Study) -> int:
    """Samples that chance deals out as one, for they are in one file: all of it, unless ranks stop before they have read everything in any order."""
    in_any_order = study.workload.reader.sample_shuffle != "off"
    if study.workload.train.total_training_steps is not None and in_any_order:
        return 1
    return study.workload.dataset.num_samples_per_file


def _spread_over(
    counts: npt.NDArray[Any],
    width: int,
    of: float,
    rng: np.random.Generator,
    hashed: bool = False,
    together: float = 1.0,
) -> FloatArray:
    """Over servers that hold equal shares of `of`: who reads all of them asks each for as many. Hashed: shares differ by chance.

    `together`: how many of them always go to the same server, as the requests of a file do.
    """
    mean = counts[:, None] / width
    left = np.ones_like(mean) if hashed else np.maximum(0.0, 1 - counts[:, None] / max(of, 1.0))
    scatter = np.sqrt(mean * together * (1 - 1 / width) * left)
    drawn: FloatArray = np.maximum(0.0, rng.normal(mean, scatter, (len(counts), width))).reshape(-1)
    return drawn


def _add(
    ops: FloatArray,
    seconds: FloatArray,
    stations: Stations,
    first: int,
    visits: FloatArray,
    per_visit: int,
    nbytes: float,
    writes: bool = False,
) -> None:
    at = slice(first, first + len(visits))
    per_op, per_byte = stations.rates(writes)
    ops[at] += visits * per_visit
    seconds[at] += visits * (per_visit * per_op[at] + nbytes * per_byte[at])
