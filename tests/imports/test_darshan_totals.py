"""Every real log: what is told over ranks and tiers is what Darshan itself counted, and the headline is the slowest process."""

import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.imports.darshan_logs import REAL, needs_library, needs_real_logs
from tests.kept_readers import kept_readers
from tierscope.analysis.analysis import Analysis
from tierscope.analysis.to_json import analysis_json
from tierscope.commands.analyze import analyze_import
from tierscope.errors import UserError
from tierscope.imports.darshan_reader import DarshanLog, UnreadableLog, processes_of, read_logs
from tierscope.imports.logs import ImportOptions, import_logs
from tierscope.imports.paths import UNKNOWN, TierRules
from tierscope.jsonable import JsonObject
from tierscope.trace.ops import CATEGORIES

__all__ = ["kept_readers"]
pytestmark = [needs_real_logs, needs_library]

LOGS = sorted(str(path.relative_to(REAL)) for path in REAL.rglob("*.darshan")) if REAL.is_dir() else []
REFUSED = {
    *(f"bad/{name}.darshan" for name in ("bitflip", "header_only", "random", "truncated", "zero")),
    "dxt/dxt_meta_gt_runtime.darshan",
    *(f"release/mpi-io-test-ppc64-3.{version}.darshan" for version in ("0.1", "1.5", "1.6")),  # negative times
}
ROUNDING_SECONDS = 1e-6  # of each record, as darshan-parser prints it
_COUNTERS = {
    "READ": ("F_READ_TIME", "BYTES_READ", ("READS",)),
    "META": ("F_META_TIME", None, ("OPENS", "STATS", "SEEKS", "MMAPS")),
    "WRITE": ("F_WRITE_TIME", "BYTES_WRITTEN", ("WRITES", "FSYNCS", "FDSYNCS", "FLUSHES")),
}
_read: dict[str, DarshanLog | UnreadableLog] = {}


def raw(name: str) -> DarshanLog | UnreadableLog:
    """All are read at once, by one process."""
    if not _read:
        _read.update(zip(LOGS, read_logs([str(REAL / log) for log in LOGS], workers=1), strict=True))
    return _read[name]


