"""mdtest: its printed "SUMMARY rate" ("SUMMARY:" before 3.0). "File read" opens, reads and closes a file; "File stat" looks at one.

With --show-perrank-statistics three columns of single ranks come first.
"""

import re
from collections.abc import Iterator

from tierscope.probe.readers.phase import (
    MOST_LINE,
    OPEN,
    STAT,
    UNUSED,
    BenchmarkPhase,
    BenchmarkReader,
    BenchmarkRun,
    count,
    positive,
    squeezed,
)

_LAUNCHED = re.compile(r"launched with ([0-9]{1,9}) total task\(s\) on ([0-9]{1,9}) node\(s\)")
_ROW = re.compile(r" ((?:File|Directory|Tree) [a-z]{1,20}) ?:?(?:(?: [0-9.eE+-]{1,30}){3})?((?: [0-9.eE+-]{1,30}){4})")
_SUMMARY = re.compile(r"^SUMMARY( rate| time)?[^:\n]{0,40}:", re.MULTILINE)
_ITERATIONS = re.compile(r"of ([0-9]{1,9}) iterations")
_OPERATIONS = {"File read": OPEN, "File stat": STAT}


def _recognises(text: str) -> bool:
    return bool(_SUMMARY.search(text)) and "Std Dev" in text


def _read(text: str) -> tuple[BenchmarkRun, ...]:
    return (BenchmarkRun("mdtest", tuple(_phases(text))),)


def _phases(text: str) -> Iterator[BenchmarkPhase]:
    """Every summary of rates in the text; one of times is left out."""
    launched = _LAUNCHED.search(text)
    tasks, nodes = (count(launched[1]), count(launched[2])) if launched else (None, None)
    inside, repetitions = False, 1
    for line in text.splitlines():
        if line.startswith("SUMMARY"):
            title = _SUMMARY.match(line[:MOST_LINE])
            inside = title is not None and title[1] != " time"
            match = _ITERATIONS.search(line[:MOST_LINE])
            repetitions = (count(match[1]) if match else None) or 1
        row = _ROW.fullmatch(squeezed(line)) if inside else None
        if row is None:
            continue
        high, low, mean = (positive(number) for number in row[2].split()[:3])
        if mean is None:  # a phase that was not run has 0
            continue
        several = repetitions > 1
        yield BenchmarkPhase(
            name=f"mdtest {row[1]}",
            operation=_OPERATIONS.get(row[1], UNUSED),
            rate=mean,
            nodes=nodes,
            processes=tasks,
            low=min(low, mean) if several and low else None,
            high=max(high, mean) if several and high else None,
            repetitions=repetitions,
        )


MDTEST = BenchmarkReader("mdtest", "'SUMMARY rate:' with Max, Min, Mean and Std Dev", _recognises, _read)
