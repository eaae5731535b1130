"""DLIO beside us: reading the same files, generating as many bytes, and how long each takes to start.

DLIO is run by an environment of its own (`make bench-peers`), one rank, no compute, in a process per measurement. Its speeds are the
ones that it reports itself, so without its start-up: of an epoch, from the first step's start to the last one's end. The first epoch starts its
workers: where it has any, the faster of two counts.
Its loader verifies the archives' checksums, as NumPy does. Files are in memory.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.common import Result, interleaved, left_out, memory_folder, ratio, spread
from benchmarks.generation import staged

ENVIRONMENT = ".venv-dlio"
INSTALL = "make bench-peers"
ROUNDS = 5
SIDE = 362  # DLIO's samples are squares of bytes: about 128 KiB
FILES = 1500
GOALS = {True: 5.0, False: 10.0}  # × DLIO's speed, with our checksums verified and not
GOAL_GENERATION = 5.0
GOAL_START_SECONDS = 1.0
_ROOT = Path(__file__).resolve().parents[1]
_PYTHON = _ROOT / ENVIRONMENT / "bin" / "python"
_VARIANTS = {"stock": "DLIO", "no-index": "DLIO less its debug index"}
_STUDY = """
study: start
workload:
  dataset: {{format: npz, num_files_train: {files}, record_length_bytes: {nbytes}}}
  reader: {{batch_size: 1}}
  train: {{epochs: 1}}
system:
  tiers: {{gfs: {{path: "{{out}}/gfs"}}}}
"""


def why_not() -> str:
    """The reason that DLIO cannot be run, or nothing."""
    if not _PYTHON.exists():
        return f"there is no {ENVIRONMENT}"
    command = [str(_PYTHON), "-c", "import dlio_benchmark"]
    tried = subprocess.run(command, check=False, capture_output=True, text=True, cwd=_ROOT)
    return tried.stderr.strip().splitlines()[-1] if tried.returncode else ""


def dlio() -> Iterator[Result]:
    if reason := why_not():
        yield left_out("DLIO's generation and start-up", reason, INSTALL)
        return
    yield from _generation()
    yield from _startup()


# ---- reading, called by peers on its own files ----


def reading(
    label: str, folder: Path, files: int, nbytes: int, batch: int, ours: Callable[[bool, int], float]
) -> Iterator[Result]:
    """`ours`: the seconds that we take for the files of the folder, checked or not, with so many reading threads."""
    if reason := why_not():
        yield left_out(f"{label}: DLIO", reason, INSTALL)
        return
    for threads in (1, 0):
        contenders: dict[str, Callable[[], float]] = {
            "checked": lambda threads=threads: ours(True, threads),  # type: ignore[misc]
            "unchecked": lambda threads=threads: ours(False, threads),  # type: ignore[misc]
            **{
                name: lambda name=name, threads=threads: _read(name, folder, (files, nbytes, batch, threads))  # type: ignore[misc]
                for name in _VARIANTS
            },
        }
        times = interleaved(contenders, ROUNDS)
        workers = f"{threads} worker" if threads else "no worker"
        for name, what in _VARIANTS.items():
            title = f"{label}: {what}, {workers}"
            yield spread(title, [files / seconds for seconds in times[name]], "samples/s")
            for check, goal in GOALS.items():
                mine = "checked" if check else "unchecked"
                note = "" if name == "stock" else "(not what its users have)"
                yield ratio(
                    f"{label}: ours, {mine} / that", times[name], times[mine], goal if name == "stock" else None, note
                )


def _read(variant: str, folder: Path, numbers: tuple[int, int, int, int]) -> float:
    """Seconds for all files, at the speed of DLIO's fastest epoch."""
    files, nbytes, batch, threads = numbers
    with memory_folder() as out:
        (out / "data" / "valid").mkdir(parents=True)
        (out / "data" / "train").symlink_to(folder)
        keys = {"reader.batch_size": batch, "reader.read_threads": threads, "train.epochs": 2 if threads else 1}
        run_dlio(out, files, nbytes, {**keys, "workflow.train": True}, variant)
        return files / samples_per_second(json.loads((out / "out" / "summary.json").read_text(encoding="utf-8")))


def samples_per_second(summary: Mapping[str, Any]) -> float:
    """Of the fastest epoch."""
    return float(max(summary["metric"]["train_throughput_samples_per_second"]))


# ---- generation and start-up ----


