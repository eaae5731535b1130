"""elbencho: its printed table (`--resfile`), `--csvfile` and `--jsonfile`. "Last done" is what counts: until the slowest thread was done."""

import re
from collections.abc import Iterator, Mapping

from tierscope.probe.readers.phase import (
    MIB,
    OPEN,
    READ,
    STAT,
    UNUSED,
    BenchmarkPhase,
    BenchmarkReader,
    BenchmarkRun,
    count,
    count_bytes,
    json_documents,
    positive,
    section,
    squeezed,
    table_rows,
)

_TABLE = re.compile(r"^OPERATION[ \t]+RESULT TYPE[ \t]+FIRST DONE[ \t]+LAST DONE", re.MULTILINE)
_ROW = re.compile(r"([A-Z][A-Z0-9]{1,20})? ([A-Za-z][A-Za-z/ ]{1,24}?) ?: (\S{1,30}) (\S{1,30})")
_THREADS = re.compile(r"""["\s](?:-t|--threads)["\s=]+"?([0-9]{1,7})""")
_BLOCK = re.compile(r"""["\s](?:-b|--block)["\s=]+"?([0-9]{1,12})([kKmMgG]?)""")
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def _recognises(text: str) -> bool:
    header = text.lstrip("\ufeff\r\n").partition("\n")[0]
    is_csv = "MiB/s [last]" in header and "operation" in header
    return is_csv or bool(_TABLE.search(text)) or ('"phase_type"' in text and '"last_done"' in text)


def _read(text: str) -> tuple[BenchmarkRun, ...]:
    if _TABLE.search(text):
        phases = tuple(_of_text(text))
    elif '"phase_type"' in text and '"last_done"' in text:
        phases = tuple(phase for document in json_documents(text) for phase in _of_json(document))
    else:
        phases = tuple(_of_csv(text))
    return (BenchmarkRun("elbencho", phases),)


def _of_csv(text: str) -> Iterator[BenchmarkPhase]:
    for _, row in table_rows(text):
        rates = {"bytes": _times(row.get("MiB/s [last]"), MIB), "entries": positive(row.get("entries/s [last]"))}
        yield from _phases(row.get("operation", ""), rates, _Shape.of_csv(row))


def _of_json(document: object) -> Iterator[BenchmarkPhase]:
    """Of one phase; numbers are texts there."""
    done, given = section(document, "last_done"), section(document, "config")
    name = document.get("phase_type") if isinstance(document, dict) else ""
    rates = {"bytes": positive(done.get("bytes/s")), "entries": positive(done.get("entries/s"))}
    yield from _phases(str(name), rates, _Shape.of_json(given))


def _of_text(text: str) -> Iterator[BenchmarkPhase]:
    """The table itself does not say how many threads there were; a 'COMMAND LINE:' before it may."""
    shape = _Shape.of_command(text)
    operation, rates = "", dict[str, float | None]()
    for line in [*text.splitlines(), "---"]:
        row = _ROW.fullmatch(squeezed(line))
        if (row and row[1]) or line.startswith("---"):
            yield from _phases(operation, rates, shape)
            operation, rates = row[1] if row and row[1] else "", {}
        if row and row[2] == "Throughput MiB/s":
            rates["bytes"] = _times(row[4], MIB)
        elif row and row[2] in ("Files/s", "Objects/s"):
            rates["entries"] = positive(row[4])


class _Shape:
    """Hosts, threads of all of them, reads in flight of each, bytes of a read; None: not said."""

    def __init__(self, hosts: object, threads: object, depth: object, block: object) -> None:
        self.hosts, per_host = count(hosts), count(threads)
        self.processes = per_host * (self.hosts or 1) if per_host else None
        self.depth, self.block = count(depth) or 1, count_bytes(block)

    @classmethod
    def of_csv(cls, row: Mapping[str, str]) -> "_Shape":
        return cls(row.get("hosts"), row.get("threads"), row.get("IO depth"), row.get("block size"))

    @classmethod
    def of_json(cls, given: Mapping[str, object]) -> "_Shape":
        return cls(given.get("hosts"), given.get("threads"), given.get("io_depth"), given.get("block_size"))

    @classmethod
    def of_command(cls, text: str) -> "_Shape":
        command = next((line for line in text.splitlines() if "elbencho" in line), "")[:10_000]
        threads, block = _THREADS.search(command), _BLOCK.search(command)
        nbytes = int(block[1]) * _UNITS[block[2].lower()] if block else None
        return cls(None, threads[1] if threads else None, None, nbytes)


def _phases(operation: str, rates: Mapping[str, float | None], shape: _Shape) -> Iterator[BenchmarkPhase]:
    """Reading files opens each: where files are counted, so are opens."""
    kinds = {"READ": (("bytes", READ), ("entries", OPEN)), "STAT": (("entries", STAT),)}
    for which, kind in kinds.get(operation, (("bytes", UNUSED),)):
        if rate := rates.get(which):
            yield BenchmarkPhase(
                name=f"elbencho {operation[:20]}" + (", files" if kind == OPEN else ""),
                operation=kind,
                rate=rate,
                nodes=shape.hosts,
                processes=shape.processes,
                depth=shape.depth,
                nbytes=shape.block if kind == READ else _file_bytes(rates),
            )


def _file_bytes(rates: Mapping[str, float | None]) -> int | None:
    """Of every file as much as was read of it on average."""
    nbytes, files = rates.get("bytes"), rates.get("entries")
    return count_bytes(max(1, round(nbytes / files))) if nbytes and files else None


def _times(value: object, unit: float) -> float | None:
    number = positive(value, 1e12)
    return None if number is None else number * unit


ELBENCHO = BenchmarkReader(
    "elbencho",
    "its table 'OPERATION RESULT TYPE', a CSV with MiB/s [last], or JSON with phase_type and last_done",
    _recognises,
    _read,
)
