"""The I/O of the very order that was learnt from, simulated on a part of a known system."""

from dataclasses import dataclass, replace

import numpy as np

from tierscope.analysis.shuffling import LOCAL, Io, Shuffle
from tierscope.errors import UserError
from tierscope.predict.missing_rates import refuse_missing_rates
from tierscope.predict.simulation import Simulation
from tierscope.spec.check import find_problem
from tierscope.spec.known import KnownSystem, load_system
from tierscope.spec.study import Dataset, Placement, Reader, Study, System, Tier, Train, Workload

METHOD = "bound"
EPOCHS = 3  # that are simulated, of every seed
_SHARED = ("metadata_ops", "read_ops", "bandwidth", "write_ops", "write_bandwidth", "device_bandwidth")


@dataclass(frozen=True, slots=True)
class ShufflingLayout:
    """What all shuffles have in common: a file for each rank, as many samples in each."""

    ranks: int
    samples_per_rank: int
    sample_bytes: int
    epochs: int
    known: KnownSystem
    room_shares: float  # of a node's near tier, on average: so many times the node's part of the data

    @property
    def system(self) -> System:
        return self.known.system

    def study(self, shuffle: Shuffle, batch: int, seed: int) -> Study:
        """A study of `run` and `simulate`; a near tier that is too small holds a random part (local: of a node's own share)."""
        nodes = self.system.nodes
        chunk = {"global": nodes, "local": 1}.get(shuffle.name, min(nodes, shuffle.nodes or 1))
        rate = min(1.0, self.room_shares / (nodes if shuffle.name == LOCAL else chunk))
        study = Study(
            study="shuffling",
            seed=seed,
            workload=Workload(
                dataset=Dataset(
                    format="raw",
                    num_files_train=self.ranks,
                    num_samples_per_file=self.samples_per_rank,
                    record_length_bytes=self.sample_bytes,
                ),
                reader=Reader(batch_size=batch, shuffle=shuffle.name, shuffle_nodes=shuffle.nodes or 1),
                train=Train(epochs=self.epochs),
            ),
            system=self.system,
            placement=Placement(policy="partition" if shuffle.name == LOCAL else "pinned", cache_rate=rate),
        )
        if problem := find_problem(study):
            raise UserError(f"--system: {problem.text}")
        return study


def simulated_io(layout: ShufflingLayout, shuffle: Shuffle, batch: int, seeds: range) -> Io:
    """Nothing is staged or measured: the bound of `simulate`, on the plan that was learnt from."""
    seconds: list[float] = []
    needed = held = 0
    near: list[float] = []
    for seed in seeds:
        study = layout.study(shuffle, batch, seed)
        refuse_missing_rates(study, layout.known)
        simulation = Simulation.of(study)
        for epoch in range(1, EPOCHS + 1):
            outcome = simulation.epoch(epoch, METHOD)
            seconds.append(float(outcome.io.max()))
            near.append(outcome.hit_rate or 0.0)
        reach, kept = _near_files(simulation)
        needed, held = max(needed, reach), max(held, kept)
    file_bytes = simulation.reading.file_bytes
    return Io(tuple(seconds), needed * file_bytes, held * file_bytes, float(np.mean(near)))


def _near_files(simulation: Simulation) -> tuple[int, int]:
    """Of the node that has most: files that its ranks may ever read, and those of them that the near tier holds."""
    plan, study = simulation.plan, simulation.study
    stretches = [plan.file_positions(node) for node in range(study.system.nodes)]
    reach = max(high - low for low, high in stretches)
    if study.placement.policy == "partition":
        return reach, min(reach, round(study.placement.cache_rate * plan.placement.files))
    return reach, max(plan.files_held(0, node) for node in range(study.system.nodes))


def part_of_system(name: str, nodes: int, ranks_per_node: int) -> KnownSystem:
    """So many nodes of a system, with their part of what all share: the others use theirs meanwhile.

    Rates of servers and gateways that more nodes share than there are here are multiplied by the share that is here. A system with fewer nodes
    than are asked for gets more nodes, and nothing else.
    """
    try:
        known = load_system(name)
    except UserError as error:
        raise type(error)(f"--system {error}") from None
    system, tiers = known.system, known.system.tiers
    if len(tiers) < 2 or tiers[0].visible_to != "node" or tiers[-1].visible_to != "global":
        raise UserError(
            f"--system {name}: needs a node-local near tier and a shared last tier; its tiers are "
            f"{', '.join(f'{tier.name} ({tier.visible_to})' for tier in tiers)}: use another system"
        )
    part = tuple(_part(tier, nodes, system.nodes) for tier in (tiers[0], tiers[-1]))
    return replace(known, system=replace(system, nodes=nodes, ranks_per_node=ranks_per_node, tiers=part))


def _part(tier: Tier, nodes: int, all_nodes: int) -> Tier:
    behind = tier.device_shared_by or (1 if tier.visible_to == "node" else all_nodes)
    changed = {}
    if nodes < behind:
        rates = {name: getattr(tier, name) for name in _SHARED}
        changed = {name: rate * nodes / behind for name, rate in rates.items() if rate is not None}
        changed["device_shared_by"] = nodes
    gateway = tier.gateway_shared_by or all_nodes
    if tier.gateway_bandwidth is not None and nodes < gateway:
        changed |= {"gateway_bandwidth": tier.gateway_bandwidth * nodes / gateway, "gateway_shared_by": nodes}
    return replace(tier, **changed, emulate=False)
