"""Under which conditions times were taken: what a reader needs to know before believing them."""

from dataclasses import dataclass, field

import polars as pl

from tierscope.analysis.times import ClassTimes


@dataclass(frozen=True, slots=True)
class Conditions:
    """`resident`: the largest share of a real tier's checked bytes that was in the page cache when an epoch began.

    None: cannot be told. `evicted`: whether files were taken out of the page cache before every epoch.
    `processes`: how many of a traced command recorded something; None: not known.
    """

    traced: bool = False  # a stranger's command, of whose cost only the bookkeeping is known
    emulated: tuple[str, ...] = ()
    resident: dict[str, float | None] = field(default_factory=dict)
    evicted: bool = True
    warm_metadata: bool = False
    recorder_seconds_per_op: float | None = None
    harness_seconds_per_sample: float | None = None
    threads_seconds_per_op: float | None = None
    processes: int | None = None
    simulated: tuple[str, ...] = ()  # by which methods, where nothing was measured
    policies: tuple[str, ...] = ()  # of placement, where they are known
    profilers: tuple[str, ...] = ()  # of others, that measured runs of ours in place of our recorder

    @property
    def came(self) -> str:
        """How the times came about, in a word."""
        return "simulated" if self.simulated else "measured"


def conditions(times: ClassTimes, cold: pl.DataFrame) -> Conditions:
    """From the descriptions of the traces, and their rows about the page cache."""
    tiers = {
        (str(tier["name"]), bool(tier.get("emulated"))) for about in times.about for tier in about.get("tiers", [])
    }
    emulated = {name for name, is_emulated in tiers if is_emulated}
    measured = [about for about in times.about if about.get("kind") != "simulated"]
    real = sorted({name for name, _ in tiers} - emulated) if measured else []
    resident: dict[str, float | None] = {}
    for tier in real if not cold.is_empty() else ():
        rows = cold.filter((pl.col("tier") == tier) & (pl.col("checked_bytes") > 0))
        if not rows.is_empty():
            unknown = bool(rows["resident_bytes"].null_count())
            resident[tier] = None if unknown else _largest_share(rows)
    overheads = [about["overhead"] for about in times.about if "overhead" in about]
    return Conditions(
        traced=any(about.get("kind") == "traced" for about in times.about),
        emulated=tuple(sorted(emulated)),
        resident=resident,
        evicted=not real or all(about.get("metadata_cache") != "unknown" for about in times.about),
        warm_metadata=bool(real) and any(about.get("metadata_cache") == "warm" for about in times.about),
        recorder_seconds_per_op=_worst(overheads, "recorder_seconds_per_op"),
        harness_seconds_per_sample=_worst(overheads, "harness_seconds_per_sample"),
        threads_seconds_per_op=_worst(overheads, "threads_seconds_per_op"),
        simulated=tuple(
            sorted({str(about.get("method")) for about in times.about if about.get("kind") == "simulated"})
        ),
        policies=tuple(sorted({str(about["policy"]) for about in times.about if about.get("policy")})),
        profilers=tuple(sorted({str(about["profiler"]) for about in times.about if about.get("profiler")})),
        processes=sum(int(about.get("process_count") or 0) for about in times.about) or None,
    )


def _largest_share(rows: pl.DataFrame) -> float:
    """Over epochs: one warm epoch among many cold ones is to be seen."""
    sums = rows.group_by("point", "repetition", "epoch").agg(pl.col("resident_bytes", "checked_bytes").sum())
    shares: list[float] = (sums["resident_bytes"] / sums["checked_bytes"]).to_list()
    return max(shares)


def _worst(overheads: list[dict[str, float | None]], name: str) -> float | None:
    return max((float(cost) for overhead in overheads if (cost := overhead.get(name)) is not None), default=None)
