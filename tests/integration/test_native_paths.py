"""Whose a path is when it is relative, goes through links or moves meanwhile; and how few system calls it takes to tell."""

import collections
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.native_programs import environment, ops_of, python, run_recorded, write_config
from tests.native_truth import plant, tiers_below
from tests.strace_log import strace

pytestmark = pytest.mark.native

START = """
import ctypes, os, sys, threading
root = sys.argv[1]
libc = ctypes.CDLL(None)
def touch(name, **options):
    os.stat(name, **options)
    os.close(os.open(name, os.O_RDONLY, **options))
"""
# Every touch of a tier's file is a stat, an open and a close.
CASES: dict[str, tuple[str, dict[str, int]]] = {
    "one folder after the other": (
        """
for _ in range(3):
    for folder, name in (("one", "data.bin"), ("outside", "x"), ("two", "x"), ("two", "inner/x"), (".", "outside/x")):
        os.chdir(root + "/" + folder); touch(name); touch("./" + name)
""",
        {"one": 6, "two": 6, "inner": 6},
    ),
    "a working folder that the wrappers did not see change": (
        """
for folder, name in (("outside", "x"), ("two", "x"), ("outside", "x")):
    libc.syscall({"x86_64": 80, "aarch64": 49}[os.uname().machine], (root + "/" + folder).encode()); touch(name)
""",
        {"two": 1},
    ),
    "a working folder of a thread's own": (
        """
os.chdir(root + "/outside")
def elsewhere():
    assert libc.unshare(0x200) == 0
    os.chdir(root + "/two"); touch("x"); there.set(); back.wait(); touch("x")
there, back = threading.Event(), threading.Event()
thread = threading.Thread(target=elsewhere); thread.start()
there.wait(); touch("x"); back.set(); thread.join(); touch("x")
""",
        {"two": 2},
    ),
    "a working folder that is moved into a tier": (
        """
os.mkdir(root + "/outside/deep"); open(root + "/outside/deep/f", "w").close()
os.chdir(root + "/outside/deep"); touch("f")
os.rename(root + "/outside/deep", root + "/two/deep"); touch("f"); touch("./f")
""",
        {"two": 2},
    ),
    "tiers right below a folder, and a name that only begins like one": (
        """
os.chdir(root); os.mkdir("one2")
for name in ("one", "one/", "one2", "outside", "two/inner", "two/inner/", "two/x", root + "/one", root + "/one2", root + "/two/inner"): touch(name)
""",
        {"one": 3, "two": 1, "inner": 3},
    ),
    "links to a tier, from a tier, and to a file of it": (
        """
os.chdir(root + "/outside")
for name in ("to_folder/deep/file.bin", "chain/deep/file.bin", "to_inner/x", "../one/data.bin", "to_inner/../x"): touch(name)
os.close(os.open("to_file", os.O_RDONLY)); os.close(os.open(root + "/two/out", os.O_RDONLY))
""",
        {"one": 4, "inner": 1, "two": 1},
    ),
    "a link that is turned round": (
        """
os.symlink("outside", root + "/now"); os.close(os.open(root + "/now/x", os.O_RDONLY))
os.unlink(root + "/now"); os.symlink("two", root + "/now")
for _ in range(3): os.close(os.open(root + "/now/x", os.O_RDONLY))
""",
        {"two": 3},
    ),
    "below a descriptor": (
        """
for folder, name in (("outside", "x"), ("two", "x"), ("two", "inner/x"), (".", "one/data.bin"), ("outside", "to_folder/deep/file.bin")):
    fd = os.open(root + "/" + folder, os.O_PATH); touch(name, dir_fd=fd); os.close(fd)
""",
        {"one": 2, "two": 1, "inner": 1},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_is_told_right(case: str, tmp_path: Path) -> None:
    program, expected = CASES[case]
    root = tmp_path / "tree"
    plant(root)
    found = run_recorded(python(START + program, root), tmp_path / "record", tiers_below(root))
    if b"unshare" in found.ended.err:
        pytest.skip("threads may not have folders of their own here")
    assert (found.ended.code, found.ended.err) == (0, b"")
    counted: collections.Counter[str] = collections.Counter()
    for (tier, kind), ops in ops_of(found.totals).items():
        counted[tier] += ops if kind == "open" else 0
    paths_opened = {"below a descriptor": {"two": 2}}.get(case, {})  # the folders themselves
    assert counted == collections.Counter(expected) + collections.Counter(paths_opened)
    if case not in ("links to a tier, from a tier, and to a file of it", "a link that is turned round"):
        stats = {tier: ops for (tier, kind), ops in ops_of(found.totals).items() if kind == "stat"}
        assert stats == expected


def test_a_tier_that_is_mounted_elsewhere_too(tmp_path: Path) -> None:
    """By its text: a bind mount of a tier is not below the tier's path, and what is mounted below it is."""
    root = tmp_path / "tree"
    plant(root)
    mounted = f"mount --bind {root}/two {root}/outside/to && mount --bind {root}/outside {root}/one/sub && exec"
    (root / "outside/to").mkdir()
    program = python(START + 'touch(root + "/outside/to/x"); os.chdir(root + "/one/sub"); touch("x")', root)
    command = ["unshare", "--mount", "sh", "-c", f'{mounted} "$@"', "sh", *program]
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False).returncode:
        pytest.skip("needs root and mount namespaces")
    found = run_recorded(command, tmp_path / "record", tiers_below(root))
    assert (found.ended.code, found.ended.err) == (0, b"")
    assert ops_of(found.totals)["one", "open"] == 1
    assert ops_of(found.totals).get(("two", "open"), 0) == 0


def test_few_system_calls(tmp_path: Path) -> None:
    """A stat of a relative path takes one more (getcwd), an open of a file on no tier none."""
    root, rounds = tmp_path / "tree", 500
    plant(root)
    write_config(tmp_path / "record", tiers_below(root))
    program = (
        f"os.chdir(root)\nfor _ in range({rounds}): os.stat('outside/x'); os.close(os.open(root + '/outside/x', 0))"
    )
    calls = {}
    for name, record in (("bare", None), ("recorded", tmp_path / "record")):
        log = tmp_path / f"{name}.log"
        subprocess.run([strace(), "-o", log, *python(START + program, root)], check=True, env=environment(record))
        calls[name] = collections.Counter(re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE))
    added = {name: calls["recorded"][name] - calls["bare"][name] for name in calls["recorded"] | calls["bare"]}
    opens = added.pop("openat2") + added.pop("openat")
    assert added.pop("getcwd") == pytest.approx(rounds, abs=50)
    assert opens == pytest.approx(0, abs=200)  # of the start
    assert {name: more for name, more in added.items() if more > 200} == {}
