"""The shim counts what strace counts: operations and bytes per tier and kind, for programs of many kinds."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.native_truth import INSIDE, Case, compare, python, shell
from tierscope.output.store import RunStore
from tierscope.trace.trace import RunKey

pytestmark = pytest.mark.native

PYTHON_FILES = """
with open(root + "/one/data.bin", "rb") as file:
    file.read(10); file.seek(5000); file.read(); file.tell()
with open(root + "/one/data.bin", "rb", buffering=0) as file:
    while file.read(7777): pass
with open(root + "/one/text.csv") as file:
    for line in file: pass
with open(root + "/two/made", "w") as file:
    file.write("x" * 100_000); file.flush(); os.fsync(file.fileno())
with open(root + "/two/made", "r+b") as file:
    file.seek(50); file.write(b"yy"); file.truncate(60); file.seek(0); file.read()
try:
    open(root + "/two/inner/missing")
except FileNotFoundError:
    pass
"""
PYTHON_OS = """
fd = os.open(root + "/one/data.bin", os.O_RDONLY)
os.read(fd, 100); os.pread(fd, 200, 50); os.preadv(fd, [bytearray(10), bytearray(300)], 7); os.readv(fd, [bytearray(99)])
os.lseek(fd, 0, os.SEEK_END); os.read(fd, 1); os.fstat(fd); os.stat(fd)
copy = os.dup(fd); os.close(fd); os.pread(copy, 10, 0); os.close(copy)
fd = os.open(root + "/two/made", os.O_RDWR | os.O_CREAT, 0o600)
os.write(fd, b"x" * 1000); os.pwrite(fd, b"y" * 10, 5); os.writev(fd, [b"a", b"bc"]); os.fsync(fd); os.fdatasync(fd); os.close(fd)
os.stat(root + "/one/data.bin"); os.lstat(root + "/two/out"); os.access(root + "/one/missing", os.R_OK); os.path.exists(root + "/two/inner/x")
folder = os.open(root + "/two", os.O_RDONLY); os.stat("x", dir_fd=folder); os.close(os.open("inner/x", os.O_RDONLY, dir_fd=folder)); os.close(folder)
"""
DELETED = """
fd = os.open(root + "/one/data.bin", os.O_RDONLY)
os.unlink(root + "/one/data.bin")
os.read(fd, 1000); os.fstat(fd)
if os.fork() == 0:
    os.read(fd, 500); os.execv(sys.executable, [sys.executable, "-c", f"import os; os.set_inheritable({fd}, True); os.read({fd}, 5)"])
os.wait()
os.set_inheritable(fd, True)
if os.fork() == 0:
    os.execv(sys.executable, [sys.executable, "-c", f"import os; os.read({fd}, 70)"])
os.wait()
os.close(fd)
"""
LINKS = """
for name in ("outside/to_file", "outside/to_folder/deep/file.bin", "outside/chain/deep/file.bin", "outside/to_inner/x", "one/into_two", "two/out",
             "outside/../one/data.bin", "two/inner/../x", "two//inner///x", "./one/./data.bin", "outside/to_inner/../x", "two/nowhere"):
    try:
        with open(root + "/" + name, "rb", buffering=0) as file: file.read(1000)
    except FileNotFoundError: pass
os.chdir(root + "/outside/to_folder")
for name in ("deep/file.bin", "../data.bin", "deep/../../data.bin", "missing/file", "deep/missing"):
    try:
        with open(name, "rb", buffering=0) as file: file.read(100)
    except OSError: pass
os.chdir(root)
for name in ("one/data.bin", "outside/chain/deep/file.bin", "one", "two", "outside", "two/inner", ".", ".."): os.stat(name)
"""
H5PY = """
import h5py, numpy as np
values = np.arange(200_000, dtype="f4").reshape(1000, 200)
with h5py.File(root + "/two/made.h5", "w") as file:
    file["plain"] = values
    file.create_dataset("chunked", data=values, chunks=(100, 50))
    file.create_dataset("packed", data=values, chunks=(100, 200), compression="gzip")
