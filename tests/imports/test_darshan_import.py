"""A job's logs become ranks, epochs, tiers and sums: known logs in, so that a test knows what must come out."""

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import polars as pl
import pytest
from msgspec.structs import astuple

from tests.imports.darshan_logs import (
    REAL,
    Did,
    made_log,
    needs_library,
    needs_real_logs,
    reading,
    real_log,
    wheel_log,
)
from tierscope.imports import darshan_reader
from tierscope.imports.darshan import DarshanOptions, import_logs
from tierscope.imports.darshan_reader import DarshanLog, read_logs
from tierscope.imports.gathered import GatheredLogs, to_trace
from tierscope.imports.paths import TierRules
from tierscope.trace.described_logs import ApartSums, KindSums, SharedFiles
from tierscope.trace.description import DescribedTier, Imported

RULES = TierRules({"lfs": ("/lfs",), "gfs": ("/gfs",)})
READ_BYTES = 131_072  # of a file of the two tiers' runs
DLIO_SLOWEST = (5.751927, 1.538970)  # READ and META of process 2110488

FEW_RANKS = 1000


def imported(*logs: DarshanLog, rules: TierRules = RULES, **options: Any) -> GatheredLogs:
    return import_logs(logs, rules, DarshanOptions(**options))


def real(*names: str) -> list[DarshanLog]:
    found = list(read_logs([str(real_log(name)) for name in names]))
    logs = [log for log in found if isinstance(log, DarshanLog)]
    assert len(logs) == len(names)
    return logs


@cache
def folder(name: str) -> list[DarshanLog]:
    return real(*(f"{name}/{path.name}" for path in sorted(real_log(name).iterdir())))


def cells(found: GatheredLogs, *keys: str) -> dict[Any, tuple[int, int, float]]:
    """Operations, bytes and seconds by some columns; cells in which nothing was done are left out."""
    summed = found.sums.group_by(*keys).agg(pl.col("ops", "bytes", "busy_seconds").sum())
    rows = {tuple(row[: len(keys)]): row[len(keys) :] for row in summed.iter_rows()}
    return {key: values for key, values in sorted(rows.items()) if any(values)}


def reads(found: GatheredLogs, *keys: str) -> dict[Any, int]:
    chosen = replace(found, sums=found.sums.filter(pl.col("kind") == "read"))
    return {(key[0] if len(keys) == 1 else key): ops for key, (ops, _, _) in cells(chosen, *keys).items() if ops}


def places(found: GatheredLogs) -> list[tuple[int, int]]:
    return [(each.rank, each.epoch) for each in found.ranks]


