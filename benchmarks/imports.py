"""Logs of other profilers: from files to a Trace in memory, beside what their own readers or a JSON decoder take.

Every contender runs in a fresh process. Its time begins when its modules are imported; its memory is that of the process and, as long as that
lives, of the one that calls libdarshan-util for it: their peaks added, so rather too much than too little. The logs are made up (`big_logs.py`).
"""

import glob
import gzip
import importlib
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.big_logs import Job, real_log, write_darshan, write_dftracer
from benchmarks.common import Result, interleaved, memory_folder, ratio, spread

COPIES = 701  # of 214 records: 150,014
LOGS = 100
JOB = Job(epochs=5, files=20_000)
GOAL_SECONDS, GOAL_MB = 1.5, 400
_BLOCK_BYTES = 1 << 20


def imports() -> Iterator[Result]:
    yield from _darshan()
    yield from _dftracer()


def _darshan() -> Iterator[Result]:
    real = real_log()
    if real is None:
        yield Result("Darshan logs", 0, "s", 0, 0, 0, note="(left out: PyDarshan with its examples is not installed)")
        return
    with memory_folder() as folder:
        yield from _large_log(folder, real)
    with memory_folder() as folder:
        yield from _many_logs(folder, real)


def _large_log(folder: Path, real: Path) -> Iterator[Result]:
    write_darshan(folder / "me_python_id1537455-1_4-21-1-1_1.darshan", real, COPIES)
    runs = _Runs()
    runs.of("one copy", "darshan", real.parent, "1", real.name)()
    ours = interleaved({"ours": runs.of("ours", "darshan", folder, "1")}, 3)["ours"]
    theirs = runs.of("theirs", "pydarshan", folder)()
    expected = {name: value * COPIES for name, value in runs.facts["one copy"].items()}
    for name in ("ours", "theirs"):
        facts = runs.facts[name]
        _same(f"what {name} read", facts, {fact: expected[fact] for fact in facts})
    label = f"Darshan log of {expected['records']:,} records"
    yield _at_most(spread(f"{label}: to a Trace", ours, "s"), GOAL_SECONDS)
    yield _at_most(spread(f"{label}: peak memory, two processes", runs.peaks["ours"], "MB"), GOAL_MB)
    yield spread("the same: PyDarshan's report, to_df", [theirs], "s")
    yield spread("the same: PyDarshan's peak memory", runs.peaks["theirs"], "MB")
    yield ratio("PyDarshan / ours", [theirs] * len(ours), ours, note="(PyDarshan ran once)")


def _many_logs(folder: Path, real: Path) -> Iterator[Result]:
    """As many processes of one job, each with the files of the real one."""
    write_darshan(folder / "log", real, 1)
    for pid in range(1, LOGS + 1):
        os.link(folder / "log", folder / f"me_python_id1537455-{pid}_4-21-1-{pid}_1.darshan")
    cores = len(os.sched_getaffinity(0))
    runs = _Runs()
    times = interleaved(
        {name: runs.of(name, "darshan", folder, name) for name in dict.fromkeys(("1", str(cores)))},
        3,
    )
    _same("what workers read", runs.facts["1"], runs.facts[str(cores)])
    single, all_ = times["1"], times[str(cores)]
    yield spread(
        f"{LOGS} Darshan logs of {runs.facts['1']['records'] // LOGS} records, 1 worker: to a Trace", single, "s"
    )
    yield spread(f"the same with {cores} workers", all_, "s")
    yield ratio(f"1 worker / {cores} workers", single, all_, note="(what follows reading is done by one)")


def _dftracer() -> Iterator[Result]:
    with memory_folder() as folder:
        plain, packed = folder / "trace.pfw", folder / "trace.pfw.gz"
        write_dftracer(plain, packed, JOB)
        size, packed_size = plain.stat().st_size / 1e6, packed.stat().st_size / 1e6
        runs = _Runs()
        times = interleaved(
            {
                "plain": runs.of("plain", "dftracer", plain),
                "gzip": runs.of("gzip", "dftracer", packed),
                "json": runs.of("json", "json", plain),
                "gunzip": runs.of("gunzip", "gunzip", packed),
            },
            2,
        )
    expected = {"ops": JOB.calls, "bytes": JOB.bytes_read, "epochs": JOB.epochs, "broken": 0, "nested": 0}
    for name in ("plain", "gzip"):
        _same(f"the {name} trace", runs.facts[name], expected)
    _same("what json.loads read", runs.facts["json"], {"events": JOB.lines})
    million = f"DFTracer, {JOB.lines / 1e6:.2f} million lines"
    note = f"({size:.0f} MB, with gzip {packed_size:.0f} MB)"
    yield spread(f"{million}: to a Trace", times["plain"], "s", note)
    yield spread(f"{million}: gzip, to a Trace", times["gzip"], "s")
    for name in ("plain", "gzip"):
        yield spread(f"… {name}", [JOB.lines / seconds for seconds in times[name]], "lines/s")
        yield spread(f"… {name}, of lines", [size / seconds for seconds in times[name]], "MB/s")
        yield spread(f"… {name}: peak memory", runs.peaks[name], "MB", f"({JOB.files:,} files, {JOB.epochs} epochs)")
    yield spread("json.loads of every line (the bound)", times["json"], "s")
    yield ratio("plain: json.loads / ours", times["json"], times["plain"])
    yield spread("gzip, only decompressed", times["gunzip"], "s", "(ours does so twice: epochs first, then calls)")
    both = [decoded + inflated for decoded, inflated in zip(times["json"], times["gunzip"], strict=True)]
    yield ratio("gzip: decompression and json.loads / ours", both, times["gzip"])


