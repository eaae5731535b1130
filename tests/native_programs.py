"""Programs that are run bare, under strace, and under the preload shim; and what each of them says was done."""

import collections
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tierscope.native import library, setup, state
from tierscope.native.lanes import NativeLane
from tierscope.trace.ops import KINDS

LIST_BYTES = state.LIST_ROWS * state.ROW_BYTES
SOURCES = Path(__file__).parent / "integration" / "programs"
TIMEOUT = 120

# Another build of the library (`make test-sanitizers`) wants its programs built likewise, and its runtime loaded before it.
MORE_FLAGS = os.environ.get("TIERSCOPE_TEST_CFLAGS", "").split()
LOADED_BEFORE = os.environ.get("TIERSCOPE_TEST_PRELOAD", "").split()

Totals = dict[tuple[str, str], tuple[int, int]]  # tier and kind → operations, bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """What the host program's user sees."""

    code: int
    out: bytes
    err: bytes


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one run under the shim left behind."""

    ended: Ended
    folder: Path
    heads: list[state.StateHead]
    lanes: list[NativeLane]
    totals: Totals
    problems: list[str]
    rows: list[bytes] = field(default_factory=list)

    @property
    def lost_ops(self) -> int:
        return sum(head.lost_ops for head in self.heads)


def shim() -> str:
    """The library's file; the test is skipped where it was not built, but not where one was asked for."""
    found = library.path()
    if found is None:
        pytest.skip("the native library is not built")
    assert os.path.exists(found), f"{found} is missing"
    return found


def compiled(name: str, folder: Path) -> str:
    """One of our C programs, or the reason why there cannot be one."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    program = folder / name
    flags = [
        "-std=gnu11",
        "-O1",
        "-g",
        "-Wall",
        "-Wextra",
        "-Wno-nonnull",
        "-Wno-unused-result",
        "-pthread",
        *MORE_FLAGS,
    ]
    done = subprocess.run(
        [compiler, *flags, "-o", program, SOURCES / f"{name}.c", "-ldl"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return str(program)


def write_config(folder: Path, tiers: Mapping[str, Path | str], options: int = 0) -> None:
    """The folder that TIERSCOPE_RECORD names; tiers in the order of their numbers. Paths are resolved, as `tierscope trace` does."""
    folder.mkdir(parents=True, exist_ok=True)
    setups = [setup.TierSetup(prefixes=(os.path.realpath(path),)) for path in tiers.values()]
    setup.write_setup(str(folder), setups, 0, "", options)


def environment(folder: Path | str | None, **more: str) -> dict[str, str]:
    """For the host program: without a folder it runs bare."""
    wanted = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "TIERSCOPE_RECORD")}
    before = list(LOADED_BEFORE)
    if folder is not None:
        wanted["TIERSCOPE_RECORD"] = str(folder)
        before.append(shim())
    if before:
        wanted["LD_PRELOAD"] = " ".join(before)
    return wanted | more


def run(
    command: Sequence[str | Path],
    env: Mapping[str, str] | Mapping[bytes, bytes],
    cwd: Path | str | None = None,
    stdin: Path | None = None,
    before: Callable[[], object] | None = None,
) -> Ended:
    """`before` is called in the new process, to set its limits."""
    with open(stdin or os.devnull, "rb") as source:
        done = subprocess.run(
            command,
            env=env,
            cwd=cwd,
            stdin=source,
            capture_output=True,
            timeout=TIMEOUT,
            preexec_fn=before,
            check=False,
        )
    return Ended(done.returncode, done.stdout, done.stderr)


def run_recorded(
    command: Sequence[str | Path],
    folder: Path,
    tiers: Mapping[str, Path | str],
    options: int = 0,
    cwd: Path | None = None,
    stdin: Path | None = None,
) -> Recorded:
    """Run it under the shim, and add up what all of its processes recorded."""
    write_config(folder, tiers, options)
    return gather(folder, list(tiers), run(command, environment(folder), cwd, stdin))


def gather(folder: Path, tiers: Sequence[str], ended: Ended) -> Recorded:
    """All state files of a folder."""
    heads, lanes, problems, rows = [], [], [], []
    for path in sorted(folder.glob("*.state")):
        head = state.read_head(str(path), len(tiers))
        if head is None:
            continue
        heads.append(head)
        for chunk in state.read_chunks(head):
            if isinstance(chunk, NativeLane):
                lanes.append(chunk)
            elif isinstance(chunk, state.StateDamage):
                problems.append(f"{path.name}: {chunk.reason}")
        rows += operation_rows(path)
    return Recorded(ended, folder, heads, lanes, add_up(lanes, tiers), problems, rows)


def operation_rows(path: Path) -> list[bytes]:
    """The operation list of one process. A block that a kill kept from being written is still in the state file."""
    written = path.with_suffix(".ops")
    content = bytearray(written.read_bytes() if written.exists() else b"")
    waiting, chunks, place = [], path.read_bytes(), state.HEAD_BYTES
    while place + 8 <= len(chunks):
        magic, nbytes = struct.unpack_from("<II", chunks, place)
        if magic == state.LIST_MAGIC:
            (block, used), rows = struct.unpack_from("<IQ", chunks, place + 12), place + 24
            if block:
                at, full = (block - 1) * LIST_BYTES, chunks[rows : rows + LIST_BYTES]
                content.extend(bytes(max(0, at - len(content))))
                content[at : at + LIST_BYTES] = full
            else:
                waiting.append(chunks[rows : rows + used * state.ROW_BYTES])
        place += max(nbytes, 8)
    return [bytes(content), *waiting]


def add_up(lanes: Iterable[NativeLane], tiers: Sequence[str]) -> Totals:
    totals: Totals = {}
    for lane in lanes:
        for number, cell in enumerate(lane.cells):
            if cell["ops"]:
                key = tiers[number // len(KINDS)], KINDS[number % len(KINDS)]
                ops, moved = totals.get(key, (0, 0))
                totals[key] = ops + int(cell["ops"]), moved + int(cell["bytes"])
    return totals


def ops_of(totals: Totals) -> dict[tuple[str, str], int]:
    return {key: ops for key, (ops, _) in totals.items()}


def python(program: str, *arguments: object) -> list[str]:
    """A Python program, with its arguments in sys.argv."""
    return [sys.executable, "-c", program, *map(str, arguments)]


def without(totals: Totals, kinds: Iterable[str]) -> Totals:
    """Only data has bytes that strace can tell: those of other kinds are not compared."""
    ignored = set(kinds)
    kept: Totals = collections.defaultdict(lambda: (0, 0))
    for (tier, kind), (ops, moved) in totals.items():
        if kind not in ignored:
            kept[tier, kind] = ops, moved if kind in ("read", "write") else 0
    return dict(kept)