def _generation() -> Iterator[Result]:
    nbytes, whole = SIDE**2, list[float]()

    def theirs() -> float:
        with memory_folder() as out:
            start = time.monotonic()
            run_dlio(out, FILES, nbytes, {"workflow.generate_data": True, "workflow.train": False})
            whole.append(time.monotonic() - start)
            written = [file.stat().st_size for file in (out / "data" / "train").iterdir()]
            assert len(written) == FILES
            assert min(written) >= nbytes
            return generation_seconds((out / "out" / "dlio.log").read_text(encoding="utf-8"))

    def ours() -> float:
        with memory_folder() as out:
            return staged(out / "ours", "npz", FILES, nbytes)

    def our_command() -> float:
        with memory_folder() as out:
            return _tierscope(out, "generate", FILES, nbytes, cache)

    with memory_folder() as cache:
        times = interleaved({"DLIO": theirs, "ours": ours, "our command": our_command}, ROUNDS)
    logged, size = times["DLIO"], FILES * nbytes / 2**20
    label = f"generating {FILES} npz of {nbytes:,} bytes"
    yield spread(f"{label}: DLIO, by its log", [size / seconds for seconds in logged], "MiB/s")
    yield spread(f"{label}: ours", [size / seconds for seconds in times["ours"]], "MiB/s")
    yield ratio(f"{label}: ours / DLIO", logged, times["ours"], GOAL_GENERATION)
    yield ratio(f"{label}: tierscope generate / DLIO, start-up and all", whole[1:], times["our command"])


def generation_seconds(log: str) -> float:
    """From the line that begins it to the one that ends it."""
    start, end = (re.search(rf"(\S+) {line}", log) for line in ("Starting data generation", "Generation done"))
    if not start or not end:
        raise ValueError("DLIO's log does not say when generation began and ended")
    return (datetime.fromisoformat(end[1]) - datetime.fromisoformat(start[1])).total_seconds()


def _startup() -> Iterator[Result]:
    """Until the first byte is written, and until one tiny file was written, read and reported on."""
    firsts: dict[str, list[float]] = {"DLIO": [], "ours": []}

    def of(name: str, run: Callable[[Path], object], pattern: str) -> Callable[[], float]:
        def measure() -> float:
            with memory_folder() as out:
                begun, start = time.time(), time.monotonic()
                run(out)
                seconds = time.monotonic() - start
                (file,) = out.glob(pattern)
                firsts[name].append(file.stat().st_mtime - begun)
                return seconds

        return measure

    keys = {"workflow.generate_data": True, "workflow.train": True, "reader.batch_size": 1}
    with memory_folder() as cache:
        times = interleaved(
            {
                "DLIO": of("DLIO", lambda out: run_dlio(out, 1, 64**2, keys), "data/train/*.npz"),
                "ours": of("ours", lambda out: _tierscope(out, "run", 1, 64**2, cache), "ours/gfs/*/*.npz"),
            },
            ROUNDS,
        )
    note = "(without TensorFlow, which its users wait for too)"
    yield spread("DLIO: start to first file", firsts["DLIO"][1:], "s", note)
    first = spread("tierscope run: start to first file", firsts["ours"][1:], "s")
    yield replace(first, goal=f"≤ {GOAL_START_SECONDS:g} s", met=first.value <= GOAL_START_SECONDS)
    yield ratio("tierscope run / DLIO", firsts["DLIO"][1:], firsts["ours"][1:])
    yield spread("DLIO: one tiny file, all of it", times["DLIO"], "s")
    yield spread("tierscope run: one tiny file, all of it, page and figures", times["ours"], "s")
    yield ratio("tierscope run / DLIO", times["DLIO"], times["ours"])


# ---- running either ----


def run_dlio(out: Path, files: int, nbytes: int, keys: Mapping[str, object], variant: str = "stock") -> None:
    """Data in out/data, results in out/out."""
    settings: dict[str, object] = {
        "workflow.evaluation": False,
        "dataset.data_folder": out / "data",
        "dataset.num_files_train": files,
        "dataset.num_files_eval": 0,
        "dataset.num_subfolders_train": 0,
        "dataset.num_subfolders_eval": 0,
        "dataset.record_length": nbytes,
        "train.epochs": 1,
        "train.computation_time": 0,
        **keys,
    }
    overrides = [f"++workload.{key}={value}" for key, value in settings.items()]
    script = str(_ROOT / "benchmarks" / "peer_dlio.py")
    command = [str(_PYTHON), script, variant, "workload=default", f"hydra.run.dir={out / 'out'}", *overrides]
    _run(command, out, dict(os.environ))


def _tierscope(out: Path, command: str, files: int, nbytes: int, cache: Path) -> float:
    """Seconds. Modules are compiled once, into the cache, as an installation would have done."""
    (out / "study.yaml").write_text(_STUDY.format(files=files, nbytes=nbytes), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(cache)
    words = [sys.executable, "-m", "tierscope.cli.main", command, "study.yaml", "--out", "ours", "--quiet"]
    start = time.monotonic()
    _run(words, out, environment)
    return time.monotonic() - start


def _run(command: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=environment)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{last}")
