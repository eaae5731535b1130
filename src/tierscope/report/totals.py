"""The totals of imported logs as a table: every class over all ranks, what of it was split over ranks, and what is in no class."""

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.times import category_of
from tierscope.analysis.totals import APART_NAMES, BESIDE, ClassSums, Totals
from tierscope.report.parts import Column, Unit, fitting, table
from tierscope.trace.described_logs import LogFacts, SharedFiles
from tierscope.units import about_bytes, about_seconds, counted


@dataclass(frozen=True, slots=True)
class TotalsView:
    totals: Totals
    facts: LogFacts

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        rows = list(totals_rows(self.totals, self.facts))
        if not rows:
            return
        time = Unit.of(max(sums.seconds for _, sums, _ in rows))
        yield Text("All ranks and epochs", style="bold")
        columns = [
            Column("", [Text(name) for name, _, _ in rows], right=False),
            Column(f"busy {time.name}", [time.text(sums.seconds) for _, sums, _ in rows]),
            Column("operations", [Text(f"{sums.ops:,}") for _, sums, _ in rows], drop=1),
            Column("bytes", [Text(about_bytes(sums.bytes or 0)) for _, sums, _ in rows]),
        ]
        if any(note for _, _, note in rows):
            header = split_header(self.facts)
            columns.append(Column(header, [Text(note) for _, _, note in rows], right=False))
        yield table(fitting(columns, options.max_width))


def split_header(facts: LogFacts) -> str:
    ranks = "ranks" if facts.steps else counted(facts.process_count or 0, "rank")
    return f"shared, split over {ranks}"


def totals_rows(totals: Totals, facts: LogFacts) -> Iterator[tuple[str, ClassSums, str]]:
    """A name, its sums, and what of it was split over ranks."""
    is_split = facts.shared_split and facts.process_count != 1
    shared = {files.tier.upper(): files for files in facts.shared} if is_split else {}
    for name, sums in totals.classes.items():
        if sums.seconds or sums.ops:
            tier = name.rpartition("-")[0]
            yield name, sums, _split(shared[tier], category_of(name)) if tier in shared else ""
    for name, parts in totals.apart.items():
        if parts is None:
            continue
        whole = ClassSums(
            sum(part.seconds for part in parts.values()),
            sum(part.ops or 0 for part in parts.values()),
            sum(part.bytes or 0 for part in parts.values()),
        )
        if whole.seconds or whole.ops:
            yield f"{'not counted' if name == BESIDE else 'separate'}: {APART_NAMES[name]}", whole, ""


def _split(shared: SharedFiles, category: str) -> str:
    seconds = {"READ": shared.read_seconds, "META": shared.meta_seconds, "WRITE": shared.write_seconds}[category]
    return f"{counted(shared.files, 'file')}, {about_seconds(seconds)}" if seconds else ""
