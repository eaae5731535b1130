"""What is said below the table of a breakdown: the headline, the best point, where bottlenecks are, and what an epoch has beside I/O."""

from collections.abc import Iterator, Sequence

from rich.text import Text

from tierscope.analysis.breakdown import Breakdown, PointGroup, SweepPoint, measure_of
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.coverage import untiered_bytes
from tierscope.analysis.simulated_intervals import au_interval, first_batch_interval
from tierscope.analysis.statistics import FEW, SIMULATED, Interval
from tierscope.analysis.wording import Finding
from tierscope.analysis.worth import worth_sentence
from tierscope.report.checkpoints import held_up_sentence
from tierscope.report.parts import (
    UNIDENTIFIED,
    Unit,
    are_single_cases,
    basis_note,
    bottleneck_sentences,
    flat_sentences,
    group_text,
    has_effect,
    led_by,
    point_text,
    ranked_groups,
    unranked_sentence,
    without_io,
)
from tierscope.units import about_bytes, about_seconds, counted

_WHOLE_RUN = ("no_epochs", "starts_of_workers", "several_steps", "no_marks", "epochs_unsure")  # epochs are not known
_LEAST_SECONDS, _LEAST_SHARE = 1e-9, 1e-6  # of a difference between epoch and I/O time


def is_alone(breakdown: Breakdown) -> bool:
    """Whether nothing was swept: then there is nothing to compare."""
    return not breakdown.sweep_keys and len(breakdown.summary) == 1


def left_out_text(findings: Sequence[Finding]) -> str:
    """In a headline: what a traced command moved on no tier, or unseen, is in no second of it; empty: next to nothing."""
    texts = []
    for finding in findings:
        evidence = finding.evidence
        if finding.kind == "elsewhere":
            texts.append(
                f" {evidence['percent']:.0f} % of the bytes read and written match no tier and are not in this time."
            )
        if finding.kind == "low_coverage":
            most = "Up to " if evidence["is_bound"] else ""
            texts.append(
                f" {most}{100 - evidence['percent']:.0f} % of the bytes {evidence['what']} were not recorded and are not in this time."
            )
    return "".join(texts) + _shared_text(findings)


def _shared_text(findings: Sequence[Finding]) -> str:
    """Of imports with --no-shared: how much more there was."""
    shared = [finding.evidence for finding in findings if finding.kind == "shared_files"]
    if not shared:
        return ""
    files = sum(evidence["files"] for evidence in shared)
    seconds = sum(evidence[f"{name}_seconds"] for evidence in shared for name in ("read", "meta", "write"))
    verb = "is" if files == 1 else "are"
    return f" {counted(files, 'shared file')} ({about_seconds(seconds)} over all ranks) {verb} not in this time."


def untiered_line(breakdown: Breakdown, given: Conditions) -> str:
    """Of a traced command: what has no class and no time, because it is on no tier; empty: next to nothing."""
    read, written = _untiered(breakdown, given)
    parts = [f"{about_bytes(nbytes)} {verb}" for nbytes, verb in ((read, "read"), (written, "written")) if nbytes]
    what = "files, libraries and standard streams that match no tier"
    return f"OTHER (not timed): {' and '.join(parts)}; {what}." if parts else ""


def _untiered(breakdown: Breakdown, given: Conditions) -> tuple[int, int]:
    read, written = (breakdown.kinds.get(kind, (0, 0))[1] for kind in ("read", "write"))
    return untiered_bytes(given.coverage, (read, written)) if given.traced and breakdown.epoch is None else (0, 0)


def verdict(
    breakdown: Breakdown,
    given: Conditions = Conditions(),  # noqa: B008  (frozen)
    findings: Sequence[Finding] = (),
) -> Iterator[Text]:
    """`findings`: what a headline must not hide, and whether epochs are known."""
    best = breakdown.best
    if is_alone(breakdown):
        yield _headline(breakdown, given, findings)
    else:
        for group in ranked_groups(breakdown, given):
            yield from _best_lines(breakdown, group)
        yield from (Text(sentence, style="bold") for sentence in flat_sentences(breakdown, given))
        yield from _case_lines(breakdown)
    if unranked := unranked_sentence(breakdown):
        yield Text(unranked, style="bold")
    is_unclear = best.io.n < FEW and best.io.kind != SIMULATED and len(breakdown.summary) > 1
    if is_unclear and has_effect(breakdown, given):
        more = "repetitions or epochs" if breakdown.epoch is None else "repetitions"
        yield Text(
            f"n={best.io.n} is too few to distinguish neighbouring points: raise {more}.",
            style="dim",
        )
    yield from (Text(sentence) for sentence in bottleneck_sentences(breakdown, given))
    if held_up := held_up_sentence(breakdown):
        yield Text(held_up, style="bold")
    yield from _epoch_lines(breakdown, given.profilers == ())
    yield from _clock_lines(best)
    yield from _checkpoint_lines(breakdown)


def has_workers(given: Conditions, ranks: int) -> bool:
    """Whether ranks are more than one process each, whose times are taken together: data loader workers."""
    return given.processes is not None and given.processes > ranks


