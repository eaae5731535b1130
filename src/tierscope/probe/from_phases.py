"""What phases of other benchmarks tell of a tier, and what they cannot.

    reads    1/read_ops + bytes/bandwidth of all servers together, fitted to the best phase of each size (rates.py has the rule)
    node     bytes per second of one node: what a node got on average, where the number of nodes is known
    opens    mdtest's "File read" and IO500's mdtest-hard-read open, read and close a file: opens are at least as fast. Of stats alone opens are
             estimated: in 106 IO500 submissions files were opened and read at 0.60 of the rate of stats (median; 90 %: 0.13–0.98). Files of more than
             1 MiB tell nothing of opens: half a file of 4 GiB a second is no metadata server's rate
    latency  what one operation alone took longer than its server. Without such a phase only the time of one among many is known: it is taken, so that a
             process alone is simulated no faster than one of them really was

A phase that no other one shows to be saturated is a bound: storage does at least so much. It is saturated where half or twice as many operations in
flight got nine tenths of it. Writes, creates and deletes say nothing of reading and are left out.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tierscope.probe.rates import Law, ProbedRate, fit_law
from tierscope.probe.readers.phase import OPEN, READ, STAT, UNUSED, BenchmarkPhase
from tierscope.spec.figures import nearest
from tierscope.spec.keys import leaf_keys
from tierscope.spec.study import Tier
from tierscope.units import counted, format_bytes

_SATURATED = 0.9
_MOST_TO_SATURATE = 0.5
_USUAL_BYTES = 1 << 20  # of a read, where the file does not say
_OPENS_PER_STAT, _LEAST_OPENS, _MOST_OPENS = 0.60, 0.13, 0.98
_ALIKE = 1.5
_MOST_TO_OPEN = 1 << 20  # bytes of a file: the time of larger ones is their reading's
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class SourcedPhase:
    """A phase, and where it stands: tool and file."""

    phase: BenchmarkPhase
    source: str

    @property
    def nbytes(self) -> int:
        return self.phase.nbytes or _USUAL_BYTES

    @property
    def text(self) -> str:
        phase = self.phase
        parts = [f"{self.source}: {phase.name}"]
        if phase.operation == READ:
            parts.append(
                f"reads of {format_bytes(phase.nbytes)}" if phase.nbytes else "read size unknown, 1 MiB assumed"
            )
        if phase.nodes:
            parts.append(counted(phase.nodes, "node"))
        if phase.processes:
            parts.append(counted(phase.processes, "process"))
        if phase.depth > 1:
            parts.append(f"{phase.depth} in flight each")
        if phase.repetitions > 1:
            parts.append(f"n={phase.repetitions}, mean")
        if phase.remark:
            parts.append(phase.remark)
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class TierFigures:
    """Rates by the keys of a tier, what is not known, and the phases that were not used."""

    rates: dict[str, ProbedRate]
    unknown: tuple[str, ...]
    unused: tuple[str, ...]


def tier_figures(sourced_phases: Sequence[SourcedPhase], servers: int, is_near: bool) -> TierFigures:
    """`is_near`: every node has its own; what nodes did together is divided between them. Without any read: ValueError."""
    phases = [_of_one_node(sourced) for sourced in sourced_phases] if is_near else list(sourced_phases)
    reads = [sourced for sourced in phases if sourced.phase.operation == READ]
    if not reads:
        raise ValueError("no phase reads data, so the read rate is unknown")
    rates, law = _read_rates(reads, servers)
    if not is_near:
        rates |= _node_rate(reads)
    rates |= _latency("latency", reads, lambda sourced: law.seconds(sourced.nbytes) * servers)
    opens = _open_rates(phases)
    unknown = (
        []
        if opens
        else [
            "metadata_ops: no phase opens or stats small files; simulations of a study that opens files on a shared tier need it: add mdtest's output"
        ]
    )
    unknown += _unseen_streams(reads)
    unused = tuple(sourced.phase.name for sourced in phases if sourced.phase.operation == UNUSED)
    return TierFigures({key: _rounded(key, rate) for key, rate in (rates | opens).items()}, tuple(unknown), unused)


def _of_one_node(sourced: SourcedPhase) -> SourcedPhase:
    phase, nodes = sourced.phase, sourced.phase.nodes or 1
    low, high = (None if end is None else end / nodes for end in (phase.low, phase.high))
    processes = phase.processes and max(1, phase.processes // nodes)
    return replace(sourced, phase=replace(phase, rate=phase.rate / nodes, low=low, high=high, processes=processes))


def _read_rates(reads: Sequence[SourcedPhase], servers: int) -> tuple[dict[str, ProbedRate], Law]:
    sizes = sorted({read.nbytes for read in reads})
    best = {size: _fastest([read for read in reads if read.nbytes == size]) for size in sizes}
    law = fit_law(sizes, [size / best[size].phase.rate for size in sizes])
    if not law.per_op:  # small reads are no slower: the fastest bounds all
        law = Law(0.0, 1 / _fastest(reads).phase.rate)
    rates = {}
    smallest, largest = best[sizes[0]], best[sizes[-1]] if law.per_op else _fastest(reads)
    divided = f"; divided evenly between {servers} servers, as specified" if servers > 1 else ""
    if law.per_byte:
        least = largest.phase.rate / servers
        rates["bandwidth"] = _ranged(1 / law.per_byte / servers, least, largest, reads, divided)
    if law.per_op and len(sizes) > 1:
        also = f", with {format_bytes(largest.nbytes)} beside it{divided}"
        least = smallest.phase.rate / smallest.nbytes / servers
        rates["read_ops"] = _ranged(1 / law.per_op / servers, least, smallest, reads, also)
    return rates, law


def _node_rate(reads: Sequence[SourcedPhase]) -> dict[str, ProbedRate]:
    """A node's own limit is seen where a few nodes were saturated and more of them got more."""
    known = [read for read in reads if read.phase.nodes]
    if not known:
        return {}

    def of_node(sourced: SourcedPhase) -> float:
        return sourced.phase.rate / (sourced.phase.nodes or 1)

    best = max(known, key=of_node)
    most = _fastest(known)
    alike = [sourced for sourced in known if sourced.phase.nodes == best.phase.nodes and sourced.nbytes == best.nbytes]
    limited = (most.phase.nodes or 1) > (best.phase.nodes or 1) and most.phase.rate > _ALIKE * best.phase.rate
    why = "" if limited and _is_saturated(best, alike) else "limited by servers or by nodes; which is unknown"
    return {"node_bandwidth": _with_ends(of_node(best), best, [best], why, "; divided by its nodes")}


