"""The C library on aarch64, whose assembly and memory order are its own: cross-compiled, and run in an emulator."""

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tierscope.native import setup, state
from tierscope.native.lanes import NativeLane
from tierscope.output.durable import boot_id
from tierscope.trace.ops import KINDS

pytestmark = pytest.mark.native
COMPILER, EMULATOR, SYSROOT = "aarch64-linux-gnu-gcc", "qemu-aarch64", "/usr/aarch64-linux-gnu"
ROOT = Path(__file__).parent.parent.parent
FLAGS = ["-std=gnu11", "-O2", "-fPIC", "-shared", "-fexceptions", "-ftls-model=initial-exec"]
NBYTES = 200_000  # four reads of 64 KiB, and one that finds the end


def test_what_is_counted_is_what_was_done(tmp_path: Path) -> None:
    for tool, package in ((COMPILER, "gcc-aarch64-linux-gnu, libc6-dev-arm64-cross"), (EMULATOR, "qemu-user")):
        if not shutil.which(tool):
            pytest.skip(f"{tool} is missing (Debian's {package})")
    library, program, data = tmp_path / "libtierscope.so", tmp_path / "mixed", tmp_path / "data"
    if built := os.environ.get("TIERSCOPE_AARCH64_LIBRARY"):  # a wheel's
        library = Path(built)
    else:
        sources = sorted(str(path) for path in (ROOT / "src/tierscope/native/c").glob("*.c"))
        options = [*FLAGS, "-fvisibility=hidden", "-pthread"]
        subprocess.run([COMPILER, *options, "-o", library, *sources, "-ldl"], check=True)
    mixed = ROOT / "tests/integration/programs/mixed.c"
    subprocess.run([COMPILER, "-O2", "-pthread", "-o", program, mixed], check=True)
    data.write_bytes(os.urandom(NBYTES))
    folder = tmp_path / "record"
    folder.mkdir()
    setup.write_setup(str(folder), [setup.TierSetup((str(data),))], 0, boot_id())
    variables = ["-E", f"LD_PRELOAD={library}", "-E", f"TIERSCOPE_RECORD={folder}"]
    subprocess.run([EMULATOR, "-L", SYSROOT, *variables, program, data], check=True, timeout=120)
    ops: Counter[str] = Counter()
    nbytes: Counter[str] = Counter()
    for path in sorted(folder.glob("*.state")):
        head = state.read_head(str(path), 1)
        assert head is not None
        for lane in state.read_chunks(head):
            assert isinstance(lane, NativeLane)
            assert lane.whole
            for kind, cell in zip(KINDS, lane.cells, strict=True):
                ops[kind] += int(cell["ops"])
                nbytes[kind] += int(cell["bytes"])
    files = 5 * 50  # of four threads and a child
    assert ops == {**dict.fromkeys(KINDS, 0), "open": files + 1, "read": 5 * files + 1, "close": files + 1}
    assert nbytes["read"] == files * NBYTES + 100
    assert len(list(folder.glob("*.state"))) == 2
