"""Does storage matter? In one sentence, for someone who reads no other: whether the batch fits, and on how many nodes epochs wait for which tier.

Numbers of nodes with the same answer for the same reason are one clause. A "no" names what it rests on: staged data, or a main memory that keeps them, and what an
epoch costs without.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tierscope.arch.requirements import NO, YES, Requirements, StorageTurn
from tierscope.arch.scaling import HARDLY, MEMORY, Scaled
from tierscope.spec.storage_ends import ASSUMED
from tierscope.units import about_bandwidth, about_bytes, about_seconds, counted

_NAMED = 2  # figures that turn an answer; the others are in JSON


@dataclass(frozen=True, slots=True)
class _Clause:
    """Neighbouring numbers of nodes with one answer: as the step is taken to be, with the shortest that may be, and with the longest. `verdict`: with storage as it is described.

    `slowest`: with the shortest step and storage as slow as its figures allow.
    """

    verdict: str
    turn: StorageTurn | None
    points: Sequence[Scaled]
    fast: Sequence[Scaled]
    slow: Sequence[Scaled]
    slowest: Sequence[Scaled]

    @property
    def where(self) -> str:
        first, last = self.points[0].nodes, self.points[-1].nodes
        return f"on {counted(first, 'node', grouped=True)}" if first == last else f"on {first:,} to {last:,} nodes"

    @property
    def is_free(self) -> bool:
        return _is_free(self.fast[0]) and _is_free(self.slowest[0])

    @property
    def place(self) -> str:
        return self.points[0].later_from


def fit_sentence(requirements: Requirements) -> str | None:
    """Of the batch that everything but memory is about; None: it fits."""
    first = requirements.batches[0]
    if first.fits:
        return None
    largest = f"the largest that fits is {requirements.max_batch:,}" if requirements.max_batch else "not even one sample does"  # fmt: skip
    return (
        f"Batch {first.batch:,} does not fit: a step needs {about_bytes(first.memory.peak)} of an accelerator's {about_bytes(requirements.machine.memory)}; {largest}. "
        "So there is no verdict on storage: no such step can run."
    )


def storage_sentence(requirements: Requirements) -> str:
    doubt = ""
    clauses = tuple(_clauses(requirements))
    answers = "; ".join(_said(clause, requirements) for clause in clauses)
    if not requirements.step_plausible:
        step, thought = requirements.step, requirements.plausible_step
        doubt = (
            f"This is doubtful: a step of {about_seconds(step.seconds)} is thought impossible here (possible: {span(thought.low, thought.high, about_seconds)}). "
            "With it, the answer is: "
        )
    machine = requirements.machine
    if requirements.wish.nodes[-1] > machine.nodes:
        answers += f" (extrapolated: {machine.name} has {counted(machine.nodes, 'node', grouped=True)})"
    silent = [point.nodes for point in requirements.scaling if point.exchange_seconds is None]
    if silent:
        where = f"{span(silent[0], silent[-1], '{:,.0f}'.format)} {'node' if silent[-1] == 1 else 'nodes'}"
        answers += f" (exchange is not counted on {where}: {machine.name} does not say how fast its links are)"
    if requirements.data.assumed:
        answers += f" (assumed: {requirements.data.samples:,} samples of {about_bytes(requirements.data.file_bytes)}; use --samples and --sample-file-bytes)"
    return f"Does storage matter? {doubt}{answers if doubt else answers[0].upper() + answers[1:]}.{_to_settle(clauses, requirements)}"


def span(low: float, high: float, text: Callable[[float], str], between: str = " to ") -> str:
    """One number where both ends are printed alike."""
    ends = text(low), text(high)
    return ends[0] if ends[0] == ends[1] else between.join(ends)


def _clauses(requirements: Requirements) -> Iterator[_Clause]:
    storage = requirements.storage
    rows = zip(
        requirements.described_verdicts,
        requirements.turns,
        requirements.scaling,
        requirements.fast,
        requirements.slow,
        requirements.fast if storage is None else storage.slow,
        strict=True,
    )
    for (verdict, _, _), group in groupby(
        rows, key=lambda row: (row[0], _rests_on(row[0], row[3], row[5]), _named(row[1]))
    ):
        _, turns, points, fast, slow, slowest = zip(*group, strict=True)
        yield _Clause(verdict, turns[0], points, fast, slow, slowest)


def _rests_on(verdict: str, fast: Scaled, slowest: Scaled) -> str:
    """The place that samples come from, if it matters which."""
    return "" if verdict == NO and _is_free(fast) and _is_free(slowest) else fast.later_from


def _named(turn: StorageTurn | None) -> tuple[str, ...]:
    """What turns an answer, most important first."""
    if turn is None:
        return ()
    return tuple(figure.path for figure in turn.figures[:_NAMED]) or turn.tiers


def _is_free(point: Scaled) -> bool:
    """Whether the far tier alone would do."""
    return point.far_times is not None and point.far_times < HARDLY


def _said(clause: _Clause, requirements: Requirements) -> str:
    if clause.turn is not None:
        return _turned(clause, clause.turn, requirements)
    if clause.verdict == NO:
        return f"no {clause.where}{_no(clause, requirements)}"
    if clause.verdict == YES:
        return f"yes {clause.where}: {_yes(clause, requirements)}"
    if not clause.points[0].source_known:
        return f"unclear {clause.where}: system {requirements.machine.name} does not say how fast its storage is"
    step, described = requirements.step, "" if requirements.storage is None else "going by the system's file, "
    return (
        f"unclear {clause.where}: {described}with the shortest step that may be ({about_seconds(step.low)}) an epoch waits for "
        f"{clause.place}{_why_there(clause, requirements)}, up to {_factor(_most_times(clause.fast))} × as long as everything else takes; "
        f"with the longest ({about_seconds(step.high)}) compute hides the reads{_instead(clause, requirements)}"
    )


def _yes(clause: _Clause, requirements: Requirements) -> str:
    times = span(_most_times(clause.slow), _most_times(clause.fast), _factor)
    return f"an epoch waits for {clause.place}{_why_there(clause, requirements)}, {times} × as long as everything else takes{_instead(clause, requirements)}"


def _turned(clause: _Clause, turn: StorageTurn, requirements: Requirements) -> str:
    """Either answer with storage as the file has it, what that rests on, and the rate at which it turns: for the step that is hidden most easily, or least."""
    step = requirements.step
    exact = step.low == step.high
    rests = f"but that rests on {_uncertain(turn)}"
    if clause.verdict == YES:
        hides = (
            "storage does not matter"
            if exact
            else f"the longest step that may be ({about_seconds(step.high)}) hides the reads"
        )
        return f"unclear {clause.where}: going by the system's file, {_yes(clause, requirements)}, {rests}; where a node reads more than {about_bandwidth(max(_needed(clause.slow)))}, {hides}"
    answer = f"unclear {clause.where}: going by the system's file, no{_no(clause, requirements)}, {rests}"
    if not all(point.source_known for point in clause.slowest):
        return f"{answer}; at the slow end, files fit on no tier but {requirements.machine.far.name}, and the system does not say how fast that is"
    with_step = "" if exact else f" with the shortest step that may be ({about_seconds(step.low)})"
    times = _factor(_most_times(clause.slowest))
    return (
        f"{answer}; where a node reads less than {about_bandwidth(min(_needed(clause.fast)))}, "
        f"storage matters{with_step}: an epoch takes up to {times} × as long as everything else"
    )


def _needed(points: Sequence[Scaled]) -> list[float]:
    """Bytes per second that a node must read so as not to wait for them, on each number of nodes."""
    return [point.share_bytes / point.without_storage_seconds for point in points]


def _uncertain(turn: StorageTurn) -> str:
    if not turn.figures:
        return f"several figures of {' and '.join(turn.tiers)}, which are known only within intervals"
    return " and on ".join(f"{figure.path} ({figure.kind}: {figure.interval})" for figure in turn.figures[:_NAMED])


def _to_settle(clauses: Sequence[_Clause], requirements: Requirements) -> str:
    """What to do about answers that storage's figures turn."""
    turns = [clause.turn for clause in clauses if clause.turn is not None]
    if not turns:
        return ""
    keys = list(dict.fromkeys(figure.path for turn in turns for figure in turn.figures[:_NAMED]))
    ways = [] if requirements.step.low == requirements.step.high else ["measure a step"]
    all_named = all(turn.figures for turn in turns) and len(keys) <= _NAMED
    if not keys or any(figure.kind == ASSUMED for turn in turns for figure in turn.figures):
        ways.append("measure the storage with 'tierscope probe'")
    ways.append(f"set {' and '.join(keys) if all_named else 'its figures'} in the system's file")
    return f" To settle it, {', '.join(ways[:-1])}{', or ' if len(ways) > 1 else ''}{ways[-1]}."