def _unseen_streams(reads: Sequence[SourcedPhase]) -> list[str]:
    """A latency is of reads of one size: with larger ones, a stream may be simulated faster than any was seen."""
    timed = [read for read in reads if read.phase.in_flight]
    if not timed or any(read.phase.in_flight == 1 for read in timed):
        return []
    largest = max(read.nbytes for read in timed)
    return [
        f"stream_bandwidth: no phase reads with one process alone; reads larger than {format_bytes(largest)} may be simulated faster "
        "than any process was measured: add the output of a run with one process"
    ]


def _open_rates(phases: Sequence[SourcedPhase]) -> dict[str, ProbedRate]:
    opens = [
        sourced
        for sourced in phases
        if sourced.phase.operation == OPEN and (sourced.phase.nbytes or 0) <= _MOST_TO_OPEN
    ]
    stats = [sourced for sourced in phases if sourced.phase.operation == STAT]
    if opens:
        best = _fastest(opens)
        why = "each open is followed by a read of its file"
        rates = {"metadata_ops": _with_ends(best.phase.rate, best, [best], why, "")}
        return rates | _latency("metadata_latency", opens, lambda sourced: 1 / sourced.phase.rate)
    if not stats:
        return {}
    best = _fastest(stats)
    low, value, high = (best.phase.rate * share for share in (_LEAST_OPENS, _OPENS_PER_STAT, _MOST_OPENS))
    text = f"{best.text}: stats, and opens are estimated as {_OPENS_PER_STAT:.2f} of them ({_LEAST_OPENS}–{_MOST_OPENS}), as in 106 IO500 submissions"
    return {"metadata_ops": ProbedRate(value, low, high, best.phase.repetitions, text)}


