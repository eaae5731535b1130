"""The breakdown as a table and a verdict for the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import Breakdown, PointGroup, SweepPoint, measure_of, value_text
from tierscope.analysis.checkpoint_costs import CheckpointCosts, checkpoint_costs
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.feasible import ROOM_KINDS
from tierscope.analysis.statistics import FEW, SIMULATED, Interval
from tierscope.analysis.totals import totals_of
from tierscope.analysis.wording import Finding
from tierscope.analysis.worth import worth_sentence
from tierscope.report.checkpoints import cost_sentences, held_up_sentence
from tierscope.report.coverage import coverage_line
from tierscope.report.findings import finding_lines, top_sentence
from tierscope.report.metadata import metadata_line
from tierscope.report.parts import (
    UNIDENTIFIED,
    Column,
    Unit,
    basis_note,
    basis_text,
    bottleneck_stretches,
    case_views,
    colour,
    fitting,
    group_text,
    has_effect,
    led_by,
    point_text,
    ranked_groups,
    table,
    title_label,
    unranked_sentence,
    without_io,
)
from tierscope.report.point_columns import clock_columns, room_and_staging
from tierscope.report.totals import TotalsView
from tierscope.trace.description import Imported
from tierscope.trace.ops import KINDS, MOVES_BYTES
from tierscope.units import about_bytes, about_seconds, counted

_BAR = 24
_WHOLE_RUN = ("no_epochs", "no_marks", "epochs_unsure")  # epochs are not known
_LEAST_SECONDS, _LEAST_SHARE = 1e-9, 1e-6  # of a difference between epoch and I/O time
_ALWAYS_COUNTED = ("open", "read", "write")  # also when there were none


@dataclass(frozen=True, slots=True)
class BreakdownView:
    """Title, table, verdict, conditions and findings; columns of less weight go when the terminal is narrow."""

    name: str
    breakdown: Breakdown
    findings: list[Finding]
    given: Conditions
    totals: TotalsView | None = None  # of imported logs
    costs: Sequence[CheckpointCosts] = ()
    show_all: bool = False

    @classmethod
    def of(cls, analysis: Analysis, show_all: bool = False) -> "BreakdownView":
        facts = [about.facts for about in analysis.times.about if isinstance(about, Imported)]
        totals = TotalsView(totals_of(analysis.times), facts[0]) if facts else None
        costs = checkpoint_costs(analysis.times, analysis.breakdown, analysis.study)
        return cls(analysis.name, analysis.breakdown, analysis.findings, analysis.conditions, totals, costs, show_all)

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        breakdown = self.breakdown
        title = (
            f"{self.name}: I/O time{_whose(breakdown, self.given)} ({basis_text(breakdown)}){title_label(self.given)}"
        )
        yield Text(title, style="bold")
        on_top = [finding for finding in self.findings if finding.kind in (*ROOM_KINDS, "inert_key")]
        yield from (Text(top_sentence(finding), style="bold") for finding in on_top)
        yield table(fitting(_columns(breakdown, self.given), options.max_width))
        yield from verdict(
            breakdown,
            self.given.processes,
            self.given.profilers == (),
            elsewhere_text(self.findings),
            any(finding.kind in _WHOLE_RUN for finding in self.findings),
            has_effect(breakdown, self.given),
        )
        yield from (Text(sentence) for sentence in cost_sentences(breakdown, self.costs))
        if self.totals is not None:
            yield self.totals
        if self.given.traced:
            yield Text(f"All ranks and epochs: {_counts(breakdown.kinds)}.")
        yield from _condition_lines(self.given)
        below = [finding for finding in self.findings if finding not in on_top]
        yield from finding_lines(below, self.show_all, on_top)


def _whose(breakdown: Breakdown, given: Conditions) -> str:
    ranks = sorted({point.ranks for point in breakdown.points})
    count = str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]} to {ranks[-1]}"
    if given.traced:
        return "" if count == "1" else f" of the slowest of {count} ranks"
    return " of the only process" if count == "1" else f" of the slowest of {count} processes"


def _counts(kinds: dict[str, tuple[int, int]]) -> str:
    """What the command did most of the time first, then the rest of what it did."""
    rest = [kind for kind in KINDS if kind in kinds and kind not in _ALWAYS_COUNTED]
    parts = []
    for kind in (*_ALWAYS_COUNTED, *rest):
        ops, nbytes = kinds.get(kind, (0, 0))
        parts.append(counted(ops, kind) + (f" of {about_bytes(nbytes)}" if ops and kind in MOVES_BYTES else ""))
    return ", ".join(parts)


def _alone(breakdown: Breakdown) -> bool:
    """Whether nothing was swept: then there is nothing to compare."""
    return not breakdown.sweep_keys and len(breakdown.summary) == 1


def _columns(breakdown: Breakdown, given: Conditions) -> list[Column]:
    points = breakdown.summary
    longest = max(point.io.median for point in points) or 1.0
    time = Unit.of(longest)
    columns = [
        Column(key.replace("_", " "), [Text(value_text(key, point.sweep[key])) for point in points])
        for key in breakdown.sweep_keys
    ]
    if set(given.policies) - {"pinned"}:
        rates = [point.hit_rate for point in points]
        columns.append(Column("hit rate", [Text("–" if rate is None else f"{rate:.1%}") for rate in rates]))
    columns.append(Column(f"I/O {time.name}", [time.text(point.io.median) for point in points], "bold"))
    if any(point.io.has_spread for point in points):
        columns.append(_spread_column(breakdown, time))
    for index, name in enumerate(breakdown.classes):
        columns.append(Column(name, [time.text(point.classes[name]) for point in points], colour(index)))
    epochs, firsts = (
        [getattr(point, name) for point in points] for name in ("epoch_seconds", "first_epoch_io_seconds")
    )
    columns += [
        Column("bottleneck", [Text(point.bottleneck or "–") for point in points], right=False),
        Column(f"epoch {time.name}", [time.text(value) for value in epochs], drop=4),
    ]
    columns += clock_columns(points)
    if given.simulated:
        columns += room_and_staging(points)
    if breakdown.epoch is None:
        columns.append(Column(f"epoch 1 I/O {time.name}", [time.text(value) for value in firsts], "dim", drop=1))
    if not _alone(breakdown):
        bests = [group.best for group in ranked_groups(breakdown)] if has_effect(breakdown, given) else []
        best = [Text(_mark(point, bests, bool(given.simulated))) for point in points]
        columns += [
            Column("", [_bar(point, breakdown, longest) for point in points], drop=2, right=False),
            Column("", best, "bold", 5, right=False),
        ]
    return columns


def _mark(point: SweepPoint, bests: list[SweepPoint], is_said: bool) -> str:
    """`is_said`: another column tells what does not fit."""
    if not point.is_possible and not is_said:
        return "does not fit"
    return "◀ best" if any(point is best for best in bests) else ""


def _spread_column(breakdown: Breakdown, time: Unit) -> Column:
    """Every value says how many it is made of: in the header when all are made of as many."""
    points = breakdown.summary
    kinds = {(point.io.kind, point.io.n) for point in points}
    if len(kinds) == 1:
        kind, n = kinds.pop()
        return Column(f"{kind}, n={n}", [Text(time.span(point.io)) for point in points], "dim", 3)
    cells = [Text(f"{time.span(point.io)} ({point.io.kind}, n={point.io.n})") for point in points]
    return Column("interval", cells, "dim", 3)


def _bar(point: SweepPoint, breakdown: Breakdown, longest: float) -> Text:
    """The parts of the I/O time."""
    bar = Text()
    for index, name in enumerate(breakdown.classes):
        if name in breakdown.io_classes:
            bar.append("█" * round(_BAR * point.classes[name] / longest), style=colour(index))
    return bar


def elsewhere_text(findings: Sequence[Finding]) -> str:
    """In a headline: what a traced command moved on no tier is in no second of it; empty: next to nothing."""
    shares = [finding.evidence["percent"] for finding in findings if finding.kind == "elsewhere"]
    return f" {shares[0]:.0f} % of the bytes read and written match no tier and are not in this time." if shares else ""


def verdict(
    breakdown: Breakdown,
    processes: int | None = None,
    has_wall: bool = True,
    elsewhere: str = "",
    whole_run: bool = False,
    is_ranked: bool = True,
) -> Iterator[Text]:
    """`processes`: of a traced command, if known; `has_wall`: there are wall seconds too; `elsewhere`: what its headline must not hide;
    `whole_run`: epochs are not known, so nothing is per epoch;
    `is_ranked`: some of what was swept has an effect."""
    best = breakdown.best
    if _alone(breakdown):
        io, spread, per = _io_words(breakdown, best)
        ranks = counted(max(point.ranks for point in breakdown.points), "rank")
        whole = ranks if processes is None else f"{ranks}, {counted(processes, 'process')}"
        if whole_run:
            per = f"in the whole run{basis_note(breakdown)}"
        whose = "" if ranks == "1 rank" else " of the slowest process"
        time = f"I/O{whose}: {io} {per} ({spread}){led_by(best)}; " if best.io.median else without_io(best)
        yield Text(f"{time}{whole}.{elsewhere}", style="bold")
    for group in ranked_groups(breakdown) if is_ranked and not _alone(breakdown) else ():
        yield from _best_lines(breakdown, group)
    if unranked := unranked_sentence(breakdown):
        yield Text(unranked, style="bold")
    if best.io.n < FEW and best.io.kind != SIMULATED and len(breakdown.summary) > 1:
        more = "repetitions or epochs" if breakdown.epoch is None else "repetitions"
        yield Text(
            f"n={best.io.n} is too few to distinguish neighbouring points: raise {more}.",
            style="dim",
        )
    for whose, view in case_views(breakdown):
        if moves := list(bottleneck_stretches(view)):
            yield Text(f"{whose}Bottleneck: {'; '.join(moves)}.")
    if held_up := held_up_sentence(breakdown):
        yield Text(held_up, style="bold")
    yield from _epoch_lines(breakdown, has_wall)
    yield from _clock_lines(best)
    yield from _checkpoint_lines(breakdown)


def _clock_lines(best: SweepPoint) -> Iterator[Text]:
    """What the columns of it say, of the best point: they are the first to go where there is no room."""
    if best.first_batch is None or best.au is None or not any(best.first_batch):
        return  # nothing was read
    mean, most = map(about_seconds, best.first_batch)
    slowest = "" if best.slowest_au is None else f" ({100 * best.slowest_au:.1f} % of the rank with the longest epoch)"
    left_out = ", checkpoints excluded" if best.checkpoint_seconds else ""
    au = f"AU {100 * best.au:.1f} %{slowest}{left_out}"
    yield Text(f"{au}; first batch after {mean} on average over ranks, {most} at most.")


def _best_lines(breakdown: Breakdown, group: PointGroup) -> Iterator[Text]:
    """Of points that read the same amount of data: what the sweep can change, the best of them, and what cannot be told from it."""
    best = group.best
    whose = group_text(breakdown, group)
    if worth := worth_sentence(breakdown, group):
        yield Text(f"{whose}{worth}", style="bold")
    io, spread, per = _io_words(breakdown, best)
    if breakdown.ranked_by == "epoch" and best.epoch is not None:
        time = Unit.of(best.epoch.median)
        text = f"an epoch of {time.text(best.epoch.median)} {time.name} ({_spread(time, best.epoch)}) and {io} of I/O {per} ({spread})"
    else:
        text = f"{io} of I/O {per} ({spread})"
    yield Text(f"{'' if worth else whose}Best: {point_text(breakdown, best.sweep)} with {text}.", style="bold")
    equal = group.smallest_equal
    if equal is not None and equal is not best:
        measured = measure_of(equal, breakdown.ranked_by).median
        time = Unit.of(measure_of(best, breakdown.ranked_by).median)
        yield Text(
            f"Smallest statistically indistinguishable point: {point_text(breakdown, equal.sweep)} ({time.text(measured)} {time.name})."
        )


def _io_words(breakdown: Breakdown, point: SweepPoint) -> tuple[str, str, str]:
    """I/O time, spread, and what it is per; of what nobody can tell, the bounds first."""
    time, io = Unit.of(point.io.median), point.io
    value = f"{time.text(io.median)} {time.name}"
    per = ("per epoch" if breakdown.epoch is None else f"in epoch {breakdown.epoch}") + basis_note(breakdown)
    if not io.is_usable:
        return f"{time.span(io)} {time.name}", f"{UNIDENTIFIED}, {io.kind}; {value} with rates as simulated", per
    return value, _spread(time, io), per


def _spread(time: Unit, values: Interval) -> str:
    return f"{time.span(values)}, {values.kind}, n={values.n}" if values.has_spread else f"n={values.n}"


def _epoch_lines(breakdown: Breakdown, has_wall: bool) -> Iterator[Text]:
    """What there is beside the I/O time."""
    rest = [
        _rest(point.epoch_seconds, point.io.median) for point in breakdown.summary if point.epoch_seconds is not None
    ]
    computing = [point.compute_seconds for point in breakdown.summary if point.compute_seconds]
    computed = f"compute took {_span(computing)} of the epoch" if computing else ""
    shorter = sum(seconds < 0 for seconds in rest)
    if shorter:
        where = (
            "The sum exceeds" if _alone(breakdown) else f"At {shorter} of {counted(len(rest), 'point')} the sums exceed"
        )
        hint = ": see --basis wall" if breakdown.basis == "busy" and has_wall else ""
        yield Text(f"{where} the epoch because several threads or processes read concurrently{hint}.")
    elif rest:
        also = f"; {computed}" if computed else ""
        plus = f" plus {_span(rest)}" if any(rest) else ""
        yield Text(f"The epoch takes that I/O time{plus}{also}.")
    if computed and (shorter or not rest):
        yield Text(f"{computed.capitalize()}.")


def _checkpoint_lines(breakdown: Breakdown) -> Iterator[Text]:
    seconds = [point.checkpoint_seconds for point in breakdown.summary if point.checkpoint_seconds]
    shares = [point.checkpoint_share for point in breakdown.summary if point.checkpoint_share]
    if seconds:
        low, high = (f"{100 * share:.1f} %" for share in (min(shares), max(shares))) if shares else ("", "")
        of = f" ({low if low == high else f'{low} to {high}'})" if shares else ""
        yield Text(f"Checkpoints paused training for {_span(seconds)} of the epoch{of}.")


def _rest(epoch: float, io: float) -> float:
    """Nothing where it is less than a clock can tell, or than sums lose."""
    rest = epoch - io
    return 0.0 if abs(rest) < max(_LEAST_SECONDS, _LEAST_SHARE * io) else rest


def _span(seconds: list[float]) -> str:
    low, high = about_seconds(min(seconds)), about_seconds(max(seconds))
    return low if low == high else f"{low} to {high}"


def _condition_lines(given: Conditions) -> Iterator[Text]:
    if given.profilers:
        names = ", ".join(given.profilers)
        yield Text(f"Tierscope's own timers were off; the overhead of {names} is unknown.", style="dim")
    if given.resident:
        shares = ", ".join(
            f"{tier} {'unknown' if share is None else f'{share:.1%}'}" for tier, share in given.resident.items()
        )
        yield Text(f"Peak page-cache residency when reading began: {shares}.", style="dim")
    if given.metadata:
        yield Text(f"META: {metadata_line(given.metadata)}.", style="dim")
    if given.evict_seconds is not None:
        yield Text(
            f"Evicting: up to {about_seconds(given.evict_seconds)} per rank and epoch, in no READ or META.", style="dim"
        )
    if given.coverage is not None:
        yield Text(coverage_line(given.coverage), style="dim")
    if given.recorder_seconds_per_op is not None:
        what = " of bookkeeping" if given.traced else ""
        costs = f"{about_seconds(given.recorder_seconds_per_op)}{what} per recorded operation"
        if given.harness_seconds_per_sample is not None:
            costs += f", {about_seconds(given.harness_seconds_per_sample)} per sample in total"
        if given.relative_stat_seconds is not None:
            costs += f", {about_seconds(given.relative_stat_seconds)} per stat of a relative path"
        if given.foreign_open_seconds is not None:
            costs += f", {about_seconds(given.foreign_open_seconds)} per open of a file outside all tiers"
        yield Text(f"Overhead: {costs}.", style="dim")
