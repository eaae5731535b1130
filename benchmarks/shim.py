"""The preloaded recorder: what it adds to open + read + close of a file in memory, beside a run without it."""

import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.common import Result, compile_loop, interleaved, memory_folder
from tierscope.native import library
from tierscope.native.engine import path_costs_seconds
from tierscope.native.setup import TierSetup, write_setup
from tierscope.output.durable import boot_id

FILES = 3000
ROUNDS = 21
GOAL_SECONDS = 0.5e-6
GOAL_STAT_SECONDS = 1e-6  # getcwd takes half of it
GOAL_OPEN_SECONDS = 0.5e-6
_PEERS = "(others, on another day: Darshan +3–9, with DXT +4–11, DFTracer +17–24 µs)"


def shim() -> Iterator[Result]:
    path = library.path()
    if path is None:
        return
    with memory_folder() as data, tempfile.TemporaryDirectory(prefix="tierscope-bench-") as folder:
        write_setup(folder, [TierSetup((str(data),))], 0, boot_id())
        recorded = {"LD_PRELOAD": path, "TIERSCOPE_RECORD": folder}
        program = compile_loop(data)
        for nbytes, goal in ((128 * 1024, GOAL_SECONDS), (4 * 1024, None)):
            yield _added(program, data, nbytes, recorded, goal)
    yield from _by_path()


def _by_path() -> Iterator[Result]:
    """What `trace` prints as its own cost, too: calls whose path has to be looked at first."""
    rounds = [costs for _ in range(ROUNDS) if (costs := path_costs_seconds())]
    names = ("a stat of a relative path", "an open of a file on no tier")
    for name, goal, seconds in zip(
        names, (GOAL_STAT_SECONDS, GOAL_OPEN_SECONDS), zip(*rounds, strict=True), strict=True
    ):
        yield Result(
            name=f"recorder preloaded: added to {name}",
            value=(median := statistics.median(seconds)) * 1e6,
            unit="µs",
            low=min(seconds) * 1e6,
            high=max(seconds) * 1e6,
            n=len(seconds),
            goal=f"≤ {goal * 1e6:.1f} µs",
            met=median <= goal,
        )


def _added(program: str, data: Path, nbytes: int, recorded: dict[str, str], goal: float | None) -> Result:
    for file in range(FILES):
        (data / f"{file:09d}.raw").write_bytes(bytes(nbytes))

    def run(extra: dict[str, str]) -> float:
        command = [program, str(data), ".raw", str(FILES), str(nbytes)]
        done = subprocess.run(command, check=True, capture_output=True, env={**os.environ, **extra})
        return int(done.stdout) / 1e9 / FILES

    times = interleaved({"bare": lambda: run({}), "recorded": lambda: run(recorded)}, ROUNDS)
    added = [with_it - bare for bare, with_it in zip(times["bare"], times["recorded"], strict=True)]
    median = statistics.median(added)
    return Result(
        name=f"recorder preloaded: added to open + {nbytes // 1024} KiB read + close",
        value=median * 1e6,
        unit="µs",
        low=min(added) * 1e6,
        high=max(added) * 1e6,
        n=len(added),
        goal=f"≤ {goal * 1e6:.1f} µs" if goal else "",
        met=median <= goal if goal else None,
        note=f"bare {statistics.median(times['bare']) * 1e6:.1f} µs {_PEERS if goal else ''}".strip(),
    )
