"""Extended tracing (DXT): its reads are those that the counters tell of, and a gap between them begins an epoch."""

import numpy as np
import pytest

from tests.imports.darshan_logs import needs_library, real_log, wheel_log
from tierscope.analysis.merged_timeline import SAME_HOST_NS
from tierscope.imports.darshan import DarshanOptions, _epochs_of_starts, import_logs
from tierscope.imports.darshan_reader import DarshanLog, read_logs
from tierscope.imports.darshan_spans import rank_operations
from tierscope.imports.paths import TierRules

RULES = TierRules({"lfs": ("/lfs",), "gfs": ("/gfs",)})


def read(path: str) -> DarshanLog:
    (log,) = read_logs([path], segments=True)
    assert isinstance(log, DarshanLog)
    return log


@needs_library
def test_every_read_of_the_counters_is_there_once() -> None:
    log = read(str(real_log("twotier/twotier_noreduce.darshan")))
    counted, traced = (import_logs([log], RULES, DarshanOptions(traced_reads=dxt)).sums for dxt in (False, True))
    keys = ["rank", "tier", "kind"]
    expected = counted.filter(counted["kind"] == "read").select(*keys, "ops", "bytes").sort(keys)
    assert traced.select(*keys, "ops", "bytes").sort(keys).equals(expected)
    assert set(traced["kind"]) == {"read"}


@needs_library
def test_a_gap_tells_epochs_apart_without_losing_a_read() -> None:
    log = read(str(real_log("twotier/twotier_noreduce.darshan")))
    found = import_logs([log], RULES, DarshanOptions(epoch_gap_seconds=1e-3, traced_reads=True))
    assert found.sums["epoch"].n_unique() > 1
    assert found.sums["ops"].sum() == 648
    assert {(one.rank, one.epoch) for one in found.ranks} >= {(0, 1), (0, 2)}


@needs_library
def test_a_log_of_the_wheel_has_the_reads_of_its_counters() -> None:
    log = read(str(wheel_log("sample-dxt-simple.darshan")))
    assert log.segments is not None
    assert len(log.segments.reads) == log.records["POSIX"].counter("READS").sum()
    assert log.segments.reads["length"].sum() == log.records["POSIX"].counter("BYTES_READ").sum()


@needs_library
def test_without_asking_there_are_none() -> None:
    (log,) = read_logs([str(wheel_log("sample-dxt-simple.darshan"))])
    assert isinstance(log, DarshanLog)
    assert log.segments is None


@pytest.mark.parametrize(
    ("gap", "epochs"), [(None, [1, 1, 1, 1]), (0.5, [2, 1, 1, 3]), (3.0, [1, 1, 1, 2]), (9.0, [1, 1, 1, 1])]
)
def test_an_epoch_begins_where_nobody_has_been_reading(gap: float | None, epochs: list[int]) -> None:
    """The second lasts beyond the beginning of the third; then a second passes; then six."""
    starts = np.array([6.0, 0.0, 1.0, 13.0])
    ends = np.array([7.0, 5.0, 2.0, 14.0])
    assert _epochs_of_starts(starts, ends, gap).tolist() == epochs


@needs_library
def test_when_ranks_read_by_the_calendar() -> None:
    """What a profiler's trace is set beside: within the job's own time, and together no longer than all reads."""
    log = read(str(real_log("twotier/twotier_noreduce.darshan")))
    assert log.segments is not None
    operations = rank_operations([log], RULES)
    assert [of_rank.rank for of_rank in operations] == [0, 1, 2, 3]
    spent = float((log.segments.reads["end"] - log.segments.reads["start"]).sum())
    assert 0 < sum(of_rank.io.total_ns for of_rank in operations) / 1e9 <= spent + 1e-6
    for of_rank in operations:
        assert of_rank.io.extent is not None
        first, last = (time / 1e9 for time in of_rank.io.extent)
        assert log.job["start_seconds"] <= first < last <= log.job["end_seconds"] + 1
        assert of_rank.clock_ns == SAME_HOST_NS  # its start has nanoseconds
