"""This version beside another commit, in one run: `make bench BESIDE=COMMIT`.

Both are installed into folders of their own (build/beside), so that neither has an advantage, and are used through their commands alone,
which other versions have too. Rounds are interleaved; what is compared is the lowest decile of all passes, because what else goes on
adds to their times and never takes away; the range is that of pairs of rounds, by their medians. A ratio above 1 means that this version is
faster. BESIDE=HEAD on a clean tree shows how far two equal versions come out apart.

    recorder   nanoseconds that a C loop takes for its files under `trace`, as it counts them itself; and, where valgrind is installed,
               the instructions that it executes for a file, which no other load changes
    loader     seconds of an epoch that `run` reads on memory, as `analyze` tells them
    imports    CPU seconds of `analyze` on a large Darshan log and on a DFTracer trace
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from benchmarks.big_logs import Job, real_log, write_darshan, write_dftracer
from benchmarks.common import Result, compile_loop, interleaved, left_out, memory_folder, ratio

GOAL = 0.97
ROUNDS = 15
FEW_ROUNDS = 11  # of what takes seconds
LOOPS = 5  # of one traced command: it takes longer to start than to read
EPOCHS = 12
_FILES, _BATCH = 6000, 12
_KEPT = Path("build/beside")


@dataclass(frozen=True, slots=True)
class Version:
    """An installed version, used through its commands."""

    folder: Path

    def command(self, *words: str | Path) -> str:
        """What it printed."""
        env = {**os.environ, "PYTHONPATH": str(self.folder), "NO_COLOR": "1"}
        line = [sys.executable, "-P", "-m", "tierscope.cli.main", *map(str, words)]
        done = subprocess.run(line, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(line)} in {self.folder}: {done.stderr}")
        return done.stdout


def beside(commit: str) -> Iterator[Result]:
    """A line for each of the above."""
    versions = {"that": _installed(commit), "this": _installed(None)}
    yield from _recorder(versions)
    yield from _loader(versions)
    yield from _imports(versions)


def _installed(commit: str | None) -> Version:
    """The commit, or the working tree for None, which is installed anew each time."""
    name = (
        subprocess.run(["git", "rev-parse", commit], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        if commit
        else "this"
    )
    folder = (_KEPT / name).absolute()
    if commit is None:
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix="tierscope-bench-") as scratch:
            source = Path(scratch)
            listed = ["git", "archive", name] if commit else ["sh", "-c", "git ls-files -z | tar -c --null -T -"]
            with subprocess.Popen(listed, stdout=subprocess.PIPE) as packed:
                subprocess.run(["tar", "-x", "-C", source], stdin=packed.stdout, check=True)
            new = folder.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            subprocess.run(
                [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", new, source], check=True
            )
            new.rename(folder)
    return Version(folder)


def _compared(name: str, versions: dict[str, Version], run: Callable[[Version], list[float]], rounds: int) -> Result:
    """`run` gives the seconds of every pass of a round."""
    passes: dict[str, list[float]] = {which: [] for which in versions}

    def median_of(which: str, version: Version) -> float:
        seconds = run(version)
        passes[which] += seconds
        return statistics.median(seconds)

    times = interleaved({which: partial(median_of, which, version) for which, version in versions.items()}, rounds)
    that, this = (statistics.quantiles(passes[which], n=10, method="inclusive")[0] for which in ("that", "this"))
    pairs = ratio(name, times["that"], times["this"])
    return replace(pairs, value=that / this, goal=f"≥ {GOAL}", met=that / this >= GOAL)


def _recorder(versions: dict[str, Version]) -> Iterator[Result]:
    with memory_folder() as folder:
        program = compile_loop(folder)
        for nbytes in (128 << 10, 4 << 10):
            data = folder / f"{nbytes}"
            data.mkdir()
            for file in range(_FILES if nbytes < 1 << 16 else _FILES // 4):
                (data / f"{file:09d}.raw").write_bytes(bytes(nbytes))
            run = partial(_traced, program, data, nbytes, folder)
            yield _compared(f"recorder: open + {nbytes >> 10} KiB read + close", versions, run, ROUNDS)
        yield _instructions(program, data, nbytes, folder, versions)


def _traced(program: str, data: Path, nbytes: int, folder: Path, version: Version) -> list[float]:
    """Seconds of the passes of one traced command."""
    files = len(os.listdir(data))
    passes = f'for i in $(seq {LOOPS}); do "{program}" "{data}" .raw {files} {nbytes}; done'
    out = folder / "out"
    said = version.command("trace", "--tier", f"gfs={data}", "--out", out, "--", "sh", "-c", passes)
    shutil.rmtree(out)
    return [int(line) / 1e9 for line in said.splitlines() if line.isdecimal()]


def _instructions(program: str, data: Path, nbytes: int, folder: Path, versions: dict[str, Version]) -> Result:
    """Of a file more, in the program and the recorder; the kernel's are not counted."""
    name = "recorder: instructions per open + read + close"
    if shutil.which("valgrind") is None:
        return left_out(name, "valgrind is not installed", "apt-get install valgrind")
    few, many = 200, 1200

    def counted(version: Version, files: int) -> int:
        out, report = folder / "out", folder / "callgrind"
        valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={report}"]
        version.command(
            "trace",
            "--tier",
            f"gfs={data}",
            "--out",
            out,
            "--",
            *valgrind,
            program,
            data,
            ".raw",
            str(files),
            str(nbytes),
        )
        shutil.rmtree(out)
        return int(report.read_text(encoding="utf-8").rpartition("totals:")[2])

    that, this = (
        (counted(versions[which], many) - counted(versions[which], few)) / (many - few) for which in ("that", "this")
    )
    note = f"{this:,.0f} beside {that:,.0f}"
    return Result(name, that / this, "×", that / this, that / this, 1, f"≥ {GOAL}", that / this >= GOAL, note)


