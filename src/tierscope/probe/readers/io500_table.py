"""A table of IO500 submissions: one row each, columns by phase (`ior-easy-read`, …) with `nodes` and `tasks`."""

import csv
from collections.abc import Mapping
from dataclasses import replace

from tierscope.probe.readers.io500 import PHASES, phase_of
from tierscope.probe.readers.phase import READ, BenchmarkReader, BenchmarkRun, count, table_rows

_MOST_HEADER = 100_000
_NAMED_BY = ("submission", "system", "name")


def _header(text: str) -> list[str]:
    """Lines may end as on any system."""
    lines = text[:_MOST_HEADER].lstrip("\ufeff\r\n").splitlines()
    return next(csv.reader(lines[:1]), [])


def _recognises(text: str) -> bool:
    return "ior-easy-read" in (header := [name.strip() for name in _header(text)]) and len(header) > 1


def _read(text: str) -> tuple[BenchmarkRun, ...]:
    return tuple(replace(_run(row, line), labels=_labels(row)) for line, row in table_rows(text))


def _labels(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(text.strip() for key in _NAMED_BY if (text := row.get(key)) and text.strip())


def _run(row: Mapping[str, str], line: int) -> BenchmarkRun:
    name = next(iter(_labels(row)), f"line {line}")
    given = [phase for phase in PHASES if row.get(phase, "").strip()]
    if not given:
        return BenchmarkRun(name, refused="it has no figures: all columns of phases are empty", line=line)
    nodes, tasks = count(row.get("nodes")), count(row.get("tasks"))
    phases = tuple(read_phase for phase in given if (read_phase := phase_of(phase, row[phase], nodes, tasks)))
    if not any(phase.operation == READ for phase in phases):
        return BenchmarkRun(name, phases, "neither ior-easy-read nor ior-hard-read is a number above 0", line)
    return BenchmarkRun(name, phases, line=line)


IO500_TABLE = BenchmarkReader("IO500 table", "a CSV header with ior-easy-read", _recognises, _read)
