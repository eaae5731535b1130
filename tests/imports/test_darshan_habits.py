"""How a job uses a tier, from Darshan's counters made by hand."""

import numpy as np
import pytest

from tests.imports.darshan_logs import Did, made_log
from tierscope.imports.darshan_habits import LARGE_FILE_BYTES, HabitCounter
from tierscope.imports.darshan_reader import DarshanLog
from tierscope.trace.described_logs import Habit


def habit(*logs: DarshanLog) -> Habit:
    found = HabitCounter()
    for log in logs:
        for module, records in log.records.items():
            if len(records):
                found.add(module, records, np.ones(len(records), bool), log)
    return found.counted()


def file(path: str = "/gfs/a", rank: int = 0, **counts: float) -> Did:
    return Did(path, rank, {"OPENS": 1, "READS": 1, "BYTES_READ": 100, "MAX_BYTE_READ": 99, **counts})


def test_whole_files_from_their_beginning_are_not_random() -> None:
    """Darshan calls none of these reads sequential, since nothing came before them."""
    assert habit(made_log([file(f"/gfs/{n}") for n in range(9)])).random_reads == 0
    assert habit(made_log([file(OPENS=5, READS=5, BYTES_READ=500)])).random_reads == 0


@pytest.mark.parametrize(("sequential", "random"), [(9, 0), (4, 5), (0, 9)])
def test_reads_that_jump_are_random(sequential: int, random: int) -> None:
    assert habit(made_log([file(READS=10, SEQ_READS=sequential)])).random_reads == random


@pytest.mark.parametrize(("nbytes", "again"), [(100, 0), (150, 0), (151, 1)])
def test_more_bytes_than_a_file_has_are_read_again(nbytes: int, again: int) -> None:
    found = habit(made_log([file(BYTES_READ=nbytes)]))
    assert (found.again_files, found.read_files) == (again, 1)


def test_a_file_of_several_ranks_and_logs_is_one() -> None:
    found = habit(made_log([file(rank=rank) for rank in range(3)]), made_log([file(), file("/gfs/b")], pid=2))
    assert (found.files, found.opens, found.reads, found.read_bytes) == (2, 5, 5, 500)


def test_sizes_are_counted_as_darshan_bins_them() -> None:
    found = habit(made_log([file(READS=3, SIZE_READ_0_100=2, SIZE_READ_1G_PLUS=1)]))
    assert found.sizes is not None
    assert found.sizes[:1] == ((100, 2),)
    assert found.sizes[-1:] == ((None, 1),)


@pytest.mark.parametrize(("length", "large"), [(LARGE_FILE_BYTES - 1, 0), (LARGE_FILE_BYTES, 1)])
def test_large_files_on_one_server_are_told(length: int, large: int) -> None:
    log = made_log([file(MAX_BYTE_READ=length - 1), file("/gfs/b")], lustre=["/gfs/a"])
    found = habit(log, log)
    assert (found.striped_files, found.striped_on_one, found.servers) == (1, 1, 1)
    assert found.striped_large_on_one == large


def test_the_stripe_size_is_that_of_most_files_and_unknown_where_nobody_told() -> None:
    large = made_log([file("/gfs/a")], lustre=["/gfs/a"], stripe_bytes=4 << 20)
    small = made_log([file("/gfs/b"), file("/gfs/c")], pid=2, lustre=["/gfs/b", "/gfs/c"], stripe_bytes=1 << 16)
    assert habit(large, small).stripe_bytes == 1 << 16
    assert habit(made_log([file()])).stripe_bytes is None
