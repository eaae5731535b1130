"""Findings: each kind appears when it should, and only then."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import polars as pl
import pytest
from msgspec import structs

from tests.analysis.test_coverage import CASES as COVERAGE
from tests.analysis.test_feasible import CASES as FEASIBLE
from tests.analysis.test_habits import CASES as HABITS
from tests.analysis.test_shuffling_findings import CASES as SHUFFLING
from tests.analysis.test_stragglers import CASES as STRAGGLERS
from tests.analysis.test_training import CASES as TRAINING
from tests.arch.test_require_findings import CASES as REQUIREMENTS
from tests.finding_cases import Case, finding_tests, of_kind
from tests.predict.predicting import KINDS_OF_ESTIMATES
from tests.probe.test_probe_findings import CASES as PROBES
from tests.small_study import small_study
from tests.traces import TIERS, empty_lane, lane_of, times_of, trace_of, traced, without_loop
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.conditions import Conditions, conditions
from tierscope.analysis.findings import find
from tierscope.analysis.times import from_traces
from tierscope.analysis.wording import WORDING, Finding
from tierscope.spec.dump import identity
from tierscope.spec.goal import Goal
from tierscope.trace.columns import COLUMNS
from tierscope.trace.described_logs import ApartSums, KindSums, PathSums, SpawnedWorkers, UnknownPaths
from tierscope.trace.described_stations import DrawnLayout
from tierscope.trace.description import DescribedTier, Doubt, Imported, Rereads, Traced
from tierscope.trace.ops import BACKGROUND_LANE, KINDS
from tierscope.trace.trace import Trace

Cold = list[tuple[str, int, int | None]]  # of epochs 1, 2, …


def found(
    *traces: Trace,
    cold: Cold | None = None,
    expected: int | None = None,
    goal: Goal | float | None = None,
    basis: str = "busy",
) -> list[Finding]:
    times = from_traces(traces or [run()], TIERS, basis)
    given = conditions(times, cold_rows(cold or []))
    return find(times, break_down(times), given, expected, None if goal is None else Goal.of(goal))


def inert_found(inert: dict[str, str]) -> list[Finding]:
    times = from_traces([run()], TIERS, "busy")
    return find(times, break_down(times), replace(conditions(times, cold_rows([])), inert=inert), None, None)


def sized(files: int, point: int) -> Trace:
    """A point of a sweep over the number of files."""
    about = {"GFS-READ": float(files)}
    return trace_of(
        {(0, 1): about}, point=point, sweep={"num_files_train": point}, samples=files, payload_bytes=files * 100
    )


def cased(*seconds: float, cases: str = "ba") -> list[Trace]:
    """A point of each case, named by letters."""
    return [
        trace_of({(0, 1): {"GFS-READ": each}}, point=point, sweep={"case": case})
        for point, (case, each) in enumerate(zip(cases, seconds, strict=True))
    ]


def cold_rows(cold: Cold) -> pl.DataFrame:
    """Every row is an epoch of its own."""
    names = ("point", "repetition", "epoch", "tier", "checked_bytes", "resident_bytes")
    rows = [(0, 1, epoch, *row) for epoch, row in enumerate(cold)]
    return pl.DataFrame(rows, {name: COLUMNS[name] for name in names}, orient="row")


def run(
    seconds: float = 5.0, rate: float = 0.5, about: Mapping[str, Any] | None = None, point: int = 0, **changes: Any
) -> Trace:
    """One rank that did one read in the given seconds, in an epoch of ten."""
    return trace_of({(0, 1): {"GFS-READ": seconds}}, point=point, sweep={"cache_rate": rate}, about=about, **changes)


def on_tiers(*tiers: DescribedTier) -> Trace:
    trace = run()
    others = tuple(tier for tier in trace.about.tiers if tier.name not in {given.name for given in tiers})
    return replace(trace, about=structs.replace(trace.about, tiers=(*tiers, *others)))


def staged(*points: tuple[float, float, float]) -> list[Trace]:
    """Simulated: cache rate, seconds of an epoch, seconds of staging."""
    about = {"kind": "simulated", "method": "bound", "spread": {}}
    return [
        trace_of(
            {(0, 1): {"GFS-READ": seconds / 2}},
            point=point,
            sweep={"cache_rate": rate},
            about={**about, "staging_seconds": staging},
            seconds=seconds,
        )
        for point, (rate, seconds, staging) in enumerate(points)
    ]


def tiers(**emulated: bool) -> dict[str, Any]:
    return {"tiers": [{"name": name, "emulated": flag} for name, flag in emulated.items()]}


def simulated(**about: Any) -> dict[str, Any]:
    return {"kind": "simulated", "method": "bound", "spread": {"1": [0.9, 1.2]}, **about}


def station(name: str, seconds: float) -> dict[str, Any]:
    return {"station": name, "of": 1, "seconds": seconds, "ops": 1}


def laid_out(servers: int, **keys: Any) -> Trace:
    """Simulated with a layout of files that was chosen of nine."""
    trace = run(about=simulated(), **keys)
    layout = DrawnLayout(tier="gfs", servers=servers, tried=9)
    return replace(trace, about=structs.replace(trace.about, drawn_layouts=(layout,)))


def overhead(seconds: float) -> dict[str, Any]:
    return {"overhead": {"harness_seconds_per_sample": seconds}}


def command(seconds: float = 5.0, epochs: int = 1, basis: str = "busy", **about: Any) -> list[Finding]:
    """Of a traced command that did one read per epoch on each tier."""
    classes = {(0, n + 1): {"GFS-READ": seconds / 2, "LFS-READ": seconds / 2} for n in range(epochs)}
    return found(without_loop(trace_of(classes, about=traced(**about))), basis=basis)


def rereading(doubt: Doubt | None = None, passes: int = 1, **about: Any) -> list[Finding]:
    """Of a command that was traced with --epochs rereads and marked nothing."""
    classes = {(0, n + 1): {"GFS-READ": 2.5, "LFS-READ": 2.5} for n in range(passes)}
    trace = trace_of(classes, about={**traced(marked=False, **about), "epochs": "rereads"})
    assert isinstance(trace.about, Traced)
    told = structs.replace(trace.about.records, rereads=Rereads(passes=passes, doubt=doubt, late_reads=3))
    return found(without_loop(replace(trace, about=structs.replace(trace.about, records=told))))


def profiled(**facts: Any) -> dict[str, Any]:
    """A run of ours that another profiler measured."""
    return {"profiler": "dftracer", "import": facts}


def saving(seconds: float) -> list[Finding]:
    """Rank 1 writes checkpoints in the second epoch and not in the third; an epoch takes ten seconds."""
    reads = {(0, epoch): {"GFS-READ": 5.0} for epoch in (1, 2, 3)}
    writes = {(1, 1): {"GFS-WRITE": 9.0}, (1, 2): {"GFS-WRITE": 1.0}, (1, 3): {"GFS-READ": 1.0}}
    trace = trace_of({**reads, **writes}, sweep={"cache_rate": 0.5}, about={"checkpoint": {"tier": "gfs"}})
    held_up = pl.when(pl.col("rank") == 1, pl.col("epoch") == 2, pl.col("record") == "rank").then(2 * seconds)
    table = trace.table.with_columns(held_up.otherwise("checkpoint_seconds").alias("checkpoint_seconds"))
    return found(replace(trace, table=table))


def saving_behind(seconds: float) -> list[Finding]:
    """A rank writes checkpoints in the background all the time; training stands still for so many of ten seconds."""
    lanes = (lane_of({("gfs", "read"): 5.0}), lane_of({("gfs", "write"): 9.0}, BACKGROUND_LANE))
    about = {"checkpoint": {"tier": "gfs"}}
    trace = trace_of({(0, 1): {}}, sweep={"cache_rate": 0.5}, about=about, lanes=lanes)
    held_up = pl.when(pl.col("record") == "rank").then(pl.lit(seconds)).otherwise("checkpoint_seconds")
    return found(replace(trace, table=trace.table.with_columns(held_up.alias("checkpoint_seconds"))))


def processes(*lanes: tuple[int | None, int]) -> list[dict[str, Any]]:
    """Rank and lanes of each."""
    return [{"rank": rank, "lanes": number} for rank, number in lanes]


def nothing(**about: Any) -> list[Finding]:
    return found(without_loop(trace_of({(0, 1): {}}, about=traced(**about))))


def prefixes(*paths: str) -> list[dict[str, Any]]:
    return [{"name": "gfs", "emulated": False, "prefixes": list(paths)}]


def logs(epochs: int = 1, seconds: float = 5.0, **about: Any) -> list[Finding]:
    """Of logs of one process that did one read of each tier in each of its epochs."""
    did = {"GFS-READ": seconds, "LFS-READ": seconds} if seconds else {}
    classes = {(0, n + 1): did for n in range(epochs)}
    return found(without_loop(trace_of(classes, about={"kind": "imported", "process_count": 4, **about})))


def imported(epochs: int = 1, **facts: Any) -> list[Finding]:
    """The same logs, of the schema version of today."""
    did = {(0, n + 1): {"GFS-READ": 5.0, "LFS-READ": 5.0} for n in range(epochs)}
    trace = without_loop(trace_of(did, about={"kind": "imported", "process_count": 4}))
    assert isinstance(trace.about, Imported)
    about = structs.replace(trace.about, facts=structs.replace(trace.about.facts, **facts))
    return found(Trace(trace.key, about, trace.table))


def skewed(spawned: SpawnedWorkers) -> list[Finding]:
    """Of eight processes, the fourth of which took longer."""
    did = {(rank, 1): {"GFS-READ": 1.55 if rank == 3 else 1.0, "LFS-READ": 0.0} for rank in range(8)}
    trace = without_loop(trace_of(did, about={"kind": "imported", "process_count": 8}))
    assert isinstance(trace.about, Imported)
    about = structs.replace(trace.about, facts=structs.replace(trace.about.facts, spawned=spawned))
    return found(Trace(trace.key, about, trace.table))


def apart(seconds: float, path: str) -> ApartSums:
    largest = (PathSums(path=path, ops=9, bytes=90, seconds=seconds),)
    parts = {"read": KindSums(), "meta": KindSums(), "write": KindSums(seconds=seconds, ops=9, bytes=90)}
    return ApartSums(ops=9, bytes=90, seconds=seconds, files=1, largest=largest, **parts)


STEPS = ("/bin/ior -w", "/bin/ior -r")
UNTIERED = UnknownPaths(
    ops=1,
    bytes=0,
    seconds=5.0,
    files=2,
    tier="lfs",
    prefixes=(PathSums(path="/scratch", ops=1, bytes=0, seconds=5.0),),
    suggestion="/scratch",
)


def named(count: int) -> list[str]:
    return [f"{n}.darshan: is empty" for n in range(count)]


def unknown(files: int) -> dict[str, Any]:
    return {"files": files, "bytes": 2048, "suggestion": "/data", "folders": [["/data/a", 2000], ["/data/b", 48]]}


SHARED = {
    "tier": "gfs",
    "files": 3,
    "bytes": 2048,
    "read_seconds": 2.0,
    "meta_seconds": 1.0,
    "fastest_seconds": 0.25,
    "slowest_seconds": 0.75,
}
REAL, MIXED = tiers(lfs=False, gfs=False), tiers(lfs=False, gfs=True)


CASES: dict[str, Case] = {
    "partial": Case(lambda: found(expected=2), {"finished": 1, "total": 2}, lambda: found(expected=1)),
    "emulated": Case(
        lambda: found(run(about=tiers(lfs=True, gfs=True))), {"tiers": ["gfs", "lfs"]}, lambda: found(run(about=REAL))
    ),
    "simulated": Case(
        lambda: found(run(about={"kind": "simulated", "method": "bound", "spread": {"1": [0.9, 1.2]}})),
        {"methods": ["bound"]},
        lambda: found(run(about={"kind": "measured"})),
    ),
    "sampled_operations": Case(
        lambda: found(run(about=simulated(sampled_share=0.25))),
        {"percent": 25.0},
        lambda: found(run(about=simulated(sampled_share=None))),
    ),
    "upper_bound": Case(
        lambda: found(run(about=simulated(upper_bound=True))),
        {},
        lambda: found(run(about=simulated(upper_bound=False))),
    ),
    "not_identified": Case(
        lambda: found(run(about=simulated(unidentified=["reads of 2 MiB"]))),
        {
            "why": "reads of 2 MiB",
            "points": ["cache_rate 50%"],
            "command": "tierscope run STUDY --set cache_rate=50% --out OUT",
        },
        lambda: found(run(about=simulated())),
    ),
    "staging_pays": Case(
        lambda: found(*staged((0.0, 10.0, 0.0), (0.5, 8.0, 5.0), (0.75, 6.0, 30.0), (1.0, 11.0, 40.0))),
        {
            "soonest_where": "cache_rate 50%",
            "soonest_epochs": 3,
            "best_where": "cache_rate 75%",
            "best_epochs": 8,
            "staging_seconds": 30.0,
        },
        lambda: found(*staged((0.25, 10.0, 0.0), (0.5, 8.0, 5.0))),  # nothing to compare with
    ),
    "staging_never_pays": Case(
        lambda: found(*staged((0.0, 10.0, 0.0), (0.5, 10.0, 5.0), (1.0, 11.0, 9.0))),
        {"epoch_seconds": 10.0},
        lambda: found(*staged((0.0, 10.0, 0.0), (0.5, 9.99, 5.0), (1.0, 11.0, 9.0))),
    ),
    "rough_bound": Case(
        lambda: found(run(about=simulated(), compute_seconds=2.0)),
        {},
        lambda: found(run(about=simulated(), compute_seconds=0.0)),
    ),
    "layout_drawn": Case(
        lambda: found(laid_out(4), laid_out(2, rate=0.7, point=1), laid_out(4, rate=0.8, point=2)),
        {"servers": [2, 4], "tier": "gfs", "tried": 9},
        lambda: found(run(about=simulated())),
    ),
    "busiest_station": Case(
        lambda: found(run(about=simulated(stations=[station("gfs server 3", 4.0), station("lfs server 0", 3.0)]))),
        {
            "where": "cache_rate 50%",
            "station": "gfs server 3",
            "seconds": 4.0,
            "second": "lfs server 0",
            "percent": 75.0,
        },
        lambda: found(run(about=simulated(stations=[station("gfs server 3", 0.0)]))),
    ),
    "warm_pages": Case(
        lambda: found(cold=[("lfs", 100, 0), ("lfs", 100, 6), ("gfs", 100, 0)]),
        {"tier": "lfs", "percent": 6.0},  # the worst epoch, not the mean
        lambda: found(cold=[("lfs", 100, 1), ("gfs", 0, 0)]),
    ),
    "unknown_pages": Case(
        lambda: found(cold=[("gfs", 100, 50), ("gfs", 100, None)]),
        {"tier": "gfs"},
        lambda: found(cold=[("gfs", 100, 50), ("gfs", 0, None)]),
    ),
    "warm_storage": Case(
        lambda: found(on_tiers(DescribedTier(name="lfs", evictable=False)), cold=[("lfs", 100, None)]),
        {"tier": "lfs"},
        lambda: found(on_tiers(DescribedTier(name="lfs")), cold=[("lfs", 100, None)]),
    ),
    "same_device": Case(
        lambda: found(on_tiers(DescribedTier(name="lfs", device="8"), DescribedTier(name="gfs", device="8"))),
        {"tier": "lfs", "other": "gfs"},
        lambda: found(on_tiers(DescribedTier(name="lfs", device="8"), DescribedTier(name="gfs", device="9"))),
    ),
    "warm_metadata": Case(
        lambda: found(run(about={"metadata_cache": "warm"})),
        {"tiers": ["gfs", "lfs"]},
        lambda: found(run(about={"metadata_cache": "cold"})),
    ),
    "trimmed": Case(
        lambda: found(run(about={"trimmed_samples": 0}), run(point=1, rate=0.6, about={"trimmed_samples": 3})),
        {"samples": 3},
        lambda: found(run(about={"trimmed_samples": None})),
    ),
    "sleeping_compute": Case(
        lambda: found(run(about={"compute": "sleep"})), {}, lambda: found(run(about={"compute": "spin"}))
    ),
    "late": Case(
        lambda: found(run(limited_ops=4, late_ops=2, late_seconds=0.002), run(point=1, rate=0.6, limited_ops=9)),
        {"percent": 50.0, "seconds": 0.002},
        lambda: found(run(limited_ops=4, late_ops=0, late_seconds=0.002)),
    ),
    "overhead": Case(
        lambda: found(run(about=overhead(0.003))),  # 100 samples in 5 s: 0.3 s are 6 %
        {"percent": pytest.approx(6.0), "seconds": 0.003},
        lambda: found(run(about=overhead(0.002))),
    ),
    "not_evicted": Case(
        lambda: found(run(about={**REAL, "metadata_cache": "unknown"})),
        {},
        lambda: found(run(about={**tiers(lfs=True, gfs=True), "metadata_cache": "unknown"})),
    ),
    "threads": Case(
        lambda: found(run(about={"overhead": {"threads_seconds_per_op": 0.3}})),  # of 5 s in one operation
        {"seconds": 0.3, "percent": pytest.approx(6.0)},
        lambda: found(run(about={"overhead": {"threads_seconds_per_op": 0.2}})),
    ),
    "decode": Case(
        lambda: found(run(decode_seconds=5.5)),
        {"decode_seconds": 5.5, "io_seconds": 5.0},
        lambda: found(run(decode_seconds=4.5)),
    ),
    "checkpoint_share": Case(
        lambda: saving(1.5),
        {
            "where": "cache_rate 50%",
            "tier": "gfs",
            "percent": pytest.approx(15.0),
            "checkpoint_seconds": pytest.approx(1.5),
            "write_seconds": pytest.approx(0.5),
        },
        lambda: saving(0.9),
    ),
    "checkpoint_waits": Case(
        lambda: saving_behind(6.0),
        {
            "where": "cache_rate 50%",
            "tier": "gfs",
            "percent": pytest.approx(60.0),
            "checkpoint_seconds": pytest.approx(6.0),
        },
        lambda: saving_behind(0.9),
    ),
    "checkpoints_not_simulated": Case(
        lambda: found(run(about=simulated(checkpoints=True))),
        {},
        lambda: found(run(about=simulated(checkpoints=False))),
    ),
    "writes_as_reads": Case(
        lambda: found(run(about=simulated(writes_as_reads=["gfs"]))),
        {"tiers": ["gfs"]},
        lambda: found(run(about=simulated(writes_as_reads=[]))),
    ),
    "hidden": Case(
        lambda: found(run(compute_seconds=9.0, stall_seconds=0.4)),
        {"percent": pytest.approx(4.0)},
        lambda: found(run(compute_seconds=9.0, stall_seconds=0.6)),
    ),
    "nothing_recorded": Case(nothing, {}, command),
    "running": Case(
        lambda: command(running=[7, 9], exit_code=1),
        {"command": "python train.py", "pids": [7, 9]},
        lambda: command(running=[]),
    ),
    "ended_command": Case(
        lambda: command(exit_code=139), {"signal": "SIGSEGV", "code": 139}, lambda: command(exit_code=128 + 99)
    ),
    "failed_command": Case(lambda: command(exit_code=7), {"code": 7}, lambda: command(exit_code=None)),
    "no_marks": Case(
        lambda: command(marked=False),
        {"span_seconds": 3.0},
        lambda: command(epochs=2, marked=False),  # found by re-reads
    ),
    "rereads_found": Case(
        lambda: rereading(passes=2), {"passes": 2, "late_reads": 3}, lambda: command(epochs=2, marked=True)
    ),
    "one_pass": Case(rereading, {"span_seconds": 3.0}, lambda: rereading("few")),
    "epochs_unsure": Case(lambda: rereading("partial"), {"doubt": "partial", "span_seconds": 3.0}, rereading),
    "epochs_by_opens": Case(
        lambda: found(
            without_loop(trace_of({(0, 1): {"GFS-READ": 5.0}}, about={**traced(marked=False), "epochs": "rereads"}))
        ),
        {},
        rereading,
    ),
    "outside": Case(
        lambda: command(outside_ops=7, outside_seconds=0.25),
        {"ops": 7, "seconds": 0.25},
        lambda: command(outside_ops=0),
    ),
    "mapped": Case(
        lambda: command(mapped={"gfs": {"ops": 3, "bytes": 2048}}), {"tier": "gfs", "ops": 3, "bytes": 2048}, command
    ),
    "wall_processes": Case(
        lambda: command(basis="wall", processes=processes((0, 1), (1, 1), (0, 2), (0, 0))),
        {"processes": 2},
        lambda: command(basis="wall", processes=processes((0, 1), (1, 3), (0, 0), (None, 1), (None, 1))),
    ),
    "unrecorded": Case(
        lambda: command(unrecorded_processes=2, unrecorded_ops=70),
        {"processes": 2, "ops": 70},
        lambda: command(unrecorded_processes=0, unrecorded_ops=0),
    ),
    "under_way": Case(
        lambda: command(under_way_ops=2, under_way_seconds=3.5),
        {"ops": 2, "seconds": 3.5},
        lambda: command(under_way_ops=0),
    ),
    "lost_ops": Case(lambda: command(lost_ops=3), {"ops": 3}, lambda: command(lost_ops=0)),
    "lost_rows": Case(lambda: command(lost_rows=512), {"rows": 512}, lambda: command(lost_rows=0)),
    "cut": Case(lambda: command(cut_lanes=2), {"lanes": 2}, lambda: command(cut_lanes=0)),
    "damaged": Case(
        lambda: command(damaged_files=["a.state: is cut off"], damaged_file_count=1),
        {"files": 1, "names": ["a.state: is cut off"]},
        lambda: command(damaged_file_count=0),
    ),
    "still_running": Case(lambda: command(still_running=2), {"processes": 2}, lambda: command(still_running=0)),
    "unemulated": Case(lambda: command(unemulated_processes=4), {"processes": 4}, command),
    "scattered": Case(lambda: command(scattered_processes=3), {"processes": 3}, lambda: command(scattered_processes=0)),
    "root_tier": Case(
        lambda: command(tiers=prefixes("/gfs", "/")), {"tier": "gfs"}, lambda: command(tiers=prefixes("/gfs"))
    ),
    "unreadable_logs": Case(
        lambda: logs(unreadable_logs=named(6)),
        {"logs": 6, "names": named(5)},  # a few are named
        lambda: logs(unreadable_logs=[]),
    ),
    "damaged_logs": Case(
        lambda: logs(damaged_logs=named(1)), {"logs": 1, "names": named(1)}, lambda: logs(damaged_logs=[])
    ),
    "negative_times": Case(lambda: logs(negative_times=2), {"records": 2}, lambda: logs(negative_times=0)),
    "impossible_ranks": Case(lambda: logs(impossible_ranks=2), {"records": 2}, lambda: logs(impossible_ranks=0)),
    "long_meta": Case(
        lambda: logs(long_meta=[{"log": "a", "meta_seconds": 9.0, "run_seconds": 3.0}]),
        {"log": "a", "meta_seconds": 9.0, "run_seconds": 3.0},
        lambda: logs(long_meta=[]),
    ),
    "partial_logs": Case(
        lambda: logs(partial_modules={"STDIO": 1, "POSIX": 7}),
        {"modules": ["POSIX", "STDIO"], "logs": 7},
        lambda: logs(partial_modules={}),
    ),
    "no_data_files": Case(
        lambda: logs(seconds=0.0),
        {"processes": 4},
        lambda: logs(seconds=0.0, shared=[SHARED]),  # something was read
    ),
    "unknown_paths": Case(
        lambda: logs(unknown=unknown(2)),
        {"files": 2, "bytes": 2048, "suggestion": "/data", "prefixes": ["/data/a", "/data/b"]},
        lambda: logs(unknown=unknown(0)),
    ),
    "other_paths": Case(
        lambda: imported(unknown=UNTIERED),
        {
            "tier": "LFS",
            "files": 2,
            "bytes": 0,
            "seconds": 5.0,
            "of_bytes": 0.0,
            "of_seconds": 50.0,
            "prefixes": ["/scratch"],
            "suggestion": "/scratch",
        },
        lambda: imported(unknown=UnknownPaths()),
    ),
    "standard_streams": Case(
        lambda: imported(streams=apart(0.6, "<STDOUT>")),
        {"ops": 9, "bytes": 90, "seconds": 0.6, "percent": pytest.approx(100 * 0.6 / 10.6), "names": ["<STDOUT>"]},
        lambda: imported(streams=apart(0.5, "<STDOUT>")),
    ),
    "program_files": Case(
        lambda: imported(program=apart(0.6, "/usr/lib")),
        {"ops": 9, "bytes": 90, "seconds": 0.6, "percent": pytest.approx(100 * 0.6 / 10.6), "names": ["/usr/lib"]},
        lambda: imported(program=apart(0.5, "/usr/lib")),
    ),
    "shared_files": Case(
        lambda: logs(shared=[SHARED], shared_split=False),
        {**SHARED, "write_seconds": 0.0, "written_bytes": 0},
        lambda: logs(shared=[SHARED], shared_split=True),  # the table says so
    ),
    "grouped_by_start": Case(
        lambda: logs(spawned={"by_start": 4, "alone": 0}),
        {"processes": 4},
        lambda: logs(spawned={"by_start": 0, "alone": 4}),
    ),
    "lone_workers": Case(
        lambda: logs(spawned={"by_start": 0, "alone": 4}),
        {"processes": 4},
        lambda: logs(spawned={"by_start": 4, "alone": 0}),
    ),
    "starts_of_workers": Case(
        lambda: imported(own_files=True), {}, lambda: [*imported(), *imported(epochs=2, own_files=True)]
    ),
    "slow_unplaced": Case(
        lambda: skewed(SpawnedWorkers(alone=4)),
        {"process": 3, "times": 1.55, "slowest_seconds": 1.55, "median_seconds": 1.0},
        lambda: skewed(SpawnedWorkers(by_start=4)),
    ),
    "no_epochs": Case(logs, {}, lambda: [*logs(epochs=2), *imported(steps=STEPS)]),
    "several_steps": Case(
        lambda: imported(steps=STEPS),
        {"steps": 2, "names": ["ior -w", "ior -r"]},
        lambda: imported(steps=STEPS, epochs=2),
    ),
    "reads_only": Case(lambda: logs(traced_reads=True), {}, lambda: logs(traced_reads=False)),
    "cut_logs": Case(
        lambda: logs(cut_files=["a.pfw.gz"], broken_last_lines=2),
        {"files": 3},
        lambda: logs(cut_files=[], broken_last_lines=0),
    ),
    "broken_lines": Case(lambda: logs(broken_lines=4), {"lines": 4}, lambda: logs(broken_lines=0)),
    "no_names": Case(lambda: logs(no_names=4), {"ops": 4}, lambda: logs(no_names=0)),
    "missed_by_profiler": Case(
        lambda: found(
            run(about=profiled(missed_ops=3, missed_bytes=500)), run(about=profiled(missed_ops=1), rate=0.6, point=1)
        ),
        {"profilers": ["dftracer"], "ops": 4, "bytes": 500, "untried": []},
        lambda: found(run(about=profiled(missed_ops=0, missed_bytes=0))),
    ),
    "outside_epochs": Case(
        lambda: logs(outside_epochs={"ops": 3, "bytes": 0, "seconds": 0.5}),
        {"ops": 3, "seconds": 0.5},
        lambda: logs(outside_epochs={"ops": 0, "bytes": 0, "seconds": 0.0}),
    ),
    "goal_met": Case(
        lambda: found(run(9.0, 0.1), run(6.0, 0.2, point=1), run(4.0, 0.3, point=2), goal=6.0),
        {"goal_seconds": 6.0, "where": "cache_rate 20%", "io_seconds": 6.0},
        lambda: found(goal=None),
    ),
    "goal_missed": Case(
        lambda: found(run(9.0, 0.1), run(6.0, 0.2, point=1), goal=4.5),
        {"goal_seconds": 4.5, "over_seconds": 1.5, "io_seconds": 6.0, "bottleneck": "GFS-READ"},
        lambda: found(goal=5.0),
    ),
    "epoch_goal_met": Case(
        lambda: found(run(rate=0.1, seconds=9.0), run(rate=0.2, point=1, seconds=2.0), goal=Goal("epoch", 10.0)),
        {"goal_seconds": 10.0, "where": "cache_rate 10%", "epoch_seconds": 10.0},
        lambda: found(goal=Goal("epoch", 9.9)),
    ),
    "epoch_goal_missed": Case(
        lambda: found(goal=Goal("epoch", 4.0)),
        {"goal_seconds": 4.0, "over_seconds": 6.0, "epoch_seconds": 10.0, "bottleneck": "GFS-READ"},
        lambda: found(goal=Goal("epoch", 10.0)),
    ),
    "au_goal_met": Case(
        lambda: found(run(compute_seconds=5.0, stall_seconds=5.0), goal=Goal("au", 0.5)),
        {"goal_percent": 50.0, "where": "cache_rate 50%", "percent": 50.0, "slowest_percent": 50.0},
        lambda: found(run(compute_seconds=5.0, stall_seconds=5.0), goal=Goal("au", 0.51)),
    ),
    "au_goal_missed": Case(
        lambda: found(run(compute_seconds=5.0, stall_seconds=5.0), goal=Goal("au", 0.75)),
        {
            "goal_percent": 75.0,
            "under_percent": 25.0,
            "percent": 50.0,
            "slowest_percent": 50.0,
            "where": "cache_rate 50%",
        },
        lambda: found(run(compute_seconds=5.0, stall_seconds=5.0), goal=Goal("au", 0.5)),
    ),
    "goal_unsure": Case(
        lambda: found(run(about=simulated()), goal=5.5),
        {
            "goal": "5.5 s",
            "where": "cache_rate 50%",
            "value": "5 s",
            "good": "4.5 s",
            "bad": "6 s",
            "span": "interval",
            "by": "simulation",
            "decided": "met",
        },
        lambda: found(run(about=simulated()), goal=6.0),
    ),
    "goal_unknown": Case(
        lambda: found(goal=Goal("au", 0.5)),
        {"goal": "50% AU", "needed": "compute, and the epoch seconds of every rank"},
        lambda: found(run(compute_seconds=5.0, stall_seconds=5.0), goal=Goal("au", 0.5)),
    ),
    "case_goal_missed": Case(
        lambda: found(*cased(6.0, 2.0), goal=4.5),
        {"case": "b", "goal_seconds": 4.5, "over_seconds": 1.5, "io_seconds": 6.0, "bottleneck": "GFS-READ"},
        lambda: found(run(6.0), goal=4.5),
    ),
    "case_epoch_goal_missed": Case(
        lambda: found(*cased(6.0, cases="b"), goal=Goal("epoch", 4.0)),
        {"case": "b", "goal_seconds": 4.0, "over_seconds": 6.0, "epoch_seconds": 10.0, "bottleneck": "GFS-READ"},
        lambda: found(*cased(6.0, cases="b"), goal=Goal("epoch", 10.0)),
    ),
    "several_cases": Case(
        lambda: found(*cased(6.0, 2.0)),
        {"cases": 2, "names": ["b", "a"]},
        lambda: found(*cased(6.0, cases="b")),
    ),
    "inert_key": Case(
        lambda: inert_found({"transfer_size": "every sample is read by itself"}),
        {"key": "transfer_size", "why": "every sample is read by itself"},
        found,
    ),
    "different_data": Case(
        lambda: found(*(sized(files, index) for index, files in enumerate((4, 400)))),
        {"groups": 2, "points": 2},
        lambda: found(*(sized(files, index) for index, files in enumerate((400, 400)))),
    ),
}


def test_every_kind_has_a_case() -> None:
    """Those of estimates, requirements, training, shuffling, stragglers and probes have theirs where these are tested."""
    others = KINDS_OF_ESTIMATES | set(HABITS) | set(REQUIREMENTS) | set(TRAINING) | set(SHUFFLING) | set(STRAGGLERS)
    others |= set(PROBES) | set(COVERAGE) | set(FEASIBLE)
    assert set(CASES) | others == set(WORDING)
    assert not set(CASES) & others


(
    test_it_appears_when_it_should,
    test_it_does_not_appear_when_it_should_not,
    test_its_words_are_one_line_with_its_evidence,
) = finding_tests(CASES)


@pytest.mark.parametrize(
    ("finding", "text"),
    [
        (Finding("late", {"percent": 50.4, "seconds": 0.002}), "ran slower than their configured rates, 2 ms in total"),
        (Finding("mapped", {"tier": "gfs", "ops": 3, "bytes": 2048}), "gfs: files were mapped 3 times (mmap, 2 KiB);"),
        (Finding("emulated", {"tiers": ["gfs", "lfs"]}), "emulated tiers: gfs, lfs; their"),
        (
            Finding("damaged", {"files": 2, "names": ["a: is cut off", "b: is not"]}),
            "2 record files are damaged; the damaged parts are ignored (a: is cut off; b: is not)",
        ),
        (Finding("ended_command", {"signal": "SIGSEGV", "code": 139}), "was killed by SIGSEGV (exit code 139): "),
        (Finding("running", {"command": "sh {x}", "pids": [7, 9]}), "is still running (sh {x}; processes: 7, 9): "),
    ],
)
def test_numbers_are_shown_as_people_read_them(finding: Finding, text: str) -> None:
    assert text in finding.text


def test_busy_seconds_of_several_processes_are_nothing_special() -> None:
    assert command(processes=processes((0, 1), (0, 1))) == []


def test_an_unremarkable_run_gives_none() -> None:
    assert found() == []


def test_an_unremarkable_command_gives_none() -> None:
    assert command() == []


def test_unremarkable_logs_with_epochs_give_none() -> None:
    assert logs(epochs=2) == []


def test_logs_without_data_are_not_called_without_epochs() -> None:
    assert [finding.kind for finding in logs(seconds=0.0)] == ["no_data_files"]


def test_what_cannot_be_trusted_comes_before_what_is_missing() -> None:
    kinds = [f.kind for f in logs(partial_modules={"POSIX": 1}, negative_times=1, unreadable_logs=named(1))]
    assert kinds == ["unreadable_logs", "negative_times", "partial_logs", "no_epochs"]


def test_every_tier_with_shared_files_is_told() -> None:
    findings = of_kind("shared_files", logs(shared=[SHARED, {**SHARED, "tier": "lfs"}]))
    assert [finding.evidence["tier"] for finding in findings] == ["gfs", "lfs"]


def test_nothing_recorded_is_not_called_unmarked() -> None:
    assert [finding.kind for finding in nothing(marked=False)] == ["nothing_recorded"]


def test_nothing_recorded_is_not_blamed_on_paths_when_processes_could_not_record() -> None:
    findings = nothing(marked=False, unrecorded_processes=1, unrecorded_ops=9)
    assert [finding.kind for finding in findings] == ["unrecorded"]


def test_without_a_span_the_missing_marks_are_still_said() -> None:
    (finding,) = command(marked=False, span_seconds=None)
    assert finding.text == (
        "no epochs were marked: the whole run counts as one epoch, an unknown time from first to last operation"
    )


def test_of_many_damaged_files_a_few_are_named() -> None:
    (finding,) = command(damaged_files=[f"{n}.state: is cut off" for n in range(9)], damaged_file_count=9)
    assert "9 record files are damaged; the damaged parts are ignored (0.state" in finding.text
    assert "4.state" in finding.text
    assert "5.state" not in finding.text


def test_what_is_not_known_is_not_called_hidden() -> None:
    trace = without_loop(run())
    computed = trace.table.with_columns(compute_seconds=pl.lit(9.0))
    assert found(Trace(trace.key, trace.about, computed)) == []


def test_an_emulated_tier_is_not_called_warm() -> None:
    kinds = {f.kind for f in found(run(about={**MIXED, "metadata_cache": "warm"}), cold=[("gfs", 100, 100)])}
    assert kinds == {"emulated", "warm_metadata"}
    whole = tiers(lfs=True, gfs=True)
    assert {f.kind for f in found(run(about={**whole, "metadata_cache": "warm"}))} == {"emulated"}


@pytest.mark.parametrize(("rates", "advice"), [((0.1,), "no action needed"), ((0.1, 0.2), "this is the first point")])
def test_a_goal_that_is_met_speaks_of_a_sweep_only_where_there_is_one(rates: tuple[float, ...], advice: str) -> None:
    runs = [trace_of({(0, 1): {"GFS-READ": 1.0}}, point=n, sweep={"cache_rate": rate}) for n, rate in enumerate(rates)]
    alone = [trace_of({(0, 1): {"GFS-READ": 1.0}})]
    (finding,) = of_kind("goal_met", found(*(runs if len(rates) > 1 else alone), goal=2.0))
    assert finding.suggestion.startswith(advice)


def test_without_compute_nothing_is_hidden() -> None:
    assert of_kind("hidden", found(run(compute_seconds=0.0, stall_seconds=0.0))) == []


def test_hidden_is_about_the_best_point_only() -> None:
    hidden: dict[str, Any] = {"compute_seconds": 9.0, "stall_seconds": 0.1}
    waiting: dict[str, Any] = {"compute_seconds": 5.0, "stall_seconds": 5.0}
    assert of_kind("hidden", found(run(9.0, 0.1, **hidden), run(1.0, 0.2, point=1, **waiting))) == []
    assert of_kind("hidden", found(run(9.0, 0.1, **waiting), run(1.0, 0.2, point=1, **hidden)))


def test_io_that_the_slowest_rank_waits_for_is_not_hidden() -> None:
    """All others wait for it: the mean over 16 ranks would be 1.3 %."""
    even = trace_of({(rank, 1): {"GFS-READ": 2.0} for rank in range(16)}, compute_seconds=9.0, stall_seconds=0.1)
    late = pl.when(pl.col("rank") == 3)
    slower = even.table.with_columns(
        late.then(pl.col("epoch_seconds") + 2).otherwise("epoch_seconds").alias("epoch_seconds"),
        late.then(pl.col("stall_seconds") + 2).otherwise("stall_seconds").alias("stall_seconds"),
    )
    assert of_kind("hidden", found(even))
    assert of_kind("hidden", found(replace(even, table=slower))) == []


def test_hidden_finds_the_best_point_even_where_its_value_is_null() -> None:
    run = trace_of({(0, 1): {"GFS-READ": 1.0}}, sweep={"gateway_shared_by": None}, compute_seconds=5.0)
    assert of_kind("hidden", found(run)) == []


@pytest.mark.parametrize(("percent", "seen"), [(5, False), (6, True)])
def test_a_few_late_operations_are_no_matter(percent: int, seen: bool) -> None:
    assert bool(of_kind("late", found(run(limited_ops=100, late_ops=percent)))) is seen


def test_the_overhead_never_exceeds_everything() -> None:
    (finding,) = of_kind("overhead", found(run(about=overhead(1.0))))
    assert finding.evidence["percent"] == 100.0


@pytest.mark.parametrize("seconds", [0.0, 5.0])
def test_a_trace_without_overhead_has_none(seconds: float) -> None:
    trace = run(seconds)
    trace = replace(trace, about=structs.replace(trace.about, own_cost=None))
    assert of_kind("overhead", found(trace)) == []


def test_without_io_there_is_no_share_of_it() -> None:
    assert of_kind("overhead", found(run(0.0, about=overhead(1.0)))) == []


def test_habits_of_a_traced_command_come_from_its_sums() -> None:
    lane = empty_lane()
    for kind, ops, nbytes in (("open", 1000, 0), ("read", 5000, 5000 * 512)):
        cell = TIERS.index("gfs") * len(KINDS) + KINDS.index(kind)
        lane.ops[cell], lane.nbytes[cell], lane.busy_ns[cell] = ops, nbytes, 10**9
    trace = without_loop(trace_of({(0, 1): {}}, about=traced(), lanes=(lane,)))
    findings = {finding.kind: finding.evidence["tier"] for finding in found(trace)}
    assert findings == {"tier_not_used": "lfs", "small_opens": "gfs", "small_requests": "gfs"}


def test_of_our_own_benchmark_only_what_its_study_may_not_have_meant_is_told() -> None:
    """Not that a tier dominates, or metadata: the sweep shows it."""
    study = identity(small_study("placement.cache_rate=50%"))
    classes = {(rank, 1): {"GFS-META": 9.0, "GFS-READ": 1.0 + 9 * (rank == 3)} for rank in range(4)}
    about = {"kind": "measured", "study": study}
    assert [finding.kind for finding in found(trace_of(classes, about=about))] == ["tier_not_used"]


def test_times_from_a_csv_only_have_a_goal() -> None:
    times = times_of([{"rank": 0, "class": "GFS-READ", "seconds": 2.0}])
    kinds = [finding.kind for finding in find(times, break_down(times), Conditions(), None, Goal("io", 1.0))]
    assert kinds == ["goal_missed"]
    (met,) = find(times, break_down(times), Conditions(), None, Goal("io", 3.0))
    assert met.evidence["where"] == "the only point"


def test_what_is_unfinished_comes_first() -> None:
    kinds = [f.kind for f in found(run(about={"compute": "sleep", "metadata_cache": "warm"}), expected=9, goal=1.0)]
    assert kinds[:2] == ["partial", "goal_missed"]
    assert len(kinds) == 4


def test_what_is_wrong_with_a_profilers_logs_is_said_once_for_all_runs() -> None:
    """What it saw outside of epochs was our own eviction, and is nothing to tell."""
    facts = {"damaged_logs": ["a"], "partial_modules": {"POSIX": 1}, "broken_lines": 2, "cut_files": ["c"]}
    outside = {"outside_epochs": {"ops": 9, "bytes": 0, "seconds": 1.0}, "program": {"files": 3, "seconds": 1.0}}
    runs = [run(about=profiled(**facts, **outside), rate=point / 10, point=point) for point in (1, 2)]
    kinds = {finding.kind: finding.evidence for finding in found(*runs)}
    assert kinds["damaged_logs"] == {"logs": 2, "names": ["a", "a"]}
    assert kinds["partial_logs"] == {"modules": ["POSIX"], "logs": 2}
    assert kinds["broken_lines"] == {"lines": 4}
    assert kinds["cut_logs"] == {"files": 2}
    assert not {"outside_epochs", "program_files", "no_epochs"} & kinds.keys()


@pytest.mark.parametrize("doubt", [None, *get_args(Doubt)])
def test_what_was_tried_is_not_recommended(doubt: Doubt | None) -> None:
    advice = " ".join(finding.suggestion for finding in rereading(doubt))
    assert "mark_epoch" in advice
    assert "--epochs rereads" not in advice
    assert not of_kind("no_marks", rereading(doubt))


@pytest.mark.parametrize(("threads", "left"), [(1, []), (4, ["reader.read_threads to 1"])])
def test_one_thread_is_recommended_to_those_who_have_several(threads: int, left: list[str]) -> None:
    study = identity(small_study(f"workload.reader.read_threads={threads}"))
    (finding,) = of_kind("missed_by_profiler", found(run(about={**profiled(missed_ops=3), "study": study})))
    assert finding.evidence["untried"] == left


def test_a_goal_is_judged_in_every_case_in_the_order_of_the_study() -> None:
    """A case that meets it says nothing about the others."""
    judged = [finding for finding in found(*cased(6.0, 2.0, 9.0, cases="cab"), goal=4.5) if "goal" in finding.kind]
    assert [finding.kind for finding in judged] == ["case_goal_missed", "goal_met", "case_goal_missed"]
    assert [finding.evidence.get("case") for finding in judged] == ["c", None, "b"]
    assert judged[1].evidence["where"] == "case a"
