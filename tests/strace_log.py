"""What strace saw: operations and bytes per tier and kind, in the words of the recorder."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.native_programs import TIMEOUT, Ended, Totals, environment

OPENS = ("open", "openat", "openat2", "creat")
READS = ("read", "readv", "pread64", "preadv", "preadv2")
WRITES = ("write", "writev", "pwrite64", "pwritev", "pwritev2")
STATS = ("stat", "lstat", "fstat", "newfstatat", "statx", "access", "faccessat", "faccessat2")
COPIES = {"sendfile": (1, 0), "copy_file_range": (0, 2), "splice": (0, 2)}  # which argument is read, which written
OTHERS = {"close": "close", "lseek": "seek", "fsync": "sync", "fdatasync": "sync"}
FAMILY = ("chdir", "fchdir", "execve", "execveat", "fork", "vfork", "clone", "clone3")

_CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+|0x[0-9a-f]+|\?)(.*)$")
_FILE = re.compile(r"^(-?\d+|AT_FDCWD)<(/.*?)>(\(deleted\))?$")


@dataclass(frozen=True, slots=True)
class Call:
    """One system call of a log. Arguments are strace's words; a file descriptor is 3</its/path>."""

    name: str
    arguments: list[str]
    result: int
    rest: str  # behind the result: the path of a new descriptor, or the error

    def file(self, number: int) -> str | None:
        """The path behind a descriptor."""
        found = _FILE.match(self.arguments[number]) if number < len(self.arguments) else None
        return found[2] if found else None


def strace() -> str:
    found = shutil.which("strace")
    if found is None:
        pytest.skip("strace is not installed")
    return found


def run_traced(
    command: Sequence[str | Path],
    folder: Path,
    tiers: Mapping[str, Path | str],
    cwd: Path | None = None,
    stdin: Path | None = None,
) -> tuple[Ended, Totals]:
    """Run it bare under strace."""
    folder.mkdir(parents=True)
    wanted = ",".join((*OPENS, *READS, *WRITES, *STATS, *COPIES, *OTHERS, *FAMILY, "mmap"))
    tracing = [
        strace(),
        "-ff",
        "-y",
        "-s",
        "0",
        "-o",
        str(folder / "log"),
        "-e",
        f"trace={wanted}",
        "-e",
        "signal=none",
    ]
    env = environment(None)
    if "LD_PRELOAD" in env:  # for the program, not for strace
        tracing += ["-E", f"LD_PRELOAD={env.pop('LD_PRELOAD')}"]
    with open(stdin or os.devnull, "rb") as source:
        done = subprocess.run(
            [*tracing, *command], env=env, cwd=cwd, stdin=source, capture_output=True, timeout=TIMEOUT, check=False
        )
    if done.returncode and b"ptrace" in done.stderr:
        pytest.skip(f"strace may not trace here: {done.stderr.decode(errors='replace').strip()}")
    return Ended(done.returncode, done.stdout, done.stderr), totals_of(folder, tiers, cwd or Path.cwd())


def totals_of(folder: Path, tiers: Mapping[str, Path | str], cwd: Path) -> Totals:
    roots = {name: os.path.realpath(path) for name, path in tiers.items()}
    logs = {int(path.suffix[1:]): list(_calls(path)) for path in folder.glob("log.*")}
    borrowed = {pid for calls in logs.values() for pid in _vforked(calls)}
    totals: Totals = {}
    for pid, calls in logs.items():
        for path, kind, moved in _operations(_own(calls) if pid in borrowed else calls, str(cwd)):
            tier = tier_of(path, roots)
            if tier is not None:
                ops, before = totals.get((tier, kind), (0, 0))
                totals[tier, kind] = ops + 1, before + moved
    return totals


def tier_of(path: str, roots: Mapping[str, str]) -> str | None:
    """The longest prefix wins."""
    fitting = [name for name, root in roots.items() if path == root or path.startswith(root.rstrip("/") + "/")]
    return max(fitting, key=lambda name: len(roots[name]), default=None)


