"""What it takes to put files on the near tiers before training, and after how many epochs that was worth it.

Every node that keeps its own copies reads its files from the last tier, with a stream for each of its ranks, and writes them to its near tier;
a near tier that is global is written by all nodes together, each its part. The time is that of the busiest station, or of
the longest stream if it ran alone, whichever is longer, plus what starting takes. Assumed: a write costs what a read of as many bytes costs, unless the tier has
rates of writing; a stream opens, reads and writes one file after another; nodes do not hand files on to one another (a broadcast between nodes
would ask less of the last tier).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tierscope.plan.permutation import IndexArray
from tierscope.plan.plan import Plan
from tierscope.plan.policies import nodes_per_cache, own_files, room_of
from tierscope.plan.stations import NONE, Stations, TierQueues, laid_out
from tierscope.predict.copies import Copy, copy_of
from tierscope.predict.demand import least_seconds
from tierscope.predict.outcome import FloatArray, Load
from tierscope.spec.study import STAGED_POLICIES, Study

Counts = npt.NDArray[np.int64]
_MOST_FILES = 4_000_000  # that are looked at one by one


def staging_seconds(
    study: Study, plan: Plan, stations: Stations, file_bytes: int, startup_seconds: float = 0.0
) -> float | None:
    """None where the policy stages nothing. `startup_seconds`: of a node, before its first file."""
    if study.placement.policy not in STAGED_POLICIES:
        return None
    seconds, ops = np.zeros(stations.count), np.zeros(stations.count, np.int64)
    longest = 0.0
    home = len(stations.tiers) - 1
    for tier in range(home):
        copy = copy_of(study, stations, file_bytes, sample_bytes=0, near=tier)
        copy_seconds = sum(_alone(stations, number, copy, writes=number == tier) for number in (tier, home))
        for share in _shares(study, plan, tier, file_bytes):
            streams = study.system.ranks_per_node * (len(share.nodes) if share.together else 1)
            longest = max(longest, -(-len(share.files) * share.stands_for // streams) * copy_seconds)
            for number in (tier, home):
                for first, some, per_visit, nbytes in _visits(stations.tiers[number], share, copy, number):
                    per_op, per_byte = stations.rates(writes=number == tier and per_visit > 0)
                    visits = some * share.stands_for
                    at = slice(first, first + len(visits))
                    ops[at] += visits * per_visit
                    seconds[at] += visits * (per_visit * per_op[at] + nbytes * per_byte[at])
    if not longest and not ops.any():
        return 0.0
    return startup_seconds + max(least_seconds(stations, Load(seconds=seconds, ops=ops)), longest)


@dataclass(frozen=True, slots=True)
class _Share:
    """Files that each of these nodes copies, or all of them together; each stands for so many."""

    nodes: Counts
    files: IndexArray
    together: bool
    stands_for: int = 1

    def spread(self, nodes_per_place: int, width: int, turn: int = 0, hashed: int = 0) -> Counts:
        """Copies by (place of the node, number of the file), flat; `width` numbers take turns, or are the files' hashes'."""
        numbers = (laid_out(self.files, hashed) + turn) % width
        places = int(self.nodes[-1]) // nodes_per_place + 1
        if self.together:
            place = self.nodes[np.arange(len(self.files)) % len(self.nodes)] // nodes_per_place
            return np.bincount(place * width + numbers, minlength=places * width)
        nodes = np.bincount(self.nodes // nodes_per_place, minlength=places)
        return np.outer(nodes, np.bincount(numbers, minlength=width)).reshape(-1)


def _shares(study: Study, plan: Plan, tier: int, file_bytes: int) -> Iterator[_Share]:
    """Nodes with the same files are one share. Of very many files some stand for all, and where nodes have each their own, some nodes."""
    stands_for = max(1, plan.placement.files // _MOST_FILES)
    room = room_of(study, file_bytes)

    def files(node: int | None) -> IndexArray:
        if study.placement.policy == "partition":
            own = own_files(plan, node or 0, nodes_per_cache(study), room, stands_for)
            return own[: -(-room // stands_for)]
        return np.concatenate([np.empty(0, np.int64), *plan.files_on(tier, node, parts=stands_for)])

    nodes = np.arange(study.system.nodes)
    if study.system.tiers[tier].visible_to != "node":
        yield _Share(nodes, files(None), together=True, stands_for=stands_for)
        return
    reach = np.array([plan.file_positions(int(node)) for node in nodes])
    _, which = np.unique(reach, axis=0, return_inverse=True)
    for here in np.split(np.argsort(which, kind="stable"), np.cumsum(np.bincount(which.reshape(-1)))[:-1]):
        yield _Share(here, files(int(here[0])), together=False, stands_for=stands_for)


def _visits(queues: TierQueues, share: _Share, copy: Copy, tier: int) -> Iterator[tuple[int, Counts, int, float]]:
    """(first station, copies of each from there on, operations and bytes of each copy)."""
    if queues.metadata != NONE:
        yield queues.metadata, share.spread(queues.nodes_per_device, queues.metadata_servers), 1, 0.0
    times = int(copy.ops[tier])
    if queues.servers_first != NONE:
        for stripe in range(queues.stripe_count):
            visits = share.spread(queues.nodes_per_device, queues.servers, stripe, queues.hashed)
            if copy.nbytes[tier, stripe] > 0:
                yield queues.servers_first, visits, times, float(copy.nbytes[tier, stripe])
            if queues.open_bytes and not stripe:
                yield queues.servers_first, visits, 0, queues.open_bytes
    for first, nodes_per_place in (
        (queues.node_link, 1),
        (queues.device_link, queues.nodes_per_device),
        (queues.gateway, queues.nodes_per_gateway),
    ):
        if first != NONE:
            visits = share.spread(nodes_per_place, 1)
            yield first, visits, times, float(copy.nbytes[tier].sum())
            if queues.open_bytes:
                yield first, visits, 0, queues.open_bytes


def _alone(stations: Stations, tier: int, copy: Copy, writes: bool) -> float:
    """Seconds of one file on a tier, were nobody else there; servers at their mean speed, and less what they make up for meanwhile."""
    queues = stations.tiers[tier]
    ops, nbytes = float(copy.ops[tier]), copy.nbytes[tier]

    def work(first: int, width: int, times: float, size: float, rates: tuple[FloatArray, FloatArray]) -> float:
        if first == NONE:
            return 0.0
        at = slice(first, first + width)
        seconds = (times * rates[0][at] + size * rates[1][at]) / (1 - stations.background[at])
        return float(np.maximum(0.0, seconds - stations.made_up[at]).mean())

    def through(times: float, largest: float, whole: float, rates: tuple[FloatArray, FloatArray]) -> float:
        links = (queues.node_link, queues.device_link, queues.gateway)
        return max(
            work(queues.servers_first, queues.servers, times, largest, rates),
            *(work(first, 1, times, whole, rates) for first in links),
        )

    whole = float(nbytes.sum())
    data = max(through(ops, float(nbytes.max()), whole, stations.rates(writes)), whole * queues.stream_seconds)
    plain = stations.rates(writes=False)
    opening = work(queues.metadata, queues.metadata_servers, 1.0, 0.0, plain)
    if queues.open_bytes:
        opening = max(opening, through(0.0, queues.open_bytes, queues.open_bytes, plain))
    return opening + queues.metadata_latency + data + ops * queues.latency
