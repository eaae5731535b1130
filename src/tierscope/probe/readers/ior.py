"""IOR: its printed summary ("Summary of all tests:") and its JSON (`-O summaryFormat=JSON`)."""

import re
from collections.abc import Iterator, Mapping

from tierscope.probe.readers.phase import (
    MIB,
    READ,
    UNUSED,
    BenchmarkPhase,
    BenchmarkReader,
    BenchmarkRun,
    count,
    count_bytes,
    entries,
    json_documents,
    positive,
)

_SUMMARY = "Summary of all tests:"
_NAMES = {
    "Max(MiB)": "bwMaxMIB",
    "Min(MiB)": "bwMinMIB",
    "Mean(MiB)": "bwMeanMIB",
    "#Tasks": "numTasks",
    "tPN": "tasksPerNode",
    "reps": "repetitions",
    "xsize": "transferSize",
}
# What is above the results, by version: "tasks : 64" and "clients per node : 16", before 3.2 "clients = 64 (16 per node)".
_BLANKS = "[ \t]{0,200}"  # not of any length, and none that ends a line: a search would take the square of them
_NODES, _TASKS, _PER_NODE, _SIZE = (
    re.compile(pattern.replace("~", _BLANKS), re.MULTILINE)
    for pattern in (
        r"^~nodes~[:=]~([0-9]{1,9})~$",
        r"^~(?:tasks|clients)~[:=]~([0-9]{1,9})\b",
        r"^~clients(?: per node~:~|~=~[0-9]{1,9} \()([0-9]{1,9})\b",
        r"^~xfersize~[:=]~([0-9.]{1,20}) (bytes|KiB|MiB|GiB)~$",
    )
)
_UNITS = {"bytes": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def _recognises(text: str) -> bool:
    if _SUMMARY in text and re.search(r"^Operation[ \t]+Max\(MiB\)", text, re.MULTILINE):
        return True
    return '"bwMaxMIB"' in text and '"summary"' in text


def _read(text: str) -> tuple[BenchmarkRun, ...]:
    if _SUMMARY in text:
        phases = tuple(_of_text(text))
    else:
        lines = (line for document in json_documents(text) for line in entries(document, "summary"))
        phases = tuple(_phase(line, None) for line in lines if isinstance(line, dict) and _is_rate(line))
    return (BenchmarkRun("ior", phases),)


def _of_text(text: str) -> Iterator[BenchmarkPhase]:
    above = _above(text)
    header: list[str] = []
    for line in text[text.index(_SUMMARY) :].splitlines()[1:]:
        words = line.split()
        if words[:1] == ["Operation"]:
            header = words
        elif header and words and words[0] in ("read", "write"):
            # Each name is one word, and so is each value.
            row = dict(zip(header, words, strict=False)) if len(words) == len(header) else {}
            named: dict[str, object] = {theirs: row.get(ours, above.get(theirs)) for ours, theirs in _NAMES.items()}
            named["operation"] = words[0]
            if _is_rate(named):
                yield _phase(named, above.get("nodes"))


def _above(text: str) -> dict[str, int | None]:
    """What the options say that are printed before the results, for summaries that are cut behind their rates."""
    nodes, tasks, per_node, size = (pattern.search(text) for pattern in (_NODES, _TASKS, _PER_NODE, _SIZE))
    transfer = positive(size[1]) if size else None
    return {
        "nodes": count(nodes[1]) if nodes else None,
        "numTasks": count(tasks[1]) if tasks else None,
        "tasksPerNode": count(per_node[1]) if per_node else None,
        "transferSize": round(transfer * _UNITS[size[2]]) if size and transfer else None,
    }


def _is_rate(line: Mapping[str, object]) -> bool:
    return positive(line.get("bwMeanMIB")) is not None


def _phase(line: Mapping[str, object], nodes: int | None) -> BenchmarkPhase:
    mean, low, high = (positive(line.get(name)) for name in ("bwMeanMIB", "bwMinMIB", "bwMaxMIB"))
    assert mean is not None
    tasks, per_node = count(line.get("numTasks")), count(line.get("tasksPerNode"))
    repetitions = count(line.get("repetitions")) or 1
    operation = str(line.get("operation"))
    several = repetitions > 1
    return BenchmarkPhase(
        name=f"IOR {operation[:20]}",
        operation=READ if operation == "read" else UNUSED,
        rate=mean * MIB,
        nodes=nodes or (-(-tasks // per_node) if tasks and per_node else None),
        processes=tasks,
        nbytes=count_bytes(line.get("transferSize")),
        low=min(low, mean) * MIB if several and low else None,
        high=max(high, mean) * MIB if several and high else None,
        repetitions=repetitions,
    )


IOR = BenchmarkReader(
    "IOR", "'Summary of all tests:' with Max(MiB), or JSON with summary and bwMaxMIB", _recognises, _read
)
