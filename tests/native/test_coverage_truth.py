"""What wrappers see of all reads and writes, held against the kernel's own count: on a tier's files, on others, on pipes."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.native_programs import SOURCES, compiled, environment, shim, write_config
from tests.small_study import has_uring
from tierscope.analysis.coverage import about_coverage, read_share, written_share
from tierscope.recording.collect import collect
from tierscope.recording.coverage import coverage_of
from tierscope.trace.coverage import Coverage
from tierscope.trace.description import DescribedTier, Records, Traced
from tierscope.trace.kernel_io import counted_since, kernel_io

FILE_BYTES = (2 << 20) + 1234
NEARLY = 16 << 10  # what the loader and a test's own threads read
WAYS = (
    *("read", "pread", "readv", "preadv", "preadv2", "fread", "fgets", "getline", "getc", "fscanf", "fseek"),
    *("sendfile", "copy_file_range", "splice", "write", "pwritev", "fwrite", "fprintf", "popen"),
    *("pipe", "socket", "recv"),
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    shim()
    folder = tmp_path_factory.mktemp("programs")
    compiled("moves", folder)
    return folder


@cache
def numbers() -> bytes:
    return b" ".join(b"%d" % number if number % 9 else b"%d\n" % number for number in range(400_000))[:FILE_BYTES]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A tier with a file of numbers, and the same beside it."""
    for name in ("tier", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_bytes(numbers())
    return tmp_path


def covered(data: Path, command: Sequence[str], code: int = 0) -> Coverage:
    """As `trace` does it: the kernel counts what children did when they were waited for."""
    record = data / "record"
    write_config(record, {"gfs": data / "tier"})
    before = kernel_io()
    with open(os.devnull, "r+b") as nothing:
        actions = [(os.POSIX_SPAWN_DUP2, nothing.fileno(), number) for number in (0, 1)]
        pid = os.posix_spawnp(command[0], list(command), environment(record), file_actions=actions)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == code
    kernel = counted_since(before)
    found = coverage_of(str(record), collect(str(record), ["gfs"], lambda _: False), kernel, ())
    assert found is not None
    return found


def kinds_of(found: Coverage) -> list[tuple[str, Any]]:
    """Findings about it, with the cause."""
    about = Traced(tiers=(DescribedTier(name="gfs"),), command=("x",), records=Records(), coverage=found)
    return [(finding.kind, finding.evidence.get("cause")) for finding in about_coverage([about])]


@pytest.mark.parametrize("where", ["tier", "elsewhere"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_is_seen_as_the_kernel_counts_it(way: str, where: str, programs: Path, data: Path) -> None:
    found = covered(data, [str(programs / "moves"), way, str(data / where / "file")])
    assert found.kernel_read_bytes is not None
    assert found.kernel_written_bytes is not None
    assert found.seen_read_bytes == pytest.approx(found.kernel_read_bytes, abs=NEARLY)
    assert found.seen_written_bytes == pytest.approx(found.kernel_written_bytes, abs=NEARLY)
    moves = found.kernel_read_bytes + found.kernel_written_bytes
    assert (moves > 700_000) == (way not in ("splice", "recv"))
    assert kinds_of(found) == []


def test_a_mapped_file_is_named_by_its_faults(programs: Path, data: Path) -> None:
    found = covered(data, [str(programs / "moves"), "map", str(data / "tier/file")])
    assert found.mapped_fault_bytes == FILE_BYTES
    share = read_share(found)
    assert share.bound
    assert share.value is not None
    assert share.value < 0.1
    assert kinds_of(found) == [("low_coverage", "mmap")]


WRITE_THROUGH_A_MAP = """
import mmap, sys
with open(sys.argv[1], "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
    mapped[:] = bytes(len(mapped))
"""


def test_what_is_written_through_a_map_is_not_called_reading(data: Path) -> None:
    found = covered(data, [sys.executable, "-S", "-c", WRITE_THROUGH_A_MAP, str(data / "tier/file")])
    assert (found.mapped_fault_bytes, found.mapped_writable_bytes) == (FILE_BYTES, FILE_BYTES)
    share = written_share(found)
    assert share.bound
    assert share.value == pytest.approx(0.0, abs=0.01)
    assert kinds_of(found) == [("low_coverage", "writable_mmap")]


def test_the_recorders_own_files_are_not_written_by_the_command(programs: Path, data: Path) -> None:
    found = covered(data, [str(programs / "moves"), "read", str(data / "tier/file")])
    assert found.seen_read_bytes > 700_000
    assert (found.seen_written_bytes, found.kernel_written_bytes) == (0, 0)


def test_a_few_pages_of_a_mapped_file_do_not_count_as_all_of_it(programs: Path, data: Path) -> None:
    """Nobody knows which pages the faults were for: what they can have read at most is far from the file's length."""
    os.truncate(data / "tier/file", 8 << 30)
    found = covered(data, [str(programs / "moves"), "map a little", str(data / "tier/file")])
    assert 0 < (found.mapped_fault_bytes or 0) < 1 << 30


@pytest.mark.skipif(not has_uring(), reason="this kernel gives us no io_uring")
def test_an_io_uring_makes_it_unknown(programs: Path, data: Path) -> None:
    """Its reads are in neither count: without this, all would seem seen."""
    found = covered(data, [str(programs / "moves"), "ring", str(data / "tier/file")])
    assert (found.kernel_read_bytes or 0) < NEARLY
    assert found.ring_processes == 1
    assert read_share(found).reason == "io_uring"
    assert kinds_of(found) == [("coverage_unknown", None)]


def test_direct_system_calls_are_missed_and_said(programs: Path, data: Path) -> None:
    found = covered(data, [str(programs / "moves"), "direct", str(data / "tier/file")])
    assert found.seen_read_bytes < NEARLY
    assert kinds_of(found) == [("low_coverage", "process")]


def test_a_statically_linked_child_is_missed_and_said(programs: Path, data: Path) -> None:
    program = programs / "static"
    made = subprocess.run(
        [shutil.which("cc") or "cc", "-static", "-w", "-o", program, SOURCES / "moves.c"],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("the C library cannot be linked statically here")
    file = shlex.quote(str(data / "tier/file"))
    for script in (f"{program} read {file}; true", f"exec {program} read {file}"):
        shutil.rmtree(data / "record", ignore_errors=True)
        found = covered(data, ["sh", "-c", script])
        share = read_share(found)
        assert share.value is not None
        assert share.value < 0.1
        assert kinds_of(found) == [("low_coverage", "process")]


@pytest.mark.parametrize("without", ["LD_PRELOAD=", "env -u LD_PRELOAD", "env -i"])
def test_a_child_without_the_library_is_missed_and_said(without: str, data: Path) -> None:
    file = shlex.quote(str(data / "tier/file"))
    found = covered(data, ["sh", "-c", f"cat {file}; {without} wc -c {file}; {without} cat {file}"])
    assert read_share(found).value == pytest.approx(0.5, abs=0.1)
    assert ("low_coverage", "process") in kinds_of(found)


def test_a_killed_process_loses_nothing(data: Path) -> None:
    program = f"import os; open({str(data / 'tier/file')!r}, 'rb').read(); os.kill(os.getpid(), 9)"
    found = covered(data, [sys.executable, "-c", program], code=-9)
    assert (read_share(found).value or 0) > 0.95


ORDINARY = {
    "many short commands": [
        "sh",
        "-c",
        "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do /bin/true; done",
    ],
    "pipes": ["sh", "-c", "cat tier/file | cat | cat | wc -c"],
    "a copy": ["cp", "tier/file", "elsewhere/copy"],
    "imports": [sys.executable, "-c", "import asyncio, email, unittest, decimal, numpy"],
    "workers": [
        *(sys.executable, "-c"),
        "import multiprocessing as m\nwith m.get_context('fork').Pool(2) as p: p.map(len, [bytes(9)] * 9)\nopen('tier/file', 'rb').read()",
    ],
    "a subprocess": [
        sys.executable,
        "-c",
        "import subprocess; subprocess.run(['cat', 'tier/file'], capture_output=True)",
    ],
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_programs_are_no_alarm(name: str, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(data)
    found = covered(data, ORDINARY[name])
    assert kinds_of(found) == []
    assert (read_share(found).value or 0) > 0.9


def test_what_nobody_waited_for_is_not_called_complete(data: Path) -> None:
    """A daemon's reads were seen, but the kernel adds them to nobody's count."""
    script = f"(setsid sh -c 'cat {data}/tier/file {data}/tier/file > {data}/done; echo > {data}/ended' &); while [ ! -e {data}/ended ]; do sleep 0.01; done"
    found = covered(data, ["sh", "-c", script])
    assert found.seen_read_bytes > 2 * FILE_BYTES
    assert read_share(found).reason == "more_seen"
    assert kinds_of(found) == []
