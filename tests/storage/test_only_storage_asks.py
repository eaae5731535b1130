"""Files of a tier are asked for through its storage only: no other room that works on them calls the system.

`probe` is no such room: it measures plain calls on a directory that a user names, before there is any tier."""

import ast
from pathlib import Path

import pytest

from tests.source_trees import nodes_of

SOURCE = Path(__file__).parent.parent.parent / "src" / "tierscope"
CALLS = {
    *("open", "stat", "lstat", "fstat", "unlink", "remove", "scandir", "listdir", "makedirs", "mkdir", "rmdir"),
    *("rename", "replace", "link", "symlink", "statvfs", "access", "truncate", "ftruncate", "walk", "utime", "chmod"),
    *("pread", "preadv", "pwrite", "pwritev", "read", "readv", "write", "writev", "fsync", "fdatasync", "sync"),
    *("posix_fadvise", "posix_fallocate", "copy_file_range", "sendfile"),
}
LOOKS = {"exists", "lexists", "isdir", "isfile", "islink", "getsize", "getmtime", "realpath", "samefile"}
# Whoever else asks the system, and for what; no file of a tier.
ALLOWED = {
    ("bench/child.py", "os.listdir"): "/proc: whether there are other threads",
    ("bench/children.py", "os.listdir"): "/proc: how many files we have open",
    ("bench/live.py", "os.fstat"): "shared memory of ranks and director",
    ("bench/live.py", "os.open"): "shared memory of ranks and director",
    ("bench/live.py", "os.truncate"): "shared memory of ranks and director",
    ("bench/liveness.py", "open"): "/proc and control groups: who is suspended",
    ("bench/liveness.py", "os.listdir"): "/proc: which processes a rank started",
    ("bench/mpi.py", "open"): "/proc: who started us",
    ("bench/mpi.py", "os.read"): "a pipe to whoever ends the job",
    ("bench/mpi.py", "os.write"): "a pipe to whoever ends the job",
    ("bench/profiled.py", "os.makedirs"): "folders of a profiler's logs, in the result",
    ("bench/stall.py", "open"): "/proc: what a thread waits for",
    ("bench/stall.py", "os.listdir"): "/proc: which threads there are",
    ("dataset/cleaning.py", "os.path.isdir"): "directories that the user names, before any is entered",
    ("dataset/cleaning.py", "os.path.islink"): "directories that the user names, before any is entered",
    ("loaders/held.py", "os.ftruncate"): "memory that workers share",
    ("loaders/held.py", "os.open"): "memory that workers share",
    ("loaders/pytorch.py", "os.statvfs"): "/dev/shm: room for batches of worker processes",
    ("dataset/memory.py", "open"): "/proc: how much memory is free",
}


def asked(path: Path) -> set[str]:
    """Calls of the system, and uses of them as values."""
    found = set()
    for node in nodes_of(path):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in CALLS:
                found.add(f"os.{name}")
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="os"), attr="path"), attr=name) if name in LOOKS:
                found.add(f"os.path.{name}")
            case ast.Call(func=ast.Name(id="open")):
                found.add("open")
            case ast.ImportFrom(module="os" | "os.path" | "shutil" | "pathlib" | "tempfile" | "glob"):
                found.add(f"from {node.module} import")
            case ast.Import(names=names):
                found |= {
                    f"import {name.name}" for name in names if name.name in ("shutil", "pathlib", "glob", "tempfile")
                }
    return found


@pytest.mark.parametrize("room", ["dataset", "loaders", "bench"])
def test_a_room_asks_the_system_for_nothing_but_what_is_listed(room: str) -> None:
    for path in sorted((SOURCE / room).rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        strange = {call for call in asked(path) if (name, call) not in ALLOWED}
        assert not strange, f"{name} asks the system itself: {sorted(strange)}; ask the tier's storage"


def test_nothing_is_listed_in_vain() -> None:
    for name, call in ALLOWED:
        assert call in asked(SOURCE / name), (name, call)


def test_it_finds_what_it_looks_for(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text("import os, shutil\nfrom pathlib import Path\nopen('x')\nlook = os.stat\nos.path.isdir('y')\n")
    assert asked(module) == {"import shutil", "from pathlib import", "open", "os.stat", "os.path.isdir"}
