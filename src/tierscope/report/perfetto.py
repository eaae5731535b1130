"""A result for the viewer of Perfetto (ui.perfetto.dev): ranks as processes, and what they did as slices.

With a list of operations (`--ops`) the slices are the operations, where they were in time. Without, only sums are known: then an epoch's
classes, compute and stall are laid end to end on tracks of their own, and say that they are sums.
"""

import gzip
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO

import polars as pl

from tierscope.analysis.breakdown import sweep_text
from tierscope.analysis.times import ClassTimes
from tierscope.output.durable import writing_named
from tierscope.trace.ops import class_name

Event = dict[str, Any]

_MICROSECONDS = 1e6
_ROWS = 50_000
_TRACKS = {"I/O (sums)": 0, "compute": 1, "stall": 2}


def write_perfetto(path: str, events: Iterable[Event], name: str) -> None:
    """JSON as Chrome and Perfetto read it, event by event; compressed where the name ends in .gz."""
    with writing_named(path) as file, _opened(file, path) as out:
        out.write(json.dumps({"otherData": {"made_by": "tierscope", "name": name}, "displayTimeUnit": "ms"})[:-1])
        out.write(', "traceEvents": [\n')
        for number, event in enumerate(events):
            out.write((",\n" if number else "") + json.dumps(event))
        out.write("\n]}\n")


@contextmanager
def _opened(file: BinaryIO, path: str) -> Iterator[IO[str]]:
    """Text that is in the file when the block ends, which stays open."""
    inner = gzip.GzipFile(fileobj=file, mode="wb") if path.endswith(".gz") else None
    text = io.TextIOWrapper(inner or file, encoding="utf-8", write_through=False)
    yield text
    text.flush()
    text.detach()
    if inner is not None:
        inner.close()


def events_of_ops(lists: Iterable[pl.LazyFrame]) -> Iterator[Event]:
    """Every operation, from the lists of all nodes; a rank is a process, a lane a thread."""
    named: set[int] = set()
    for rows in lists:
        for start in range(0, rows.select(pl.len()).collect().item(), _ROWS):
            for row in rows.slice(start, _ROWS).collect().iter_rows(named=True):
                rank = -1 if row["rank"] is None else row["rank"]
                if rank not in named:
                    named.add(rank)
                    yield _process(rank, f"rank {rank}" if rank >= 0 else "no rank")
                yield {
                    "ph": "X",
                    "name": row["kind"],
                    "cat": class_name(row["tier"], row["kind"]),
                    "pid": rank,
                    "tid": row["lane"],
                    "ts": row["start_seconds"] * _MICROSECONDS,
                    "dur": row["seconds"] * _MICROSECONDS,
                    "args": {name: row[name] for name in ("tier", "epoch", "step", "file", "offset", "bytes")},
                }


def events_of_sums(times: ClassTimes) -> Iterator[Event]:
    """Epoch after epoch of every point, each as long as its longest rank."""
    start = 0.0
    known = _loop(times)
    for rank in sorted(times.table["rank"].unique().to_list()):
        yield _process(rank, f"rank {rank}")
        yield from (_thread(rank, number, name) for name, number in _TRACKS.items())
    for part in times.table.partition_by(times.keys, maintain_order=True):
        key = part.select(times.keys).row(0)
        where = sweep_text(dict(zip(times.sweep, key, strict=False)))
        longest = 0.0
        for rank, rows in part.group_by("rank", maintain_order=True):
            spent = [
                (name, _TRACKS["I/O (sums)"], seconds) for name, seconds in rows.select("class", "seconds").iter_rows()
            ]
            loop = known.get((*key, rank[0]), {})
            spent += [(name, _TRACKS[name], seconds) for name, seconds in loop.items() if name in _TRACKS and seconds]
            ends = dict.fromkeys(_TRACKS.values(), 0.0)
            for name, track, seconds in spent:
                if seconds > 0:
                    yield _slice(
                        rank[0], track, name, start + ends[track], seconds, {"epoch": key[-1], "at": where, "sum": True}
                    )
                    ends[track] += seconds
            longest = max(longest, *ends.values(), loop.get("epoch") or 0.0)
        start += longest


def _loop(times: ClassTimes) -> dict[tuple[Any, ...], dict[str, float | None]]:
    """(point, repetition, epoch, rank) → what is known beside I/O."""
    if times.epochs.is_empty():
        return {}
    columns = {"compute": "compute_seconds", "stall": "stall_seconds", "epoch": "epoch_seconds"}
    return {
        tuple(row[name] for name in (*times.keys, "rank")): {name: row[column] for name, column in columns.items()}
        for row in times.epochs.select(*times.keys, "rank", *columns.values()).iter_rows(named=True)
    }


def _slice(rank: int, track: int, name: str, start: float, seconds: float, args: dict[str, Any]) -> Event:
    times = {"ts": start * _MICROSECONDS, "dur": seconds * _MICROSECONDS}
    return {"ph": "X", "name": name, "cat": "sum", "pid": rank, "tid": track, **times, "args": args}


def _process(rank: int, name: str) -> Event:
    return {"ph": "M", "name": "process_name", "pid": rank, "args": {"name": name}}


def _thread(rank: int, track: int, name: str) -> Event:
    return {"ph": "M", "name": "thread_name", "pid": rank, "tid": track, "args": {"name": name}}
