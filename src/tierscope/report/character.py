"""How a run reads: the words for it, and the tables for the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.character_metrics import METRICS, WRITE_METRICS, Fact
from tierscope.analysis.character_ops import SizeBin
from tierscope.analysis.characterise import Character, RankUse
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.hidden import Hidden
from tierscope.analysis.wording import Finding
from tierscope.report.findings import finding_lines
from tierscope.report.latency import latency_columns, latency_missing
from tierscope.report.parts import Column, Unit, fitting, table, title_label
from tierscope.units import about_bytes, about_seconds

_BAR = 30
_MOST_RANKS = 12  # in a table of the terminal: the ends of the order by bytes, and some between
_MOST_FILES = 8
NAMES = {
    "io_seconds": "I/O time, all ranks and epochs",
    "bytes": "bytes read and written",
    "transfer_min": "smallest read",
    "transfer_max": "largest read",
    "transfer_mean": "mean read",
    "transfer_median": "median read",
    "bandwidth_per_operation": "bandwidth per read",
    "sequential_percent": "sequential, of all reads",
    "consecutive_percent": "consecutive, of all reads",
    "files": "files",
    "writes": "writes",
    "write_mean": "mean write",
    "write_sequential_percent": "sequential, of all writes",
    "write_consecutive_percent": "consecutive, of all writes",
}
_BASES = {
    "operations": "from single operations",
    "histogram": "from a histogram",
    "counters": "from the log's counters",
    "study": "from the study",
    "exact": "",
    "sized": "reads of known size, as in the histogram; Darshan records no sizes for stdio",
    "wall": "by wall seconds",
    "busy": "by busy seconds",
}
_WHEN = {
    "operations": "when each operation ran",
    "steps": "bytes of a rank spread evenly over its steps: coarser than single operations (--ops)",
    "epochs": "bytes of a rank per epoch: one value each",
}


def when_text(basis: str) -> str:
    """What a bandwidth over time is made of."""
    return _WHEN[basis]


def value_text(unit: str, value: float) -> str:
    if unit == "s":
        return about_seconds(value)
    if unit == "B":
        return about_bytes(value)
    return f"{about_bytes(value)}/s" if unit == "B/s" else f"{value:.1f} %" if unit == "%" else f"{value:,.0f}"


def fact_text(unit: str, fact: Fact) -> str:
    if fact.value is None:
        return "–"
    within = fact.low is not None and (fact.high is None or fact.high > fact.low)
    return f"{'≈ ' if within else ''}{value_text(unit, fact.value)}"


def fact_note(unit: str, fact: Fact) -> str:
    """What it is made of, or why it is not known."""
    if fact.value is None:
        return fact.reason
    if fact.low is None:
        return _BASES.get(fact.basis, fact.basis)
    high = "no limit" if fact.high is None else value_text(unit, fact.high + 1)
    return f"{_BASES.get(fact.basis, fact.basis)}: from {value_text(unit, fact.low)} to {high}"


def fact_rows(character: Character) -> Iterator[tuple[str, str, str]]:
    """Name, value and note of all that is one number."""
    for name, fact in character.metrics.items():
        yield NAMES[name], fact_text(METRICS[name], fact), fact_note(METRICS[name], fact)
    for name, unit, fact in (
        ("aggregate bandwidth", "B/s", character.aggregate_bandwidth),
        ("I/O share of the epochs", "%", character.io_percent),
    ):
        yield name, fact_text(unit, fact), fact_note(unit, fact)
    if (written := character.writes).writes:
        for name, fact in written.metrics.items():
            yield NAMES[name], fact_text(WRITE_METRICS[name], fact), fact_note(WRITE_METRICS[name], fact)
    hidden = character.hidden
    for name, share, note in (
        ("I/O hidden behind compute", hidden.share, hidden.basis),
        (
            "… of the slowest rank",
            hidden.slowest_share,
            "the rank with most I/O in each epoch" if _by_epoch(hidden) else "the rank with most I/O",
        ),
    ):
        yield (
            name,
            "–" if share is None else f"{share:.1%}".replace("%", " %"),
            note if share is not None else hidden.reason,
        )


def _by_epoch(hidden: Hidden) -> bool:
    return all(rank.epoch for rank in hidden.slowest)


def size_text(size_bin: SizeBin) -> str:
    if size_bin.high is None:
        return f"≥ {about_bytes(size_bin.low)}"
    if not size_bin.low:
        return "0 B" if size_bin.high == 1 else f"< {about_bytes(size_bin.high)}"
    return f"{about_bytes(size_bin.low)} – {about_bytes(size_bin.high)}"


@dataclass(frozen=True, slots=True)
class CharacterView:
    """`where`: which run; empty: there is but one."""

    name: str
    where: str
    character: Character
    findings: Sequence[Finding]
    given: Conditions
    show_all: bool = False

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        character, width = self.character, options.max_width
        where = f", {self.where}" if self.where else ""
        yield Text(f"{self.name}{where}: I/O characteristics{title_label(self.given)}", style="bold")
        rows = list(fact_rows(character))
        yield table(
            fitting(
                [
                    Column("", [Text(name) for name, _, _ in rows], right=False),
                    Column("value", [Text(value) for _, value, _ in rows], "bold"),
                    Column("", [Text(note) for _, _, note in rows], "dim", 1, right=False),
                ],
                width,
            )
        )
        for title, columns in _tables(character):
            yield Text(title, style="bold")
            yield table(fitting(columns, width))
        if (timeline := character.timeline) is not None:
            top = max(timeline.bytes_per_second)
            yield Text(
                f"Bandwidth over time: {about_bytes(top)}/s at most, in bins of {about_seconds(timeline.bin_seconds)} ({when_text(timeline.basis)})."
            )
        for part, reason in {**character.missing, **latency_missing(character.latency)}.items():
            yield Text(f"No {part}: {reason}.", style="dim")
        yield from finding_lines(self.findings, self.show_all)


def _tables(character: Character) -> Iterator[tuple[str, list[Column]]]:
    if character.sizes:
        yield "Transfer sizes", _size_columns(character.sizes)
    if len(character.tiers) > 1:
        yield "By tier", _tier_columns(character)
    if columns := latency_columns(character.latency):
        yield "Latency of one operation, in ranges: counted in powers of two", columns
    if character.formats:
        yield "By format", _format_columns(character)
    if character.files:
        yield f"Files with the most bytes, of {character.metrics['files'].value:,.0f}", _file_columns(character)
    if len(character.ranks) > 1:
        yield f"By rank (bandwidth over {character.bandwidth_basis} seconds)", _rank_columns(character)


def _size_columns(sizes: Sequence[SizeBin]) -> list[Column]:
    total, most = sum(size.reads for size in sizes), max(size.reads for size in sizes)
    return [
        Column("bytes", [Text(size_text(size)) for size in sizes]),
        Column("reads", [Text(f"{size.reads:,}") for size in sizes]),
        Column("share", [Text(f"{100 * size.reads / total:.1f} %") for size in sizes]),
        Column(
            "", [Text("█" * max(1, round(_BAR * size.reads / most)), "blue") for size in sizes], drop=1, right=False
        ),
    ]


def _tier_columns(character: Character) -> list[Column]:
    tiers = character.tiers
    time = Unit.of(max(max(tier.read_seconds, tier.meta_seconds, tier.write_seconds) for tier in tiers))
    columns = [
        Column("tier", [Text(tier.tier) for tier in tiers], right=False),
        Column("reads", [Text(f"{tier.reads:,}") for tier in tiers]),
        Column("read", [Text(about_bytes(tier.read_bytes)) for tier in tiers]),
        Column(f"READ {time.name}", [time.text(tier.read_seconds) for tier in tiers]),
        Column(f"META {time.name}", [time.text(tier.meta_seconds) for tier in tiers]),
    ]
    if any(tier.write_seconds for tier in tiers):
        columns.append(Column("written", [Text(about_bytes(tier.write_bytes)) for tier in tiers], drop=1))
        columns.append(Column(f"WRITE {time.name}", [time.text(tier.write_seconds) for tier in tiers], drop=1))
    return columns


def _format_columns(character: Character) -> list[Column]:
    formats = character.formats[:_MOST_FILES]
    time = Unit.of(max(use.seconds for use in formats))
    return [
        Column("format", [Text(use.name) for use in formats], right=False),
        Column("files", [Text("–" if use.files is None else f"{use.files:,}") for use in formats]),
        Column("reads", [Text(f"{use.reads:,}") for use in formats]),
        Column("read", [Text(about_bytes(use.read_bytes)) for use in formats]),
        Column(f"READ {time.name}", [time.text(use.seconds) for use in formats]),
    ]


def _file_columns(character: Character) -> list[Column]:
    files = character.files[:_MOST_FILES]
    time = Unit.of(max(file.seconds for file in files))
    return [
        Column("file", [Text(file.name) for file in files], right=False),
        Column("tier", [Text(file.tier) for file in files], right=False, drop=2),
        Column("ranks", [Text(f"{file.ranks:,}") for file in files], drop=1),
        Column("reads", [Text(f"{file.reads:,}") for file in files]),
        Column("read", [Text(about_bytes(file.read_bytes)) for file in files]),
        Column(f"READ {time.name}", [time.text(file.seconds) for file in files]),
        *(
            [Column("written", [Text(about_bytes(file.write_bytes)) for file in files], drop=1)]
            if any(file.write_bytes for file in files)
            else []
        ),
    ]


def some_ranks(ranks: Sequence[RankUse], most: int = _MOST_RANKS) -> list[RankUse]:
    """All, or the slowest, and then those that stand at even distances in the order of their bytes, the ends among them."""
    if len(ranks) <= most:
        return list(ranks)
    slowest = max(ranks, key=lambda rank: rank.io_seconds)
    ordered = sorted(ranks, key=lambda rank: (-rank.read_bytes - rank.write_bytes, rank.rank))
    even = _evenly(ordered, most)
    others = [rank for rank in ordered if rank is not slowest]
    return even if slowest in even else [slowest, *_evenly(others, most - 1)]


def _evenly(ranks: Sequence[RankUse], count: int) -> list[RankUse]:
    return [ranks[round(place * (len(ranks) - 1) / (count - 1))] for place in range(count)]


def _rank_columns(character: Character) -> list[Column]:
    ranks = some_ranks(character.ranks)
    time, most = Unit.of(max(rank.io_seconds for rank in ranks)), max(rank.read_bytes for rank in ranks) or 1
    written = [Text(about_bytes(rank.write_bytes)) for rank in ranks] if any(rank.write_bytes for rank in ranks) else []
    rates = ["–" if rank.bandwidth is None else f"{about_bytes(rank.bandwidth)}/s" for rank in ranks]
    header = "rank" if len(ranks) == len(character.ranks) else f"rank ({len(ranks)} of {len(character.ranks)})"
    return [
        Column(header, [Text(str(rank.rank)) for rank in ranks]),
        Column("reads", [Text(f"{rank.reads:,}") for rank in ranks]),
        Column("read", [Text(about_bytes(rank.read_bytes)) for rank in ranks]),
        Column("bandwidth", [Text(rate) for rate in rates]),
        *([Column("written", written, drop=1)] if written else []),
        Column(f"I/O {time.name}", [time.text(rank.io_seconds) for rank in ranks]),
        Column("", [Text("█" * round(_BAR * rank.read_bytes / most), "blue") for rank in ranks], drop=1, right=False),
    ]