def _at_most(result: Result, goal: float) -> Result:
    met = result.value <= goal
    return Result(
        result.name,
        result.value,
        result.unit,
        result.low,
        result.high,
        result.n,
        f"≤ {goal:g} {result.unit}",
        met,
        result.note,
    )


def _same(what: str, facts: dict[str, Any], expected: dict[str, Any]) -> None:
    if facts != expected:
        raise AssertionError(f"{what} is {facts}, not {expected}")


class _Runs:
    """Of contenders, each in a process of its own: their peaks in MB, and what the last one found."""

    def __init__(self) -> None:
        self.peaks: dict[str, list[float]] = defaultdict(list)
        self.facts: dict[str, dict[str, Any]] = {}

    def of(self, name: str, *command: str | Path) -> Callable[[], float]:
        def run() -> float:
            words = [sys.executable, "-m", "benchmarks.imports", *map(str, command)]
            done = subprocess.run(words, check=True, stdout=subprocess.PIPE)
            seconds, peak, facts = json.loads(done.stdout)
            self.peaks[name].append(peak)
            self.facts[name] = facts
            return float(seconds)

        return run


# ---- what runs in a fresh process ----

Found = tuple[float, float, dict[str, Any]]  # seconds, MB, and what is to be checked


def _own_peak() -> float:
    """MB. What getrusage tells would be the parent's, if that was larger."""
    (peak,) = re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(encoding="ascii"))
    return int(peak) * 1024 / 1e6


def _others_peak() -> float:
    """MB, of the largest process that this one started and that has ended."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6


def import_darshan(folder: str, workers: str, pattern: str = "*.darshan") -> Found:
    from tierscope.imports import darshan  # noqa: PLC0415
    from tierscope.imports.darshan_reader import DarshanLog, read_logs  # noqa: PLC0415
    from tierscope.imports.gathered import to_trace  # noqa: PLC0415
    from tierscope.imports.paths import TierRules  # noqa: PLC0415

    paths = sorted(glob.glob(os.path.join(folder, pattern)))
    start = time.monotonic()
    logs = [log for log in read_logs(paths, int(workers)) if isinstance(log, DarshanLog)]
    both = _own_peak() + _others_peak()  # workers have ended
    imported = darshan.import_logs(logs, TierRules({"gfs": ("/",)}), darshan.DarshanOptions())
    trace = to_trace(imported)
    seconds, peak = time.monotonic() - start, max(both, _own_peak())
    assert len(logs) == len(paths) == imported.facts.logs
    assert trace.io["ops"].sum() > 0
    assert not any(log.complaints for log in logs)
    posix = [(log, log.records["POSIX"]) for log in logs]
    facts = {
        "records": sum(len(records) for _, records in posix),
        "names": sum(len({log.paths[file] for file in records.files} - {""}) for log, records in posix),
        "reads": sum(int(records.counter("READS").sum()) for _, records in posix),
        "bytes_read": sum(int(records.counter("BYTES_READ").sum()) for _, records in posix),
    }
    return seconds, peak, facts


def read_with_pydarshan(folder: str) -> Found:
    darshan = importlib.import_module("darshan")
    (path,) = glob.glob(os.path.join(folder, "*.darshan"))
    start = time.monotonic()
    tables = darshan.DarshanReport(path).records["POSIX"].to_df()
    seconds, peak = time.monotonic() - start, _own_peak()
    counters = tables["counters"]
    reads, size = (int(counters[f"POSIX_{name}"].sum()) for name in ("READS", "BYTES_READ"))
    return seconds, peak, {"records": len(counters), "reads": reads, "bytes_read": size}


def import_dftracer(path: str) -> Found:
    from tierscope.imports import dftracer  # noqa: PLC0415
    from tierscope.imports.gathered import to_trace  # noqa: PLC0415
    from tierscope.imports.paths import TierRules  # noqa: PLC0415

    start = time.monotonic()
    imported = dftracer.import_traces([path], TierRules({"gfs": ("/p/lustre3",)}), dftracer.DFTracerOptions())
    trace = to_trace(imported)
    seconds, peak = time.monotonic() - start, _own_peak()
    facts = imported.facts
    sums = {name: int(trace.io[name].sum()) for name in ("ops", "bytes")}
    assert facts.dftracer is not None
    broken = facts.doubts.broken_lines + facts.doubts.broken_last_lines
    return seconds, peak, {**sums, "epochs": len(trace.ranks), "broken": broken, "nested": facts.dftracer.nested_calls}


def decode_json(path: str) -> Found:
    events = 0
    start = time.monotonic()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line[0] == "{":
                json.loads(line)
                events += 1
    return time.monotonic() - start, _own_peak(), {"events": events}


def decompress(path: str) -> Found:
    size = 0
    start = time.monotonic()
    with gzip.open(path) as packed:
        while block := packed.read(_BLOCK_BYTES):
            size += len(block)
    return time.monotonic() - start, _own_peak(), {"bytes": size}


CONTENDERS: dict[str, Callable[..., Found]] = {
    "darshan": import_darshan,
    "pydarshan": read_with_pydarshan,
    "dftracer": import_dftracer,
    "json": decode_json,
    "gunzip": decompress,
}


if __name__ == "__main__":
    print(json.dumps(CONTENDERS[sys.argv[1]](*sys.argv[2:])))
