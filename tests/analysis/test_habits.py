"""How programs use storage: each finding appears when it should, and only then."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import polars as pl
import pytest
from msgspec import structs

from tests.finding_cases import Case, finding_tests
from tests.small_study import small_study
from tests.traces import CLASSES, described_by, empty_lane, times_of, trace_of, traced
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.habits import about_habits, about_study
from tierscope.analysis.times import ClassTimes, DescribedRun, counting_only, from_traces
from tierscope.analysis.wording import Finding
from tierscope.spec.dump import identity
from tierscope.trace.described_logs import Habit, UnknownPaths
from tierscope.trace.description import Imported
from tierscope.trace.ops import CATEGORIES, KINDS
from tierscope.trace.trace import RunKey, Trace

Row = tuple[int, int, str, float, int]  # rank, node, class, seconds, bytes

PLAIN: dict[str, Any] = {
    "files": 10,
    "opens": 10,
    "reads": 10,
    "read_bytes": 10 << 20,
    "stdio_reads": 0,
    "random_reads": 0,
    "read_files": 10,
    "again_files": 0,
    "servers": 4,
    "striped_files": 10,
    "striped_on_one": 0,
    "striped_large_on_one": 0,
}
MIB = 1 << 20
EMULATED = ("gfs.emulate=true", "gfs.bandwidth=1 GB/s")
READS: list[Row] = [(rank, rank // 2, name, 1.0, 100) for rank in range(4) for name in ("GFS-READ", "LFS-READ")]


def times(rows: list[Row], epochs: int = 1) -> ClassTimes:
    table = [
        {"rank": rank, "node": node, "class": name, "seconds": seconds, "bytes": nbytes, "ops": 1, "epoch": epoch}
        for epoch in range(1, epochs + 1)
        for rank, node, name, seconds, nbytes in rows
    ]
    return times_of(table, classes=[*CLASSES, "GFS-WRITE"] if any(row[2] == "GFS-WRITE" for row in rows) else CLASSES)


def found(rows: list[Row] | None = None, epochs: int = 1, **habit: Any) -> list[Finding]:
    given = times(rows or READS, epochs)
    habits = {"gfs": Habit(**{**PLAIN, **habit})} if habit else {}
    return list(about_habits(given, break_down(given), habits))


def seen(habit: dict[str, Any]) -> list[Finding]:
    """Of a program of which only sums are known: the rest is not."""
    given = times(READS, epochs=2)
    return list(about_habits(given, break_down(given), {"gfs": Habit(**habit)}))


def sizes(small: int, large: int) -> tuple[tuple[int | None, int], ...]:
    return (1 << 10, small - 1), (128 << 10, 1), (256 << 10, large - 1), (None, 1)


Read = tuple[str, int, int, int]  # tier, opens, reads, bytes


def of_study(*settings: str, reads: Sequence[Read] = (("gfs", 24, 24, 24_000),), **sweep: float) -> list[Finding]:
    """Of a study with one run at one point, in which its only rank read this."""
    study = small_study("placement.cache_rate=0", *settings)
    about = {"kind": "measured", "study": identity(study), "sweep": sweep}
    given = from_traces([trace_with(reads, about)], ["lfs", "gfs"])
    return list(about_study(given, break_down(given)))


def trace_with(reads: Sequence[Read], about: dict[str, Any]) -> Trace:
    lane = empty_lane()
    for tier, opens, count, nbytes in reads:
        for kind, ops, moved in (("open", opens, 0), ("read", count, nbytes)):
            cell = ["lfs", "gfs"].index(tier) * len(KINDS) + KINDS.index(kind)
            lane.ops[cell], lane.nbytes[cell] = ops, moved
            lane.busy_ns[cell] = lane.wall_ns[cell] = 10**9
    return trace_of({(0, 1): {}}, sweep=about["sweep"], about=about, lanes=(lane,))


def slow(rank: int, seconds: float, ranks: int = 4) -> list[Row]:
    return [(n, 0, "GFS-READ", seconds if n == rank else 1.0, 100) for n in range(ranks)]


CASES: dict[str, Case] = {
    "metadata_dominated": Case(
        lambda: found([(0, 0, "GFS-META", 6.0, 0), (0, 0, "GFS-READ", 4.0, 100)]),
        {"percent": 60.0, "meta_seconds": 6.0},
        lambda: found([(0, 0, "GFS-META", 5.0, 0), (0, 0, "GFS-READ", 5.0, 100)]),
    ),
    "metadata_of_writes": Case(
        lambda: found([(0, 0, "GFS-META", 6.0, 0), (0, 0, "GFS-READ", 1.0, 100), (0, 0, "GFS-WRITE", 3.0, 100)]),
        {"percent": 60.0, "meta_seconds": 6.0},
        lambda: found([(0, 0, "GFS-META", 6.0, 0), (0, 0, "GFS-READ", 3.0, 100), (0, 0, "GFS-WRITE", 1.0, 100)]),
    ),
    "slow_process": Case(
        lambda: found(slow(3, 2.0, ranks=9)),
        {"rank": 3, "times": 2.0, "slowest_seconds": 2.0, "median_seconds": 1.0},
        lambda: found(slow(3, 1.5, ranks=9)),
    ),
    "slow_node": Case(
        lambda: found([(n, n // 2, "GFS-READ", 4.0 if n > 3 else 1.0, 100) for n in range(6)]),
        {"node": 2, "times": 4.0, "nodes": 3},
        lambda: found(slow(3, 2.0, ranks=3)),
    ),
    "unbalanced_tiers": Case(
        lambda: found([(0, 0, "GFS-READ", 8.0, 10), (0, 0, "LFS-READ", 2.0, 90)]),
        {"tier": "gfs", "time_percent": pytest.approx(80.0), "bytes_percent": pytest.approx(10.0)},
        lambda: found([(0, 0, "GFS-READ", 5.0, 10), (0, 0, "LFS-READ", 5.0, 90)]),
    ),
    "tier_not_used": Case(
        lambda: found([(0, 0, "GFS-READ", 8.0, 10), (0, 0, "LFS-READ", 0.0, 0)]),
        {"tier": "lfs", "bytes": 10},
        lambda: found([(0, 0, "GFS-READ", 8.0, 10), (0, 0, "LFS-READ", 8.0, 10)]),
    ),
    "small_files": Case(
        lambda: found(files=1000, read_bytes=1000 * 1024),
        {"tier": "gfs", "files": 1000, "mean_bytes": 1024.0},
        lambda: found(files=999, read_bytes=999 * 1024),
    ),
    "stdio_reads": Case(
        lambda: found(reads=10, stdio_reads=2),
        {"tier": "gfs", "percent": 20.0},
        lambda: found(reads=10, stdio_reads=1),
    ),
    "small_opens": Case(
        lambda: seen({"opens": 1000, "reads": 1000, "read_bytes": 1000 * 1024}),
        {"tier": "gfs", "opens": 1000, "mean_bytes": 1024.0},
        lambda: seen({"opens": 1000, "reads": 1000, "read_bytes": 1000 << 20}),
    ),
    "small_requests": Case(
        lambda: found(opens=10, reads=100, read_bytes=100 * 4096),
        {"tier": "gfs", "reads": 100, "mean_bytes": 4096.0, "limit": "a typical storage transfer", "limit_bytes": MIB},
        lambda: found(opens=30, reads=100, read_bytes=100 * 4096),
    ),
    "small_transfers": Case(
        lambda: found(opens=10, reads=100, read_bytes=100 * 4096, transfer_bytes=4096),
        {"tier": "gfs", "reads": 100, "mean_bytes": 4096.0, "transfer_bytes": 4096},
        lambda: found(opens=10, reads=100, read_bytes=100 * 4096, transfer_bytes=128 << 10),  # it is not what cuts them
    ),
    "mostly_small": Case(
        lambda: found(opens=10, reads=100, read_bytes=100 << 20, sizes=sizes(small=51, large=49)),
        {"tier": "gfs", "reads": 100, "percent": 51.0, "limit_bytes": 128 << 10},
        lambda: found(opens=10, reads=100, read_bytes=100 << 20, sizes=sizes(small=50, large=50)),
    ),
    "random_reads": Case(
        lambda: found(reads=10, random_reads=6),
        {"tier": "gfs", "percent": 60.0},
        lambda: found(reads=10, random_reads=5),
    ),
    "read_again": Case(
        lambda: found(epochs=2, read_files=10, again_files=2),
        {"tier": "gfs", "files": 2, "of": 10},
        lambda: found(epochs=1, read_files=10, again_files=2),  # they may be of another epoch
    ),
    "one_server": Case(
        lambda: found(servers=1, striped_files=9),
        {"tier": "gfs", "files": 9},
        lambda: found(servers=1, striped_files=1),
    ),
    "large_on_one_server": Case(
        lambda: found(striped_large_on_one=3),
        {"tier": "gfs", "files": 3},
        lambda: found(striped_on_one=3),
    ),
    "idle_servers": Case(
        lambda: of_study("gfs.servers=25", *EMULATED),
        {"tier": "gfs", "files": 24, "stripe_count": 1, "servers": 25},
        lambda: of_study("gfs.servers=24", *EMULATED),
    ),
}


(
    test_it_appears_when_it_should,
    test_it_does_not_appear_when_it_should_not,
    test_its_words_are_one_line_with_its_evidence,
) = finding_tests(CASES)


@pytest.mark.parametrize(
    ("known", "limit", "nbytes"),
    [
        ({"transfer_bytes": 256 << 10, "stripe_bytes": 4 << 20}, "the transfer size", 256 << 10),
        ({"stripe_bytes": 4 << 20}, "the stripe size", 4 << 20),
        ({"stripe_bytes": 0}, "a typical storage transfer", MIB),
    ],
)
def test_small_requests_name_what_they_are_smaller_than(known: dict[str, Any], limit: str, nbytes: int) -> None:
    (finding,) = found(opens=10, reads=100, read_bytes=100 * 4096, **known)
    assert (finding.kind, finding.evidence["limit"], finding.evidence["limit_bytes"]) == (
        "small_requests",
        limit,
        nbytes,
    )


def test_few_requests_are_no_matter() -> None:
    assert found(opens=1, reads=99, read_bytes=99) == []


def test_what_is_not_known_gives_no_finding() -> None:
    """Not even where the rest would make it likely."""
    assert seen({"reads": 10**6, "read_bytes": 10**6}) == []  # no log said how often files were opened


class TestOwnStudies:
    SMALL: tuple[Read, ...] = (("lfs", 999, 999, 999_000), ("gfs", 1000, 1000, 1_000_000))

    def test_many_small_files_are_told_once(self) -> None:
        """The tier that is read most speaks for all."""
        (finding,) = of_study("placement.cache_rate=0.5", reads=self.SMALL)
        assert (finding.kind, finding.evidence) == ("small_files", {"tier": "gfs", "files": 1000, "mean_bytes": 1000.0})

    def test_of_files_with_several_samples_opens_are_told(self) -> None:
        (finding,) = of_study("num_samples_per_file=2", reads=self.SMALL)
        assert (finding.kind, finding.evidence["opens"]) == ("small_opens", 1000)

    def test_a_profiler_that_tells_no_opens_is_no_trouble(self) -> None:
        given = trace_with(self.SMALL, {"kind": "measured", "study": identity(small_study()), "sweep": {}})
        untold = given.table.with_columns(pl.col("kind").replace("open", "meta"))
        times = from_traces([Trace(given.key, given.about, untold)], ["lfs", "gfs"])
        assert list(about_study(times, break_down(times))) == []

    def test_a_small_transfer_size_is_named(self) -> None:
        (finding,) = of_study("transfer_size=1 KiB", reads=[("gfs", 24, 240, 240 << 10)])
        assert (finding.kind, finding.evidence["transfer_bytes"]) == ("small_transfers", 1024)

    def test_samples_smaller_than_the_transfer_size_are_told_beside_it(self) -> None:
        (finding,) = of_study("transfer_size=256 KiB", reads=[("gfs", 24, 240, 240_000)])
        assert finding.kind == "small_requests"
        assert finding.text.endswith("smaller than the transfer size (256 KiB)")

    @pytest.mark.parametrize("rate", [0.0, 0.01])
    def test_a_cache_that_holds_no_file_is_told_if_it_was_to_hold_any(self, rate: float) -> None:
        """Given, or swept."""
        for findings in (of_study(f"placement.cache_rate={rate}"), of_study(cache_rate=rate)):
            expected = [("tier_not_used", {"tier": "lfs", "bytes": 24_000})] if rate else []
            assert [(finding.kind, finding.evidence) for finding in findings] == expected

    def test_the_far_tier_may_rest(self) -> None:
        assert of_study("placement.cache_rate=1", reads=[("lfs", 24, 24, 24_000)]) == []

    def test_a_sweep_in_which_some_point_uses_the_cache_is_in_order(self) -> None:
        study = identity(small_study())
        runs = [
            trace_with(reads, {"kind": "measured", "study": study, "sweep": {"cache_rate": rate}})
            for rate, reads in ((0.0, [("gfs", 1, 1, 1)]), (0.01, [("gfs", 1, 1, 1)]), (0.5, [("lfs", 1, 1, 1)]))
        ]
        given = from_traces(runs, ["lfs", "gfs"])
        assert list(about_study(given, break_down(given))) == []

    def test_requests_are_those_of_the_best_point(self) -> None:
        """A sweep over bad choices is no habit."""
        runs = []
        for size, reads in ((1024, 10_240), (MIB, 10)):
            study = identity(small_study("placement.cache_rate=0", f"transfer_size={size}"))
            about = {"kind": "measured", "study": study, "sweep": {"size": size}}
            runs.append(trace_with([("gfs", 10, reads, 10 << 20)], about))
        slower = runs[0].table.with_columns(pl.col("busy_seconds", "wall_seconds") * 2)
        given = from_traces([Trace(runs[0].key, runs[0].about, slower), runs[1]], ["lfs", "gfs"])
        assert break_down(given).best.sweep == {"size": MIB}
        assert list(about_study(given, break_down(given))) == []
        faster = runs[0].table.with_columns(pl.col("busy_seconds", "wall_seconds") / 2)
        given = from_traces([Trace(runs[0].key, runs[0].about, faster), runs[1]], ["lfs", "gfs"])
        assert [finding.kind for finding in about_study(given, break_down(given))] == ["small_transfers"]

    def test_servers_of_a_real_tier_are_not_known(self) -> None:
        """A file there may be striped over all of them."""
        assert of_study("gfs.servers=25") == []

    def test_striped_files_keep_more_servers_busy(self) -> None:
        assert of_study("gfs.servers=48", "gfs.stripe_count=2", *EMULATED) == []


class TestTiersThatAreNotUsed:
    """Of a stranger's program: a tier was named for it, and nothing was seen there."""

    @staticmethod
    def of(rows: list[Row], **about: Any) -> list[str]:
        given = times([(0, 0, "GFS-READ", 8.0, 10), (0, 0, "LFS-READ", 0.0, 0), *rows])
        run = DescribedRun(RunKey(0, 1), described_by(traced(**about)), {})
        given = replace(given, runs=(run,))
        return [finding.kind for finding in about_habits(given, break_down(given), {})]

    def test_one_that_is_only_looked_at_is_not_used(self) -> None:
        assert self.of([(0, 0, "LFS-META", 1.0, 0)]) == ["tier_not_used"]

    def test_one_that_is_written_is_used(self) -> None:
        assert self.of([(0, 0, "LFS-WRITE", 1.0, 10)]) == []

    def test_what_is_read_through_maps_is_not_seen(self) -> None:
        assert self.of([], mapped={"lfs": {"ops": 1, "bytes": 10}}) == []
        assert self.of([], mapped={"gfs": {"ops": 1, "bytes": 10}}) == ["tier_not_used"]