@needs_real_logs
@needs_library
class TestTwoTiers:
    """Runs whose truth is known: what every rank opened, read and closed."""

    def test_every_rank_did_what_it_did(self) -> None:
        found = imported(*real("twotier/twotier_noreduce.darshan"))
        assert found.tiers == ["lfs", "gfs"]
        assert places(found) == [(rank, 1) for rank in range(4)]
        did = cells(found, "rank", "tier", "kind")
        for rank in range(4):
            files = {"gfs": 20 * (rank + 1) + 1, "lfs": 30}  # the one is shared
            for tier, count in files.items():
                ops, nbytes, seconds = did[rank, tier, "read"]
                assert (ops, nbytes) == (2 * count, 2 * count * READ_BYTES)  # everything twice
                assert 0 < seconds < 1
                assert did[rank, tier, "meta"][0] >= 2 * count
        assert not [key for key in did if key[2] == "write"]
        assert found.facts.shared == ()
        assert found.facts.process_count == 4

    def test_the_shared_file_can_be_left_out(self) -> None:
        found = imported(*real("twotier/twotier_shared_reduced.darshan"), shared=False)
        gfs = {rank: 2 * 20 * (rank + 1) for rank in range(4)}
        assert reads(found, "rank", "tier") == {
            (rank, tier): gfs[rank] if tier == "gfs" else 60 for rank in range(4) for tier in ("gfs", "lfs")
        }
        (shared,) = found.facts.shared
        assert (shared.tier, shared.files, shared.bytes) == ("gfs", 1, 8 * READ_BYTES)
        assert 0 < shared.fastest_seconds <= shared.slowest_seconds <= shared.read_seconds
        left_out = found.facts.left_out
        assert left_out.read is not None
        assert (left_out.read.ops, left_out.read.bytes) == (8, 8 * READ_BYTES)
        assert left_out.seconds == pytest.approx(shared.read_seconds + shared.meta_seconds)

    def test_the_shared_file_is_split_over_its_ranks(self) -> None:
        (log,) = real("twotier/twotier_shared_reduced.darshan")
        apart, split = imported(log, shared=False), imported(log)
        before, after = (cells(found, "rank", "tier", "kind") for found in (apart, split))
        (shared,) = split.facts.shared
        spent = []
        for rank in range(4):
            ops, nbytes, seconds = (
                b - a for a, b in zip(before[rank, "gfs", "read"], after[rank, "gfs", "read"], strict=True)
            )
            assert (ops, nbytes) == (2, 2 * READ_BYTES)
            assert after[rank, "lfs", "read"] == before[rank, "lfs", "read"]
            more = after[rank, "gfs", "meta"][2] - before[rank, "gfs", "meta"][2]
            assert more / seconds == pytest.approx(shared.meta_seconds / shared.read_seconds)
            spent.append(seconds + more)
        assert sum(spent) == pytest.approx(shared.read_seconds + shared.meta_seconds)
        assert max(spent) == pytest.approx(shared.slowest_seconds)
        assert min(spent) == pytest.approx(shared.fastest_seconds)

    def test_logs_of_one_process_are_its_epochs(self) -> None:
        """The fourth, which it left at its end, is empty."""
        logs = folder("twotier/epoch_logs")
        for order in (logs, logs[::-1]):
            found = imported(*order)
            assert places(found) == [(0, 1), (0, 2), (0, 3)]
            assert reads(found, "epoch", "tier") == {(1, "gfs"): 80, (2, "gfs"): 50, (2, "lfs"): 30, (3, "lfs"): 30}
            assert found.facts.process_count == 1

    def test_the_default_limit_kept_a_part(self) -> None:
        found = imported(*real("twotier/record_limit_partial.darshan"))
        assert sum(reads(found, "rank").values()) <= 1024
        assert found.facts.doubts.partial_modules == {"POSIX": 1}


@needs_real_logs
@needs_library
class TestOneRealJob:
    """24 logs of one job: 4 ranks, their spawned workers and resource trackers."""

    def test_every_process_counts_for_itself(self) -> None:
        found = imported(*folder("dlio_polaris"), rules=TierRules({}))
        assert found.facts.process_count == 24
        assert places(found) == [(rank, 1) for rank in range(24)]
        assert found.tiers == ["other", "lustre"]  # folders are no files that Lustre tells of
        seconds = dict(found.sums.group_by("tier").agg(pl.col("busy_seconds").sum()).iter_rows())
        assert seconds["other"] < 0.001 * seconds["lustre"]

    def test_the_slowest_process_is_the_slowest(self) -> None:
        logs = {log.path: log for log in folder("dlio_polaris")}
        sums = {
            path: tuple(math.fsum(log.records["POSIX"].seconds(name)) for name in ("F_READ_TIME", "F_META_TIME"))
            for path, log in logs.items()
        }
        slowest = max(sums, key=lambda path: sum(sums[path]))
        assert "-2110488_" in slowest
        assert sums[slowest] == pytest.approx(DLIO_SLOWEST, abs=1e-5)
        ours = cells(imported(logs[slowest], rules=TierRules({})), "tier", "kind")
        program = imported(logs[slowest], rules=TierRules({})).facts.program.seconds
        assert ours["lustre", "read"][2] == pytest.approx(DLIO_SLOWEST[0], abs=program + 1e-5)
        assert ours["lustre", "read"][2] > 0.99 * DLIO_SLOWEST[0]

    def test_waves_of_workers_with_files_of_their_own_are_no_epochs(self) -> None:
        found = imported(*folder("dlio_polaris"), rules=TierRules({}), epoch_gap_seconds=10.0)
        assert {epoch for _, epoch in places(found)} == {1}
        assert found.facts.own_files

    def test_a_gap_too_long_finds_one_epoch(self) -> None:
        found = imported(*folder("dlio_polaris"), rules=TierRules({}), epoch_gap_seconds=100.0)
        assert {epoch for _, epoch in places(found)} == {1}


