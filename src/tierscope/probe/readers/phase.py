"""What every reader hands over: runs of a benchmark with their phases, every number finite and above zero."""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

READ, OPEN, STAT, UNUSED = "read", "open", "stat", "unused"
LEAST_RATE, MOST_RATE = 1e-9, 1e18  # per second: less or more is a slip in a file
MOST_COUNT = 10**7
MOST_BYTES = 1 << 40  # of a read or a file
MOST_ROWS, MOST_COLUMNS, MOST_DOCUMENTS = 100_000, 1_000, 100_000
MOST_LINE = 4_096  # characters of a line that patterns look at
MIB, GIB = 2.0**20, 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkPhase:
    """What all processes of a phase did together.

    `operation`: READ in bytes per second; OPEN (a file opened, read and closed) and STAT in files per second; UNUSED says nothing of reading.
    `nbytes` of one read, of OPEN of the file that is read; None: the file does not say. `low` and `high` are of `repetitions` runs, or of the mean's uncertainty where the tool gives that.
    `op_seconds`: mean time of one read, where one alone was in flight.
    """

    name: str
    operation: str
    rate: float
    nodes: int | None = None
    processes: int | None = None
    depth: int = 1
    nbytes: int | None = None
    low: float | None = None
    high: float | None = None
    repetitions: int = 1
    op_seconds: float | None = None
    remark: str = ""  # what makes it doubtful

    @property
    def in_flight(self) -> int | None:
        return None if self.processes is None else self.processes * self.depth


@dataclass(frozen=True, slots=True)
class BenchmarkRun:
    """Phases of one run; `refused`: why no system can be made of it. `lines`: where it is in its file, for tables."""

    name: str
    phases: tuple[BenchmarkPhase, ...] = ()
    refused: str = ""
    line: int | None = None
    labels: tuple[str, ...] = ()  # what else a table calls it: several rows may have the same


@dataclass(frozen=True, slots=True)
class BenchmarkReader:
    """One tool. `recognises` looks at a whole text and must be cheap; `read` may raise ValueError with what is wrong."""

    tool: str
    looked_for: str
    recognises: Callable[[str], bool]
    read: Callable[[str], tuple[BenchmarkRun, ...]]


def squeezed(line: str) -> str:
    """With one blank instead of many, also at its start: patterns may take the square of blanks. Empty: longer than any tool's line."""
    if len(line) > MOST_LINE:
        return ""
    return " " * line[:1].isspace() + " ".join(line.split())


def positive(value: object, most: float = MOST_RATE) -> float | None:
    """A number above zero that a rate can be made of, with room to compute with it; None: anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if LEAST_RATE <= number <= most else None


def count(value: object, most: int = MOST_COUNT) -> int | None:
    """A whole number above zero; None: anything else."""
    number = positive(value, most)
    return int(number) if number is not None and number == int(number) else None


def count_bytes(value: object) -> int | None:
    """As `count`, of bytes: reads of 16 MiB are usual."""
    return count(value, MOST_BYTES)


class _DoubledKeyError(ValueError):
    """Apart from damage, which needs other advice."""


class _Repeating(dict[str, object]):
    """An object, and the first of its keys that has two different values."""

    twice = ""


def _refuse_doubled(value: object) -> None:
    for part in value if isinstance(value, list) else (value,):
        if isinstance(part, _Repeating) and part.twice:
            raise _DoubledKeyError(f"{part.twice[:64]} is given twice, with different values")


def json_documents(text: str, options: Sequence[str] = ()) -> Iterator[object]:
    """All JSON values of a text, one after another; other lines before the first are skipped, as fio writes warnings there. What is cut is a ValueError: a part is not the whole.
    So is a key with two different values. Tools repeat keys with equal values, which is harmless. `options`: under these keys the last value counts, as fio
    repeats options that were given twice."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        document = _Repeating(pairs)
        if len(document) < len(pairs):
            document.twice = next((name for name, part in pairs if part != document[name]), "")
        for name, part in document.items():
            if name not in options:
                _refuse_doubled(part)
        return document

    decoder = json.JSONDecoder(object_pairs_hook=once)
    place, documents = text.find("{"), 0
    while place >= 0:
        try:
            value, end = decoder.raw_decode(text, place)
        except RecursionError:
            raise ValueError("its JSON is nested too deeply") from None
        except _DoubledKeyError:
            raise
        except ValueError:
            raise ValueError(
                f"its JSON from line {text.count(chr(10), 0, place) + 1} on is cut short or damaged"
            ) from None
        _refuse_doubled(value)
        documents += 1
        if documents > MOST_DOCUMENTS:
            raise ValueError(f"has more than {MOST_DOCUMENTS:,} JSON documents")
        yield value
        place = text.find("{", end)


def table_rows(text: str) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Rows of a CSV with a header, by line and column; ValueError says what is wrong. A row may be shorter than the header, or longer."""
    lines = csv.reader(text.lstrip("\ufeff\r\n").splitlines())
    try:
        header = [name.strip() for name in next(lines, [])]
        if len(header) > MOST_COLUMNS:
            raise ValueError(f"has more than {MOST_COLUMNS:,} columns")
        twice = [name for name, times in Counter(header).items() if name and times > 1]
        if twice:
            raise ValueError(f"has two columns {twice[0][:40]}")
        for number, cells in enumerate(cells for cells in lines if cells):
            if number == MOST_ROWS:
                raise ValueError(f"has more than {MOST_ROWS:,} rows")
            yield lines.line_num, {name: cell for name, cell in zip(header, cells, strict=False) if name}
    except csv.Error as error:
        raise ValueError(f"line {lines.line_num}: {error}") from None


def section(value: object, name: str) -> Mapping[str, object]:
    """A mapping inside another one; empty where there is none."""
    part = value.get(name) if isinstance(value, dict) else None
    return part if isinstance(part, dict) else {}


def entries(value: object, name: str) -> list[object]:
    listed = value.get(name) if isinstance(value, dict) else None
    return listed if isinstance(listed, list) else []
