"""Simulations at the size of the Hierarchy study and far beyond: what they cost, and what they say.

The engine is bound by memory and branches on one core; SimPy is the peer that anyone would use otherwise. docs/scale.md holds what `python -m benchmarks
scale` prints: systems that nobody built, so nothing in it is measured but the time and memory of our own code.
"""

import resource
import time
from collections.abc import Iterator

from benchmarks.common import Result, spread
from tierscope.predict.outcome import CATEGORIES
from tierscope.predict.schedule import MOST_SAMPLES
from tierscope.predict.simulation import Simulation
from tierscope.spec.load import load_study


def simulation() -> Iterator[Result]:
    """One epoch of 3,072 processes and 589,824 files."""
    point = Simulation.of(load_study("fugaku-small-60ost", ["sweep={}", "cache_rate=65%"]))
    point.epoch(2, "events")  # compiles
    schedule = point.schedule(2)
    ops = 3 * schedule.files.size  # an open, a read and a close for each
    by_events = [_seconds(point, "events") for _ in range(5)]
    by_bound = [_seconds(point, "bound") for _ in range(5)]
    engine = spread("one epoch by events, laid out anew", by_events, "s")
    yield Result(engine.name, engine.value, "s", engine.low, engine.high, engine.n, "≤ 1 s", engine.value <= 1.0)
    rate = spread("operations by events", [ops / seconds / 1e6 for seconds in by_events], "M/s")
    yield Result(rate.name, rate.value, "M/s", rate.low, rate.high, rate.n, "≥ 2 M/s", rate.value >= 2.0)
    yield spread("the same epoch by the bound", by_bound, "s")


def _seconds(point: Simulation, method: str) -> float:
    start = time.monotonic()
    point.epoch(2, method)
    return time.monotonic() - start


def scale() -> Iterator[Result]:
    """The Fugaku system made larger, one gateway per 192 nodes and one SSD per 16 as before: with its 60 OSTs, and with as many more."""
    for nodes, files in ((768, 589_824), (10_000, 7_680_000), (100_000, 76_800_000), (100_000, 1_000_000_000)):
        for grown in (False, True)[: 1 if nodes == 768 else 2]:
            factor = nodes / 768 if grown else 1.0
            servers, opens = round(60 * factor), round(27_000 * factor)
            yield from _scaled(nodes, files, servers, opens)


def _scaled(nodes: int, files: int, servers: int, opens: int) -> Iterator[Result]:
    fixed = [
        "sweep={}",
        f"nodes={nodes}",
        f"num_files_train={files}",
        f"gfs.servers={servers}",
        f"gfs.metadata_ops={opens}/s",
        "lfs.capacity=null",
    ]
    what = f"{nodes:,} nodes, {files:,} files, {servers:,} OSTs, {opens:,} opens/s"
    for rate in (0, 65, 100):
        point = Simulation.of(load_study("fugaku-small-60ost", [*fixed, f"cache_rate={rate}%"]))
        start = time.monotonic()
        outcome = point.epoch(2, "bound")
        seconds = time.monotonic() - start
        names = [f"{tier.name.upper()}-{kind}" for tier in point.study.system.tiers for kind in CATEGORIES]
        leader = names[int(outcome.busy_classes[outcome.slowest].reshape(-1).argmax())]
        yield spread(f"{what}, {rate} % cached: I/O s, {leader}", [float(outcome.io.max())], "s")
    yield spread("  the last one took, by the bound", [seconds], "s")
    if files <= MOST_SAMPLES:
        start = time.monotonic()
        events = point.epoch(2, "events")
        yield spread("  by events", [time.monotonic() - start], "s")
        yield spread("  bound / events", [float(outcome.io.max() / events.io.max())], "")
    yield spread("  memory of all so far", [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6], "GB")