@needs_library
def test_a_job_of_the_wheel_is_on_lustre_by_its_own_word() -> None:
    (log,) = read_logs([str(wheel_log("sample-goodost.darshan"))])
    assert isinstance(log, DarshanLog)
    found = imported(log, rules=TierRules({}))
    assert found.tiers == ["lustre"]
    assert len(found.ranks) == 48
    assert found.facts.program.files + found.facts.streams.files == 2


def did(*paths: str) -> list[Did]:
    return [reading(path) for path in paths or ("/gfs/a",)]


class TestProcesses:
    """Whose I/O it is."""

    def test_workers_count_for_whoever_forked_them(self) -> None:
        main, worker, helper = (
            made_log(did(), pid=10, start=1),
            made_log(did(), pid=11, start=2, parent=10),
            made_log(did(), pid=12, start=3, parent=11),
        )
        found = imported(helper, worker, main)
        assert reads(found, "rank") == {0: 3}
        assert places(found) == [(0, 1)]
        assert found.facts.process_count == 3

    def test_a_worker_that_began_before_its_parents_log_counts_for_it_too(self) -> None:
        found = imported(made_log(did(), pid=11, start=1, parent=10), made_log(did(), pid=10, start=2))
        assert reads(found, "rank") == {0: 2}

    def test_two_families_are_two_ranks_in_order_of_their_start(self) -> None:
        found = imported(
            made_log(did(), pid=20, start=2),
            made_log([reading("/gfs/a", READS=5)], pid=21, start=9, parent=20),
            made_log([reading("/gfs/a", READS=7)], pid=10, start=1),
        )
        assert reads(found, "rank") == {0: 7, 1: 6}

    @pytest.mark.parametrize("parent", [99, "", "ten", "-1", "9" * 40, "²"])
    def test_a_parent_without_a_log_is_nobody(self, parent: int | str) -> None:
        found = imported(made_log(did(), pid=1, parent=parent), made_log(did(), pid=2, parent=parent))
        assert reads(found, "rank") == {0: 1, 1: 1}

    @pytest.mark.parametrize("parents", [{1: 1}, {1: 2, 2: 1}, {1: 2, 2: 3, 3: 1}, {1: 2, 2: 3, 3: 2}])
    def test_processes_that_forked_each_other_end_somewhere(self, parents: dict[int, int]) -> None:
        """Numbers are used again, so this can be."""
        found = imported(*(made_log(did(), pid=pid, parent=parent) for pid, parent in parents.items()))
        assert sum(reads(found, "rank").values()) == len(parents)
        assert {rank for rank, _ in places(found)} >= set(reads(found, "rank"))

    def test_a_chain_of_a_thousand_forks_has_one_root(self) -> None:
        logs = [made_log(did(), pid=pid, start=pid, parent=pid - 1) for pid in range(1, 1001)]
        assert reads(imported(*logs), "rank") == {0: 1000}

    def test_logs_without_a_number_in_their_name_are_processes_of_their_own(self) -> None:
        found = imported(made_log(did(), name="a.darshan"), made_log(did(), name="b.darshan"))
        assert reads(found, "rank") == {0: 1, 1: 1}

    def test_two_processes_of_one_number_that_ran_at_once_are_two(self) -> None:
        """On two hosts, or in two containers, numbers are alike."""
        found = imported(
            made_log(did(), name="one/me_python_id77-7_1-1-1-1_1.darshan", start=100.0, seconds=50.0),
            made_log(did(), name="two/me_python_id77-7_1-1-1-2_1.darshan", start=101.0, seconds=50.0),
        )
        assert len({rank for rank, _ in places(found)}) == 2
        assert {epoch for _, epoch in places(found)} == {1}

    def test_an_mpi_log_brings_all_its_ranks_and_others_come_behind(self) -> None:
        ranks = [reading(f"/gfs/{rank}", rank, READS=rank + 1) for rank in range(4)]
        found = imported(
            made_log(did(), pid=50, start=1),
            made_log(ranks, pid=5, start=2, processes=4),
            made_log([reading("/gfs/z", READS=9)], pid=60, start=3),
        )
        assert reads(found, "rank") == {0: 1, 1: 1, 2: 2, 3: 3, 4: 4, 5: 9}
        assert found.facts.process_count == 6

    def test_logs_of_one_mpi_program_are_epochs_of_the_same_ranks(self) -> None:
        def log(start: float, ops: int) -> DarshanLog:
            return made_log([reading("/gfs/a", rank, READS=ops) for rank in range(2)], start=start, processes=2)

        assert reads(imported(log(20, 7), log(1, 5)), "epoch", "rank") == {(1, 0): 5, (1, 1): 5, (2, 0): 7, (2, 1): 7}

    @pytest.mark.parametrize(("pid", "command"), [(1, "ior -t 1m"), (2, "ior -t 1k"), (2, "ior -t 1m")])
    def test_mpi_programs_of_one_job_are_no_epochs_of_one_another(self, pid: int, command: str) -> None:
        def log(start: float, pid: int, command: str, ops: int) -> DarshanLog:
            records = [reading("/gfs/a", rank, READS=ops) for rank in range(2)]
            return made_log(records, start=start, pid=pid, processes=2, command=command)

        logs = [log(1, 1, "ior -t 1k", 5), log(20, pid, command, 7)]
        found = imported(*logs)
        assert reads(found, "epoch", "rank") == {(1, 0): 12, (1, 1): 12}
        assert found.facts.steps == ("ior -t 1k", command)
        assert found.facts.process_count == 4
        by_gap = imported(*logs, epoch_gap_seconds=10)
        assert reads(by_gap, "epoch", "rank") == {(1, 0): 5, (1, 1): 5, (2, 0): 7, (2, 1): 7}

    def test_mpi_programs_that_ran_at_once_are_no_steps(self) -> None:
        found = imported(
            *(
                made_log([reading(f"/gfs/{pid}", rank) for rank in range(2)], pid=pid, start=1, processes=2)
                for pid in (1, 2)
            )
        )
        assert reads(found, "rank") == {0: 1, 1: 1, 2: 1, 3: 1}
        assert found.facts.steps == ()

    def test_programs_of_different_sizes_in_one_job_do_not_run_into_others(self) -> None:
        """A second mpirun with more ranks than the first: they are not those of a process that came later."""
        found = imported(
            made_log([reading("/gfs/a", rank) for rank in range(2)], start=1, processes=2),
            made_log([reading("/gfs/a", rank) for rank in range(4)], start=2, processes=4),
            made_log([reading("/gfs/b", READS=50)], pid=9, start=3),
        )
        assert max(reads(found, "rank").values()) == 50