with h5py.File(root + "/two/made.h5", "r") as file:
    for name in ("plain", "chunked", "packed"):
        assert (file[name][...] == values).all(); file[name][5:10, 3]; file[name][::100]
"""
NUMPY = """
import numpy as np
values = np.arange(50_000, dtype="f8")
np.save(root + "/two/made.npy", values)
assert (np.load(root + "/two/made.npy") == values).all()
values[:3000].tofile(root + "/two/made.raw")
assert (np.fromfile(root + "/two/made.raw") == values[:3000]).all()
np.fromfile(root + "/two/made.raw", count=100, offset=801)
np.fromfile(root + "/one/data.bin", dtype="u1", count=5000, offset=8192)
with open(root + "/two/made.raw", "rb") as file:
    file.read(80); np.fromfile(file, count=10); np.fromfile(file, count=500); file.read(8)
np.savez(root + "/two/made.npz", a=values, b=values[:10]); np.savez_compressed(root + "/two/packed.npz", a=values)
for name in ("made", "packed"):
    with np.load(f"{root}/two/{name}.npz") as file: [file[key].sum() for key in file]
np.load(root + "/two/made.npy", mmap_mode="r")[:10].sum()
"""
PANDAS = """
import pandas as pd
for engine in ("c", "python"):
    frame = pd.read_csv(root + "/one/text.csv", engine=engine)
    frame.to_csv(f"{root}/two/{engine}.csv")
    frame.to_csv(f"{root}/two/{engine}.csv.gz"); pd.read_csv(f"{root}/two/{engine}.csv.gz", engine=engine)
for part in pd.read_csv(root + "/one/text.csv", chunksize=1000): pass
pd.read_csv(root + "/one/text.csv", memory_map=True)
"""
LMDB = """
import lmdb
with lmdb.open(root + "/two/made.lmdb", map_size=1 << 24) as base:
    with base.begin(write=True) as change:
        for number in range(2000): change.put(b"%08d" % number, b"v" * 100)
    with base.begin() as view: assert sum(1 for _ in view.cursor()) == 2000
with lmdb.open(root + "/two/made.lmdb", readonly=True) as base:
    with base.begin() as view: view.get(b"00000007")
"""
POOL = """
import multiprocessing
def work(number):
    with open(root + "/one/data.bin", "rb", buffering=0) as file:
        file.seek(number * 1000); return len(file.read(1000 + number))
if __name__ == "__main__":
    kept = open(root + "/one/text.csv", "rb", buffering=0); kept.read(100)
    with multiprocessing.get_context("METHOD").Pool(3) as pool:
        assert sum(pool.map(work, range(40), chunksize=1)) == 40_780
        pool.close(); pool.join()
    kept.read(100)
"""
SUBPROCESS = """
import subprocess
first, second = os.open(root + "/one/data.bin", os.O_RDONLY), os.open(root + "/two/x", os.O_RDONLY)
os.set_inheritable(second, True)
program = "import os, sys; [os.read(int(fd), 100) for fd in sys.argv[1:]]"
def child(*fds, **options):
    subprocess.run([sys.executable, "-c", program, *map(str, fds)], check=True, **options)
    os.read(first, 10); os.read(second, 20)
child()
child(second, close_fds=False)
child(first, pass_fds=[first])
child(first, second, pass_fds=[first, second])
child(0, stdin=first)
child(0, stdin=first, close_fds=False)
child(stdin=first)
child(0, stdin=first, preexec_fn=lambda: None)
child(cwd=root + "/one")
with open(root + "/two/output", "wb") as output:
    subprocess.run([sys.executable, "-c", "print('x' * 5000)"], stdout=output, check=True)
