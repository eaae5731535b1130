"""How a run reads, and how alike two runs do: the words for it, and the tables for the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tierscope.analysis.character_metrics import METRICS, Fact
from tierscope.analysis.character_ops import SizeBin
from tierscope.analysis.characterise import Character, RankUse
from tierscope.analysis.conditions import Conditions
from tierscope.analysis.similarity import Compared, Similarity
from tierscope.analysis.wording import Finding
from tierscope.report.parts import Column, Unit, finding_lines, fitting, table, title_label
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
}
_BASES = {
    "operations": "of single operations",
    "histogram": "of a histogram",
    "counters": "of the log's counters",
    "study": "as the study says",
    "exact": "",
    "sized": "of reads whose sizes are known, as in the histogram; Darshan tells none of stdio's",
    "wall": "by wall seconds",
    "busy": "by busy seconds",
}
_WHEN = {
    "operations": "when each operation ran",
    "steps": "bytes of a rank over its steps, each an equal part: coarser than single operations (--ops)",
    "epochs": "bytes of a rank over its epoch: one value each",
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
        for name, unit, fact in (
            ("writes", "", Fact(float(written.writes))),
            ("mean write", "B", written.mean),
            ("sequential, of all writes", "%", written.sequential_percent),
            ("consecutive, of all writes", "%", written.consecutive_percent),
        ):
            yield name, fact_text(unit, fact), fact_note(unit, fact)
    hidden = character.hidden
    for name, share, note in (
        ("I/O hidden behind compute", hidden.share, "1 − stall ÷ I/O wall seconds"),
        ("… of the slowest rank", hidden.slowest_share, "the one with most I/O in each epoch"),
    ):
        yield (
            name,
            "–" if share is None else f"{share:.1%}".replace("%", " %"),
            note if share is not None else hidden.reason,
        )


def size_text(one: SizeBin) -> str:
    if one.high is None:
        return f"≥ {about_bytes(one.low)}"
    if not one.low:
        return "0 B" if one.high == 1 else f"< {about_bytes(one.high)}"
    return f"{about_bytes(one.low)} – {about_bytes(one.high)}"


@dataclass(frozen=True, slots=True)
class CharacterView:
    """`where`: which run; empty: there is but one."""

    name: str
    where: str
    character: Character
    findings: Sequence[Finding]
    given: Conditions

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        character, width = self.character, options.max_width
        where = f", {self.where}" if self.where else ""
        yield Text(f"{self.name}{where}: how it reads{title_label(self.given)}", style="bold")
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
        for part, reason in character.missing.items():
            yield Text(f"No {part}: {reason}.", style="dim")
        yield from finding_lines(self.findings)


def _tables(character: Character) -> Iterator[tuple[str, list[Column]]]:
    if character.sizes:
        yield "Transfer sizes", _size_columns(character.sizes)
    if len(character.tiers) > 1:
        yield "By tier", _tier_columns(character)
    if character.formats:
        yield "By format", _format_columns(character)
    if character.files:
        yield f"Files with most bytes, of {character.metrics['files'].value:,.0f}", _file_columns(character)
    if len(character.ranks) > 1:
        yield f"By rank (bandwidth over {character.bandwidth_basis} seconds)", _rank_columns(character)


def _size_columns(sizes: Sequence[SizeBin]) -> list[Column]:
    total, most = sum(one.reads for one in sizes), max(one.reads for one in sizes)
    return [
        Column("bytes", [Text(size_text(one)) for one in sizes]),
        Column("reads", [Text(f"{one.reads:,}") for one in sizes]),
        Column("share", [Text(f"{100 * one.reads / total:.1f} %") for one in sizes]),
        Column("", [Text("█" * max(1, round(_BAR * one.reads / most)), "blue") for one in sizes], drop=1, right=False),
    ]


def _tier_columns(character: Character) -> list[Column]:
    tiers = character.tiers
    time = Unit.of(max(max(one.read_seconds, one.meta_seconds, one.write_seconds) for one in tiers))
    columns = [
        Column("tier", [Text(one.tier) for one in tiers], right=False),
        Column("reads", [Text(f"{one.reads:,}") for one in tiers]),
        Column("read", [Text(about_bytes(one.read_bytes)) for one in tiers]),
        Column(f"READ {time.name}", [time.text(one.read_seconds) for one in tiers]),
        Column(f"META {time.name}", [time.text(one.meta_seconds) for one in tiers]),
    ]
    if any(one.write_seconds for one in tiers):
        columns.append(Column("written", [Text(about_bytes(one.write_bytes)) for one in tiers], drop=1))
        columns.append(Column(f"WRITE {time.name}", [time.text(one.write_seconds) for one in tiers], drop=1))
    return columns


def _format_columns(character: Character) -> list[Column]:
    formats = character.formats[:_MOST_FILES]
    time = Unit.of(max(one.seconds for one in formats))
    return [
        Column("format", [Text(one.name) for one in formats], right=False),
        Column("files", [Text("–" if one.files is None else f"{one.files:,}") for one in formats]),
        Column("reads", [Text(f"{one.reads:,}") for one in formats]),
        Column("read", [Text(about_bytes(one.read_bytes)) for one in formats]),
        Column(f"READ {time.name}", [time.text(one.seconds) for one in formats]),
    ]


def _file_columns(character: Character) -> list[Column]:
    files = character.files[:_MOST_FILES]
    time = Unit.of(max(one.seconds for one in files))
    return [
        Column("file", [Text(one.name) for one in files], right=False),
        Column("tier", [Text(one.tier) for one in files], right=False, drop=2),
        Column("ranks", [Text(f"{one.ranks:,}") for one in files], drop=1),
        Column("reads", [Text(f"{one.reads:,}") for one in files]),
        Column("read", [Text(about_bytes(one.read_bytes)) for one in files]),
        Column(f"READ {time.name}", [time.text(one.seconds) for one in files]),
        *(
            [Column("written", [Text(about_bytes(one.write_bytes)) for one in files], drop=1)]
            if any(one.write_bytes for one in files)
            else []
        ),
    ]


def some_ranks(ranks: Sequence[RankUse], most: int = _MOST_RANKS) -> list[RankUse]:
    """All, or those that stand at even distances in the order of their bytes, the ends among them."""
    if len(ranks) <= most:
        return list(ranks)
    ordered = sorted(ranks, key=lambda one: (-one.read_bytes - one.write_bytes, one.rank))
    return [ordered[round(place * (len(ordered) - 1) / (most - 1))] for place in range(most)]


def _rank_columns(character: Character) -> list[Column]:
    ranks = some_ranks(character.ranks)
    time, most = Unit.of(max(one.io_seconds for one in ranks)), max(one.read_bytes for one in ranks) or 1
    written = [Text(about_bytes(one.write_bytes)) for one in ranks] if any(one.write_bytes for one in ranks) else []
    rates = ["–" if one.bandwidth is None else f"{about_bytes(one.bandwidth)}/s" for one in ranks]
    header = "rank" if len(ranks) == len(character.ranks) else f"rank ({len(ranks)} of {len(character.ranks)})"
    return [
        Column(header, [Text(str(one.rank)) for one in ranks]),
        Column("reads", [Text(f"{one.reads:,}") for one in ranks]),
        Column("read", [Text(about_bytes(one.read_bytes)) for one in ranks]),
        Column("bandwidth", [Text(rate) for rate in rates]),
        *([Column("written", written, drop=1)] if written else []),
        Column(f"I/O {time.name}", [time.text(one.io_seconds) for one in ranks]),
        Column("", [Text("█" * round(_BAR * one.read_bytes / most), "blue") for one in ranks], drop=1, right=False),
    ]


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of two that are compared: what the user called it, and which run it is."""

    path: str
    name: str
    where: str
    label: str = ""  # emulated or simulated

    @property
    def text(self) -> str:
        where = f", {self.where}" if self.where else ""
        return f"{self.path} ({self.name}{where}){self.label}"


