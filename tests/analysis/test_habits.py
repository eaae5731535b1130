"""How programs use storage: each finding appears when it should, and only then."""

from typing import Any

import pytest

from tests.finding_cases import Case, it_appears, it_does_not_appear, its_words_are_one_line_with_its_evidence
from tests.traces import times_of
from tierscope.analysis.breakdown import break_down
from tierscope.analysis.habits import about_habits
from tierscope.analysis.times import ClassTimes
from tierscope.analysis.wording import Finding

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
READS: list[Row] = [(rank, rank // 2, name, 1.0, 100) for rank in range(4) for name in ("GFS-READ", "LFS-READ")]


def times(rows: list[Row], epochs: int = 1) -> ClassTimes:
    table = [
        {"rank": rank, "node": node, "class": name, "seconds": seconds, "bytes": nbytes, "ops": 1, "epoch": epoch}
        for epoch in range(1, epochs + 1)
        for rank, node, name, seconds, nbytes in rows
    ]
    return times_of(table)


def found(rows: list[Row] | None = None, epochs: int = 1, **habit: Any) -> list[Finding]:
    given = times(rows or READS, epochs)
    habits = {"gfs": {**PLAIN, **habit}} if habit else {}
    return list(about_habits(given, break_down(given), habits))


def slow(rank: int, seconds: float, ranks: int = 4) -> list[Row]:
    return [(n, 0, "GFS-READ", seconds if n == rank else 1.0, 100) for n in range(ranks)]


CASES: dict[str, Case] = {
    "metadata_dominated": Case(
        lambda: found([(0, 0, "GFS-META", 6.0, 0), (0, 0, "GFS-READ", 4.0, 100)]),
        {"percent": 60.0, "meta_seconds": 6.0},
        lambda: found([(0, 0, "GFS-META", 5.0, 0), (0, 0, "GFS-READ", 5.0, 100)]),
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
    "small_requests": Case(
        lambda: found(opens=10, reads=100, read_bytes=100 * 4096),
        {"tier": "gfs", "reads": 100, "mean_bytes": 4096.0},
        lambda: found(opens=30, reads=100, read_bytes=100 * 4096),
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
}


@pytest.mark.parametrize("kind", CASES)
def test_it_appears_when_it_should(kind: str) -> None:
    it_appears(kind, CASES[kind])


@pytest.mark.parametrize("kind", CASES)
def test_it_does_not_appear_when_it_should_not(kind: str) -> None:
    it_does_not_appear(kind, CASES[kind])


@pytest.mark.parametrize("kind", CASES)
def test_its_words_are_one_line_with_its_evidence(kind: str) -> None:
    its_words_are_one_line_with_its_evidence(kind, CASES[kind])


def test_an_unremarkable_program_gives_none() -> None:
    assert found(reads=10) == []


def test_no_io_at_all_is_no_habit() -> None:
    assert found([(0, 0, "GFS-READ", 0.0, 0)]) == []
