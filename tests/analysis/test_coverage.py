"""How much was seen: shares that can be told and those that cannot, in JSON, in a line, and as findings."""

from typing import Any

import pytest
from msgspec import structs

from tests.finding_cases import Case, finding_tests
from tests.traces import TIERS
from tierscope.analysis.coverage import (
    about_coverage,
    about_elsewhere,
    about_page_cache,
    coverage_json,
    merged,
    read_share,
    written_share,
)
from tierscope.analysis.times import DescribedRun
from tierscope.analysis.wording import Finding
from tierscope.report.coverage import coverage_line
from tierscope.report.headline import left_out_text
from tierscope.trace.coverage import FAULT_BYTES, Coverage, RealReads, coverage
from tierscope.trace.description import DescribedTier, Measured, Records, Traced
from tierscope.trace.kernel_io import KernelIo
from tierscope.trace.provenance import Provenance
from tierscope.trace.trace import RunKey

MIB = 1 << 20
WHOLE = Coverage(
    seen_read_bytes=100 * MIB,
    seen_written_bytes=10 * MIB,
    kernel_read_bytes=100 * MIB,
    kernel_written_bytes=10 * MIB,
    device_read_bytes=100 * MIB,
    mapped_fault_bytes=0,
    real_read_bytes=100 * MIB,
    real_read_ops=100,
    real_read_seconds=0.1,
    processes=3,
)


def command(filesystem: str = "ext4", lost_ops: int = 0, running: tuple[int, ...] = (), **changes: Any) -> Traced:
    return Traced(
        tiers=tuple(DescribedTier(name=name) for name in TIERS),
        command=("train",),
        records=Records(lost_ops=lost_ops),
        running=running,
        provenance=Provenance(filesystems=dict.fromkeys(TIERS, filesystem)),
        coverage=structs.replace(WHOLE, **changes),
    )


def ranks(**changes: Any) -> Measured:
    return Measured(
        study=None,
        point=0,
        sweep={},
        tiers=(DescribedTier(name="gfs"),),
        compute=None,
        loader=None,
        metadata_cache=None,
        coverage=structs.replace(WHOLE, **changes),
    )


def said(*abouts: Traced | Measured) -> list[Finding]:
    return [*about_coverage(abouts), *about_page_cache(abouts, frozenset())]


def traced(moved_bytes: int, **changes: Any) -> DescribedRun:
    return DescribedRun(RunKey(0, 1), command(**changes), {}, moved_bytes)


CASES: dict[str, Case] = {
    "elsewhere": Case(
        lambda: list(about_elsewhere([traced(10 * MIB)])),
        {"percent": pytest.approx(100 * 100 / 110), "bytes": 100 * MIB, "all_bytes": 110 * MIB},
        lambda: list(
            about_elsewhere([traced(105 * MIB), traced(0, seen_read_bytes=6 * MIB)])
        ),  # next to nothing, or libraries
    ),
    "low_coverage": Case(
        lambda: said(command(), command(seen_read_bytes=94 * MIB)),
        {
            "what": "read",
            "is_bound": False,
            "percent": pytest.approx(94),
            "seen_bytes": 94 * MIB,
            "all_bytes": 100 * MIB,
            "cause": "process",
        },
        lambda: said(command(), command(seen_read_bytes=95 * MIB)),
    ),
    "coverage_unknown": Case(
        lambda: said(command(ring_processes=2)), {"processes": 2}, lambda: said(command(seen_read_bytes=0, lost_ops=1))
    ),
    "page_cache_speed": Case(
        lambda: said(command(device_read_bytes=49 * MIB)),
        {
            "tiers": TIERS,
            "read_bytes": 100 * MIB,
            "device_bytes": 49 * MIB,
            "bytes_per_second": pytest.approx(1000 * MIB),
        },
        lambda: said(command(device_read_bytes=51 * MIB)),
    ),
}


def test_the_cause_is_named() -> None:
    mapped = command(mapped_fault_bytes=50 * MIB)
    causes: dict[str, Traced | Measured] = {
        "mmap": mapped,
        "process": command(seen_written_bytes=5 * MIB),
        "library": ranks(seen_read_bytes=MIB),
    }
    for cause, about in causes.items():
        (finding,) = said(about)
        assert (finding.kind, finding.evidence["cause"]) == ("low_coverage", cause)
    (finding,) = said(mapped)
    assert "saw at least 67 % of the bytes that the command read: 100 MiB of 150 MiB" in finding.text
    assert "mmap" in finding.text
    (finding,) = said(command(seen_written_bytes=5 * MIB))
    assert "saw 50 % of the bytes that the command wrote" in finding.text


