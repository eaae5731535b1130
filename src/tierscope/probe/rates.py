"""From measured throughputs to the rates of a tier, as `plan/stations.py` means them.

    opens    the metadata server is busy when more processes bring no more: metadata_ops is that throughput
    reads    a server's time for a read is 1/read_ops + bytes/bandwidth, fitted to 1/throughput over all sizes, where it is largest;
             least squares of relative errors, no term below 0
    stream   what a process alone gets of larger and larger reads, where that is clearly less than a server's bandwidth: a limit per stream, or of this client
    latency  what one operation alone takes longer than its server and its stream do: an open, and a read of the smallest size
    credit   how far a process alone is ahead of its steady pace at most: a throttle or a cache, not services that vary (throttle.py)

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

CPU_BOUND = "this host's CPUs were the limit"
OUT_OF_TIME = "and time ran out"  # the end of why a series ended
_SLOWER = 1.15  # times a server's time for a byte: a stream has a limit of its own
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
    rates = _metadata(next(of_kind for of_kind in series if of_kind.kind == "open"))
    reads = sorted((of_kind for of_kind in series if of_kind.kind == "read"), key=lambda of_size: of_size.nbytes)
    if reads:
        rates |= _reads(reads, servers)
    return {key: _within_limits(key, rate) for key, rate in rates.items()}


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
        return CPU_BOUND
    if series.stopped == FLAT:
        return ""
    processes = series.points[-1].processes
    ends = OUT_OF_TIME if series.stopped == NO_TIME else "the maximum tried"
    return f"throughput was still growing with {counted(processes, 'process')}, {ends}"


def _metadata(opens: Series) -> dict[str, ProbedRate]:
    most, alone = opens.most, opens.alone
    why = why_at_least(opens)
    about = f"by tierscope probe: opens with {counted(most.processes, 'process')}, n={most.n}, median"
    rate = _within_limits("metadata_ops", _ranged(most.ops_per_second, most.rates, most.n, about, why))
    service = 1 / rate.value
    alone_seconds = [repetition.op_seconds for repetition in alone.repetitions]
    return {
        "metadata_ops": rate,
        "metadata_latency": _latency(alone.op_seconds, alone_seconds, service, "an open", bool(why)),
        "metadata_variation": _variation([repetition.variation for repetition in alone.repetitions], "opens"),
    }


def _reads(reads: Sequence[Series], servers: int) -> dict[str, ProbedRate]:
    sizes = [read.nbytes for read in reads]
    law = fit_law(sizes, [1 / read.most.ops_per_second for read in reads])
    n = min(read.most.n for read in reads)
    laws = [fit_law(sizes, [1 / read.most.rates[turn] for read in reads]) for turn in range(n)]
    divided = f"; divided evenly between {servers} servers, as specified" if servers > 1 else ""
    about = (
        f"by tierscope probe: reads of {counted(len(sizes), 'size')} with {_span(reads)}, n={n} each, median{divided}"
    )
    smallest, largest = why_at_least(reads[0]), why_at_least(reads[-1])
    if (most := max(read.points[-1].processes for read in reads)) < servers:
        smallest = largest = f"{counted(most, 'process')} cannot keep {counted(servers, 'server')} busy"
    rates = {}
    if read_ops := _rate("read_ops", law.per_op):
        others = [_rate("read_ops", other_law.per_op) for other_law in laws]
        rates["read_ops"] = _divided(read_ops, others, servers, about, smallest)
    if bandwidth := _rate("bandwidth", law.per_byte):
        others = [_rate("bandwidth", other_law.per_byte) for other_law in laws]
        rates["bandwidth"] = _divided(bandwidth, others, servers, about, largest)
    is_limited = bool(rates)
    alone = reads[0].alone
    service = law.seconds(reads[0].nbytes) * servers
    if stream := _stream(reads, law.per_byte * servers):
        rates["stream_bandwidth"] = stream
        service = max(service, reads[0].nbytes / stream.value)
    seconds = [repetition.op_seconds for repetition in alone.repetitions]
    rates["latency"] = _latency(
        alone.op_seconds, seconds, service, f"a read of {reads[0].nbytes} bytes", bool(smallest)
    )
    if is_limited:  # else nothing of a server can vary
        variations = [repetition.variation for read in reads for repetition in read.alone.repetitions]
        rates["service_variation"] = _variation(variations, "reads of all sizes")
        ahead = [repetition.credit_seconds for read in reads for repetition in read.alone.repetitions]
        if statistics.median(ahead) > 0:
            rates["credit"] = _credit(ahead)
    return rates


def _stream(reads: Sequence[Series], server_per_byte: float) -> ProbedRate | None:
    """None: a process alone reads as fast as its server serves."""
    sizes = [read.nbytes for read in reads]
    if len(sizes) < 2:
        return None

    def bandwidth(seconds: Sequence[float]) -> float | None:
        per_byte = fit_law(sizes, seconds).per_byte
        return _rate("stream_bandwidth", per_byte) if per_byte > _SLOWER * server_per_byte else None

    value = bandwidth([read.alone.op_seconds for read in reads])
    if value is None:
        return None
    n = min(read.alone.n for read in reads)
    turns = ([read.alone.repetitions[turn].op_seconds for read in reads] for turn in range(n))
    others = [other for seconds in turns if (other := bandwidth(seconds))]
    about = f"by tierscope probe: reads of {counted(len(sizes), 'size')} by one process alone, n={n} each, median"
    return _ranged(value, others, n, about, "")


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
    others = [rest(whole - service) for whole in seconds]
    high = rest(max(seconds)) if uncertain else max([value, *others])
    text = f"by tierscope probe: {what} of one process alone, less the server's time, n={len(seconds)}, median"
    return ProbedRate(value, min([value, *others]), max(high, value), len(seconds), text)


def _variation(values: Sequence[float], what: str) -> ProbedRate:
    text = f"by tierscope probe: times of single {what} of one process alone, n={len(values)}, median; latency is in them, without the slowest 1 %"
    return ProbedRate(statistics.median(values), min(values), max(values), len(values), text)


def _credit(credits_of_runs: Sequence[float]) -> ProbedRate:
    text = f"by tierscope probe: how far reads of a single process ran ahead of their steady rate, n={len(credits_of_runs)}, median: a throttle or a cache"
    return ProbedRate(
        statistics.median(credits_of_runs), min(credits_of_runs), max(credits_of_runs), len(credits_of_runs), text
    )


def _span(reads: Sequence[Series]) -> str:
    least, most = min(read.most.processes for read in reads), max(read.most.processes for read in reads)
    return counted(most, "process") if least == most else f"{least}–{most} processes"
