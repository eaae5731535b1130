"""From measured throughputs to the rates of a tier, as `plan/stations.py` means them.

    opens    the metadata server is busy when more processes bring no more: metadata_ops is that throughput
    reads    a server's time for a read is 1/read_ops + bytes/bandwidth, fitted to 1/throughput over all sizes, where it is largest;
             least squares of relative errors, no term below 0
    latency  what one operation alone takes longer than its server does: an open, and a read of the smallest size

Assumptions: one station for each kind; reads of all sizes meet the same one; nothing depends on how many bytes there are in all.
A throughput that still grew, or that this host's own processors held back, is the least that storage can do: "at least".
Whatever comes out is within the limits of its key; what cannot be told from 0 is 0, and a rate that never limits is left out.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tierscope.probe.measure import FLAT, NO_TIME, Series
from tierscope.spec.figures import nearest
from tierscope.spec.keys import leaf_keys
from tierscope.spec.study import Tier
from tierscope.units import counted

_CLOCK_TICK = 1e-9  # a difference of measured times that is smaller comes from rounding


@dataclass(frozen=True, slots=True)
class ProbedRate:
    """One number of a tier. `at_least`: why it is the least that storage can do; empty: it is what was found."""

    value: float
    low: float | None
    high: float | None
    n: int
    text: str
    at_least: str = ""


@dataclass(frozen=True, slots=True)
class Law:
    """Seconds of a server for a read: for itself, and for each byte."""

    per_op: float
    per_byte: float

    def seconds(self, nbytes: int) -> float:
        return self.per_op + self.per_byte * nbytes


def derive(series: Sequence[Series], servers: int = 1) -> dict[str, ProbedRate]:
    """Rates by the keys of a tier. `servers`: told by the user, and what was found divided evenly between them."""
    found = _metadata(next(each for each in series if each.kind == "open"))
    reads = sorted((each for each in series if each.kind == "read"), key=lambda each: each.nbytes)
    if reads:
        found |= _reads(reads, servers)
    return {key: _within_limits(key, rate) for key, rate in found.items()}


def fit_law(sizes: Sequence[int], seconds: Sequence[float]) -> Law:
    """Least squares of relative errors; no term below 0. One size: all of it is bytes."""
    weights = 1 / np.array(seconds)
    per_op, per_byte = weights, np.array(sizes) * weights
    ones = np.ones(len(weights))
    if len(sizes) > 1:
        both, *_ = np.linalg.lstsq(np.column_stack([per_op, per_byte]), ones, rcond=None)
        if both.min() >= 0:
            return Law(float(both[0]), float(both[1]))
    only_bytes = Law(0.0, float(per_byte @ ones / (per_byte @ per_byte)))
    only_ops = Law(float(per_op @ ones / (per_op @ per_op)), 0.0)
    if len(sizes) == 1:
        return only_bytes

    def error(law: Law) -> float:
        return float(np.square(law.per_op * per_op + law.per_byte * per_byte - 1).sum())

    return min(only_bytes, only_ops, key=error)


def why_at_least(series: Series) -> str:
    """Why more might come out of it; empty: it would not."""
    if series.most.host_bound:
        return "this host's own processors were the limit"
    if series.stopped == FLAT:
        return ""
    processes = series.points[-1].processes
    ends = "and there was no time for more" if series.stopped == NO_TIME else "and more were not tried"
    return f"throughput still grew with {counted(processes, 'process')}, {ends}"


def _metadata(opens: Series) -> dict[str, ProbedRate]:
    most, alone = opens.most, opens.alone
    why = why_at_least(opens)
    about = f"by tierscope probe: opens with {counted(most.processes, 'process')}, n={most.n}, median"
    rate = _within_limits("metadata_ops", _ranged(most.ops_per_second, most.rates, most.n, about, why))
    service = 1 / rate.value
    alone_seconds = [each.op_seconds for each in alone.repetitions]
    return {
        "metadata_ops": rate,
        "metadata_latency": _latency(alone.op_seconds, alone_seconds, service, "an open", bool(why)),
        "metadata_variation": _variation([each.variation for each in alone.repetitions], "opens"),
    }


def _reads(reads: Sequence[Series], servers: int) -> dict[str, ProbedRate]:
    sizes = [each.nbytes for each in reads]
    law = fit_law(sizes, [1 / each.most.ops_per_second for each in reads])
    n = min(each.most.n for each in reads)
    laws = [fit_law(sizes, [1 / each.most.rates[turn] for each in reads]) for turn in range(n)]
    divided = f"; divided evenly between {servers} servers, as told" if servers > 1 else ""
    about = (
        f"by tierscope probe: reads of {counted(len(sizes), 'size')} with {_span(reads)}, n={n} each, median{divided}"
    )
    smallest, largest = why_at_least(reads[0]), why_at_least(reads[-1])
    if (most := max(each.points[-1].processes for each in reads)) < servers:
        smallest = largest = f"{counted(most, 'process')} cannot keep {counted(servers, 'server')} busy"
    found = {}
    if read_ops := _rate("read_ops", law.per_op):
        others = [_rate("read_ops", each.per_op) for each in laws]
        found["read_ops"] = _divided(read_ops, others, servers, about, smallest)
    if bandwidth := _rate("bandwidth", law.per_byte):
        others = [_rate("bandwidth", each.per_byte) for each in laws]
        found["bandwidth"] = _divided(bandwidth, others, servers, about, largest)
    is_limited = bool(found)
    alone = reads[0].alone
    service = law.seconds(reads[0].nbytes) * servers
    seconds = [each.op_seconds for each in alone.repetitions]
    found["latency"] = _latency(
        alone.op_seconds, seconds, service, f"a read of {reads[0].nbytes} bytes", bool(smallest)
    )
    if is_limited:  # else nothing of a server can vary
        variations = [each.variation for one in reads for each in one.alone.repetitions]
        found["service_variation"] = _variation(variations, "reads of all sizes")
    return found


def _rate(key: str, seconds: float) -> float | None:
    """What a term of a law lets through; None: it never limits, or only by what rounding left of the term."""
    rate = 1 / seconds if seconds > 0 else math.inf
    return rate if rate <= _nearest(key, rate) else None


def _divided(value: float, others: Sequence[float | None], servers: int, about: str, why: str) -> ProbedRate:
    """A fit that leaves the term out says that it does not limit: no upper end."""
    known = [other for other in others if other is not None]
    rate = _ranged(value / servers, [other / servers for other in known], len(others), about, why)
    return rate if len(known) == len(others) else replace(rate, high=None)


def _ranged(value: float, others: Sequence[float], n: int, about: str, why: str) -> ProbedRate:
    if why:
        return ProbedRate(value, value, None, n, f"{about}; at least: {why}", why)
    return ProbedRate(value, min([value, *others]), max([value, *others]), n, f"{about}, range of the repetitions")


def _nearest(key: str, value: float) -> float:
    return nearest(leaf_keys(Tier, ())[key], value)


def _within_limits(key: str, rate: ProbedRate) -> ProbedRate:
    low, high = (None if end is None else _nearest(key, end) for end in (rate.low, rate.high))
    return replace(rate, value=_nearest(key, rate.value), low=low, high=high)


def _latency(median: float, seconds: Sequence[float], service: float, what: str, uncertain: bool) -> ProbedRate:
    """`uncertain`: the service may be shorter, down to nothing, and then all of the time is latency."""

    def rest(value: float) -> float:
        return value if value >= _CLOCK_TICK else 0.0

    value = rest(median - service)
    others = [rest(each - service) for each in seconds]
    high = rest(max(seconds)) if uncertain else max([value, *others])
    text = f"by tierscope probe: {what} of one process alone, less the server's time, n={len(seconds)}, median"
    return ProbedRate(value, min([value, *others]), max(high, value), len(seconds), text)


def _variation(found: Sequence[float], what: str) -> ProbedRate:
    text = f"by tierscope probe: times of single {what} of one process alone, n={len(found)}, median; latency is in them, the slowest 1 % are cut"
    return ProbedRate(statistics.median(found), min(found), max(found), len(found), text)


def _span(reads: Sequence[Series]) -> str:
    least, most = min(each.most.processes for each in reads), max(each.most.processes for each in reads)
    return counted(most, "process") if least == most else f"{least}–{most} processes"