@pytest.mark.parametrize("untiered", [None, "lfs"])
def test_what_matches_no_tier_is_no_tier_that_data_could_be_on(untiered: str | None) -> None:
    rows: list[Row] = [(0, 0, "GFS-READ", 8.0, 10), (0, 0, "LFS-META", 0.1, 0), (0, 0, "LFS-READ", 0.0, 0)]
    run = trace_of({(0, 1): {"GFS-READ": 8.0, "LFS-META": 0.1}}, about={"kind": "imported"})
    assert isinstance(run.about, Imported)
    facts = structs.replace(run.about.facts, unknown=UnknownPaths(files=1, tier=untiered))
    about = DescribedRun(run.key, structs.replace(run.about, facts=facts), {})
    given = replace(times(rows), runs=(about,))
    kinds = {finding.kind for finding in about_habits(given, break_down(given), {})}
    assert ("tier_not_used" in kinds) is (untiered is None)


@pytest.mark.parametrize(
    "rows",
    [
        [(0, 0, "GFS-META", 6.0, 0), (0, 0, "GFS-READ", 1.0, 100), (0, 0, "GFS-WRITE", 300.0, 100)],
        [(0, 0, "GFS-META", 200.0, 0), (0, 0, "GFS-READ", 1.0, 100), (0, 0, "GFS-WRITE", 3.0, 100)],
    ],
)
@pytest.mark.parametrize("categories", list(combinations(CATEGORIES, 2)))
def test_metadata_is_compared_with_all_io_and_never_more_than_all_of_it(
    rows: list[Row], categories: tuple[str, ...]
) -> None:
    given = counting_only(times(rows), categories)
    said = [finding for finding in about_habits(given, break_down(given), {}) if finding.kind.startswith("metadata")]
    assert bool(said) is ("META" in categories and rows[0][3] == 200.0)
    assert all(finding.evidence["percent"] <= 100 for finding in said)