@dataclass(frozen=True, slots=True)
class SimilarityView:
    sides: tuple[ComparedRun, ComparedRun]
    found: Similarity

    def __rich_console__(self, _console: Console, options: ConsoleOptions) -> RenderResult:
        found = self.found
        for letter, side in zip("AB", self.sides, strict=True):
            yield Text(f"{letter}: {side.text}")
        if found.metrics:
            yield table(fitting(_similarity_columns(found), options.max_width))
        yield Text(cosine_sentence(found), style="bold")
        if found.largest is not None and found.largest.difference:
            yield Text(largest_sentence(found.largest))
        if any(one.at_least for one in found.metrics):
            yield Text("≥: one of the two is known within limits only; the difference is at least that.", style="dim")
        for one in found.left_out:
            yield Text(f"Left out: {NAMES[one.name]} ({one.reason}).", style="dim")


def cosine_sentence(found: Similarity) -> str:
    if found.cosine is None:
        return "No metric is known of both, so there is no similarity."
    n = len(found.metrics)
    return f"Cosine similarity {found.cosine:.4f} (n={n} of {len(METRICS)} metrics); it is 1 also where every metric of one is half the other's: see the differences."


def largest_sentence(largest: Compared) -> str:
    unit = METRICS[largest.name]
    pair = f"{value_text(unit, largest.first)} and {value_text(unit, largest.second)}"
    return f"Largest difference: {NAMES[largest.name]}, {difference_text(largest)} ({pair})."


def difference_text(one: Compared) -> str:
    percent = 100 * one.difference
    text = "0.0 %" if abs(percent) < 0.05 else f"{percent:+.1f} %".replace("-", "−")
    return (
        f"≥ {text.lstrip('+')}"
        if one.at_least and one.difference > 0
        else f"≤ {text}"
        if one.at_least and one.difference < 0
        else text
    )


def _similarity_columns(found: Similarity) -> list[Column]:
    metrics = found.metrics
    return [
        Column("metric", [Text(NAMES[one.name]) for one in metrics], right=False),
        Column("A", [Text(value_text(METRICS[one.name], one.first)) for one in metrics]),
        Column("B", [Text(value_text(METRICS[one.name], one.second)) for one in metrics]),
        Column("(A − B) ÷ larger", [Text(difference_text(one)) for one in metrics], "bold"),
        Column(
            "",
            [Text("◀ largest" if one is found.largest and one.difference else "") for one in metrics],
            right=False,
            drop=1,
        ),
    ]