def _vforked(calls: list[Call]) -> Iterator[int]:
    for call in calls:
        if call.name == "vfork" or (call.name.startswith("clone") and "CLONE_VFORK" in ",".join(call.arguments)):
            yield call.result


def _own(calls: list[Call]) -> list[Call]:
    """Of the child of a vfork: what it does before its exec is on borrowed memory, where it must leave no trace."""
    for number, call in enumerate(calls):
        if call.name.startswith("exec") and call.result == 0:
            return calls[number:]
    return []


def _calls(path: Path) -> Iterator[Call]:
    for line in path.read_text(errors="surrogateescape").splitlines():
        found = _CALL.match(line)
        if found:
            name, arguments, result, rest = found.groups()
            yield Call(name, _split(arguments), int(result, 0) if result != "?" else -1, rest)


def _split(arguments: str) -> list[str]:
    """At the commas that are in no brackets, braces, quotes or <path>."""
    parts, depth, quoted, start = [], 0, False, 0
    for place, sign in enumerate(arguments):
        if sign == '"':
            quoted = not quoted  # strings are cut to nothing but for paths, which hold no quotes here
        elif not quoted and sign in "([{<":
            depth += 1
        elif not quoted and (sign in ")]}" or (sign == ">" and arguments[place - 1] != "=")):
            depth -= 1
        elif sign == "," and not depth and not quoted:
            parts.append(arguments[start:place].strip())
            start = place + 1
    return [*parts, arguments[start:].strip()]


def _operations(calls: list[Call], cwd: str) -> Iterator[tuple[str, str, int]]:
    """Path, kind and bytes of every operation on a file; without the stats that the C library makes when it lists a directory."""
    listed: set[str] = set()
    for call in calls:
        if call.name in ("chdir", "fchdir") and call.result == 0:
            cwd = call.file(0) or os.path.join(cwd, call.arguments[0].strip('"'))
        elif call.name in OPENS:
            path = _opened(call, cwd)
            if "O_DIRECTORY" in call.arguments[-1] and call.result >= 0:
                listed.add(path)
            yield path, "open", 0
        elif call.name in STATS:
            path = _asked(call, cwd)
            if path not in listed or _by_text(call):
                yield path, "stat", 0
        else:
            yield from _on_descriptor(call, max(0, call.result))


def _on_descriptor(call: Call, moved: int) -> Iterator[tuple[str, str, int]]:
    if call.name in COPIES:
        for number, kind in zip(COPIES[call.name], ("read", "write"), strict=True):
            side = call.file(number)
            if side is not None:
                yield side, kind, moved
        return
    path = call.file(4 if call.name == "mmap" else 0)
    if path is None:
        return
    if call.name in READS:
        yield path, "read", moved
    elif call.name in WRITES:
        yield path, "write", moved
    elif call.name == "mmap":
        yield path, "mmap", 0
    elif call.name in OTHERS:
        yield path, OTHERS[call.name], 0


def _opened(call: Call, cwd: str) -> str:
    """Where the kernel found it; a file that could not be opened is where its folder is."""
    found = _FILE.match(f"{call.result}{call.rest.strip()}")
    return found[2] if found else _named(call, cwd)


def _asked(call: Call, cwd: str) -> str:
    return _named(call, cwd) if _by_text(call) else call.file(0) or ""


def _by_text(call: Call) -> bool:
    """Not about an open descriptor."""
    return call.name != "fstat" and (len(call.arguments) < 2 or call.arguments[1] not in ('""', "NULL"))


def _named(call: Call, cwd: str) -> str:
    """By the text: links are resolved but for the last component, which is where the question is answered."""
    beside, text = cwd, call.arguments[0]
    if not text.startswith('"') and len(call.arguments) > 1:
        beside, text = call.file(0) or cwd, call.arguments[1]
    path = os.path.join(beside, text.strip('"'))
    if os.path.basename(path.rstrip("/")) in ("", ".", ".."):
        return os.path.realpath(path)
    folder, name = os.path.split(path.rstrip("/"))
    return os.path.join(os.path.realpath(folder), name)