def analysed(name: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Analysis:
    def known(paths: Sequence[str], segments: bool = False) -> list[DarshanLog | UnreadableLog]:
        return [raw(name)]

    monkeypatch.setattr("tierscope.imports.logs.read_logs", known)
    anywhere = TierRules({"all": ("/",)})
    try:
        return analyze_import(import_logs([str(REAL / name)], ImportOptions(TierRules({}), **options)))
    except UserError as error:
        if "--tier" not in str(error):
            raise
        return analyze_import(import_logs([str(REAL / name)], ImportOptions(anywhere, **options)))


def counted(name: str) -> tuple[dict[str, tuple[float, int | None, int]], int]:
    """By class, what POSIX and STDIO counted: seconds, bytes, operations; and how many records that is."""
    log = raw(name)
    assert isinstance(log, DarshanLog)
    modules = [log.records[module] for module in ("POSIX", "STDIO")]
    sums = {
        category: (
            math.fsum(seconds for records in modules for seconds in records.seconds(time).tolist()),
            sum(int(records.counter(moved).sum()) for records in modules) if moved else None,
            sum(int(records.counter(each).sum()) for records in modules for each in ops),
        )
        for category, (time, moved, ops) in _COUNTERS.items()
    }
    return sums, sum(map(len, modules))


@cache
def expected() -> JsonObject:
    return dict(json.loads((REAL / "expected.json").read_text()))


@cache
def of_writers() -> JsonObject:
    return dict(json.loads((REAL / "writers" / "expected.json").read_text()))


@pytest.mark.parametrize("name", [name for name in LOGS if name not in REFUSED])
def test_totals_are_darshans_own_counters(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = analysis_json(analysed(name, monkeypatch))
    totals, (sums, records) = shown["totals"], counted(name)
    tolerance = ROUNDING_SECONDS * max(1, records)
    for category, (seconds, moved, ops) in sums.items():
        lower = category.lower()
        assert totals[f"{lower}_seconds"] == pytest.approx(seconds, abs=tolerance, rel=1e-12), category
        assert totals[f"{lower}_ops"] == ops
        assert moved is None or totals[f"{lower}_bytes"] == moved
    largest = max(CATEGORIES, key=lambda category: sums[category][0])
    assert totals["largest_class"] == (largest if sums[largest][0] else None)
    apart = [part for kind, part in totals["apart"].items() if kind != "mpiio"]
    for category in CATEGORIES:
        of_tiers = [part["seconds"] for tier, part in totals["classes"].items() if tier.endswith(category)]
        whole = math.fsum([*of_tiers, *(part[f"{category.lower()}_seconds"] for part in apart)])
        assert totals[f"{category.lower()}_seconds"] == pytest.approx(whole)
    headline = shown["best"]["io_seconds"]
    assert (headline > 0) == any(seconds for seconds, _, _ in sums.values())


@pytest.mark.parametrize("name", [name for name in LOGS if name not in REFUSED])
def test_the_headline_is_the_slowest_process(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No process has less than its own records say, and none that shares files less than is recorded of it."""
    analysis = analysed(name, monkeypatch)
    log = raw(name)
    assert isinstance(log, DarshanLog)
    of_ranks = analysis.times.table.group_by("rank").agg(pl.col("seconds").sum())
    assert analysis.breakdown.best.io.median == pytest.approx(of_ranks["seconds"].max())
    own = np.zeros(processes_of(log))  # of records that are of one rank
    least = 0.0  # that the slowest rank of a shared record had
    for module in ("POSIX", "STDIO"):
        records = log.records[module]
        data = np.array([tier == UNKNOWN for tier in TierRules({}).of_all(log.paths, [], set())], bool)[records.files]
        spent = np.sum([records.seconds(time) for time, _, _ in _COUNTERS.values()], axis=0)
        alone, shared = data & (records.ranks >= 0), data & (records.ranks < 0)
        np.add.at(own, records.ranks[alone], spent[alone])
        least = max(least, float(np.minimum(records.seconds("F_SLOWEST_RANK_TIME"), spent)[shared].max(initial=0.0)))
    assert analysis.breakdown.best.io.median >= max(own.max(), least) * (1 - 1e-9)


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_logs_that_are_refused_are_so_with_any_tier(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UserError):
        analysed(name, monkeypatch)


def test_what_darshan_parser_printed_is_what_the_library_says() -> None:
    """So that the counters above are not ours alone."""
    for name, facts in expected().items():
        if name in REFUSED or facts["rc"]:
            continue
        theirs = [of for place, of in facts["ranks"].items() if place.startswith(("POSIX:", "STDIO:"))]
        (reads, read_bytes, _), (meta, _, _) = (counted(name)[0][category] for category in ("READ", "META"))
        for ours, counter in ((reads, "F_READ_TIME"), (meta, "F_META_TIME"), (read_bytes, "BYTES_READ")):
            summed = math.fsum(value for of in theirs for key, value in of.items() if key.endswith(counter))
            records = sum(of["records"] for of in theirs)
            assert ours == pytest.approx(summed, abs=ROUNDING_SECONDS * max(1, records), rel=1e-12), (name, counter)


WRITERS = sorted(name for name in LOGS if name.startswith("writers/"))


@pytest.mark.parametrize("name", WRITERS)
def test_jobs_that_write_are_as_slow_as_their_slowest_rank(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all of them is in one shared record: the rank that is recorded as its slowest is the slowest."""
    theirs = of_writers()[name.partition("/")[2]]
    shown = analysis_json(analysed(name, monkeypatch))
    totals = shown["totals"]
    for key, counter in (("read", "read_time"), ("write", "write_time"), ("meta", "meta_time")):
        summed = sum(theirs[module][counter] for module in ("POSIX", "STDIO") if module in theirs)
        assert totals[f"{key}_seconds"] == pytest.approx(summed, abs=1e-5)
    recorded = max(theirs[module]["slowest_rank_time_max"] for module in ("POSIX", "STDIO") if module in theirs)
    assert recorded * (1 - 1e-6) <= shown["best"]["io_seconds"] <= theirs["run_time"] + 1
    if "MPI-IO" in theirs:
        beside = totals["apart"]["mpiio"]
        assert beside["write_bytes"] == theirs["MPI-IO"]["bytes_written"]
        assert beside["write_seconds"] == pytest.approx(theirs["MPI-IO"]["write_time"], abs=1e-5)


@pytest.mark.parametrize("name", WRITERS[:2])
def test_left_out_shared_files_are_told_apart(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, without = (analysis_json(analysed(name, monkeypatch, shared=shared))["totals"] for shared in (True, False))
    for key in ("read_seconds", "meta_seconds", "write_seconds"):
        assert without[key] == pytest.approx(whole[key])
    assert without["apart"]["shared"]["write_seconds"] > 0
    assert np.isclose(sum(part["seconds"] for part in without["classes"].values()), 0, atol=1e-3)
