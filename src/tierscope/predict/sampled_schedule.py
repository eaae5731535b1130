"""A part of an epoch that is too large to lay out: some whole batches of the ranks of some nodes, read as the plan would have it.

Which files those batches read is drawn anew from the plan's own rules (`plan/order.py`): another order of the same kind, as good as the plan's, at a
cost that does not grow with the number of ranks. Nodes are left out in the same proportion from all that nodes share: an object store that
serves a tenth of the nodes has a tenth of its servers, or one that is so much slower, and its queues are as long as before.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tierscope.errors import UserError
from tierscope.plan.order import _FILES, _OFFSETS, Order
from tierscope.plan.permutation import IndexArray, Permutations, derive_key
from tierscope.plan.plan import Plan
from tierscope.plan.policies import nodes_per_cache, room_of
from tierscope.plan.reading import Reading
from tierscope.predict.client import batches_ahead, relative_sizes
from tierscope.predict.schedule import Schedule, first_of_file, stay_open
from tierscope.spec.study import Study, System, Tier

MOST_OPERATIONS = 3_000_000  # of a part: seconds of one core
_FEWEST_BATCHES, _MOST_OF_FEWEST = 16, 64  # of a rank: the first and the last ones are not like the others
_TIMES_AHEAD = 4  # times what is read ahead: half of a part must be past its beginning
_OVER = 2  # times as many operations, rather than a part of a shared device or gateway
_MOST_BATCHES = 512  # of a rank, however long it reads ahead
_OF_SERVERS = ("bandwidth", "read_ops", "write_bandwidth", "write_ops")
SAMPLED_POLICIES = ("pinned", "partition")


@dataclass(frozen=True, slots=True)
class Part:
    """What is simulated of an epoch."""

    study: Study  # with the nodes that are left, and what they share
    schedule: Schedule
    nodes: IndexArray  # of the whole study
    batches: int  # of each rank


def sampled(study: Study, plan: Plan, reading: Reading, epoch: int, settled: float = 0.0) -> Part:
    """As many batches of as many nodes as can be simulated in seconds. `settled`: batches of a rank after which reading goes on evenly."""
    if study.placement.policy not in SAMPLED_POLICIES:
        raise UserError(
            f"placement.policy = {study.placement.policy} with {plan.order.samples:,} samples: cache contents would have to be tracked for every file; "
            f"set policy to {' or '.join(SAMPLED_POLICIES)}, or num_files_train to at most {MOST_OPERATIONS // 2:,}"
        )
    batch, all_batches = plan.batch_size, max(1, plan.order.samples_per_rank // plan.batch_size)
    affordable = MOST_OPERATIONS // (1 + len(reading.pieces)) // batch  # batches of all ranks
    fewest = min(all_batches, _fewest(study, settled))
    nodes = _some_nodes(study.system, affordable // fewest // study.system.ranks_per_node)
    left = len(nodes) * study.system.ranks_per_node
    batches = min(all_batches, max(min(fewest, _fewest(study)), affordable // left))
    turns = _turns(plan.order, batch, batches, all_batches)
    return Part(_fewer(study, len(nodes)), _schedule(study, plan, reading, epoch, nodes, turns), nodes, batches)


def _fewest(study: Study, settled: float = 0.0) -> int:
    fewest = min(_MOST_OF_FEWEST, max(_FEWEST_BATCHES, _TIMES_AHEAD * (1 + batches_ahead(study))))
    return max(fewest, math.ceil(min(_MOST_BATCHES, 2 * settled)))


def _some_nodes(system: System, most: int) -> IndexArray:
    """Whole groups of those that share a device or a gateway, evenly spread over all; of groups larger than that, a part."""
    if most >= system.nodes:
        return np.arange(system.nodes)
    shared = sorted(
        shared for tier in system.tiers for shared in (tier.device_shared_by, tier.gateway_shared_by) if shared
    )
    while (together := math.lcm(1, *shared)) > max(1, _OVER * most):
        shared.pop()
    groups = system.nodes // together
    chosen = np.linspace(0, groups - 1, max(1, min(groups, most // together))).astype(np.int64)
    return (chosen[:, None] * together + np.arange(together)).reshape(-1)


def _turns(order: Order, batch: int, batches: int, all_batches: int) -> IndexArray:
    """The samples of some whole batches of a rank, evenly spread over the epoch."""
    if all_batches == 1:
        return np.arange(min(batch, order.samples_per_rank), dtype=np.int64)
    chosen = np.linspace(0, all_batches - 1, batches).astype(np.int64)
    return (chosen[:, None] * batch + np.arange(batch)).reshape(-1)


def _fewer(study: Study, nodes: int) -> Study:
    """The study with so many nodes, and their part of what more of them share."""
    system = study.system
    if nodes == system.nodes:
        return study
    tiers = tuple(_part_of(tier, nodes, system.nodes) for tier in system.tiers)
    return replace(study, system=replace(system, nodes=nodes, tiers=tiers))


def _part_of(tier: Tier, nodes: int, all_nodes: int) -> Tier:
    changes: dict[str, float | int | None] = {}
    device = min(all_nodes, tier.device_shared_by or (1 if tier.visible_to == "node" else all_nodes))
    if nodes < device:
        part = nodes / device
        servers, metadata_servers = max(1, round(tier.servers * part)), max(1, round(tier.metadata_servers * part))
        slower, slower_metadata = part * tier.servers / servers, part * tier.metadata_servers / metadata_servers
        changes |= {"servers": servers, "metadata_servers": metadata_servers}
        changes |= {key: value * slower for key in _OF_SERVERS if (value := getattr(tier, key))}
        changes |= {"metadata_ops": tier.metadata_ops * slower_metadata} if tier.metadata_ops else {}
        changes |= {"file_open_ops": tier.file_open_ops * part} if tier.file_open_ops else {}
        changes |= {"device_bandwidth": tier.device_bandwidth * part} if tier.device_bandwidth else {}
    gateway = min(all_nodes, tier.gateway_shared_by or all_nodes)
    if nodes < gateway and tier.gateway_bandwidth:
        changes["gateway_bandwidth"] = tier.gateway_bandwidth * nodes / gateway
    return replace(tier, **changes)  # type: ignore[arg-type]


def _schedule(study: Study, plan: Plan, reading: Reading, epoch: int, nodes: IndexArray, turns: IndexArray) -> Schedule:
    order, reader = plan.order, study.workload.reader
    per_node = study.system.ranks_per_node
    ranks = (nodes[:, None] * per_node + np.arange(per_node)).reshape(-1)
    positions = drawn_positions(order, epoch, ranks, turns)
    samples = order.base(positions.reshape(-1)).reshape(positions.shape)
    files, inside = np.divmod(samples, order.samples_per_file)
    near = _near(study, plan, reading, nodes, positions, files)
    opens = first_of_file(files, order, reader.batch_size, reader.read_threads, stay_open(study))
    opens[:, 1:] |= near[:, 1:] != near[:, :-1]
    striped = order.samples_per_file > 1 and any(tier.stripe_count > 1 for tier in study.system.tiers)
    sizes = relative_sizes(study, files, lambda: samples)
    return Schedule(files, near, opens, inside=inside if striped else None, sizes=sizes)


def _near(
    study: Study, plan: Plan, reading: Reading, nodes: IndexArray, positions: IndexArray, files: IndexArray
) -> npt.NDArray[np.int8]:
    """The tier that each sample is read from."""
    priorities = plan.placement.priorities(files.reshape(-1)).reshape(files.shape)
    if study.placement.policy == "pinned":
        return plan.placement.tiers_at(priorities).astype(np.int8)
    per_cache = nodes_per_cache(study)
    first = nodes // per_cache * per_cache
    stretches = np.array(
        [(plan.file_positions(int(node))[0], plan.file_positions(int(node) + per_cache - 1)[1]) for node in first]
    )
    low, high = (np.repeat(side, study.system.ranks_per_node)[:, None] for side in stretches.T)
    own = positions // plan.order.samples_per_file
    room = room_of(study, reading.file_bytes)
    held = priorities < np.minimum(1.0, room / np.maximum(1, high - low)) * plan.placement.files
    return np.where((own >= low) & (own < high) & held, 0, len(study.system.tiers) - 1).astype(np.int8)


def drawn_positions(order: Order, epoch: int, ranks: IndexArray, turns: IndexArray) -> IndexArray:
    """By (rank, turn): places in the base order, like those of `Order.indices`, with another permutation for every group.

    Groups that are shorter than most wrap round at their end.
    """
    if order.replicated:
        whole = np.full((len(ranks), 1), order.samples)
        crowd = _Crowd(order, _key(order, epoch), ranks[:, None], whole)
        ahead = np.broadcast_to(np.asarray(order.ahead(ranks[:, None])), whole.shape)
        walk = crowd.by_file if order.walk == _FILES else crowd.by_sample
        return np.asarray(walk((turns[None, :] + ahead) % order.samples, np.zeros_like(whole), np.ones_like(whole)))
    first = (ranks - ranks % order.group_ranks)[:, None]
    end = np.minimum(order.ranks, first + order.group_ranks)
    low = first * order.samples // order.ranks
    length = end * order.samples // order.ranks - low
    crowd = _Crowd(order, _key(order, epoch), first, length)
    member, members = ranks[:, None] - first, end - first
    walks = {_OFFSETS: crowd.by_offset, _FILES: crowd.by_file}
    positions: IndexArray = low + walks.get(order.walk, crowd.by_sample)(turns[None, :], member, members) % length
    return positions


def _key(order: Order, epoch: int) -> bytes:
    return derive_key(order.seed, "part", epoch if order.changes else 1, order.salt)


class _Crowd:
    """All ranks' ways at once; `first` and `length` of every rank's group, one below the other."""

    def __init__(self, order: Order, key: bytes, first: IndexArray, length: IndexArray) -> None:
        self._order, self._key, self._first = order, key, first
        self._length = int(np.median(length))

    def by_sample(self, turns: IndexArray, member: IndexArray, members: IndexArray) -> IndexArray:
        place = turns * members + member
        return self._permuted(self._length, self._first, place) if self._order.shuffled else place

    def by_offset(self, turns: IndexArray, member: IndexArray, members: IndexArray) -> IndexArray:
        rounds, inside = np.divmod(turns, self._order.batch)
        drawn = self._permuted(int(members.max()), rounds, member)
        positions: IndexArray = (rounds * members + drawn) * self._order.batch + inside
        return positions

    def by_file(self, turns: IndexArray, member: IndexArray, _: IndexArray) -> IndexArray:
        order, per_file = self._order, self._order.samples_per_file
        files, inside = np.divmod(turns + member * (order.samples // order.ranks), per_file)
        if order.inside_shuffled:
            inside = self._permuted(per_file, self._first + files, inside)
        if order.files_shuffled:
            files = self._permuted(max(1, self._length // per_file), self._first, files)
        positions: IndexArray = files * per_file + inside
        return positions

    def _permuted(self, count: int, labels: IndexArray, places: IndexArray) -> IndexArray:
        """Places below `count`, by a permutation of their own for every label."""
        labels, places = np.broadcast_arrays(labels, places % count)
        return Permutations(count, self._key)(labels.reshape(-1), places.reshape(-1)).reshape(places.shape)
