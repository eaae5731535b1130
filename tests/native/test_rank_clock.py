"""Wall seconds of a rank are the union over its threads and processes: held against a witness from the operation list."""

import os
import sys
import textwrap
from pathlib import Path

import pytest

from tests.native_programs import shim
from tests.rank_clocks import rank_times, record, slow_tier
from tierscope.native import setup
from tierscope.native.stations import TierStations

pytestmark = pytest.mark.whole

WITHIN = 0.01
TRIES = 3  # a process that is not scheduled between two looks at the clock only adds to the difference
BOUND = 0.2  # seconds for which an operation of a killed process may take its share: 2 × TS_LOOK_NS of c/clock.h


@pytest.fixture
def tier(tmp_path: Path) -> Path:
    shim()
    folder = tmp_path / "gfs"
    folder.mkdir()
    (folder / "data.bin").write_bytes(bytes(400_000))
    return folder


def python(program: str, *arguments: object) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", textwrap.dedent(program), *map(str, arguments)]


def shell(script: str) -> list[str]:
    return ["sh", "-c", script.replace("READ", "dd if=gfs/data.bin of=/dev/null bs=100000 status=none")]


def test_two_processes_at_once_take_the_time_of_one(tier: Path, tmp_path: Path) -> None:
    record(tmp_path / "record", [slow_tier(tier, 0.05)], shell("READ & READ & wait"))
    found = rank_times(tmp_path / "record")[0]
    assert (found.processes, found.shared) == (2, True)
    assert found.busy > 0.4
    assert found.wall == pytest.approx(found.union, rel=WITHIN)
    assert found.wall < 0.8 * found.busy


def test_a_stream_takes_its_time_whoever_else_reads(tier: Path, tmp_path: Path) -> None:
    """400 kB at 1 MB/s, by two processes at once; latency comes on top of every read."""
    streams = setup.TierSetup((str(tier),), TierStations(stream_ns=1000.0, latency_ns=10_000_000))
    record(tmp_path / "record", [streams], shell("READ & READ & wait"))
    found = rank_times(tmp_path / "record")[0]
    assert found.busy >= 2 * (0.4 + 4 * 0.01)
    assert found.wall < 0.8 * found.busy


def test_one_process_after_another_takes_the_time_of_both(tier: Path, tmp_path: Path) -> None:
    record(tmp_path / "record", [slow_tier(tier, 0.05)], shell("READ; READ"))
    found = rank_times(tmp_path / "record")[0]
    assert found.wall == pytest.approx(found.union, rel=WITHIN)
    assert found.wall == pytest.approx(found.busy, rel=WITHIN)


def test_every_rank_has_a_clock_of_its_own(tier: Path, tmp_path: Path) -> None:
    script = "for rank in 0 01; do RANK=$rank WORLD_SIZE=2 sh -c 'READ & READ & wait' & done; RANK=1 WORLD_SIZE=2 READ & wait"
    record(tmp_path / "record", [slow_tier(tier, 0.05)], shell(script))
    ranks = rank_times(tmp_path / "record")
    assert {rank: found.processes for rank, found in ranks.items()} == {0: 2, 1: 3}
    for found in ranks.values():
        assert found.wall == pytest.approx(found.union, rel=WITHIN)
        assert found.shared


def test_processes_that_only_open_are_no_exception(tier: Path, tmp_path: Path) -> None:
    """The first open of a process has no place in the clock: nobody knew that it would be a tier's."""
    script = "READ; for i in 1 2 3 4 5 6; do head -c 0 gfs/data.bin & done; wait"
    record(tmp_path / "record", [slow_tier(tier, 0.0, metadata_latency=0.2)], shell(script))
    found = rank_times(tmp_path / "record")[0]
    assert found.busy > 1.3
    assert found.wall < 0.6 * found.busy
    assert found.wall == pytest.approx(found.union, rel=WITHIN)


MIXED = """
    import os, random, sys, threading
    dice = random.Random(int(sys.argv[1]))
    def work(seed):
        dice = random.Random(seed)
        fast, slow = (os.open(f"{folder}/data.bin", os.O_RDONLY) for folder in ("gfs", "far"))
        for _ in range(dice.randint(3, 8)):
            os.pread(dice.choice((fast, slow)), dice.randint(1, 1000), 0)
            if dice.random() < 0.3:
                os.stat("gfs/data.bin")
                threading.Event().wait(0.01 * dice.random())
        os.close(fast), os.close(slow)
    def crowd():
        threads = [threading.Thread(target=work, args=(dice.random(),)) for _ in range(dice.randint(1, 3))]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    for _ in range(dice.randint(2, 4)):
        if os.fork() == 0:
            dice.seed(os.getpid())
            crowd()
            os._exit(0)
    crowd()
    while True:
        try: os.wait()
        except ChildProcessError: break
"""


