"""Crews for studies: local processes of the size that a point needs, or the ranks that a launcher started."""

from collections.abc import Mapping
from typing import Any

from tierscope.bench.crew import Crew, LocalCrew
from tierscope.bench.mpi import MpiCrew
from tierscope.bench.tasks import Who, WhoTask
from tierscope.dataset.content import pool_of
from tierscope.errors import UserError
from tierscope.measure.storages import check_hosts
from tierscope.spec.study import Study
from tierscope.units import counted


class Crews:
    """Keeps one crew; replaces it when another size is needed (a sweep over nodes)."""

    def __init__(self, world: Any = None, stall_seconds: float | None = None) -> None:
        """`stall_seconds`: how long a rank may wait for storage; None: for ever."""
        self._world, self._stall_seconds = world, stall_seconds
        self._crew: Crew | None = None
        self._who: list[Who] = []

    @property
    def launcher(self) -> str:
        return "mpi" if self._world is not None else "local"

    def of(self, study: Study) -> tuple[Crew, list[Who]]:
        """Ranks for this study, and where each of them runs."""
        ranks = study.system.ranks
        if self._crew is None or self._crew.size != ranks:
            self.close()
            if self._world is None:
                self._crew = LocalCrew(ranks, stall_seconds=self._stall_seconds, pool=pool_of(study))
            else:
                self._crew = MpiCrew(self._world, self._stall_seconds)
                if self._crew.size != ranks:
                    raise UserError(
                        f"the study asks for {counted(ranks, 'rank')} (system.nodes × system.ranks_per_node), but {self._crew.size} were "
                        f"started; start {ranks}, or set system.nodes and system.ranks_per_node to match"
                    )
            self._who = self._crew.call(WhoTask(), lambda _: None)
        check_layout(study, self._who)
        return self._crew, self._who

    def apart(self, study: Study, variables: Mapping[str, str], numbered: bool = False) -> LocalCrew:
        """Ranks on this machine for one run, with an environment of their own."""
        return LocalCrew(study.system.ranks, variables, numbered, self._stall_seconds)

    def close(self) -> None:
        if self._crew is not None:
            self._crew.close()
        self._crew = None


def check_layout(study: Study, who: list[Who]) -> None:
    """The ranks must run where the study says they do: each node's on one host, or all on a single host."""
    system = study.system
    places = [(rank.host, rank.boot, rank.node_name) for rank in who]
    if len(set(places)) == 1:
        for tier in system.tiers:
            if tier.visible_to == "node" and system.nodes > 1 and "{node}" not in tier.path:
                raise UserError(
                    f"system.tiers.{tier.name}.path = {tier.path}; {system.nodes} nodes run on this one machine and would share "
                    "the directory: put {node} into the path"
                )
        return
    if len({(rank.host, rank.boot) for rank in who}) > 1:
        for tier in system.tiers:
            check_hosts(tier)
    nodes = [places[node * system.ranks_per_node : (node + 1) * system.ranks_per_node] for node in range(system.nodes)]
    if any(len(set(node)) != 1 for node in nodes) or len(set(places)) != system.nodes:
        hosts = len(set(places))
        raise UserError(
            f"the study says {counted(system.nodes, 'node')} with {counted(system.ranks_per_node, 'rank')} each, but the launcher placed {counted(len(who), 'rank')} "
            f"on {counted(hosts, 'node')} differently; place ranks in blocks (mpirun --map-by ppr:{system.ranks_per_node}:node, srun -m block) "
            "or set system.nodes and system.ranks_per_node to match"
        )


def crowding(who: list[Who]) -> tuple[int, int]:
    """(ranks, cores) of the host with the fewest cores to spare; cores that ranks are bound to are added up."""
    hosts: dict[tuple[str, str], list[Who]] = {}
    for rank in who:
        hosts.setdefault((rank.host, rank.boot), []).append(rank)
    counts = [(len(ranks), len(frozenset[int]().union(*(rank.cores for rank in ranks)))) for ranks in hosts.values()]
    return min(counts, key=lambda count: count[1] - count[0])


def nodes_here(study: Study, who: list[Who]) -> list[int]:
    """The nodes whose directories this host sees: those of rank 0's host, the director's."""
    return sorted({rank.rank // study.system.ranks_per_node for rank in who if rank.host == who[0].host})
