"""DLIO's run, an application and ours, each under `tierscope trace --ops` on the same emulated tier: from command lines to Characters.

Only files with samples count, on either side: our marks and tables of checksums are no data. The tier is emulated by the recorder for whichever program runs, so times are
those of configured rates and not of this machine's memory; programs that wait less often are later by what a loaded machine adds.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl

from tierscope.analysis.character_ops import OpList
from tierscope.analysis.characterise import Character, TraceExtras, characterise
from tierscope.output.op_list import open_files, open_ops
from tierscope.output.store import RunStore
from tierscope.trace.trace import Trace, completed

ROOT = Path(__file__).resolve().parents[1]
DLIO_PYTHON = ROOT / ".venv-similarity" / "bin" / "python"
WORKLOADS = ROOT / "validation" / "dlio"
STORAGE = ("bandwidth=200MB/s", "metadata_ops=2000", "latency=500us")
SAMPLE_FILES = (".npz", ".npy", ".hdf5", ".h5", ".csv", ".tfrecord")
_LONGEST_SECONDS = 900


@dataclass(frozen=True, slots=True)
class Workload:
    """`row`: of the published table, if it has one. `shipped`: DLIO's own file. `scaled`: overrides that both programs get.
    `application`: a program of validation/dlio that really trains on DLIO's files."""

    name: str
    row: str
    file: str
    shipped: bool
    scaled: tuple[str, ...] = ()
    application: str = ""

    @property
    def path(self) -> Path:
        if not self.shipped:
            return WORKLOADS / "workload" / f"{self.file}.yaml"
        (package,) = (ROOT / ".venv-similarity" / "lib").glob("python*/site-packages/dlio_benchmark")
        return package / "configs" / "workload" / f"{self.file}.yaml"


def generate_dlio(workload: Workload, out: Path) -> None:
    _run(_dlio(workload, out, generate=True), out)


def trace_dlio(workload: Workload, out: Path, name: str) -> Character:
    return _traced(_dlio(workload, out, generate=False), out / "dlio", out, name)


def trace_application(workload: Workload, out: Path, name: str) -> Character:
    """On the files that DLIO generated."""
    command = [str(DLIO_PYTHON), str(WORKLOADS / workload.application), str(out / "dlio" / "train")]
    return _traced(command, out / "dlio", out, name)


def generate_ours(workload: Workload, out: Path) -> None:
    _run(_ours("generate", workload, out, "generated"), out)


def trace_ours(workload: Workload, out: Path, name: str) -> Character:
    command = [*_ours("run", workload, out, f"result-{name}"), "--set", "evict=false"]  # DLIO evicts nothing either
    return _traced(command, out / "ours", out, name)


def _ours(command: str, workload: Workload, out: Path, result: str) -> list[str]:
    """Every run has a result of its own: a finished one would not be run again."""
    words = [sys.executable, "-m", "tierscope.cli.main", command, str(workload.path), *_overrides(workload)]
    return [*words, f"++workload.dataset.data_folder={out / 'ours'}", "--out", str(out / result), "--quiet"]


def _dlio(workload: Workload, out: Path, generate: bool) -> list[str]:
    script, folder = str(ROOT / "benchmarks" / "peer_dlio.py"), ["--config-dir", str(WORKLOADS)]
    keys = {
        "workflow.generate_data": generate,
        "workflow.train": not generate,
        "workflow.evaluation": False,
        "dataset.num_files_eval": 0,
        "dataset.data_folder": out / "dlio",
    }
    settings = [f"++workload.{key}={value}" for key, value in keys.items()]
    chosen = [f"workload={workload.file}", f"hydra.run.dir={out / 'hydra'}"]
    return [str(DLIO_PYTHON), script, "stock", *folder, *chosen, *_overrides(workload), *settings]


def _overrides(workload: Workload) -> list[str]:
    return [f"++workload.{override}" for override in (*workload.scaled, "workflow.checkpoint=False")]


def _traced(command: Sequence[str], data: Path, out: Path, name: str) -> Character:
    target = out / "traces" / name
    emulated = [word for rate in STORAGE for word in ("--emulate", f"gfs.{rate}")]
    recorder = [sys.executable, "-m", "tierscope.cli.main", "trace", "--ops", "--quiet", "--tier", f"gfs={data}"]
    _run([*recorder, *emulated, "--out", str(target), "--", *command], out)
    store = RunStore(str(target))
    (key,) = store.finished()
    return of_samples(store.load(key), target)


def of_samples(trace: Trace, out: Path) -> Character:
    """What a trace did with files of samples, by its list of operations."""
    names = open_files(str(out / "ops" / "files.parquet"))
    numbers = [number for number, path in names.items() if path.endswith(SAMPLE_FILES)]
    paths = sorted((out / "ops").glob("*-node*.parquet"))
    lists = [OpList(open_ops(str(path), trace).filter(pl.col("file").is_in(numbers))) for path in paths]
    sums = (
        pl.concat([op_list.rows for op_list in lists])
        .group_by("epoch", "rank", "lane", "tier", "kind")
        .agg(
            pl.len().cast(pl.Int64).alias("ops"),
            pl.col("bytes").sum(),
            pl.col("seconds").sum().alias("busy_seconds"),
        )
        .sort("epoch", "rank", "lane", "kind")
        .collect()
        .with_columns(record=pl.lit("io"))
    )
    table = pl.concat([trace.ranks, completed(sums, trace.key)])
    return characterise(replace(trace, table=table), TraceExtras(lists, names))


def _run(command: Sequence[str], folder: Path) -> None:
    """Output of programs is kept only for an error."""
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=folder, env=quiet, timeout=_LONGEST_SECONDS
    )
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).splitlines()[-20:])
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {done.returncode}:\n{last}")
