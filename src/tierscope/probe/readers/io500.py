"""IO500: `result_summary.txt` (a line for each phase) and `result.txt` (a section for each phase).

Neither says how many nodes there were: `--nodes` and `--ranks` do.
"""

import re
from collections.abc import Iterator

from tierscope.probe.readers.phase import (
    GIB,
    OPEN,
    READ,
    STAT,
    UNUSED,
    BenchmarkPhase,
    BenchmarkReader,
    BenchmarkRun,
    count_bytes,
    positive,
)

EASY_BYTES, HARD_BYTES = 2 << 20, 47008  # of a read: IO500's rules; easy may be changed, and is rarely
PHASES = {
    "ior-easy-read": (READ, EASY_BYTES),
    "ior-hard-read": (READ, HARD_BYTES),
    "mdtest-hard-read": (OPEN, None),
    "mdtest-easy-stat": (STAT, None),
    "mdtest-hard-stat": (STAT, None),
    "ior-easy-write": (UNUSED, None),
    "ior-hard-write": (UNUSED, None),
    "mdtest-easy-write": (UNUSED, None),
    "mdtest-hard-write": (UNUSED, None),
    "mdtest-easy-delete": (UNUSED, None),
    "mdtest-hard-delete": (UNUSED, None),
    "find": (UNUSED, None),
}
_LINE = re.compile(
    r"^\[(RESULT[^\]\n]{0,40})\][ \t]+([a-z0-9-]{1,40})[ \t]+([0-9.eE+-]{1,30})[ \t]+(GiB/s|kIOPS)\b(.*)$", re.MULTILINE
)
_SECTION = re.compile(r"^\[([a-z0-9-]{1,40})\][ \t]*$", re.MULTILINE)
_SCORE = re.compile(r"^score[ \t]*=[ \t]*([0-9.eE+-]{1,30})[ \t]*$", re.MULTILINE)
_TRANSFER = re.compile(r"\s-t[ \t=]{0,8}([0-9]{1,12})([kmg]?)\b")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def phase_of(
    name: str,
    score: object,
    nodes: int | None = None,
    tasks: int | None = None,
    nbytes: int | None = None,
    remark: str = "",
) -> BenchmarkPhase | None:
    """A phase by IO500's name, in its units (GiB/s, kIOPS); None: no number, or no such phase."""
    if name not in PHASES or (number := positive(score)) is None:
        return None
    operation, usual = PHASES[name]
    rate = number * (GIB if name.startswith("ior") else 1000.0)
    return BenchmarkPhase(
        name=name, operation=operation, rate=rate, nodes=nodes, processes=tasks, nbytes=nbytes or usual, remark=remark
    )


def _recognises(text: str) -> bool:
    return bool(_LINE.search(text)) or bool(re.search(r"^\[ior-(easy|hard)-read\][ \t]*$", text, re.MULTILINE))


def _read(text: str) -> tuple[BenchmarkRun, ...]:
    phases = tuple(_of_lines(text)) or tuple(_of_sections(text))
    return (BenchmarkRun("io500", phases),)


def _of_lines(text: str) -> Iterator[BenchmarkPhase]:
    for label, name, score, _, rest in _LINE.findall(text):
        invalid = "invalid" in label.lower() or "[INVALID]" in rest
        if phase := phase_of(name, score, remark="marked invalid by IO500" if invalid else ""):
            yield phase


def _of_sections(text: str) -> Iterator[BenchmarkPhase]:
    parts = _SECTION.split(text)
    for name, body in zip(parts[1::2], parts[2::2], strict=True):
        score = _SCORE.search(body)
        transfer = _TRANSFER.search(body)
        nbytes = count_bytes(int(transfer[1]) * _UNITS[transfer[2]]) if transfer and name.startswith("ior") else None
        if score and (phase := phase_of(name, score[1], nbytes=nbytes)):
            yield phase


IO500 = BenchmarkReader(
    "IO500", "lines like '[RESULT] ior-easy-read 2.1 GiB/s', or sections [ior-easy-read]", _recognises, _read
)
