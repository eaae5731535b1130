"""Lines as DFTracer writes them, versions 1 and 2, made by hand."""

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HOST = 9509357668201227806
START = 1_744_611_912_000_000  # µs
Line = dict[str, Any]


def file_hash(path: str) -> int:
    """Beyond 63 bits, as real ones are."""
    return (1 << 63) + int.from_bytes(path.encode(), "big") % (2**61 - 1)


def call(name: str, path: str | None, ts: int, dur: int, pid: int = 1, tid: int | None = None, **more: Any) -> Line:
    file = {} if path is None else {"fhash": file_hash(path)}
    return complete(name, ts, dur, pid, tid, more.pop("cat", "POSIX"), **file, **more)


def complete(name: str, ts: int, dur: int, pid: int = 1, tid: int | None = None, cat: str = "app", **args: Any) -> Line:
    head = {"id": 7, "name": name, "cat": cat, "pid": pid, "tid": pid if tid is None else tid}
    return {**head, "ts": START + ts, "dur": dur, "ph": "X", "args": {"hhash": args.pop("host", HOST), **args}}


def metadata(kind: str, name: str, value: object, pid: int = 1, host: int = HOST) -> Line:
    head = {"id": 7, "name": kind, "cat": "dftracer", "pid": pid, "tid": pid, "ph": "M"}
    return {**head, "args": {"hhash": host, "name": name, "value": value}}


def named(*paths: str) -> list[Line]:
    return [metadata("FH", path, file_hash(path)) for path in paths]


def began(pid: int = 1, ts: int = 0, parent: int = 99_999, host: int = HOST) -> list[Line]:
    started = complete("start", ts, 0, pid, cat="dftracer", host=host, version=100008, ppid=parent, cmd_hash=5)
    return [metadata("HH", f"node{host % 1000}", host, pid, host), started]


def as_version_2(line: Line) -> Line:
    """Phases are numbers, hashes are text, and there is a type; metadata has no number."""
    args = {key: f"{value:x}" if key in ("hhash", "fhash") else value for key, value in line["args"].items()}
    if line["name"] in ("FH", "HH"):
        args["value"] = f"{args['value']:x}"
    head: Line = {
        key: line[key] for key in ("id", "name", "cat") if key in line and not (key == "id" and line["ph"] == "M")
    }
    rest: Line = {key: line[key] for key in ("pid", "tid", "ts", "dur") if key in line}
    return {**head, "type": 3, **rest, "ph": 1 if line["ph"] == "X" else 4, "args": args}


def text_of(lines: Iterable[Line], compact: bool = True) -> bytes:
    """`compact`: as DFTracer does; else in a shape that only a JSON decoder reads."""
    separators = (",", ":") if compact else (", ", " : ")
    return b"".join(json.dumps(line, separators=separators).encode() + b"\n" for line in lines)


def write(path: Path, lines: Iterable[Line], compact: bool = True) -> str:
    """Version 1 has brackets around all lines, and no end of line behind the last."""
    content = text_of(lines, compact)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(content))
    else:
        path.write_bytes(b"[\n" + content + b"]")
    return str(path)
