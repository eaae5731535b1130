"""The clock of a rank under crowds: many workers, more threads than it has seats, and processes that it cannot know."""

import os
import shutil
from pathlib import Path

import pytest

from tests.native_programs import compiled
from tests.rank_clocks import rank_times, record, slow_tier

pytestmark = pytest.mark.native

WITHIN = 0.01
BOUND = 0.2  # seconds for which the operations of a killed process may take their share
SEATS = 1024  # TS_SEATS of c/clock.h


@pytest.fixture
def tier(tmp_path: Path) -> Path:
    folder = tmp_path / "gfs"
    folder.mkdir()
    (folder / "data.bin").write_bytes(bytes(1000))
    return folder


def test_seventy_workers(tier: Path, tmp_path: Path) -> None:
    command = [compiled("together", tmp_path), str(tier / "data.bin"), "70", "1", "10"]
    record(tmp_path / "record", [slow_tier(tier, 0.05)], command)
    found = rank_times(tmp_path / "record")[0]
    assert (found.processes, found.shared) == (70, True)
    assert found.busy > 10 * found.union
    # The first open of each has no place in the clock: of those, time is given to nobody rather than twice.
    assert found.union_of[0, "read"] * (1 - WITHIN) < found.wall < found.union * (1 + WITHIN)


def test_more_threads_than_seats(tier: Path, tmp_path: Path) -> None:
    """Those without one get what time the others leave: all of them together still have what passed."""
    command = [compiled("together", tmp_path), str(tier / "data.bin"), "3", "400", "3"]
    record(tmp_path / "record", [slow_tier(tier, 0.3)], command)
    found = rank_times(tmp_path / "record")[0]
    assert found.busy > 3 * 400 * 3 * 0.3
    assert found.wall == pytest.approx(found.union, rel=2 * WITHIN)


def test_seats_of_killed_processes_are_used_again(tier: Path, tmp_path: Path) -> None:
    """More threads than there are seats, all killed in the middle of a read; those that follow share a clock without them."""
    together = compiled("together", tmp_path)
    script = f"for i in 1 2 3; do timeout -s KILL 0.6 {together} gfs/data.bin 1 400 1000; done; {together} gfs/data.bin 20 1 40"
    record(tmp_path / "record", [slow_tier(tier, 0.05)], ["sh", "-c", script])
    found = rank_times(tmp_path / "record")[0]
    assert found.processes == 23
    assert found.busy > 20 * 40 * 0.05
    assert found.union - 3 * BOUND < found.wall <= found.union * (1 + WITHIN)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root and unshare")
@pytest.mark.parametrize("options", [("--pid", "--fork"), ("--pid", "--fork", "--mount-proc")])
def test_a_process_in_another_pid_namespace_keeps_its_own_clock_and_says_so(
    options: tuple[str, ...], tier: Path, tmp_path: Path
) -> None:
    """Its numbers mean other processes: nobody could tell whether it lives."""
    read = f"{compiled('together', tmp_path)} gfs/data.bin 1 1 10"
    script = f"{read} & unshare {' '.join(options)} {read} & wait"
    record(tmp_path / "record", [slow_tier(tier, 0.05)], ["sh", "-c", script])
    found = rank_times(tmp_path / "record")[0]
    assert (found.processes, found.shared) == (2, False)
    assert found.wall == pytest.approx(found.busy, rel=0.05)
