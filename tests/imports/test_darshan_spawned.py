"""Spawned workers count for the process that started them where only one can have, and for themselves elsewhere."""

import json
import math
from functools import cache
from typing import Any

import polars as pl
import pytest

from tests.imports.darshan_logs import made_log, needs_library, needs_real_logs, reading, real_log
from tierscope.imports.darshan import DarshanOptions, import_logs
from tierscope.imports.darshan_reader import DarshanLog, read_logs
from tierscope.imports.gathered import GatheredLogs
from tierscope.imports.paths import TierRules
from tierscope.trace.described_logs import SpawnedWorkers

PYTHON = "/opt/venv/bin/python3.11"
TRACKER = f"{PYTHON} -c from multiprocessing.resource_tracker import main;main(27)"
FORK_SERVER = f"{PYTHON} -c from multiprocessing.forkserver import main; main(7, 8, ['__main__'])"
GRAND = TierRules({"gfs": ("/grand",)})
ALONE, BY_START = SpawnedWorkers(alone=1), SpawnedWorkers(by_start=1)


def worker(pid: int = 11, start: float = 105.0, pipe: int = 28, **more: Any) -> DarshanLog:
    return made_log([reading("/gfs/a", READS=pid)], **{"pid": pid, "start": start, "command": spawned(pipe), **more})


def spawned(pipe: int = 28) -> str:
    return f"{PYTHON} -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd={pipe}, pipe_handle=32) --multiprocessing-fork"


def program(pid: int = 10, start: float = 100.0, seconds: float = 10.0, **more: Any) -> DarshanLog:
    return made_log([reading("/gfs/a", READS=pid)], pid=pid, start=start, seconds=seconds, **more)


def imported(*logs: DarshanLog, rules: TierRules | None = None) -> GatheredLogs:
    return import_logs(logs, rules or TierRules({"gfs": ("/gfs",)}), DarshanOptions())


def reads(found: GatheredLogs) -> dict[int, int]:
    rows = found.sums.filter(pl.col("kind") == "read").group_by("rank").agg(pl.col("ops").sum()).rows()
    return dict(sorted(rows))


def test_a_worker_of_the_only_program_counts_for_it() -> None:
    found = imported(worker(), program())
    assert reads(found) == {0: 21}
    assert found.facts.spawned == BY_START
    assert found.facts.process_count == 2


def test_workers_of_later_epochs_too() -> None:
    found = imported(program(seconds=60), *(worker(pid, start=100.0 + pid) for pid in (11, 12, 13)))
    assert reads(found) == {0: 46}
    assert found.facts.spawned.by_start == 3


def test_between_two_programs_it_counts_for_itself() -> None:
    found = imported(program(), program(20, start=101), worker())
    assert reads(found) == {0: 10, 1: 20, 2: 11}
    assert found.facts.spawned == ALONE


def test_a_program_that_had_ended_or_not_begun_did_not_start_it() -> None:
    found = imported(program(9, start=80, seconds=20), program(), worker(), program(20, start=106))
    assert reads(found) == {0: 9, 1: 21, 2: 20}


@pytest.mark.parametrize(("start", "seen"), [(99.9, ALONE), (100.0, BY_START), (110.0, BY_START), (110.1, ALONE)])
def test_it_began_while_its_program_ran(start: float, seen: SpawnedWorkers) -> None:
    assert imported(program(), worker(start=start, seconds=500.0)).facts.spawned == seen


def test_it_may_outlive_its_program() -> None:
    assert reads(imported(program(seconds=6), worker(seconds=60))) == {0: 21}


def test_a_program_of_several_logs_ran_from_the_first_to_the_last() -> None:
    found = imported(program(), program(start=120), worker(start=115))
    assert sum(reads(found).values()) == 31
    assert found.facts.spawned == BY_START


@pytest.mark.parametrize("command", ["bash job.sh", "/usr/bin/mpirun -n 2 python train.py"])
def test_only_an_interpreter_spawns(command: str) -> None:
    assert reads(imported(program(9, 99.0, command=command), program(), worker())) == {0: 9, 1: 21}


def test_a_program_without_a_command_may_have_been_it() -> None:
    assert imported(program(9, command=""), program(), worker()).facts.spawned == ALONE


def test_an_interpreter_may_be_written_with_its_version_and_path_or_without() -> None:
    for command in ("python train.py", "python3 train.py", "/usr/bin/python3.12 train.py"):
        assert imported(program(command=command), worker()).facts.spawned == BY_START


def test_another_job_did_not_start_it() -> None:
    assert imported(program(job_id=5), worker(job_id=6)).facts.spawned == ALONE


def test_without_a_scheduler_the_number_of_the_process_is_no_job() -> None:
    assert imported(program(10, job_id=10), worker(11, job_id=11)).facts.spawned == BY_START
    assert imported(program(10, job_id=77), worker(11, job_id=11)).facts.spawned == ALONE