"""
PIPELINE = """
import subprocess
subprocess.run("cat < one/text.csv | tail -n 3 > two/tail", shell=True, cwd=root, check=True)
"""
SPAWN = """
fd = os.open(root + "/one/data.bin", os.O_RDONLY); os.read(fd, 10); os.set_inheritable(fd, True)
program = f"import os; os.read(0, 30); os.read({fd}, 40)"
actions = [(os.POSIX_SPAWN_OPEN, 0, root + "/two/x", os.O_RDONLY, 0), (os.POSIX_SPAWN_DUP2, fd, 90), (os.POSIX_SPAWN_CLOSE, 90)]
pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], os.environ, file_actions=actions)
assert os.waitpid(pid, 0)[1] == 0
os.read(fd, 20); os.close(fd)
os.system(f"cat {root}/two/x > {root}/two/y")
os.popen(f"cat {root}/one/text.csv").read()
"""
EXEC = """
fd = os.open(root + "/one/data.bin", os.O_RDONLY); os.read(fd, 10)
kept, gone = os.dup(fd), os.open(root + "/two/x", os.O_RDONLY)
for one in (fd, kept): os.set_inheritable(one, True)
program = f"import os; os.read({fd}, 30); os.pread({kept}, 40, 0); os.close({fd}); os.close({kept}); os.close(os.open('/dev/null', 0))"
os.execv(sys.executable, [sys.executable, "-c", program])
"""
FORKS = """
fd = os.open(root + "/one/data.bin", os.O_RDONLY)
for number in range(3):
    if os.fork() == 0:
        os.read(fd, 10 + number); os.close(fd)
        with open(root + "/two/x", "rb", buffering=0) as file: file.read(5)
        if number == 2 and os.fork() == 0:
            os.stat(root + "/one/data.bin")
        os._exit(0)
    os.read(fd, 100)
for _ in range(3): os.wait()
"""
THREADS = """
import threading
def work(number):
    for turn in range(50):
        with open(root + "/one/data.bin", "rb", buffering=0) as file: file.read(100 * number + turn)
        with open(f"{root}/two/made-{number}", "ab", buffering=0) as file: file.write(b"x" * turn)
threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""
COPYING = """
import shutil
shutil.copyfile(root + "/one/data.bin", root + "/two/copy")
shutil.copy2(root + "/two/copy", root + "/two/inner/copy")
shutil.copy(root + "/one/data.bin", root + "/outside/copy")
with open(root + "/outside/x", "rb") as source, open(root + "/two/sent", "wb") as target:
    while os.copy_file_range(source.fileno(), target.fileno(), 1000): pass
"""
REUSED = """
import socket
fd = os.open(root + "/one/data.bin", os.O_RDONLY); os.read(fd, 10); os.close(fd)
one, other = socket.socketpair()
assert fd in (one.fileno(), other.fileno())
os.write(one.fileno(), b"hello"); os.read(other.fileno(), 5); one.close(); other.close()
fd = os.open(root + "/two/x", os.O_RDONLY); os.read(fd, 33)
ends = os.pipe(); os.dup2(ends[0], fd); os.write(ends[1], b"x" * 50); os.read(fd, 50); os.close(fd)
os.dup2(os.open(root + "/one/data.bin", os.O_RDONLY), ends[0]); os.read(ends[0], 44)
for path in (root + "/one", root + "/two"):
    folder = os.open(path, os.O_RDONLY)
    with os.scandir(folder) as found: list(found)
    os.close(folder)
    list(os.scandir(path)); os.listdir(path)
folder = os.open(root + "/one", os.O_RDONLY)
ends = os.pipe(); os.write(ends[1], b"x"); os.read(ends[0], 1)
"""
MODES = """
os.umask(0o027)
os.close(os.open(root + "/one/masked", os.O_CREAT | os.O_WRONLY, 0o666))
os.umask(0)
os.close(os.open(root + "/one/open", os.O_CREAT | os.O_WRONLY, 0o4777))
print([oct(os.stat(root + "/one/" + name).st_mode) for name in ("masked", "open")])
for flags in (os.O_CREAT | os.O_EXCL, os.O_RDWR | os.O_DIRECTORY, os.O_NOFOLLOW):
    try: os.open(root + "/one/into_two", flags)
    except OSError as error: print(error.errno)
if os.getuid() == 0:
    os.chmod(root + "/one/data.bin", 0o600); os.chmod(root + "/two/inner", 0o700); os.chmod(root, 0o755)
    os.setuid(65534)
    for name in ("one/data.bin", "two/inner/x", "two/x", "one/new"):
        try: os.read(os.open(root + "/" + name, os.O_RDWR | os.O_CREAT), 5)
        except OSError as error: print(error.errno)
"""

