"""What a reader of the probe's numbers must know: kind, evidence, and the sentences that are made of them, all in one table."""

from collections.abc import Iterator
from dataclasses import dataclass

from tierscope.jsonable import JsonObject
from tierscope.probe.probe import Probed, ProbedTier, few_repetitions
from tierscope.probe.rates import Law
from tierscope.units import about_seconds, format_bytes

_OWN_SHARE = 0.1  # of an open, and our own loop is worth a word
_SLOWER_ALONE = 1.5
_MISFIT = 0.25
_OVER = 1.5

WORDING: dict[str, tuple[str, str]] = {
    "warm_reads": (
        "{tier}: {filesystem} keeps files in memory when told to evict them: its reads are warm and show memory, not a device",
        "give a directory on another filesystem to see a device",
    ),
    "unknown_pages": (
        "{tier}: this kernel cannot say whether files were evicted from the page cache; reads may be warm",
        "use Linux 6.5 or newer",
    ),
    "at_least": (
        "{tier}: {keys}: at least so much; {why}",
        "{advice}",
    ),
    "few_repetitions": (
        "{tier}: {points} points were measured fewer than 3 times: their ranges say little",
        "give more --seconds",
    ),
    "no_time": (
        "{tier}: files of {sizes} are left out: no time to write them",
        "give more --seconds, or a smaller --size",
    ),
    "no_room": (
        "{tier}: files of {sizes} are left out: no room for them",
        "free some space, or give a smaller --size",
    ),
    "one_size": (
        "{tier}: files of one size only: a read's own time and its bytes cannot be told apart, all of it is bandwidth",
        "give two or more --size",
    ),
    "misfit": (
        "{tier}: reads of {size} take {percent:.0f} % {more} time than read_ops and bandwidth say: the model is coarse there",
        "give the --size of your own files, or calibrate with runs of your study",
    ),
    "slow_alone": (
        "{tier}: one process alone takes {measured} for a read of {size}, the rates say {predicted}",
        "trust simulations with several processes per node, not those with one",
    ),
    "own_cost": (
        "{tier}: our own loop takes {own} of the {open} of an open",
        "take metadata_ops and metadata_latency as bounds",
    ),
    "over_budget": (
        "took {took} instead of {wanted}: what had been written went to the device slowly, or operations are slow",
        "give fewer --size, or probe when the storage is less busy",
    ),
    "same_device": (
        "{tier} and {other} are on one device: they are two names for the same storage",
        "give directories on different filesystems",
    ),
    "left_behind": (
        "{tier}: the probe's folder stays: it holds {file}, which is not ours",
        "move it, and remove the folder",
    ),
    "warm_metadata": (
        "names and inodes of our files are in this host's caches, for they were just written; caches of servers and devices are unknown",
        "take rates of local disks as those of warm metadata",
    ),
}


@dataclass(frozen=True, slots=True)
class ProbeFinding:
    kind: str
    evidence: JsonObject

    @property
    def text(self) -> str:
        return WORDING[self.kind][0].format(**self.evidence)

    @property
    def suggestion(self) -> str:
        return WORDING[self.kind][1].format(**self.evidence)


def findings_of(found: Probed) -> list[ProbeFinding]:
    listed = [finding for tier in found.tiers for finding in _of_tier(tier)]
    for place, tier in enumerate(found.tiers):
        for other in found.tiers[:place]:
            if tier.device == other.device:
                listed.append(ProbeFinding("same_device", {"tier": other.name, "other": tier.name}))
    if found.seconds > _OVER * found.wanted_seconds:
        times = {"took": about_seconds(found.seconds), "wanted": about_seconds(found.wanted_seconds)}
        listed.append(ProbeFinding("over_budget", times))
    return [*listed, ProbeFinding("warm_metadata", {})]


def _of_tier(tier: ProbedTier) -> Iterator[ProbeFinding]:
    name = {"tier": tier.name}
    if tier.cold is False:
        yield ProbeFinding("warm_reads", {**name, "filesystem": tier.filesystem})
    if tier.cold is None:
        yield ProbeFinding("unknown_pages", name)
    yield from _at_least(tier)
    if points := few_repetitions(tier):
        yield ProbeFinding("few_repetitions", {**name, "points": points})
    for reason in ("time", "room"):
        sizes = [format_bytes(size) for size, why in tier.left_out.items() if why == reason]
        if sizes:
            yield ProbeFinding(f"no_{reason}", {**name, "sizes": ", ".join(sizes)})
    if len(tier.files) == 1:
        yield ProbeFinding("one_size", name)
    yield from _about_law(tier)
    alone = tier.series[0].alone.op_seconds
    if tier.own_seconds > _OWN_SHARE * alone:
        own = {"own": about_seconds(tier.own_seconds), "open": about_seconds(alone)}
        yield ProbeFinding("own_cost", {**name, **own})
    if tier.left_behind:
        yield ProbeFinding("left_behind", {**name, "file": tier.left_behind})


def _at_least(tier: ProbedTier) -> Iterator[ProbeFinding]:
    whys: dict[str, list[str]] = {}
    for key, rate in tier.derived.items():
        if rate.at_least:
            whys.setdefault(rate.at_least, []).append(key)
    for why, keys in whys.items():
        if "servers busy" in why or "not tried" in why:
            advice = "raise --ranks, or probe from several nodes at a time"
        else:
            advice = "give more --seconds" if "no time" in why else "probe on a host that has cores to spare"
        yield ProbeFinding("at_least", {"tier": tier.name, "keys": ", ".join(keys), "why": why, "advice": advice})


def _about_law(tier: ProbedTier) -> Iterator[ProbeFinding]:
    """Where the derived rates do not give back what was measured."""
    law = _law(tier)
    latency = tier.derived["latency"].value if "latency" in tier.derived else 0.0
    for series in tier.series:
        if series.kind != "read":
            continue
        size = {"tier": tier.name, "size": format_bytes(series.nbytes)}
        off = 1 / series.most.ops_per_second / law.seconds(series.nbytes) - 1
        if abs(off) > _MISFIT:
            yield ProbeFinding("misfit", {**size, "percent": abs(100 * off), "more": "more" if off > 0 else "less"})
        predicted = latency + law.seconds(series.nbytes) * tier.servers
        alone = series.alone.op_seconds
        if alone > _SLOWER_ALONE * predicted:
            times = {"measured": about_seconds(alone), "predicted": about_seconds(predicted)}
            yield ProbeFinding("slow_alone", {**size, **times})


def _law(tier: ProbedTier) -> Law:
    """Of all servers together."""

    def seconds(key: str) -> float:
        rate = tier.derived.get(key)
        return 1 / rate.value / tier.servers if rate else 0.0

    return Law(seconds("read_ops"), seconds("bandwidth"))
