"""Reads of the small file beside the samples (plan/side_reads.py) in a simulated epoch, by either method.

The rank itself makes them, one after another, before it takes a batch. Each takes the tier's latency and its service at the file's server, on its node's
link and as a stream; the first one of an epoch also an open. They are added behind what the epoch takes without them: exact where a rank reads its
samples itself, too much by what reading threads do meanwhile where it does not. If all ranks' reads of the one file ask more of its
server or lock than that, the epoch is as long as the work there: a bound, since nobody else's work at that server is put beside it.
No page cache is modelled, as for samples: on a machine whose clients cache the file, only its first reads cost that much.
"""

from dataclasses import replace

import numpy as np

from tierscope.plan.side_reads import SideReads
from tierscope.plan.stations import NONE, Stations
from tierscope.predict.outcome import FloatArray, Load, Outcome
from tierscope.spec.study import Study

_FILE = 0  # which server has it
_OPEN, _READ = 0, 1


def with_side_reads(study: Study, stations: Stations, outcome: Outcome, epoch: int) -> Outcome:
    side = SideReads.of(study)
    if side is None:
        return outcome
    ranks, home = len(outcome.seconds), len(stations.tiers) - 1
    counts = np.array([side.count(rank, epoch) for rank in range(ranks)]) * side.requests_per_read
    if not counts.any():
        return outcome
    nbytes = side.read_bytes / side.requests_per_read
    opens = (counts > 0).astype(np.int64)
    work, load = _asked(study, stations, (int(opens.sum()), int(counts.sum())), nbytes)
    one_open, one_read = _alone(stations, nbytes)
    spent = opens * one_open + counts * one_read
    seconds = np.maximum(outcome.seconds + spent, np.where(counts > 0, work, 0.0))
    more = seconds - outcome.seconds
    busy, wall = outcome.busy.copy(), outcome.wall.copy()
    for times in (busy, wall):
        times[:, home, _OPEN] += opens * one_open
        times[:, home, _READ] += more - opens * one_open
    ops, moved = outcome.ops.copy(), outcome.nbytes.copy()
    ops[:, home, _OPEN] += opens
    ops[:, home, _READ] += counts
    moved[:, home, _READ] += np.rint(counts * nbytes).astype(np.int64)
    return replace(
        outcome,
        seconds=seconds,
        stall=outcome.stall + more,
        busy=busy,
        wall=wall,
        ops=ops,
        nbytes=moved,
        steps=_on_steps(outcome.steps, side, more),
        load=Load(seconds=outcome.load.seconds + load.seconds, ops=outcome.load.ops + load.ops),
        first_batch=None if outcome.first_batch is None else outcome.first_batch + _first(side, one_open, one_read),
    )


def _alone(stations: Stations, nbytes: float) -> tuple[float, float]:
    """Seconds of an open and of a read that nobody else is in the way of."""
    queues = stations.tiers[-1]
    opening = [stations.per_op[first] for first in (queues.metadata, queues.locks) if first != NONE]
    reading = [stations.per_op[at] + nbytes * stations.per_byte[at] for at in _on_the_way(stations)]
    streamed = nbytes * queues.stream_seconds
    return (
        float(max(opening, default=0.0)) + queues.metadata_latency,
        float(max([*reading, streamed])) + queues.latency,
    )


def _on_the_way(stations: Stations) -> list[int]:
    """Of a read of the first node: the file's first server, and links."""
    queues = stations.tiers[-1]
    return [at for at in (queues.server_of(0, _FILE), *queues.links_of(0)) if at != NONE]


def _asked(study: Study, stations: Stations, counts: tuple[int, int], nbytes: float) -> tuple[float, Load]:
    """Seconds that the busiest server or lock works on all ranks' opens and reads of the one file, and what each is asked for."""
    opens, reads = counts
    queues = stations.tiers[-1]
    seconds, ops = np.zeros(stations.count), np.zeros(stations.count, np.int64)
    for at in (queues.metadata_of(0, _FILE), queues.lock_of(0, _FILE)):
        if at != NONE:
            seconds[at] += opens * stations.per_op[at]
            ops[at] += opens
    server = queues.server_of(0, _FILE)
    if server != NONE:
        seconds[server] += reads * (stations.per_op[server] + nbytes * stations.per_byte[server])
        ops[server] += reads
    for first, number in ((queues.node_link, study.system.nodes), (queues.device_link, 1)):
        if first != NONE:
            seconds[first : first + number] += reads * nbytes * stations.per_byte[first] / number
            ops[first : first + number] += reads // number
    return float((seconds / (1 - stations.background)).max(initial=0.0)), Load(seconds=seconds, ops=ops)


def _first(side: SideReads, one_open: float, one_read: float) -> float:
    """Before the first batch."""
    if side.when == "random":
        return 0.0
    return one_open + side.reads * side.requests_per_read * one_read


def _on_steps(steps: FloatArray | None, side: SideReads, more: FloatArray) -> FloatArray | None:
    if steps is None:
        return None
    steps = steps.copy()
    if side.when == "start":
        steps[:, 0, :2] += more[:, None]
    else:
        steps[:, :, :2] += (more / steps.shape[1])[:, None, None]
    return steps