@pytest.mark.parametrize("seed", range(3))
def test_threads_and_processes_share_every_instant(seed: int, tier: Path, tmp_path: Path) -> None:
    far = tmp_path / "far"
    far.mkdir()
    (far / "data.bin").write_bytes(bytes(1000))
    walls, unions = [], []
    for number in range(TRIES):
        folder = tmp_path / f"record{number}"
        record(folder, [slow_tier(tier, 0.02), slow_tier(far, 0.05)], python(MIXED, seed))
        found = rank_times(folder, 2)[0]
        assert found.processes >= 3
        assert found.busy > 1.5 * found.union
        walls.append(found.wall)
        unions.append(found.union)
        if found.wall == pytest.approx(found.union, rel=WITHIN):
            return
    pytest.fail(f"in no try within {WITHIN:.0%}: {walls} instead of {unions}")


KILLED = """
    import os, signal, sys, time
    fd, reaped = os.open("gfs/data.bin", os.O_RDONLY), sys.argv[1] == "reaped"
    ready, told = os.pipe()
    worker = os.fork()
    if worker == 0:
        far = os.open("far/data.bin", os.O_RDONLY)
        os.write(told, b"x")
        os.pread(far, 10, 0)  # for a minute
    os.read(ready, 1)
    time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    os.waitid(os.P_PID, worker, os.WEXITED | (0 if reaped else os.WNOWAIT))
    for _ in range(40):
        os.pread(fd, 10, 0)
"""


@pytest.mark.faults
@pytest.mark.parametrize("ended", ["reaped", "zombie"])
def test_a_worker_killed_in_an_operation_distorts_no_more_than_the_bound(
    ended: str, tier: Path, tmp_path: Path
) -> None:
    """Otherwise its operation would take half of all that follows."""
    far = tmp_path / "far"
    far.mkdir()
    (far / "data.bin").write_bytes(bytes(1000))
    record(tmp_path / "record", [slow_tier(tier, 0.025), slow_tier(far, 60)], python(KILLED, ended))
    found = rank_times(tmp_path / "record", 2)[0]
    wall, union = found.wall_of[0, "read"], found.union_of[0, "read"]
    assert union > 0.99
    assert union - BOUND < wall <= union * (1 + WITHIN)


EXECUTED = """
    import os, sys, threading, time
    far = os.open("far/data.bin", os.O_RDONLY)
    threading.Thread(target=os.pread, args=(far, 10, 0)).start()  # for a minute
    time.sleep(0.05)
    os.execvp(sys.argv[1], sys.argv[1:])
"""


def test_another_program_in_the_same_process_begins_anew(tier: Path, tmp_path: Path) -> None:
    """The operations of the threads that it ended are in its seats still."""
    far = tmp_path / "far"
    far.mkdir()
    (far / "data.bin").write_bytes(bytes(1000))
    reading = ("dd", f"if={tier}/data.bin", "of=/dev/null", "bs=10000", "status=none")
    record(tmp_path / "record", [slow_tier(tier, 0.025), slow_tier(far, 60)], python(EXECUTED, *reading))
    found = rank_times(tmp_path / "record", 2)[0]
    assert found.processes == 2
    wall, union = found.wall_of[0, "read"], found.union_of[0, "read"]
    assert union > 0.99
    assert union - BOUND < wall <= union * (1 + WITHIN)


def test_children_that_are_spawned_share_it_too(tier: Path, tmp_path: Path) -> None:
    """By vfork and exec, while a thread of their parent reads."""
    program = """
        import os, subprocess, sys, threading
        fd = os.open("gfs/data.bin", os.O_RDONLY)
        def read():
            for _ in range(10): os.pread(fd, 10, 0)
        thread = threading.Thread(target=read)
        thread.start()
        children = [subprocess.Popen(sys.argv[1:], close_fds=False) for _ in range(2)]
        assert not any(child.wait() for child in children)
        thread.join()
    """
    reading = ("dd", "if=gfs/data.bin", "of=/dev/null", "bs=100000", "status=none")
    command = [sys.executable, "-c", textwrap.dedent(program), *reading]
    record(tmp_path / "record", [slow_tier(tier, 0.04)], command, PATH=os.environ["PATH"])
    found = rank_times(tmp_path / "record")[0]
    assert found.processes == 3
    assert found.busy > 1.5 * found.union
    assert found.wall == pytest.approx(found.union, rel=WITHIN)