@pytest.mark.parametrize("shared", [True, False])
def test_streams_are_no_io_where_shared_files_are_left_out(shared: bool) -> None:
    """Only where a job did nothing else at all are they shown as its I/O."""
    printed = Did("<STDOUT>", 0, {"WRITES": 1, "BYTES_WRITTEN": 10, "F_WRITE_TIME": 0.5}, "STDIO")
    found = imported(made_log([printed, reading("/gfs/a", -1)], processes=2), shared=shared)
    assert "streams" not in found.tiers
    assert found.facts.streams.seconds == 0.5
    alone = imported(made_log([printed], processes=2), shared=shared)
    assert "streams" in alone.tiers


class TestEpochs:
    def test_numbers_follow_the_start_not_the_order_given(self) -> None:
        logs = [made_log([reading("/gfs/a", READS=n)], pid=3, start=10 * n) for n in (3, 1, 2)]
        assert reads(imported(*logs), "epoch") == {1: 1, 2: 2, 3: 3}

    def test_every_process_has_its_own_epochs(self) -> None:
        logs = [made_log(did(), pid=pid, start=10 * n + pid) for pid in (1, 2) for n in range(2)]
        assert places(imported(*logs)) == [(0, 1), (0, 2), (1, 1), (1, 2)]

    def test_what_is_left_after_the_last_epoch_is_none(self) -> None:
        found = imported(made_log(did(), start=1), made_log(start=20))
        assert places(found) == [(0, 1)]

    def test_a_process_that_did_nothing_is_still_seen(self) -> None:
        found = imported(made_log(did(), pid=1, start=1), made_log(pid=2, start=2), made_log(pid=2, start=30))
        assert places(found) == [(0, 1), (1, 1)]

    def test_an_epoch_without_io_keeps_its_number(self) -> None:
        """Else the epochs of two ranks are taken for one another's."""
        found = imported(made_log(did(), start=1), made_log(start=20), made_log(did(), start=40))
        assert reads(found, "epoch") == {1: 1, 3: 1}

    def test_the_same_log_given_twice_counts_once(self) -> None:
        log = made_log(did())
        assert sum(reads(imported(log, log), "rank").values()) == 1

    @pytest.mark.parametrize(("gap", "epochs"), [(4.9, [1, 2, 3]), (5.0, [1, 1, 2]), (60.0, [1, 1, 1])])
    def test_an_epoch_begins_where_none_began_for_so_long(self, gap: float, epochs: list[int]) -> None:
        logs = [made_log(did(), pid=pid, start=start) for pid, start in ((1, 0.0), (2, 5.0), (3, 12.0))]
        assert [epoch for _, epoch in places(imported(*logs, epoch_gap_seconds=gap))] == epochs

    @pytest.mark.parametrize("gap", [None, 10.0])
    @pytest.mark.parametrize(("second", "own_files"), [("/gfs/a", False), ("/gfs/b", True)])
    def test_starts_that_read_other_files_are_no_epochs(self, gap: float | None, second: str, own_files: bool) -> None:
        logs = [made_log(did("/gfs/a"), pid=1), made_log(did(second), pid=2, start=20)]
        found = imported(*logs, epoch_gap_seconds=gap)
        assert {epoch for _, epoch in places(found)} == ({1, 2} if gap and not own_files else {1})
        assert found.facts.own_files == own_files

    def test_workers_that_are_forked_anew_belong_to_the_epoch_of_their_start(self) -> None:
        logs = [
            made_log(did(), pid=10, start=0),
            *(made_log(did(), pid=10 + n, start=20 * n, parent=10) for n in (1, 2)),
        ]
        assert reads(imported(*logs, epoch_gap_seconds=10), "epoch", "rank") == {(1, 0): 1, (2, 0): 1, (3, 0): 1}