def _latency(
    key: str, phases: Sequence[SourcedPhase], service: Callable[[SourcedPhase], float]
) -> dict[str, ProbedRate]:
    """Of one operation alone; else nothing but what it cannot exceed: a loaded operation's time."""
    timed = [sourced for sourced in phases if sourced.phase.in_flight]
    if not timed:
        return {}

    def taken(sourced: SourcedPhase) -> float:
        per_second = sourced.phase.rate / (sourced.nbytes if sourced.phase.operation == READ else 1)
        return sourced.phase.op_seconds or (sourced.phase.in_flight or 1) / per_second

    fewest = min(timed, key=taken)
    alone = [sourced for sourced in timed if sourced.phase.in_flight == 1]
    if alone:
        quickest = min(alone, key=taken)
        value = max(0.0, taken(quickest) - service(quickest))
        return {
            key: ProbedRate(
                value, value, max(value, taken(quickest)), 1, f"{quickest.text}; one at a time, less the server's time"
            )
        }
    most = max(0.0, taken(fewest) - service(fewest))
    text = f"{fewest.text}; at most: one of many concurrent operations took {1000 * taken(fewest):.3g} ms, and no phase runs one alone"
    return {key: ProbedRate(most, 0.0, most, 1, text)}


def _ranged(value: float, least: float, best: SourcedPhase, reads: Sequence[SourcedPhase], also: str) -> ProbedRate:
    """`least`: what was seen itself; the other term of the law is in it."""
    alike = [read for read in reads if read.nbytes == best.nbytes]
    if best.phase.in_flight is None or len(alike) == 1:
        why = "no phase shows that more processes would not be faster"
    else:
        why = "" if _is_saturated(best, alike) else "throughput was still growing with the number of processes"
    rate = _with_ends(value, best, list(_saturated(best, alike)), why, also)
    return replace(rate, low=min(rate.low or least, least))


def _with_ends(value: float, best: SourcedPhase, alike: Sequence[SourcedPhase], why: str, also: str) -> ProbedRate:
    """Ends as far from the value as repetitions and other saturated phases are from the best."""
    rate = best.phase.rate
    low = value * min([1.0, *((sourced.phase.low or sourced.phase.rate) / rate for sourced in alike)])
    high = value * max([1.0, *((sourced.phase.high or sourced.phase.rate) / rate for sourced in alike)])
    n = best.phase.repetitions
    if why:
        return ProbedRate(value, low, None, n, f"{best.text}{also}; at least: {why}", why)
    return ProbedRate(value, low, high, n, f"{best.text}{also}; saturated")


def _fastest(phases: Sequence[SourcedPhase]) -> SourcedPhase:
    return max(phases, key=lambda sourced: sourced.phase.rate)


def _is_saturated(best: SourcedPhase, alike: Sequence[SourcedPhase]) -> bool:
    return any(sourced is not best for sourced in _saturated(best, alike))


def _saturated(best: SourcedPhase, alike: Sequence[SourcedPhase]) -> Iterator[SourcedPhase]:
    """The best, and those with far fewer or far more operations in flight that got nearly as much."""
    yield best
    for sourced in alike:
        few, many = sorted((sourced.phase.in_flight or 0, best.phase.in_flight or 0))
        apart = 0 < few <= _MOST_TO_SATURATE * many
        if sourced is not best and apart and sourced.phase.rate >= _SATURATED * best.phase.rate:
            yield sourced


def _rounded(key: str, rate: ProbedRate) -> ProbedRate:
    """Within the limits of its key, and no more digits than were measured."""
    declared = leaf_keys(Tier, ())[key]

    def short(value: float) -> float:
        shortened = float(f"{value:.{_DIGITS}g}")
        return nearest(declared, float(round(shortened)) if key.endswith("bandwidth") else shortened)

    value = short(rate.value)
    low, high = (None if end is None else short(end) for end in (rate.low, rate.high))
    return replace(
        rate, value=value, low=None if low is None else min(low, value), high=None if high is None else max(high, value)
    )