CASES = {
    "python files": python(PYTHON_FILES),
    "python os": python(PYTHON_OS),
    "deleted": python(DELETED),
    "links": python(LINKS),
    "h5py": python(H5PY, INSIDE),
    "numpy": python(NUMPY, INSIDE),
    "pandas": python(PANDAS, INSIDE),
    "lmdb": python(LMDB, INSIDE),  # looks into its file's head through a stream
    "fork pool": python(POOL.replace("METHOD", "fork")),
    "subprocess": python(SUBPROCESS),
    "pipeline": python(PIPELINE, INSIDE),
    "posix_spawn": python(SPAWN),
    "exec": python(EXEC),
    "forks": python(FORKS),
    "threads": python(THREADS),
    "copying": python(COPYING),
    "reused descriptors": python(REUSED, INSIDE),
    "inherited stdin": python("os.read(0, 100); os.read(0, 100)", stdin="one/data.bin"),
    "stdin only closed": python("os.close(0)", stdin="one/data.bin"),
    "cat": shell("cat one/data.bin one/text.csv two/x outside/to_file > two/all; cat two/nowhere; true"),
    "cp": shell("cp one/data.bin two/copy && cp two/copy outside/copy && cp outside/copy one/back"),
    "cp -r": shell("cp -r one/sub two/sub", ("stat",)),  # of directories that are also listed
    "redirections": shell(
        "while read line; do echo $line; done < two/short > two/long; cat < one/text.csv | sort -r | head -n 5 >> two/tail;"
        " exec 7< two/x; head -c 10 <&7 > /dev/null; wc -c <&7; read first < one/text.csv; echo $first > one/first",
        INSIDE,
    ),
    "tools": shell(
        "grep -c x1 one/text.csv; tail -c 100 one/data.bin | od | tail -n 1; dd if=one/data.bin of=two/dd bs=1000 count=20 2>/dev/null;"
        " md5sum one/data.bin two/x | cut -d ' ' -f 1; sed -n 5p one/text.csv; awk 'END { print NR }' one/text.csv; touch two/touched; rm -r one/sub",
        INSIDE,
    ),
    "find and tar": shell(
        "find one two -name '*.bin' | sort; tar cf two/packed.tar -C one data.bin && tar xf two/packed.tar -C two/inner"
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_shim_counts_what_strace_counts(name: str, tmp_path: Path) -> None:
    for module in ("h5py", "pandas", "lmdb"):
        if module == name:
            pytest.importorskip(module)
    assert compare(CASES[name], tmp_path), "the program did nothing on a tier"


def test_modes_and_files_that_may_not_be_read(public_place: Path) -> None:
    compare(python(MODES), public_place)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_pools_that_start_anew(method: str, tmp_path: Path) -> None:
    """They import the program again: it has to be a file."""
    program = tmp_path / "pool.py"
    program.write_text(f"import os, sys\nroot = sys.argv[1]\n{POOL.replace('METHOD', method)}")
    compare(Case(lambda root: [sys.executable, str(program), str(root)]), tmp_path)


def test_ranks_of_a_traced_study_are_seen(tmp_path: Path) -> None:
    """Processes that are started under the recorder and read with the native loader."""
    tierscope = [sys.executable, "-m", "tierscope.cli.main"]
    keys = ("sweep={}", "data_loader=native", "num_files_train=32", "nodes=1", "ranks_per_node=2", "epochs=1")
    study = [
        "run",
        "demo",
        "--out",
        str(tmp_path / "study"),
        "--quiet",
        *(word for key in keys for word in ("--set", key)),
    ]
    command = ["trace", "--tier", f"all={tmp_path}", "--out", str(tmp_path / "out"), "--json", "--", *tierscope, *study]
    done = subprocess.run([*tierscope, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen, own = (
        RunStore(str(tmp_path / name)).load(RunKey(0, 1)).io.filter(pl.col("kind") == "read")["bytes"].sum()
        for name in ("out", "study")
    )
    assert seen >= own > 0