class TestRanks:
    """Numbers that a damaged log may hold."""

    def test_ranks_that_the_job_did_not_have_are_left_out_and_counted(self) -> None:
        ranks = [0, 1, 2, -2, 7, 2**62, -(2**62)]
        found = imported(made_log([reading(f"/gfs/{n}", rank) for n, rank in enumerate(ranks)], processes=2))
        assert reads(found, "rank") == {0: 1, 1: 1}
        assert found.facts.doubts.impossible_ranks == 5

    @pytest.mark.parametrize(("processes", "ranks"), [(0, 1), (-5, 1), (2**62, FEW_RANKS), (-(2**63), 1)])
    def test_an_absurd_number_of_processes_has_bounds(
        self, processes: int, ranks: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(darshan_reader, "MOST_RANKS", FEW_RANKS)  # as many as there may be take seconds
        assert len(imported(made_log(did(), processes=processes)).ranks) == ranks

    def test_65536_ranks_take_no_time(self) -> None:
        began = time.monotonic()
        shared = [reading(f"/gfs/{n}", -1, BYTES_READ=65_536) for n in range(100)]
        found = imported(made_log([reading("/gfs/a", 65_535), *shared], processes=65_536))
        table = to_trace(found).table
        assert time.monotonic() - began < 5
        assert table.filter(pl.col("record") == "rank").height == 65_536
        io = table.filter(pl.col("record") == "io")
        assert io["busy_seconds"].sum() == pytest.approx(1.5 * 101)
        assert io["bytes"].sum() == 100 * 65_536 + 100


class TestSums:
    def test_kinds_are_read_meta_and_write(self) -> None:
        counts = {"OPENS": 1, "STATS": 2, "SEEKS": 3, "MMAPS": 4, "READS": 5, "BYTES_READ": 50, "WRITES": 6}
        more = {"FSYNCS": 7, "FDSYNCS": 8, "BYTES_WRITTEN": 60, "F_READ_TIME": 1.0, "F_META_TIME": 2.0}
        found = imported(made_log([Did("/gfs/a", 0, {**counts, **more, "F_WRITE_TIME": 3.0})]))
        assert cells(found, "kind") == {("meta",): (10, 0, 2.0), ("read",): (5, 50, 1.0), ("write",): (21, 60, 3.0)}

    def test_modules_are_added_up(self) -> None:
        twice = [reading("/gfs/a"), reading("/gfs/b")._replace(module="STDIO"), reading("/lfs/c")]
        found = imported(made_log(twice))
        assert reads(found, "tier") == {"gfs": 2, "lfs": 1}

    def test_what_was_not_counted_is_zero(self) -> None:
        found = imported(made_log([reading("/gfs/a", OPENS=-1, STATS=-1, SEEKS=-1)]))
        assert cells(found, "kind")[("meta",)] == (0, 0, 0.5)

    def test_negative_times_count_as_zero_and_are_counted(self) -> None:
        found = imported(made_log([reading("/gfs/a", meta=-3.0), reading("/gfs/b", seconds=-1.0, meta=-1.0)]))
        assert cells(found, "kind") == {("meta",): (2, 0, 0.0), ("read",): (2, 200, 1.0)}
        assert found.facts.doubts.negative_times == 2

    def test_shared_records_are_told_by_tier(self) -> None:
        shared = [
            reading("/gfs/a", -1, F_FASTEST_RANK_TIME=0.25, F_SLOWEST_RANK_TIME=0.75),
            reading("/gfs/b", -1, F_FASTEST_RANK_TIME=0.5, F_SLOWEST_RANK_TIME=0.5),
            reading("/lfs/c", -1),
            reading("/usr/lib/x.so", -1),
        ]
        found = imported(made_log([*shared, reading("/gfs/d", 1)], processes=2))
        assert reads(found, "tier") == {"gfs": 3, "lfs": 1}
        gfs, lfs = found.facts.shared
        assert gfs == SharedFiles(
            tier="gfs",
            files=2,
            bytes=200,
            read_seconds=2.0,
            meta_seconds=1.0,
            fastest_seconds=0.25,
            slowest_seconds=0.75,
        )
        assert (lfs.tier, lfs.files) == ("lfs", 1)

    def test_splitting_loses_no_seconds_no_bytes_and_no_operations(self) -> None:
        """Three reads of each of a hundred files over four ranks are 75 of each rank."""
        shared = [reading(f"/gfs/{n}", -1, READS=3, BYTES_READ=301) for n in range(100)]
        found = imported(made_log(shared, processes=4))
        ops, nbytes, seconds = cells(found, "kind")[("read",)]
        assert seconds == pytest.approx(100.0)
        assert (nbytes, ops) == (30_100, 300)
        assert reads(found, "rank") == dict.fromkeys(range(4), 75)

    def test_a_tier_that_only_shared_records_touch_is_a_tier(self) -> None:
        """One file that all ranks read is what many jobs do."""
        log = made_log([reading("/scratch/a", -1)], processes=4, mounts=[("/scratch", "lustre")])
        assert imported(log, rules=TierRules({})).tiers == ["lustre"]

    def test_program_files_are_apart(self) -> None:
        found = imported(made_log(did("/gfs/a", "/usr/lib/x.so", "/gfs/train.pyc", "<STDOUT>")))
        assert reads(found, "tier") == {"gfs": 1}
        program, streams = found.facts.program, found.facts.streams
        assert (program.ops, program.bytes, program.seconds, program.files) == (4, 200, 3.0, 2)
        assert (streams.ops, streams.bytes, streams.seconds, streams.files) == (2, 100, 1.5, 1)
        assert program.read == KindSums(seconds=2.0, ops=2, bytes=200)
        assert [one.path for one in streams.largest] == ["<STDOUT>"]

    def test_a_job_that_only_printed_has_that_as_its_io(self) -> None:
        """An I/O time of zero would be wrong."""
        found = imported(
            made_log([Did("<STDOUT>", 0, {"WRITES": 3, "F_WRITE_TIME": 2.0}, "STDIO")]), rules=TierRules({})
        )
        assert cells(found, "tier", "kind") == {("streams", "write"): (3, 0, 2.0)}
        assert found.tiers == ["streams"]
        assert found.facts.streams == ApartSums()

    def test_mpi_io_counts_only_where_posix_saw_nothing(self) -> None:
        both = [
            reading("/gfs/a", BYTES_READ=100),
            reading("/gfs/a", BYTES_READ=100)._replace(module="MPI-IO"),
            reading("/gfs/b", BYTES_READ=7, seconds=2.0)._replace(module="MPI-IO"),
        ]
        found = imported(made_log(both))
        assert cells(found, "kind") == {("meta",): (2, 0, 1.0), ("read",): (2, 107, 3.0)}
        assert found.facts.mpiio.read == KindSums(seconds=1.0, ops=1, bytes=100)

    def test_unknown_paths_are_a_tier_with_their_prefixes_by_weight(self) -> None:
        paths = ["/data/train/a", "/data/train/b", "/data/val/c", "number"]
        found = imported(made_log([reading(path, BYTES_READ=100 + n) for n, path in enumerate(paths)]))
        assert reads(found, "tier") == {"other": 4}
        assert found.tiers == ["other", "lfs", "gfs"]
        unknown = found.facts.unknown
        assert (unknown.files, unknown.bytes, unknown.suggestion) == (4, 406, "/data/train,/data/val")
        named = [(one.path, one.bytes, one.seconds) for one in unknown.prefixes]
        assert named == [("/data/train", 201, 3.0), ("(no path)", 103, 1.5), ("/data/val", 102, 1.5)]

    def test_of_many_folders_the_one_that_holds_them_is_named(self) -> None:
        """A class of ImageNet is no place to give a tier."""
        found = imported(made_log([reading(f"/gpfs/alpine/train/n{n}/a", BYTES_READ=n) for n in range(50)]))
        assert [one.path for one in found.facts.unknown.prefixes] == ["/gpfs/alpine/train"]

    def test_of_many_prefixes_a_few_are_named(self) -> None:
        found = imported(made_log([reading(f"/data/{n}/a", BYTES_READ=100 * n) for n in range(50)]))
        assert [one.path for one in found.facts.unknown.prefixes] == [f"/data/{n}" for n in range(49, 44, -1)]

    @pytest.mark.parametrize(
        ("paths", "suggestion"),
        [(["a"], "/"), (["/a/x", "/b/y"], "/a,/b"), (["/x"], "/"), (["//12", "//13"], "/")],
    )
    def test_a_suggestion_is_always_a_path(self, paths: Sequence[str], suggestion: str) -> None:
        found = imported(made_log([reading(path) for path in paths]))
        assert found.facts.unknown.suggestion == suggestion

    def test_partial_modules_are_counted_by_log(self) -> None:
        found = imported(made_log(did(), partial=["POSIX"]), made_log(did(), pid=2, partial=["POSIX", "STDIO"]))
        assert found.facts.doubts.partial_modules == {"POSIX": 2, "STDIO": 1}

    def test_metadata_longer_than_the_run_is_doubted(self) -> None:
        log = made_log([reading("/gfs/a", meta=6.0), reading("/gfs/b", meta=6.0)], seconds=10.0)
        (doubt,) = imported(log).facts.doubts.long_meta
        assert (doubt.meta_seconds, doubt.run_seconds) == (12.0, 11.0)
        assert imported(made_log([reading("/gfs/a", meta=11.0)])).facts.doubts.long_meta == ()

    def test_metadata_of_many_ranks_is_not_added_up_for_that(self) -> None:
        ranks = [reading("/gfs/a", rank, meta=8.0) for rank in range(4)]
        assert imported(made_log(ranks, processes=4, seconds=10.0)).facts.doubts.long_meta == ()

    @needs_real_logs
    @needs_library
    def test_a_real_log_with_such_metadata_is_doubted(self) -> None:
        found = imported(*real("dxt/dxt_meta_gt_runtime.darshan"), rules=TierRules({"gfs": ("/",)}))
        (doubt,) = found.facts.doubts.long_meta
        assert doubt.meta_seconds > 11_000
        assert doubt.run_seconds == pytest.approx(1470, abs=1)

    @needs_real_logs
    @needs_library
    def test_a_real_log_with_a_negative_time_is_doubted(self) -> None:
        found = imported(*real("release/mpi-io-test-ppc64-3.1.5.darshan"))
        assert found.facts.doubts.negative_times == 1


class TestImpossibleNumbers:
    """A flipped bit makes any number: it is doubted, and the trace can still be shown."""

    @pytest.mark.parametrize("seconds", [math.nan, math.inf, 1e300])
    @pytest.mark.parametrize("rank", [0, -1])
    def test_times_that_cannot_be_are_doubted(self, seconds: float, rank: int) -> None:
        names = ("F_READ_TIME", "F_META_TIME", "F_WRITE_TIME", "F_FASTEST_RANK_TIME", "F_SLOWEST_RANK_TIME")
        log = made_log([reading("/gfs/a", rank, **dict.fromkeys(names, seconds))], processes=2)
        found = imported(log)
        facts = found.facts
        assert facts.doubts.negative_times or facts.doubts.long_meta
        assert found.sums["busy_seconds"].is_finite().all()
        assert all(math.isfinite(value) for shared in facts.shared for value in astuple(shared)[1:])

    def test_counts_that_cannot_be_do_not_turn_negative(self) -> None:
        most = 2**63 - 1
        names = ("OPENS", "READS", "WRITES", "SEEKS", "STATS", "BYTES_READ", "BYTES_WRITTEN")
        counts = dict.fromkeys(names, most)
        paths = ("/gfs/a", "/gfs/b", "/usr/c", "/usr/d", "/x/e", "/x/f")
        found = imported(made_log([reading(path, **counts) for path in paths]))
        assert (found.sums["ops"] >= 0).all()
        assert (found.sums["bytes"] >= 0).all()
        for apart in (found.facts.program, found.facts.unknown):
            assert apart.bytes >= 0
            assert apart.ops >= 0

    def test_nothing_at_all_is_an_import_too(self) -> None:
        found = imported(made_log())
        assert found.sums.is_empty()
        assert places(found) == [(0, 1)]
        assert found.facts.unknown.files == 0


def test_a_trace_has_every_rank_and_only_what_was_done() -> None:
    found = imported(made_log([reading("/gfs/a", 1), Did("/gfs/untouched", 0)], processes=2))
    trace = to_trace(found)
    ranks, io = (trace.table.filter(pl.col("record") == record) for record in ("rank", "io"))
    assert ranks["rank"].to_list() == [0, 1]
    assert ranks["epoch_seconds"].to_list() == [None, None]
    assert io["rank"].unique().to_list() == [1]
    assert set(io["kind"]) == {"read", "meta"}
    assert isinstance(trace.about, Imported)
    assert trace.about.tiers == (DescribedTier(name="lfs"), DescribedTier(name="gfs"))


def test_where_the_real_logs_would_lie() -> None:
    assert REAL.parts[-3:] == ("shared", "data", "darshan")
