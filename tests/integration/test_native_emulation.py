"""Emulated tiers for programs that know nothing of us: they take as long as the configured rates say."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tierscope.native import library
from tierscope.native.setup import TierSetup, write_setup
from tierscope.native.stations import Station, TierStations
from tierscope.output.durable import boot_id

pytestmark = [
    pytest.mark.native,
    pytest.mark.skipif(library.load() is None, reason="the C library was not built here"),
]

MB = 1_000_000
WITHIN = 0.03
TRIES = 5


def least(measure: Callable[[int], float], expected: float) -> float:
    """The least of a few tries, as far as needed: whatever else runs on the machine only adds to it."""
    seconds = measure(0)
    for number in range(1, TRIES):
        if seconds > expected * (1 + WITHIN):
            seconds = min(seconds, measure(number))
    return seconds


def recorded(folder: Path, tier: TierSetup, slots: int) -> dict[str, str]:
    """The environment in which a command meets this emulated tier."""
    folder.mkdir()
    write_setup(str(folder), [tier], slots, boot_id())
    return {**os.environ, "LD_PRELOAD": str(library.path()), "TIERSCOPE_RECORD": str(folder)}


def emulated(data: Path, servers: tuple[Station, ...], metadata: Station | None = None) -> TierSetup:
    return TierSetup((os.path.realpath(data),), TierStations((metadata,) if metadata else (), servers))


def bandwidth(number: int, per_second: float) -> Station:
    return Station(number, 0.0, 1e9 / per_second)


@pytest.mark.parametrize("chunked", [False, True])
def test_h5py_meets_the_configured_bandwidth(tmp_path: Path, chunked: bool) -> None:
    """It copies between its reads, while the server waits for it: what it computes itself comes on top of what the server takes."""
    pytest.importorskip("h5py", reason="h5py is not installed")
    data = tmp_path / "data"
    data.mkdir()
    program = tmp_path / "program.py"
    program.write_text(
        """
import sys, time, h5py, numpy
path, mode, chunked = sys.argv[1:]
if mode == "write":
    with h5py.File(path, "w") as file:
        shape = (160, 1 << 17)
        file.create_dataset("x", data=numpy.zeros(shape, "u1"), chunks=(4, 1 << 17) if chunked == "True" else None)
else:
    start, computed = time.monotonic(), time.process_time()
    with h5py.File(path, "r") as file:
        total = sum(file["x"][row : row + 32].nbytes for row in range(0, 160, 32))
    print(total, time.monotonic() - start, time.process_time() - computed)
"""
    )
    command = [sys.executable, str(program), str(data / "x.h5")]
    subprocess.run([*command, "write", str(chunked)], check=True)
    nbytes = 160 << 17
    expected = nbytes / (20 * MB)

    def measure(number: int) -> float:
        env = recorded(tmp_path / f"record{number}", emulated(data, (bandwidth(0, 20 * MB),)), 1)
        done = subprocess.run([*command, "read", str(chunked)], check=True, env=env, capture_output=True, text=True)
        total, seconds, computed = done.stdout.split()
        assert int(total) == nbytes
        assert float(seconds) >= expected * (1 - WITHIN)
        return float(seconds) - float(computed)

    assert least(measure, expected) <= expected * (1 + WITHIN)


def test_writes_meet_their_own_bandwidth(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    program = (
        "import os, sys, time; start = time.monotonic(); fd = os.open(sys.argv[1], os.O_CREAT | os.O_RDWR)\n"
        "for _ in range(2): os.write(fd, bytes(1 << 21))\n"
        "wrote = time.monotonic(); os.lseek(fd, 0, 0)\n"
        "while os.read(fd, 1 << 21): pass\n"
        "print(wrote - start, time.monotonic() - wrote)"
    )
    server = Station(0, 0.0, 1e9 / (8 * MB), write_per_byte_ns=1e9 / (2 * MB))

    def measure(number: int) -> float:
        env = recorded(tmp_path / f"record{number}", emulated(data, (server,)), 1)
        command = [sys.executable, "-c", program, str(data / f"x{number}")]
        wrote, read = map(
            float, subprocess.run(command, check=True, env=env, capture_output=True, text=True).stdout.split()
        )
        assert wrote > 2 * read
        return wrote

    expected = (1 << 22) / (2 * MB)
    assert least(measure, expected) == pytest.approx(expected, rel=WITHIN)


READER = """
import os, sys, time
folder, first, step, files, start = sys.argv[1], *map(int, sys.argv[2:5]), float(sys.argv[5])
time.sleep(max(0.0, start - time.monotonic()))
for file in range(first, files, step):
    fd = os.open(f"{folder}/{file:06d}", os.O_RDONLY)
    os.read(fd, 1 << 20)
    os.close(fd)
print(time.monotonic())
"""


@pytest.mark.parametrize(
    ("what", "rate"), [("metadata", 500.0), ("servers by operations", 500.0), ("servers by bytes", 500.0)]
)
def test_64_processes_meet_the_configured_rates(tmp_path: Path, what: str, rate: float) -> None:
    data = tmp_path / "data"
    data.mkdir()
    files, processes, nbytes = 2048, 64, 16384
    for file in range(files):
        (data / f"{file:06d}").write_bytes(bytes(nbytes))
    tier = {
        "metadata": emulated(data, (), Station(0, 1e9 / rate, 0.0)),
        "servers by operations": emulated(data, tuple(Station(number, 4e9 / rate, 0.0) for number in range(4))),
        "servers by bytes": emulated(data, tuple(bandwidth(number, rate * nbytes / 4) for number in range(4))),
    }[what]

    def measure(number: int) -> float:
        env = recorded(tmp_path / f"record{number}", tier, 4)
        start = time.monotonic() + 8
        commands = [
            [sys.executable, "-S", "-c", READER, str(data), str(first), str(processes), str(files), str(start)]
            for first in range(processes)
        ]
        running = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True) for command in commands]
        assert time.monotonic() < start, "the processes did not start in time"
        return max(float(process.communicate(timeout=60)[0]) for process in running) - start

    assert least(measure, files / rate) == pytest.approx(files / rate, rel=WITHIN)


def test_trace_emulates_and_says_so(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "x").write_bytes(bytes(2 * MB))

    def measure(number: int) -> float:
        command = [sys.executable, "-m", "tierscope.cli.main", "trace", "--tier", f"gfs={data}", "--json"]
        command += [
            "--out",
            str(tmp_path / f"out{number}"),
            "--emulate",
            "gfs.bandwidth=4MB/s",
            "--",
            "cat",
            str(data / "x"),
        ]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        shown = json.loads(done.stdout)
        assert shown["emulated_tiers"] == ["gfs"]
        return float(shown["points"][0]["classes"]["GFS-READ"])

    assert least(measure, 0.5) == pytest.approx(0.5, rel=WITHIN)
