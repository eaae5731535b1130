"""What a reader of the probe's numbers must know. Their sentences stand with all others in `analysis/wording.py`, as kinds that begin with `probe_`."""

from collections.abc import Iterator

from tierscope.analysis.wording import Finding
from tierscope.probe.probe import Probed, ProbedTier, few_repetitions
from tierscope.probe.rates import CPU_BOUND, OUT_OF_TIME, Law

_OWN_SHARE = 0.1  # of an open, and our own loop is worth a word
_SLOWER_ALONE = 1.5
_MISFIT = 0.25
_OVER = 1.5


def findings_of(probed: Probed) -> list[Finding]:
    listed = [finding for tier in probed.tiers for finding in _of_tier(tier)]
    for place, tier in enumerate(probed.tiers):
        for other in probed.tiers[:place]:
            if tier.device == other.device:
                listed.append(Finding("probe_same_device", {"tier": other.name, "other": tier.name}))
    if probed.seconds > _OVER * probed.wanted_seconds:
        times = {"took": probed.seconds, "wanted": probed.wanted_seconds}
        listed.append(Finding("probe_over_budget", times))
    return [*listed, Finding("probe_warm_metadata", {})]


def _of_tier(tier: ProbedTier) -> Iterator[Finding]:
    name = {"tier": tier.name}
    if tier.cold is False:
        yield Finding("probe_warm_reads", {**name, "filesystem": tier.filesystem})
    if tier.cold is None:
        yield Finding("probe_unknown_pages", name)
    yield from _at_least(tier)
    if points := few_repetitions(tier):
        yield Finding("probe_few_repetitions", {**name, "points": points})
    for reason in ("time", "room"):
        sizes = [size for size, why in tier.left_out.items() if why == reason]
        if sizes:
            yield Finding(f"probe_no_{reason}", {**name, "sizes": sizes})
    if len(tier.files) == 1:
        yield Finding("probe_one_size", name)
    yield from _about_law(tier)
    alone = tier.series[0].alone.op_seconds
    if tier.own_seconds > _OWN_SHARE * alone:
        own = {"own": tier.own_seconds, "open": alone}
        yield Finding("probe_own_cost", {**name, **own})
    if tier.left_behind:
        yield Finding("probe_left_behind", {**name, "file": tier.left_behind})


def _at_least(tier: ProbedTier) -> Iterator[Finding]:
    whys: dict[str, list[str]] = {}
    for key, rate in tier.derived.items():
        if rate.at_least:
            whys.setdefault(rate.at_least, []).append(key)
    for why, keys in whys.items():
        advice = "cores" if why == CPU_BOUND else "time" if why.endswith(OUT_OF_TIME) else "processes"
        yield Finding("probe_at_least", {"tier": tier.name, "keys": keys, "why": why, "advice": advice})


def _about_law(tier: ProbedTier) -> Iterator[Finding]:
    """Where the derived rates do not give back what was measured."""
    law = _law(tier)
    latency = tier.derived["latency"].value if "latency" in tier.derived else 0.0
    for series in tier.series:
        if series.kind != "read":
            continue
        size = {"tier": tier.name, "size": series.nbytes}
        off = 1 / series.most.ops_per_second / law.seconds(series.nbytes) - 1
        if abs(off) > _MISFIT:
            yield Finding("probe_misfit", {**size, "percent": abs(100 * off), "more": "more" if off > 0 else "less"})
        predicted = latency + law.seconds(series.nbytes) * tier.servers
        alone = series.alone.op_seconds
        if alone > _SLOWER_ALONE * predicted:
            times = {"measured": alone, "predicted": predicted}
            yield Finding("probe_slow_alone", {**size, **times})


def _law(tier: ProbedTier) -> Law:
    """Of all servers together."""

    def seconds(key: str) -> float:
        rate = tier.derived.get(key)
        return 1 / rate.value / tier.servers if rate else 0.0

    return Law(seconds("read_ops"), seconds("bandwidth"))