def _no(clause: _Clause, requirements: Requirements) -> str:
    far = requirements.machine.far.name
    waits = " and ".join(dict.fromkeys(point.waits_for for point in clause.points))
    if clause.is_free:
        alone = "" if all(point.later_from == far for point in clause.points) else f", even if every epoch is read from {far}"  # fmt: skip
        return f"{alone}: after the first, epochs wait for {waits}"
    kept = "main memory keeps the samples" if clause.place == MEMORY else f"the data are staged on {clause.place}"
    return f", if {kept}: then epochs wait for {waits}{_instead(clause, requirements)}"


def _instead(clause: _Clause, requirements: Requirements) -> str:
    """What an epoch costs that is read from the far tier, where it need not be."""
    far = requirements.machine.far.name
    if clause.place == far:
        return ""
    times = [point.far_times for point in (*clause.fast, *clause.slow) if point.far_times is not None]
    if not times:
        return f" (how fast {far} is, the system does not say)"
    longest = max(point.far_times or 1.0 for point in clause.slowest)
    if max(times) < HARDLY:
        return "" if longest < HARDLY else f" (read from {far} instead, as slow as its figures allow, an epoch takes up to {_factor(longest)} × as long)"  # fmt: skip
    longer = f"up to {_factor(max(times))}" if min(times) < HARDLY else span(min(times), max(times), _factor)
    slowest = f", and up to {_factor(longest)} × where {far} is as slow as its figures allow" if longest > HARDLY * max(times) else ""  # fmt: skip
    return f" (read from {far} instead, an epoch takes {longer} × as long{slowest})"


def _why_there(clause: _Clause, requirements: Requirements) -> str:
    """Why a nearer tier does not help."""
    near = requirements.machine.near
    if clause.place != requirements.machine.far.name or near is None:
        return ""
    if clause.points[-1].fits_near is False:
        return f" (a node's share of the files does not fit {near.name})"
    return f" ({near.name} is not counted on: its capacity or rate is unknown)" if clause.points[-1].near_seconds is None else ""  # fmt: skip


def _most_times(points: Sequence[Scaled]) -> float:
    return max(point.storage_times for point in points)


def _factor(times: float) -> str:
    return f"{times:,.0f}" if times >= 100 else f"{times:.3g}"