@pytest.mark.parametrize(("seconds", "told"), [(0.001, False), (1.0, True)])
def test_a_tier_that_takes_no_time_gets_no_advice(seconds: float, told: bool) -> None:
    """130 reads of 44 bytes in 4 ms, beside 13 s on another tier, are nothing to be told about."""
    rows: list[Row] = [(0, 0, "LFS-READ", 13.0, 1 << 30), (0, 0, "GFS-READ", seconds, 5000)]
    kinds = {finding.kind for finding in found(rows, reads=1300, read_bytes=50_000, stdio_reads=1300)}
    assert kinds & {"small_requests", "stdio_reads"} == ({"small_requests", "stdio_reads"} if told else set())


def test_a_job_that_writes_is_not_told_to_read_otherwise_but_where_its_files_lie() -> None:
    rows: list[Row] = [(0, 0, "GFS-WRITE", 13.0, 1 << 30), (0, 0, "GFS-READ", 0.01, 5000)]
    kinds = [finding.kind for finding in found(rows, reads=1300, read_bytes=50_000, servers=1)]
    assert kinds == ["one_server"]


def test_an_unremarkable_program_gives_none() -> None:
    assert found(reads=10) == []


def test_no_io_at_all_is_no_habit() -> None:
    assert found([(0, 0, "GFS-READ", 0.0, 0)]) == []
