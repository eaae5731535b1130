"""Under which conditions times were taken: what a reader needs to know before believing them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import combinations

import polars as pl

from tierscope.analysis.coverage import coverages, merged
from tierscope.analysis.run_command import GivenStudy
from tierscope.analysis.times import ClassTimes
from tierscope.mounts import IN_MEMORY
from tierscope.trace.coverage import Coverage
from tierscope.trace.description import Description, Imported, LoaderUse, Measured, Simulated, StudyRun, Traced

COLD_COLUMNS = ("point", "repetition", "epoch", "rank", "tier", "checked_bytes", "resident_bytes", "evict_seconds")
_STATES = ("cold", "warm", "unknown")  # of a tier's metadata; the last of several runs' counts


@dataclass(frozen=True, slots=True)
class Conditions:
    """`resident`: the largest share of a real tier's checked bytes that was in the page cache when their reading began.

    None: cannot be told. `evicted`: whether files were taken out of the page cache as they were read. `metadata`: of every real tier,
    whether names and inodes were dropped from this host's caches before every epoch (cold), not dropped (warm), or left alone (unknown).
    `evict_seconds`: the most that evicting took any rank in an epoch, its threads summed; None: nobody evicted, or measured it.
    `processes`: how many of a traced command recorded something; None: not known.
    """

    traced: bool = False  # a stranger's command, of whose cost only the bookkeeping is known
    emulated: tuple[str, ...] = ()
    resident: dict[str, float | None] = field(default_factory=dict)
    evicted: bool = True
    metadata: dict[str, str] = field(default_factory=dict)
    evict_seconds: float | None = None
    recorder_seconds_per_op: float | None = None
    relative_stat_seconds: float | None = None  # added to a traced command's; so is the next
    foreign_open_seconds: float | None = None
    harness_seconds_per_sample: float | None = None
    threads_seconds_per_op: float | None = None
    processes: int | None = None
    unplaced: bool = False  # there are workers among the processes of logs whose rank is unknown
    simulated: tuple[str, ...] = ()  # by which methods, where nothing was measured
    calibrated: bool = False  # of a simulation: its system was
    checkpoints_left_out: bool = False  # of a simulation, although the study has some
    policies: tuple[str, ...] = ()  # of placement, where they are known
    warm_storages: tuple[str, ...] = ()  # tiers whose storage cannot evict
    one_device: tuple[tuple[str, str], ...] = ()  # tiers that are two names for the same storage
    coverage: Coverage | None = None  # of all runs; None: nobody counted
    given: GivenStudy = GivenStudy()  # of a result of ours: its study's file
    inert: dict[str, str] = field(default_factory=dict)  # swept keys that change nothing, and why (plan/inert.py)
    profilers: tuple[str, ...] = ()  # of others, that measured runs of ours in place of our recorder
    loader_use: LoaderUse | None = None  # of a traced command that had loaded a framework

    @property
    def path_costs(self) -> dict[str, float]:
        """What recording adds to calls by path, where it was measured."""
        costs = {"relative_stat_seconds": self.relative_stat_seconds, "foreign_open_seconds": self.foreign_open_seconds}
        return {name: seconds for name, seconds in costs.items() if seconds is not None}

    @property
    def warm_metadata(self) -> list[str]:
        """Tiers whose names and inodes nobody dropped."""
        return [tier for tier, state in self.metadata.items() if state == "warm"]

    @property
    def came(self) -> str:
        """How the times came about, in a word."""
        return "simulated" if self.simulated else "measured"


def conditions(times: ClassTimes, cold: pl.DataFrame) -> Conditions:
    """From the descriptions of the traces, and their rows about the page cache."""
    abouts = times.about
    tiers = {(tier.name, tier.emulated) for about in abouts for tier in about.tiers}
    emulated = {name for name, is_emulated in tiers if is_emulated}
    measured = [about for about in abouts if not isinstance(about, Simulated)]
    real = sorted({name for name, _ in tiers} - emulated) if measured else []
    resident: dict[str, float | None] = {}
    for tier in real if not cold.is_empty() else ():
        rows = cold.filter((pl.col("tier") == tier) & (pl.col("checked_bytes") > 0))
        if not rows.is_empty():
            unknown = bool(rows["resident_bytes"].null_count())
            resident[tier] = None if unknown else _largest_share(rows)
    costs = [about.own_cost for about in abouts if about.own_cost is not None]
    caches = {about.metadata_cache for about in abouts if isinstance(about, Measured)}
    of_studies = [about for about in abouts if isinstance(about, StudyRun)]
    return Conditions(
        traced=any(isinstance(about, Traced) for about in abouts),
        emulated=tuple(sorted(emulated)),
        resident=resident,
        evicted=not real or "unknown" not in caches,
        metadata=_metadata(abouts),
        evict_seconds=_most_evicting(cold),
        recorder_seconds_per_op=_worst(cost.recorder_seconds_per_op for cost in costs),
        relative_stat_seconds=_worst(cost.relative_stat_seconds for cost in costs),
        foreign_open_seconds=_worst(cost.foreign_open_seconds for cost in costs),
        harness_seconds_per_sample=_worst(cost.harness_seconds_per_sample for cost in costs),
        threads_seconds_per_op=_worst(cost.threads_seconds_per_op for cost in costs),
        checkpoints_left_out=any(isinstance(about, Simulated) and about.checkpoints_left_out for about in abouts),
        calibrated=any(isinstance(about, Simulated) and about.calibrated for about in abouts),
        simulated=tuple(sorted({str(about.method) for about in abouts if isinstance(about, Simulated)})),
        policies=tuple(sorted({about.policy for about in of_studies if about.policy})),
        profilers=tuple(sorted({about.profiler for about in abouts if isinstance(about, Measured) and about.profiler})),
        warm_storages=tuple(sorted({tier.name for about in abouts for tier in about.tiers if not tier.evictable})),
        one_device=tuple(sorted({pair for about in abouts for pair in _on_one_device(about)})),
        coverage=merged(coverages(abouts)),
        processes=sum(_processes(about) for about in abouts) or None,
        unplaced=any(isinstance(about, Imported) and about.facts.spawned.alone for about in abouts),
        loader_use=next((about.records.loader_use for about in abouts if isinstance(about, Traced)), None),
    )


def _metadata(abouts: Iterable[Description]) -> dict[str, str]:
    """Where files are in memory, so are their names: nobody can drop those."""
    states: dict[str, str] = {}
    for about in abouts:
        if not isinstance(about, Measured) or about.metadata_cache not in _STATES:
            continue
        kinds = about.provenance.filesystems if about.provenance else {}
        for tier in about.tiers:
            pinned = about.metadata_cache == "cold" and kinds.get(tier.name) in IN_MEMORY
            state = "warm" if pinned else about.metadata_cache
            if not tier.emulated:
                states[tier.name] = max(states.get(tier.name, state), state, key=_STATES.index)
    return dict(sorted(states.items()))


def _most_evicting(cold: pl.DataFrame) -> float | None:
    if "evict_seconds" not in cold.columns or cold.is_empty():
        return None
    sums = cold.group_by("point", "repetition", "epoch", "rank").agg(pl.col("evict_seconds").sum())["evict_seconds"]
    most = sums.max()
    return most if isinstance(most, float) and most > 0 else None


def _on_one_device(about: Description) -> Iterator[tuple[str, str]]:
    for near, far in combinations(about.tiers, 2):
        if near.device is not None and near.device == far.device:
            yield near.name, far.name


def _processes(about: Description) -> int:
    match about:
        case Traced(records=records):
            return records.process_count or 0
        case Imported(facts=facts):
            return facts.process_count or 0
        case _:
            return 0


def _largest_share(rows: pl.DataFrame) -> float:
    """Over epochs: one warm epoch among many cold ones is to be seen."""
    sums = rows.group_by("point", "repetition", "epoch").agg(pl.col("resident_bytes", "checked_bytes").sum())
    shares: list[float] = (sums["resident_bytes"] / sums["checked_bytes"]).to_list()
    return max(shares)


def _worst(costs: Iterable[float | None]) -> float | None:
    return max((cost for cost in costs if cost is not None), default=None)