def test_of_the_ranks_of_an_mpi_log_none_is_singled_out() -> None:
    mpi = made_log([reading("/gfs/a", rank) for rank in range(2)], processes=2, seconds=10)
    assert imported(mpi, worker()).facts.spawned == ALONE


def test_workers_of_different_trackers_are_not_one_programs() -> None:
    """The logs of the other programs are missing."""
    found = imported(program(), worker(11, pipe=28), worker(12, pipe=30))
    assert reads(found) == {0: 10, 1: 11, 2: 12}
    assert found.facts.spawned.alone == 2


def test_its_tracker_counts_for_the_program_too_and_is_no_worker() -> None:
    found = imported(program(), made_log(pid=12, start=104, command=TRACKER), worker())
    assert [each.rank for each in found.ranks] == [0]
    assert found.facts.spawned == BY_START


def test_two_trackers_have_two_programs() -> None:
    trackers = [made_log(pid=pid, start=104, command=TRACKER) for pid in (12, 13)]
    assert imported(program(), *trackers, worker()).facts.spawned == ALONE


def test_what_a_fork_server_forks_counts_for_its_program() -> None:
    server = made_log(pid=11, start=101, command=FORK_SERVER)
    forked = made_log([reading("/gfs/a")], pid=12, start=102, parent=11, command=FORK_SERVER)
    found = imported(program(), server, forked)
    assert reads(found) == {0: 11}
    assert found.facts.spawned == BY_START  # the other one's parent is known


def test_a_program_with_such_a_word_in_a_path_is_no_worker() -> None:
    found = imported(program(), program(11, command="python /home/me/multiprocessing.spawn/train.py"))
    assert reads(found) == {0: 10, 1: 11}
    assert found.facts.spawned == SpawnedWorkers(by_start=0, alone=0)


def test_a_job_of_very_many_processes_takes_no_time() -> None:
    """To find out whose they are, that is: these read nothing."""
    logs = [made_log(pid=pid) for pid in range(1, 251)]
    logs += [made_log(pid=pid, start=105.0, command=spawned()) for pid in range(1001, 2001)]
    assert imported(*logs).facts.spawned == SpawnedWorkers(by_start=0, alone=1000)


@needs_real_logs
@needs_library
class TestOneRealJob:
    """4 programs at once, each with a tracker and, one after another, 4 workers."""

    @staticmethod
    @cache
    def logs() -> list[DarshanLog]:
        paths = sorted(real_log("dlio_polaris").iterdir())
        return [log for log in read_logs([str(path) for path in paths]) if isinstance(log, DarshanLog)]

    @staticmethod
    def one_of(logs: list[DarshanLog], *words: str) -> list[DarshanLog]:
        """The first program, and those with any of the words in their command."""
        programs = [log for log in logs if "multiprocessing" not in log.job["command"]]
        assert len(programs) == 4
        return [programs[0], *(log for log in logs if any(word in log.job["command"] for word in words))]

    def test_whose_a_worker_is_cannot_be_told_among_four(self) -> None:
        found = imported(*self.logs(), rules=GRAND)
        assert found.facts.spawned == SpawnedWorkers(by_start=0, alone=16)
        assert len(found.ranks) == found.facts.process_count == 24

    def test_one_programs_share_is_one_rank_with_the_sums_of_all(self) -> None:
        family = self.one_of(self.logs(), "tracker_fd=28", "main(27)")
        found = imported(*family, rules=GRAND)
        assert found.facts.spawned == SpawnedWorkers(by_start=4, alone=0)
        assert [each.rank for each in found.ranks] == [0]
        assert found.facts.process_count == 6
        truth = json.loads(real_log("expected.json").read_text(encoding="utf-8"))
        names = {name.rpartition("/")[2]: name for name in truth}
        mounts = [truth[names[log.path.rpartition("/")[2]]]["by_mount"].get("POSIX:/:overlay", {}) for log in family]
        read = found.sums.filter((pl.col("kind") == "read") & (pl.col("tier") == "gfs"))
        for column, counter in (("ops", "READS"), ("bytes", "BYTES_READ")):
            assert read[column].sum() == sum(mount.get(f"POSIX_{counter}", 0) for mount in mounts) > 0
        seconds = math.fsum(mount.get("POSIX_F_READ_TIME", 0.0) for mount in mounts)
        records = sum(len(log.records["POSIX"]) for log in family)
        assert read["busy_seconds"].sum() == pytest.approx(seconds, abs=1e-6 * records)

    def test_workers_of_programs_whose_logs_are_missing_are_not_given_to_another(self) -> None:
        found = imported(*self.one_of(self.logs(), "spawn_main"), rules=GRAND)
        assert found.facts.spawned == SpawnedWorkers(by_start=0, alone=16)
        assert len(found.ranks) == 17