def _headline(breakdown: Breakdown, given: Conditions, findings: Sequence[Finding]) -> Text:
    """The only point in a sentence. Nothing is per epoch where epochs are not known."""
    best = breakdown.best
    io, spread, per = _io_words(breakdown, best)
    count = max(point.ranks for point in breakdown.points)
    ranks = counted(count, "process" if given.unplaced else "rank")
    whole = ranks if given.unplaced or given.processes is None else f"{ranks}, {counted(given.processes, 'process')}"
    if any(finding.kind in _WHOLE_RUN for finding in findings):
        per = f"in the whole run{basis_note(breakdown)}"
    unit = "rank" if has_workers(given, count) else "process"
    whose = "" if count == 1 else f" of the slowest {unit}"
    where = " on these tiers" if any(_untiered(breakdown, given)) else ""
    time = (
        f"I/O{where}{whose}: {io} {per} ({spread}){led_by(best)}; "
        if best.io.median
        else without_io(breakdown, bool(_shared_text(findings)))
    )
    return Text(f"{time}{whole}.{left_out_text(findings)}", style="bold")


def _clock_lines(best: SweepPoint) -> Iterator[Text]:
    """What the columns of it say, of the best point: they are the first to go where there is no room."""
    texts = []
    if best.au is not None and best.first_batch is not None and any(best.first_batch):
        slowest = (
            "" if best.slowest_au is None else f", {100 * best.slowest_au:.1f} % of the rank with the longest epoch"
        )
        left_out = ", checkpoints excluded" if best.checkpoint_seconds else ""
        value = f"{100 * best.au:.1f} %"
        if of := au_interval(best):
            value = _within(best, f"{100 * of.low:.1f}–{100 * of.high:.1f} %", value)
        texts.append(f"AU {value}{slowest}{left_out}")
    if best.first_batch is not None and any(best.first_batch):
        mean, most = map(about_seconds, best.first_batch)
        if waits := first_batch_interval(best):
            time = Unit.of(waits.median)
            most = _within(best, f"{time.span(waits)} {time.name}", most)
        texts.append(f"{'first' if texts else 'First'} batch after {mean} on average over ranks, {most} at most")
    if texts:
        yield Text(f"{'; '.join(texts)}.")


def _within(best: SweepPoint, span: str, value: str) -> str:
    """A simulated value with its interval; of what nobody can tell, the bounds first."""
    if best.is_usable:
        return f"{value} ({span}, {SIMULATED})"
    return f"{span} ({UNIDENTIFIED}; {value} with rates as simulated)"


def _best_lines(breakdown: Breakdown, group: PointGroup) -> Iterator[Text]:
    """Of points that read the same amount of data: what the sweep can change, the best of them, and what cannot be told from it."""
    best = group.best
    whose = group_text(breakdown, group)
    if worth := worth_sentence(breakdown, group):
        yield Text(f"{whose}{worth}", style="bold")
    text = _time_text(breakdown, best)
    yield Text(f"{'' if worth else whose}Best: {point_text(breakdown, best.sweep)} with {text}.", style="bold")
    equal = group.smallest_equal
    if equal is not None and equal is not best:
        measured = measure_of(equal, breakdown.ranked_by).median
        time = Unit.of(measure_of(best, breakdown.ranked_by).median)
        yield Text(
            f"Smallest statistically indistinguishable point: {point_text(breakdown, equal.sweep)} ({time.text(measured)} {time.name})."
        )


def _time_text(breakdown: Breakdown, point: SweepPoint) -> str:
    """What a point takes: its epoch, where points are ranked by it, and its I/O."""
    io, spread, per = _io_words(breakdown, point)
    text = f"{io} of I/O {per} ({spread})"
    if breakdown.ranked_by != "epoch" or point.epoch is None:
        return text
    return f"an epoch of {_epoch_words(point, point.epoch)} and {text}"


def _case_lines(breakdown: Breakdown) -> Iterator[Text]:
    """Of cases without a sweep: none of their points is the best, and each says what it takes."""
    for group in breakdown.groups if are_single_cases(breakdown) else ():
        text = f"{group_text(breakdown, group)}{_time_text(breakdown, group.best)}{led_by(group.best)}."
        yield Text(text, style="bold")


def _epoch_words(point: SweepPoint, epoch: Interval) -> str:
    time = Unit.of(epoch.median)
    value = f"{time.text(epoch.median)} {time.name}"
    if epoch.kind == SIMULATED and not point.is_usable:
        return f"{time.span(epoch)} {time.name} ({UNIDENTIFIED}; {value} with rates as simulated)"
    return f"{value} ({_spread(time, epoch)})"


def _io_words(breakdown: Breakdown, point: SweepPoint) -> tuple[str, str, str]:
    """I/O time, spread, and what it is per; of what nobody can tell, the bounds first."""
    time, io = Unit.of(point.io.median), point.io
    value = f"{time.text(io.median)} {time.name}"
    per = ("per epoch" if breakdown.epoch is None else f"in epoch {breakdown.epoch}") + basis_note(breakdown)
    if not point.is_usable:
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
            "The sum exceeds"
            if is_alone(breakdown)
            else f"At {shorter} of {counted(len(rest), 'point')} the sums exceed"
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
