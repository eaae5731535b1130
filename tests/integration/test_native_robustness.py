"""Whatever happens to a recorded program or around it: it ends as it would have without us, and what it left can be read."""

import contextlib
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from tests import native_programs as programs
from tests.native_programs import environment, run
from tests.nightly import first_in_ci
from tests.small_disks import mounted
from tierscope.native import setup, state
from tierscope.native.stations import STATION, TIER, Station, TierStations
from tierscope.trace.ops import OP_ROW, READ

pytestmark = pytest.mark.native

KILLS = 200
EDGES = (2, 7, 8, 9, 63, 64, 65, 255, 4087, 4088, 4096, 1 << 16, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 63)


@pytest.fixture
def tier(tmp_path: Path) -> Path:
    folder = tmp_path / "tier"
    folder.mkdir()
    (folder / "data.bin").write_bytes(bytes(300_000))
    return folder


@pytest.fixture
def little(tmp_path: Path) -> str:
    return programs.compiled("little", tmp_path)


def needs_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root")


# ---- killed at any moment ----


def killed(program: str, tier: Path, record: Path, dice: random.Random) -> tuple[int, int, programs.Recorded]:
    """How often the program said that it had gone round, how many threads it had, and what was recorded."""
    processes, threads = dice.choice([(1, 1), (1, 4), (3, 1), (2, 3)])
    programs.write_config(record, {"one": tier}, dice.choice([0, state.OPTION_OPS]))
    command = [program, str(tier), str(processes), str(threads)]
    host = subprocess.Popen(command, env=environment(record), stdout=subprocess.PIPE, start_new_session=True)
    time.sleep(dice.uniform(0, 0.03) ** 1.5 * 5)  # mostly early: while state files are being made
    with contextlib.suppress(ProcessLookupError):
        os.killpg(host.pid, dice.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]))
    said, _ = host.communicate(timeout=20)
    ended = programs.Ended(host.returncode, said, b"")
    return len(said), processes * threads, programs.gather(record, ["one"], ended)