def test_maps_that_can_be_written_are_read_or_written() -> None:
    """Nobody knows which: neither calls it reading nor tells to read instead of map."""
    about = command(mapped_fault_bytes=60 * MIB, mapped_writable_bytes=50 * MIB)
    (finding,) = said(about)
    assert (finding.kind, finding.evidence["cause"]) == ("low_coverage", "writable_mmap")
    assert "saw at least 65 % of the bytes that the command read or wrote: 110 MiB of 170 MiB" in finding.text
    assert "mmap_mode" not in finding.text + finding.suggestion
    assert "Up to 35 % of the bytes read or written were not recorded" in left_out_text([finding])
    assert about.coverage is not None
    line = coverage_line(about.coverage)
    assert "at least 62.5 % of at most 160 MiB read and at least 16.6 % of at most 60 MiB written" in line


@pytest.mark.parametrize(
    "about",
    [
        command(seen_read_bytes=0, kernel_read_bytes=MIB),  # a program that only starts
        command(seen_read_bytes=0, lost_ops=1),  # said already
        command(seen_read_bytes=0, running=(7,)),
        command(seen_read_bytes=0, kernel_read_bytes=None),
        command(seen_read_bytes=0, unknown_processes=1),
        command(device_read_bytes=0, filesystem="lustre"),  # which may not count
        command(device_read_bytes=0, real_read_seconds=1.0),  # too slow for memory
        command(device_read_bytes=0, real_read_bytes=15 * MIB),
        command(device_read_bytes=None),
        ranks(kernel_written_bytes=None, seen_written_bytes=0),
    ],
)
def test_no_alarm_where_nothing_is_certain(about: Traced | Measured) -> None:
    assert said(about) == []


def test_a_tier_that_is_known_to_be_warm_is_not_named_again() -> None:
    assert list(about_page_cache([command(device_read_bytes=0)], frozenset(["gfs"]))) == []


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kernel_read_bytes": None}, "not_counted"),
        ({"mapped_fault_bytes": None}, "not_counted"),
        ({"unknown_processes": 1}, "elsewhere"),
        ({"ring_processes": 1}, "io_uring"),
        ({"kernel_read_bytes": 90 * MIB}, "more_seen"),
        ({"kernel_read_bytes": 300, "seen_read_bytes": 0}, "nothing"),
    ],
)
def test_a_share_that_cannot_be_told_is_none(changes: dict[str, Any], reason: str) -> None:
    found = structs.replace(WHOLE, **changes)
    assert (read_share(found).value, read_share(found).reason) == (None, reason)
    assert coverage_line(found).startswith("Coverage: what fraction of reads was recorded is unknown (")
    plain = coverage_json(found)
    assert plain is not None
    assert (plain["share"], plain["unknown_because"]) == (None, reason)


def test_the_line_has_both_numbers_and_never_rounds_up() -> None:
    found = structs.replace(WHOLE, seen_read_bytes=100 * MIB - 1000)
    assert coverage_line(found) == "Coverage: recorded 99.9 % of 100 MiB read and 100 % of 10 MiB written."
    bound = structs.replace(WHOLE, mapped_fault_bytes=100 * MIB, kernel_written_bytes=None)
    assert coverage_line(bound) == "Coverage: recorded at least 50 % of at most 200 MiB read."


def test_runs_are_added_up_and_one_that_lacks_a_count_makes_it_unknown() -> None:
    assert merged([]) is None
    both = merged([WHOLE, WHOLE])
    assert both is not None
    assert (both.kernel_read_bytes, both.processes, read_share(both).value) == (200 * MIB, 6, 1.0)
    lacking = merged([WHOLE, structs.replace(WHOLE, kernel_read_bytes=None)])
    assert lacking is not None
    assert lacking.kernel_read_bytes is None
    assert written_share(lacking).value == 1.0


def test_faults_bound_what_was_read_through_maps() -> None:
    kernel = KernelIo(10, 20, 30, faults=3)
    reads = RealReads()
    assert coverage(kernel, (1, 2), reads, 1).mapped_fault_bytes == 0
    assert coverage(kernel, (1, 2), reads, 1, mapped_bytes=5).mapped_fault_bytes == 5
    assert coverage(kernel, (1, 2), reads, 1, mapped_bytes=1 << 40).mapped_fault_bytes == 3 * FAULT_BYTES
    assert coverage(None, (1, 2), reads, 1, mapped_bytes=5).mapped_fault_bytes is None
    assert coverage(kernel, (-1, 2), reads, 1).seen_read_bytes == 0


(
    test_it_appears_when_it_should,
    test_it_does_not_appear_when_it_should_not,
    test_its_words_are_one_line_with_its_evidence,
) = finding_tests(CASES)
