"""The breakdown as a table and a verdict for the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.breakdown import Breakdown, SweepPoint, value_text
from tierscope.analysis.checkpoint_costs import CheckpointCosts, checkpoint_costs
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.feasible import ROOM_KINDS
from tierscope.analysis.totals import totals_of
from tierscope.analysis.traced_loader import loader_limit
from tierscope.analysis.wording import Finding
from tierscope.report.checkpoints import cost_sentences
from tierscope.report.coverage import coverage_line
from tierscope.report.findings import finding_lines, top_sentence
from tierscope.report.headline import has_workers, is_alone, untiered_line, verdict
from tierscope.report.metadata import metadata_line
from tierscope.report.parts import (
    Column,
    Unit,
    basis_text,
    colour,
    fitting,
    ranked_groups,
    table,
    title_label,
)
from tierscope.report.point_columns import clock_columns, room_and_staging
from tierscope.report.totals import TotalsView
from tierscope.trace.description import Imported
from tierscope.trace.ops import KINDS, MOVES_BYTES
from tierscope.units import about_bytes, about_seconds, counted

_BAR = 24
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
        if limit := loader_limit(self.given.loader_use, self.findings):
            yield Text(limit.text, style="bold")
        yield table(fitting(_columns(breakdown, self.given), options.max_width))
        yield from verdict(breakdown, self.given, self.findings)
        yield from (Text(sentence) for sentence in cost_sentences(breakdown, self.costs))
        if self.totals is not None:
            yield self.totals
        if self.given.traced:
            yield Text(f"All ranks and epochs: {_counts(breakdown.kinds)}.")
            if untiered := untiered_line(breakdown, self.given):
                yield Text(untiered)
        yield from _condition_lines(self.given)
        below = [finding for finding in self.findings if finding not in on_top]
        yield from finding_lines(below, self.show_all, on_top)


def _whose(breakdown: Breakdown, given: Conditions) -> str:
    ranks = sorted({point.ranks for point in breakdown.points})
    count = str(ranks[0]) if len(ranks) == 1 else f"{ranks[0]} to {ranks[-1]}"
    if given.traced:
        return "" if count == "1" else f" of the slowest of {count} ranks"
    unit, units = ("rank", "ranks") if has_workers(given, ranks[-1]) else ("process", "processes")
    return f" of the only {unit}" if count == "1" else f" of the slowest of {count} {units}"


def _counts(kinds: dict[str, tuple[int, int]]) -> str:
    """What the command did most of the time first, then the rest of what it did."""
    rest = [kind for kind in KINDS if kind in kinds and kind not in _ALWAYS_COUNTED]
    parts = []
    for kind in (*_ALWAYS_COUNTED, *rest):
        ops, nbytes = kinds.get(kind, (0, 0))
        parts.append(counted(ops, kind) + (f" of {about_bytes(nbytes)}" if ops and kind in MOVES_BYTES else ""))
    return ", ".join(parts)


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
        if name in breakdown.io_classes:  # what was not asked for is not in the I/O time
            columns.append(Column(name, [time.text(point.classes[name]) for point in points], colour(index)))
    epochs, firsts = (
        [getattr(point, name) for point in points] for name in ("epoch_seconds", "first_epoch_io_seconds")
    )
    columns.append(Column("bottleneck", [Text(point.bottleneck or "–") for point in points], right=False))
    if any(value is not None for value in epochs):
        columns.append(Column(f"epoch {time.name}", [time.text(value) for value in epochs], drop=4))
    columns += clock_columns(points)
    if given.simulated:
        columns += room_and_staging(points)
    only_epoch = all(first == point.io.median for first, point in zip(firsts, points, strict=True))
    if breakdown.epoch is None and not only_epoch:
        columns.append(Column(f"epoch 1 I/O {time.name}", [time.text(value) for value in firsts], "dim", drop=1))
    if not is_alone(breakdown):
        bests = [group.best for group in ranked_groups(breakdown, given)]
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
            f"Evicting: up to {about_seconds(given.evict_seconds)} per rank and epoch, counted in neither READ nor META.",
            style="dim",
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