@pytest.mark.parametrize("tenth", first_in_ci(range(10), 4))
def test_what_a_killed_program_did_can_be_read(tenth: int, tier: Path, tmp_path: Path) -> None:
    program, dice = programs.compiled("worker", tmp_path), random.Random(tenth)
    rounds = 0
    for number in range(KILLS // 10):
        said, threads, recorded = killed(program, tier, tmp_path / f"record-{number}", dice)
        rounds += said
        assert recorded.problems == []
        cut = sum(not lane.whole for lane in recorded.lanes)
        assert cut <= threads
        for kind, ops_per_round, bytes_per_op in (("read", 1, 100), ("write", 1, 10), ("open", 2, 0), ("close", 2, 0)):
            ops, moved = recorded.totals.get(("one", kind), (0, 0))
            assert said * ops_per_round - cut <= ops <= (said + threads) * ops_per_round
            assert abs(moved - ops * bytes_per_op) <= bytes_per_op * cut
        rows = sum(map(len, recorded.rows)) // state.ROW_BYTES
        lost = sum(head.lost_rows for head in recorded.heads)
        if rows or lost:
            assert abs(sum(ops for ops, _ in recorded.totals.values()) - rows - lost) <= threads
    assert rounds > 100, "killed before anything happened"


# ---- hostile surroundings: the same output, the same exit code ----


def make_nothing(folder: Path) -> str:
    return ""


def make_missing(folder: Path) -> str:
    return str(folder / "missing")


def make_file(folder: Path) -> str:
    (folder / "file").write_bytes(b"x")
    return str(folder / "file")


def make_relative(folder: Path) -> str:
    programs.write_config(folder / "good", {"one": folder / "tier"})
    return os.path.relpath(folder / "good")


def make_long(folder: Path) -> str:
    return "/" + "x" * 5000


def make_long_folder(folder: Path) -> str:
    """Short enough to be taken, too long for any file in it."""
    return "/" + "/".join(["x" * 200] * 14)


def make_empty_folder(folder: Path) -> str:
    (folder / "empty").mkdir()
    return str(folder / "empty")


def with_config(content: bytes) -> Callable[[Path], str]:
    def make(folder: Path) -> str:
        (folder / "some").mkdir()
        (folder / "some/config").write_bytes(content)
        return str(folder / "some")

    return make


def make_config_folder(folder: Path) -> str:
    (folder / "some/config").mkdir(parents=True)
    return str(folder / "some")


def make_config_pipe(folder: Path) -> str:
    (folder / "some").mkdir()
    os.mkfifo(folder / "some/config")
    return str(folder / "some")


def make_config_device(folder: Path) -> str:
    (folder / "some").mkdir()
    (folder / "some/config").symlink_to("/dev/zero")
    return str(folder / "some")


SURROUNDINGS: dict[str, Callable[[Path], str]] = {
    "empty": make_nothing,
    "missing folder": make_missing,
    "a file": make_file,
    "relative": make_relative,
    "long": make_long,
    "long folder": make_long_folder,
    "no config": make_empty_folder,
    "empty config": with_config(b""),
    "config is a folder": make_config_folder,
    "config is a pipe": make_config_pipe,
    "config is a device": make_config_device,
    "short config": with_config(b"TSCONF01"),
    "random config": with_config(random.Random(1).randbytes(20_000)),
    "random config with its magic": with_config(b"TSCONF01" + random.Random(2).randbytes(20_000)),
    "huge config": with_config(bytes(3 << 20)),
}


@pytest.mark.parametrize("name", SURROUNDINGS)
def test_a_variable_that_makes_no_sense(name: str, tier: Path, little: str, tmp_path: Path) -> None:
    chosen = SURROUNDINGS[name](tmp_path)
    for command in ([little, str(tier / "data.bin")], ["cat", str(tier / "data.bin")], programs.python("print(1)")):
        bare = run(command, environment(None))
        assert run(command, environment(chosen)) == bare
    assert not list(tmp_path.rglob("*.state"))


def test_a_variable_that_is_no_text(tier: Path, little: str, tmp_path: Path) -> None:
    command, odd = [little, str(tier / "data.bin")], os.fsencode(tmp_path) + b"/\xff\xfe"
    env = {os.fsencode(name): os.fsencode(value) for name, value in environment(tmp_path).items()}
    assert run(command, env | {b"TIERSCOPE_RECORD": odd}) == run(command, environment(None))
    programs.write_config(tmp_path / "record", {"one": tier})
    os.rename(tmp_path / "record", odd)
    assert run(command, env | {b"TIERSCOPE_RECORD": odd}) == run(command, environment(None))
    assert any(name.endswith(b".state") for name in os.listdir(odd)), (
        "a folder's name is bytes: it may be recorded there"
    )


def test_no_variable_at_all(tier: Path, little: str) -> None:
    command, env = [little, str(tier / "data.bin")], environment("/")
    del env["TIERSCOPE_RECORD"]
    assert run(command, env) == run(command, environment(None))


def test_folders_that_may_not_be_written(public_place: Path) -> None:
    needs_root()
    tier = public_place / "tier"
    tier.mkdir()
    (tier / "data.bin").write_bytes(bytes(5000))
    command = [programs.compiled("little", public_place), str(tier / "data.bin")]
    bare = run(command, environment(None))
    for mode in (0o755, 0o700, 0o777):
        record = public_place / f"record-{mode}"
        programs.write_config(record, {"one": tier})
        record.chmod(mode)
        (record / "config").chmod(0o644)
        assert run(command, reachable(environment(record), public_place), before=lambda: os.setuid(65534)) == bare
        assert bool(list(record.glob("*.state"))) == (mode == 0o777)


def reachable(env: dict[str, str], place: Path) -> dict[str, str]:
    """With a copy of the library that every user can read."""
    copy = place / "library.so"
    shutil.copy(programs.shim(), copy)
    return {**env, "LD_PRELOAD": env["LD_PRELOAD"].replace(programs.shim(), str(copy))}


# ---- configs ----


def fields(content: bytes) -> Iterator[tuple[int, int]]:
    """Place and width of every field but rates and latencies: those are what the program is to be slowed down by."""
    yield from ((place, 4) for place in range(12, 40, 4))
    yield 40, 8  # boot
    head, tiers = setup.CONFIG.itemsize, setup.CONFIG.itemsize - state.MAX_TIERS * TIER.itemsize
    for tier in range(tiers, tiers + 3 * TIER.itemsize, TIER.itemsize):
        yield from ((tier + place, 8) for place in (0, 24, 56, 64, 72))  # two stations, emulated, first server, servers
    prefixes = int(np.frombuffer(content, setup.CONFIG, 1)[0]["prefixes"])
    for number in range(prefixes):
        prefix = head + number * setup.PREFIX.itemsize
        length = int(np.frombuffer(content, setup.PREFIX, 1, prefix)[0]["length"])
        yield from ((prefix, 4), (prefix + 4, 4), (prefix + 4, 1), (prefix + 8, 1), (prefix + 8 + length, 1))
    for station in range(head + prefixes * setup.PREFIX.itemsize, len(content), STATION.itemsize):
        yield station, 8


def mutations(content: bytes, dice: random.Random) -> Iterator[bytes]:
    """Every field changed in turn, then the end cut off; the checksum fits again."""
    for place, width in fields(content):
        for value in (0, 1, dice.choice(EDGES), dice.choice(EDGES), dice.getrandbits(63)):
            changed = bytearray(content)
            changed[place : place + width] = struct.pack("<Q", value)[:width]
            yield signed(changed)
    for _ in range(20):
        changed = bytearray(content[: dice.randrange(16, len(content))])
        changed[12:16] = struct.pack("<I", len(changed))
        yield signed(changed)


def signed(content: bytearray) -> bytes:
    content[8:12] = struct.pack("<I", zlib.crc32(content[12:]))
    return bytes(content)


def configs(tier: Path) -> Iterator[bytes]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    servers = (Station(2, 5.0, 0.001), Station(3, 5.0, 0.001))
    stations = TierStations((Station(0, 1000.0, 0.001),), servers, (Station(1, 10.0, 0.0),), 1000, 1000)
    plain = setup.TierSetup(prefixes=(str(tier.parent), "/usr", "/"))
    slow = setup.TierSetup((str(tier),), stations)
    yield setup.config_bytes([setup.TierSetup((str(tier / "data.bin"), "/")), plain], 0, "", 0)
    yield setup.config_bytes([slow, plain], 4, boot, 0)
    yield setup.config_bytes([plain, slow, plain], 4, boot, state.OPTION_OPS | state.OPTION_REREADS)


@pytest.mark.parametrize("number", range(3))
def test_every_field_of_a_config_changed(number: int, tier: Path, little: str, tmp_path: Path) -> None:
    """Each of them is either refused or can be lived with."""
    command, record = [little, str(tier / "data.bin")], tmp_path / "record"
    bare, dice = run(command, environment(None)), random.Random(number)
    right = list(configs(tier))[number]
    for content in (right, *mutations(right, dice)):
        record.mkdir()
        (record / "config").write_bytes(content)
        (record / "board").write_bytes(bytes(32 if content == right else dice.choice([32, 32, 32, 4096, 0])))
        assert run(command, environment(record)) == bare
        assert content != right or list(record.glob("*.state"))
        shutil.rmtree(record)


def test_any_environment_of_a_launcher(tier: Path, little: str, tmp_path: Path) -> None:
    names = "RANK WORLD_SIZE LOCAL_RANK OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK MV2_COMM_WORLD_RANK FLUX_TASK_RANK PALS_RANKID"
    names += " JSM_NAMESPACE_RANK SLURM_PROCID SLURM_NTASKS SLURM_NODEID SLURMD_NODENAME"
    command = [little, str(tier / "data.bin")]
    bare = run(command, environment(None))
    for value in ("0", "", "x" * 64, "x" * 65, "../../up", "a\nb", "x" * 5000):
        record = tmp_path / f"record-{len(value)}-{value[:1].isalpha()}"
        programs.write_config(record, {"one": tier})
        assert run(command, environment(record, **dict.fromkeys(names.split(), value))) == bare
        recorded = programs.gather(record, ["one"], bare)
        assert recorded.totals["one", "read"] == (4, 4000)
        assert all(known == value for known in recorded.heads[0].variables.values())
        assert (recorded.lost_ops, recorded.heads[0].mapped_ops, recorded.heads[0].lost_rows) == (0, 0, 0)


# ---- limits ----


def limit(what: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (most, most))


@pytest.mark.parametrize("most", [0, 1, 4095, 4096, 8192, 20_000, 1 << 20])
@pytest.mark.parametrize("options", [0, state.OPTION_OPS | state.OPTION_REREADS])
def test_small_files_only(most: int, options: int, tier: Path, little: str, tmp_path: Path) -> None:
    """Growing beyond the limit would end the program by SIGXFSZ."""
    command = [little, str(tier / "data.bin")]
    programs.write_config(tmp_path / "record", {"one": tier}, options)
    bare = run(command, environment(None), before=limit(resource.RLIMIT_FSIZE, most))
    assert run(command, environment(tmp_path / "record"), before=limit(resource.RLIMIT_FSIZE, most)) == bare


@pytest.mark.parametrize("most", [12 << 20, 16 << 20, 32 << 20, 128 << 20, 1 << 30])
def test_little_address_space(most: int, tier: Path, little: str, tmp_path: Path) -> None:
    command = [little, str(tier / "data.bin")]
    programs.write_config(tmp_path / "record", {"one": tier}, state.OPTION_REREADS)
    bare = run(command, environment(None), before=limit(resource.RLIMIT_AS, most))
    assert run(command, environment(tmp_path / "record"), before=limit(resource.RLIMIT_AS, most)) == bare


def test_address_space_that_just_suffices(tier: Path, tmp_path: Path) -> None:
    """What the shim maps for itself must not be what the program then lacks."""
    program = """
import sys
print(len(open(sys.argv[1], "rb").read()))
kept = bytearray(300 << 20)
if len(sys.argv) > 2: print(open("/proc/self/status").read().partition("VmPeak:")[2].split()[0])
"""
    command = programs.python(program, tier / "data.bin")
    peak = 1024 * int(run([*command, "tell"], environment(None)).out.split()[1])
    programs.write_config(tmp_path / "record", {"one": tier})
    before = limit(resource.RLIMIT_AS, peak + (24 << 20))
    bare = run(command, environment(None), before=before)
    assert bare.code == 0, bare.err
    assert run(command, environment(tmp_path / "record"), before=before) == bare


def test_no_descriptor_left(tier: Path, tmp_path: Path) -> None:
    command = [programs.compiled("exhausted", tmp_path), str(tier / "data.bin")]
    recorded = programs.run_recorded(command, tmp_path / "record", {"one": tier})
    assert recorded.ended == run(command, environment(None))
    assert recorded.totals["one", "read"][0] + recorded.lost_ops >= 200, "recorded as soon as there was one again"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    yield from mounted(tmp_path / "small", "64k")


def test_a_full_disk(small_disk: Path, tier: Path, little: str) -> None:
    command = [little, str(tier / "data.bin")]
    bare = run(command, environment(None))
    programs.write_config(small_disk, {"one": tier}, state.OPTION_OPS)
    for left in (0, 4096, 8192, 12_288, 16_384):
        with (small_disk / "hog").open("wb", buffering=0) as hog, contextlib.suppress(OSError):
            while True:
                hog.write(bytes(4096))
        os.truncate(small_disk / "hog", max(0, (small_disk / "hog").stat().st_size - left))
        assert run(command, environment(small_disk)) == bare
        for path in small_disk.glob("*-*"):
            path.unlink()


def test_the_folder_goes_away_meanwhile(tier: Path, tmp_path: Path) -> None:
    record = tmp_path / "record"
    program = """
import os, shutil, sys, threading
def look(): print(len(open(sys.argv[1], "rb").read()))
look(); shutil.rmtree(sys.argv[2])
threads = [threading.Thread(target=look) for _ in range(4)]
for thread in threads: thread.start(); thread.join()
if os.fork() == 0: look(); os._exit(3)
print(os.wait()[1])
"""
    command = programs.python(program, tier / "data.bin", record)
    programs.write_config(record, {"one": tier}, state.OPTION_OPS)
    shimmed = run(command, environment(record))
    record.mkdir()
    assert shimmed == run(command, environment(None))
    assert shimmed.code == 0


def test_another_root(tier: Path, tmp_path: Path) -> None:
    needs_root()
    program = """
import os, sys
print(len(open(sys.argv[1], "rb").read()))
os.chroot(sys.argv[2])
for name in ("/data.bin", "data.bin", "/missing", "/../data.bin"):
    try: print(os.stat(name).st_size, len(open(name, "rb").read()))
    except OSError as error: print(error)
os.chdir("/")
fds = [os.open("data.bin", os.O_RDONLY) for _ in range(3)]
print(fds, os.fork() and os.wait()[1])
"""
    command = programs.python(program, tier / "data.bin", tier)
    recorded = programs.run_recorded(command, tmp_path / "record", {"one": tier}, state.OPTION_OPS)
    assert recorded.ended == run(command, environment(None))
    assert recorded.ended.code == 0


def test_other_namespaces(tier: Path, little: str, tmp_path: Path) -> None:
    needs_root()
    unshare = ["unshare", "--mount", "--pid", "--fork", "--uts", little, str(tier / "data.bin")]
    bare = run(unshare, environment(None))
    if bare.code != 42:
        pytest.skip(f"no namespaces here: {bare.err.decode().strip()}")
    recorded = programs.run_recorded(unshare, tmp_path / "record", {"one": tier})
    assert recorded.ended == bare
    assert recorded.totals["one", "read"] == (4, 4000)


def test_programs_with_others_rights_are_left_alone(public_place: Path) -> None:
    """The loader takes no library from just anywhere there."""
    needs_root()
    little, record = programs.compiled("little", public_place), public_place / "record"
    (public_place / "data.bin").write_bytes(bytes(5000))
    programs.write_config(record, {"one": public_place})
    record.chmod(0o777)
    os.chown(little, 65534, 65534)
    os.chmod(little, 0o6755)
    command = [little, str(public_place / "data.bin")]
    bare = run(command, environment(None))
    shimmed = run(command, reachable(environment(record), public_place))
    assert (shimmed.code, shimmed.out) == (bare.code, bare.out)  # the loader itself may complain
    assert bare.code == 42
    assert not list(record.glob("*.state"))


# ---- results and errno ----


def test_results_and_errno_stay(tier: Path, tmp_path: Path) -> None:
    program = programs.compiled("errors", tmp_path)
    said = []
    for name in ("bare", "shim"):
        place = tmp_path / "place"
        shutil.copytree(tier, place)
        env = environment(None)
        if name == "shim":
            programs.write_config(tmp_path / "record", {"one": place}, state.OPTION_OPS)
            env = environment(tmp_path / "record")
        ended = run([program, str(place), str(place / "data.bin")], env)
        assert ended.code == 0, f"{name}: {ended.out.decode()[-300:]}{ended.err.decode()}"
        said.append(ended.out.decode().splitlines())
        shutil.rmtree(place)
    assert said[0] == said[1]
    assert len(said[0]) > 140


# ---- time ----

TIMES = """
import os, sys, threading, time
path, busy = sys.argv[1], sys.argv[2] == "busy"
stop = False
def compute():
    count = 0
    while not stop: count += 1
if busy: threading.Thread(target=compute).start()
fd, buffer, own = os.open(path, os.O_RDONLY), bytearray(1 << 16), []
for turn in range(80):
    start = time.perf_counter_ns(); os.preadv(fd, [buffer], 0); own.append(time.perf_counter_ns() - start)
stop = True
print(sorted(own)[len(own) // 2])
"""


def medians(kind: str, tier: Path, record: Path) -> tuple[float, float]:
    """Of a read that takes a millisecond: as Python times it, and as the shim does."""
    command = programs.python(TIMES, tier / "data.bin", kind)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    slow = setup.TierSetup((str(tier),), TierStations(latency_ns=1_000_000))
    record.mkdir()
    setup.write_setup(str(record), [slow], 0, boot, state.OPTION_OPS)
    recorded = programs.gather(record, ["one"], run(command, environment(record)))
    rows = np.frombuffer(b"".join(recorded.rows), OP_ROW)
    return float(recorded.ended.out), float(np.median(rows["busy_ns"][rows["kind"] == READ]))


def test_a_computing_thread_does_not_lengthen_reads(tier: Path, tmp_path: Path) -> None:
    """Python's own timer waits for the interpreter's lock after every read; the shim's does not."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("needs two processors")
    for attempt in range(3):  # other programs of this machine may be in the way
        by_python, by_shim = zip(
            *(medians(kind, tier, tmp_path / f"{kind}-{attempt}") for kind in ("alone", "busy")), strict=True
        )
        if by_python[1] > 3 * by_python[0] and by_shim[1] < 1.5 * by_shim[0]:
            return
    pytest.fail(f"Python: {by_python[0]:.0f} → {by_python[1]:.0f} ns; shim: {by_shim[0]:.0f} → {by_shim[1]:.0f} ns")


def test_this_python_is_what_is_recorded() -> None:
    """A static or privileged interpreter would make all of the above say nothing."""
    env = environment("/nonexistent")
    maps = run(programs.python("print(open('/proc/self/maps').read())"), env).out.decode()
    assert programs.shim() in maps, f"{sys.executable} does not take a preloaded library"
