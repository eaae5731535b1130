"""What programs do now and then, and a recorder inside them may stumble over: each ends as it does without one, and is counted right."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.native_programs import Ended, Recorded, compiled, environment, gather, run, run_recorded
from tierscope.native import setup, state
from tierscope.native.stations import Station, TierStations
from tierscope.output.durable import boot_id
from tierscope.trace.ops import READ

pytestmark = pytest.mark.native

FINE = Ended(0, b"", b"")


@pytest.fixture
def corners(tmp_path: Path) -> tuple[str, Path, Path]:
    """The program, a tier with a file, and a folder that is none."""
    tier, elsewhere = tmp_path / "tier", tmp_path / "elsewhere"
    tier.mkdir()
    elsewhere.mkdir()
    (tier / "file").write_bytes(bytes(100_000))
    return compiled("corners", tmp_path), tier / "file", elsewhere / "other"


def record(corners: tuple[str, Path, Path], what: str, options: int = 0) -> Recorded:
    program, file, other = corners
    assert run([program, what, file, other], environment(None)) == FINE
    other.unlink(missing_ok=True)
    file.write_bytes(bytes(100_000))
    return run_recorded([program, what, file, other], file.parent.parent / "record", {"gfs": file.parent}, options)


@pytest.mark.parametrize("options", [0, state.OPTION_OPS])
@pytest.mark.parametrize(
    ("what", "expected"),
    [
        ("little_signal_stack", {"open": (1, 0), "write": (1, 1), "close": (1, 0)}),
        ("little_thread_stack", {"open": (1, 0), "read": (1, 4096), "close": (1, 0), "stat": (1, 0)}),
        ("closed_unseen", {"open": (2, 0)}),
        ("closes_a_million", {}),
        ("stream_in_memory", {}),
        ("forbidden", {"open": (3, 0), "close": (3, 0)}),
        ("cancelled", {}),
    ],
)
def test_ends_as_ever_and_is_counted(
    corners: tuple[str, Path, Path], what: str, expected: dict[str, tuple[int, int]], options: int
) -> None:
    found = record(corners, what, options)
    assert found.ended == FINE
    assert found.totals == {("gfs", kind): counts for kind, counts in expected.items()}
    assert not found.problems


def test_a_stream_that_threads_share(corners: tuple[str, Path, Path]) -> None:
    found = record(corners, "shared_stream")
    assert found.ended == FINE
    ops, written = found.totals["gfs", "write"]
    assert written == os.path.getsize(corners[1])
    assert ops == -(-written // 4096)


@pytest.mark.parametrize("what", ["beside_waiting_opens", "after_cancelled_reads"])
def test_what_is_no_tiers_takes_no_share_of_the_time(corners: tuple[str, Path, Path], what: str) -> None:
    """Ten threads at once would leave a read a tenth of its time; those that only wait elsewhere leave it all."""
    found = record(corners, what)
    assert found.ended == FINE
    busy, wall = (sum(int(lane.cells[READ][name]) for lane in found.lanes) for name in ("busy_ns", "wall_ns"))
    assert wall == pytest.approx(busy, rel=0.05)


def test_a_fork_in_the_middle_of_an_emulated_operation(corners: tuple[str, Path, Path]) -> None:
    program, file, _ = corners
    folder = file.parent.parent / "record"
    folder.mkdir()
    slow = setup.TierSetup((os.path.realpath(file.parent),), TierStations(servers=(Station(0, 2e8, 0.0),)))
    setup.write_setup(str(folder), [slow], 1, boot_id())
    ended = run([program, "forks_in_the_middle", file], environment(folder))
    found = gather(folder, ["gfs"], ended)
    assert ended == FINE
    assert len(found.heads) == 2
    assert found.totals["gfs", "read"] == (2, 2)  # the parent's, and the child's that came back from the same call
    assert found.totals["gfs", "open"] == (1, 0)


def test_a_constructor_that_waits_for_a_thread(tmp_path: Path) -> None:
    """The loader's lock is held then: who looks a function up in the thread waits for ever."""
    compiled("little", tmp_path)  # skips where there is no compiler
    source = tmp_path / "library.c"
    source.write_text(
        """
#include <pthread.h>
#include <unistd.h>
static void *use(void *argument) { return fdatasync(1) ? argument : 0; }
__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    pthread_create(&thread, 0, use, 0);
    pthread_join(thread, 0);
}
"""
    )
    main = tmp_path / "main.c"
    main.write_text(
        "#include <dlfcn.h>\nint main(int n, char **words) { return n < 2 || !dlopen(words[1], RTLD_NOW); }\n"
    )
    subprocess.run(["cc", "-shared", "-fPIC", "-pthread", "-o", tmp_path / "library.so", source], check=True)
    subprocess.run(["cc", "-o", tmp_path / "main", main, "-ldl"], check=True)
    command = [str(tmp_path / "main"), str(tmp_path / "library.so")]
    assert subprocess.run(command, env=environment(tmp_path / "none"), timeout=20, check=False).returncode == 0