def _loader(versions: dict[str, Version]) -> Iterator[Result]:
    for form, nbytes in (("raw", 128 << 10), ("npz", 16 << 10)):
        with memory_folder() as folder:
            study = folder / "study.yaml"
            study.write_text(_study(folder, form, nbytes), encoding="utf-8")
            run = partial(_epoch_seconds, study, folder / "out")
            yield _compared(f"loader: {nbytes >> 10} KiB {form} files", versions, run, FEW_ROUNDS)


def _study(folder: Path, form: str, nbytes: int) -> str:
    return f"""study: loader
workload:
  dataset: {{num_files_train: {_FILES}, record_length_bytes: {nbytes}, format: {form}}}
  reader: {{batch_size: {_BATCH}, read_threads: 1, evict: false}}
  train: {{epochs: {EPOCHS}}}
system:
  nodes: 1
  ranks_per_node: 1
  tiers:
    lfs: {{path: "{folder}/lfs", visible_to: node}}
    gfs: {{path: "{folder}/gfs", visible_to: global}}
sweep: {{placement.cache_rate: 0%}}
"""


def _epoch_seconds(study: Path, out: Path, version: Version) -> list[float]:
    """Of all epochs but the first. Nothing is evicted: files in memory cannot be, and older versions did it between epochs, newer ones as part of them."""
    shutil.rmtree(out, ignore_errors=True)
    version.command("run", study, "--out", out)
    epochs = json.loads(version.command("analyze", out, "--json"))["points"]
    return [float(epoch["epoch_seconds"]) for epoch in epochs[1:]]


def _imports(versions: dict[str, Version]) -> Iterator[Result]:
    with memory_folder() as folder:
        if (real := real_log()) is not None:
            log = folder / "me_python_id1537455-1_4-21-1-1_1.darshan"
            write_darshan(log, real, 701)
            yield _compared("imports: Darshan log of 150,014 records", versions, partial(_analyzed, log), FEW_ROUNDS)
        trace = folder / "trace.pfw"
        write_dftracer(trace, folder / "trace.pfw.gz", Job(epochs=5, files=4000))
        yield _compared("imports: DFTracer trace", versions, partial(_analyzed, trace), FEW_ROUNDS)


def _analyzed(log: Path, version: Version) -> list[float]:
    """CPU seconds, of all its processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    version.command("analyze", log, "--tier", "gfs=/", "--json", "--force")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return [after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime]
