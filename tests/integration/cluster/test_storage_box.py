"""Real file systems with limits: the limits are kept, and nothing of them stays, whatever ends their maker."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tools.cluster_box import until
from tools.storage_box import StorageBox, Tokens, lacking

pytestmark = pytest.mark.cluster

# Writes files, puts them out of the cache, reads them; prints bytes per second.
READER = """
import os, sys, time
paths = [f"{sys.argv[1]}/{number}" for number in range(40)]
for path in paths:
    with open(path, "wb") as file:
        file.write(os.urandom(131072))
        file.flush()
        os.fsync(file.fileno())
def each(look):
    for path in paths:
        fd = os.open(path, os.O_RDONLY)
        look(fd)
        os.close(fd)
each(lambda fd: os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED))
begin = time.perf_counter()
each(lambda fd: os.pread(fd, 131072, 0))
print(40 * 131072 / (time.perf_counter() - begin))
"""
# Makes a loop device, says where, and waits.
MAKER = """
import time
from tools.storage_box import StorageBox
with StorageBox() as box:
    box.loop("near", 16, 1e6)
    print(box.state, flush=True)
    time.sleep(60)
"""


def need(*kinds: str) -> None:
    if reasons := lacking(*kinds):
        pytest.skip("; ".join(reasons))


def bytes_per_second(box: StorageBox, folder: Path) -> float:
    return float(box.run([sys.executable, "-c", READER, str(folder)]))


def left(state: str) -> list[str]:
    """Of a box: folders and mounts."""
    name = Path(state).name
    found = [path for path in (state, f"/sys/fs/cgroup/blkio/{name}") if os.path.exists(path)]
    found += [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if name in line]
    return found


def loop_devices() -> set[str]:
    """In use, whatever their files are called by now."""
    return {str(path.parent.parent) for path in Path("/sys/block").glob("loop*/loop/backing_file")}


def test_a_token_bucket_keeps_its_rate_and_takes_another() -> None:
    need("tokens")
    with StorageBox() as box:
        folder = box.tokens("far", Tokens(rate=10e6, burst=100e3))
        assert 5e6 < bytes_per_second(box, folder) < 10.6e6
        assert box.tokens("far", Tokens(rate=10e6, burst=0, stream_rate=5e6)) == folder
        assert 2.5e6 < bytes_per_second(box, folder) < 5.3e6
    assert left(str(box.state)) == []


def test_a_throttled_loop_device_keeps_its_rate() -> None:
    need("loop")
    with StorageBox() as box:
        rate = bytes_per_second(box, box.loop("near", 32, 4e6))
        assert 2.8e6 < rate < 5.6e6  # the block layer gives some 100 ms ahead
    assert left(str(box.state)) == []


@pytest.mark.nightly
def test_bricks_keep_the_rate_of_their_links() -> None:
    need("bricks")
    with StorageBox() as box:
        folder = box.bricks("far", mbit=80)
        assert 3e6 < bytes_per_second(box, folder) < 22e6  # one reader, two links
    assert left(str(box.state)) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_whatever_ends_the_maker_nothing_stays(number: signal.Signals) -> None:
    need("loop")
    before = loop_devices()
    folder = Path(__file__).parents[3]
    maker = subprocess.Popen([sys.executable, "-c", MAKER], stdout=subprocess.PIPE, text=True, cwd=folder)
    assert maker.stdout is not None
    state = maker.stdout.readline().strip()
    try:
        assert any("blkio" in each for each in left(state))
    finally:
        maker.send_signal(number)
        maker.wait()
        maker.stdout.close()
    assert until(lambda: left(state) == [] and loop_devices() <= before, seconds=10), left(state)


def test_what_fails_on_it_is_told() -> None:
    need()
    with StorageBox() as box, pytest.raises(Exception, match=r"ended with 3: no"):
        box.run(["sh", "-c", "echo no >&2; exit 3"])
