"""From measured throughputs to the rates of a tier, as `plan/stations.py` means them.

    opens    the metadata server is busy when more processes bring no more: metadata_ops is that throughput
    reads    a server's time for a read is 1/read_ops + bytes/bandwidth, fitted to 1/throughput over all sizes, where it is largest;
             least squares of relative errors, no term below 0
    latency  what one operation alone takes longer than its server does: an open, and a read of the smallest size

Assumptions: one station for each kind; reads of all sizes meet the same one; nothing depends on how many bytes there are in all.
A throughput that still grew, or that this host's own processors held back, is the least that storage can do: "at least".
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tierscope.probe.measure import FLAT, NO_TIME, Series
from tierscope.spec.study import MOST_VARIATION
from tierscope.units import counted

_LEAST_RATE = 0.001
_LONGEST_LATENCY = 60.0


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
    return {**found, **_reads(reads, servers)} if reads else found


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
    rate = _ranged(most.ops_per_second, most.rates, most.n, about, why)
    rate = _bounded(rate, _LEAST_RATE)
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
    if law.per_op > 0:
        others = [1 / each.per_op if each.per_op else None for each in laws]
        found["read_ops"] = _divided(1 / law.per_op, others, servers, (about, smallest), of_bytes=False)
    if law.per_byte > 0:
        others = [1 / each.per_byte if each.per_byte else None for each in laws]
        found["bandwidth"] = _divided(1 / law.per_byte, others, servers, (about, largest), of_bytes=True)
    alone = reads[0].alone
    service = law.seconds(reads[0].nbytes) * servers
    seconds = [each.op_seconds for each in alone.repetitions]
    found["latency"] = _latency(
        alone.op_seconds, seconds, service, f"a read of {reads[0].nbytes} bytes", bool(smallest)
    )
    found["service_variation"] = _variation(
        [each.variation for one in reads for each in one.alone.repetitions], "reads of all sizes"
    )
    return found


def _divided(
    value: float, others: Sequence[float | None], servers: int, texts: tuple[str, str], of_bytes: bool
) -> ProbedRate:
    """A fit that leaves the term out says that it does not limit: no upper end."""
    about, why = texts
    n = len(others)
    known = [other for other in others if other is not None]
    rate = _ranged(value / servers, [other / servers for other in known], n, about, why)
    if len(known) < len(others):
        rate = ProbedRate(rate.value, rate.low, None, n, rate.text, rate.at_least)
    return _bounded(rate, 1.0 if of_bytes else _LEAST_RATE)


def _ranged(value: float, others: Sequence[float], n: int, about: str, why: str) -> ProbedRate:
    if why:
        return ProbedRate(value, value, None, n, f"{about}; at least: {why}", why)
    return ProbedRate(value, min([value, *others]), max([value, *others]), n, f"{about}, range of the repetitions")


def _bounded(rate: ProbedRate, least: float) -> ProbedRate:
    def raised(value: float | None) -> float | None:
        return None if value is None else max(value, least)

    return ProbedRate(max(rate.value, least), raised(rate.low), raised(rate.high), rate.n, rate.text, rate.at_least)


def _latency(median: float, seconds: Sequence[float], service: float, what: str, uncertain: bool) -> ProbedRate:
    """`uncertain`: the service may be shorter, down to nothing, and then all of the time is latency."""

    def rest(value: float) -> float:
        return min(max(0.0, value), _LONGEST_LATENCY)

    value = rest(median - service)
    others = [rest(each - service) for each in seconds]
    high = rest(max(seconds)) if uncertain else max([value, *others])
    text = f"by tierscope probe: {what} of one process alone, less the server's time, n={len(seconds)}, median"
    return ProbedRate(value, min([value, *others]), max(high, value), len(seconds), text)


def _variation(found: Sequence[float], what: str) -> ProbedRate:
    capped = [min(each, float(MOST_VARIATION)) for each in found]
    text = f"by tierscope probe: times of single {what} of one process alone, n={len(found)}, median; latency is in them, the slowest 1 % are cut"
    return ProbedRate(statistics.median(capped), min(capped), max(capped), len(found), text)


def _span(reads: Sequence[Series]) -> str:
    least, most = min(each.most.processes for each in reads), max(each.most.processes for each in reads)
    return counted(most, "process") if least == most else f"{least}–{most} processes"
