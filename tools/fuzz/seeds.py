"""Healthy files of every kind that Tierscope reads, made or copied once; every case damages copies of some."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
TINY = """
study: tiny
seed: 7
workload:
  dataset: {format: tfrecord, num_files_train: 8, record_length_bytes: 1 KiB}
  reader: {batch_size: 4, read_threads: 1}
  train: {epochs: 1}
system:
  nodes: 1
  tiers:
    lfs: {path: "{out}/tiers/lfs/{node}", visible_to: node, capacity: 1 MiB}
    gfs: {path: "{out}/tiers/gfs"}
"""
# A variable: tuning writes down where {out} was, and cases lie elsewhere.
TIERS = "TIERSCOPE_FUZZ_TIERS"
TUNED = TINY.replace("{out}", f"${TIERS}")
CSV = "rank,epoch,class,seconds,ops,bytes,node,repetition,cache_rate\n" + "".join(
    f"{rank},{epoch},{name},{0.1 + rank / 10},8,8320,0,1,{rate}\n"
    for rate in (0.0, 0.5, 1.0)
    for epoch in (1, 2)
    for rank in (0, 1)
    for name in ("GFS-READ", "GFS-META", "LFS-READ")
)
POINTS = """
study: points
workload:
  dataset: {format: raw, num_files_train: 256, record_length_bytes: 64 KiB}
  reader: {batch_size: 2, read_threads: 1}
  train: {epochs: 1, computation_time: 5 ms}
system:
  tiers:
    gfs: {path: "{out}/gfs", bandwidth: 1 GB/s, metadata_ops: 1000/s}
"""
BARE = POINTS.replace(", bandwidth: 1 GB/s, metadata_ops: 1000/s", "").replace(", computation_time: 5 ms", "")
POINTS_CSV = """ranks,nodes,epoch_seconds,au_percent,mbps,files,read_threads,note
4,1,10.5,90,100,64,1,a
8,2,12 11 10,80,190,128,2,a
4,1,11,91,101,64,1,a
"""
SUMMARY = {
    "num_accelerators": 2,
    "num_hosts": 1,
    "num_files_train": 64,
    "metric": {"train_au_mean_percentage": 90.0, "train_io_mean_MB_per_second": 100.0},
}
DECODER = {
    "model_type": "llama",
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
    "max_position_embeddings": 128,
    "tie_word_embeddings": True,
    "head_dim": 16,
}
_FEW_ROWS = 12  # of every kind of work in a device file: more only takes longer
_HAND_OVER = """
import sys
from tests.output.test_handover import RUN, a_rank
from dataclasses import replace
from tierscope.measure.away import NAME
from tierscope.output import handover
handover.save(sys.argv[1] + "/" + NAME.format(point=0, repetition=1), replace(RUN, point=0), [a_rank()])
"""
_TIERSCOPE = [sys.executable, "-m", "tierscope.cli.main"]


def make_seeds(folder: Path) -> None:
    """Seconds: two of them are made by running the program."""
    (folder / "tiny.yaml").write_text(TINY)
    (folder / "tuned.yaml").write_text(TUNED)
    vary = ("--vary", "reader.read_threads=1,2", "--budget", "1s")
    made = [
        _started(folder, *_TIERSCOPE, "run", "tiny.yaml", "--out", "res", "--ops", "--quiet", "--set", "sweep.placement.cache_rate=[0%, 100%]"),
        _started(folder, *_TIERSCOPE, "reproduce", "hierarchy", "--row", "H-S-1", "--out", "reproduced", "--quiet"),
        _started(folder, *_TIERSCOPE, "tune", "tuned.yaml", "--out", "tuned", "--quiet", *vary),
    ]  # fmt: skip
    for name in ("measured", "traced", "trained", "simulated", "first_touch", "imported_dftracer"):
        shutil.copytree(GOLDEN / "results" / name, folder / name)
    shutil.copy(GOLDEN / "study.yaml", folder / "study.yaml")
    shutil.copy(ROOT / "src/tierscope/spec/systems/laptop.yaml", folder / "system.yaml")
    shutil.copy(ROOT / "src/tierscope/spec/systems/h200-node.yaml", folder / "machine.yaml")
    for path in (ROOT / "tests/spec/dlio").glob("*.yaml"):
        shutil.copy(path, folder / f"dlio-{path.name}")
    log = (GOLDEN / "logs/trace-0-of-2.pfw").read_bytes()
    (folder / "log.pfw").write_bytes(log)
    (folder / "log.pfw.gz").write_bytes(gzip.compress(log))
    (folder / "table.csv").write_text(CSV)
    _make_foreign(folder)
    (folder / "handed").mkdir()
    (folder / "handed" / "study.yaml").write_text(TINY.replace("  reader:", "  model: {network: lenet5}\n  reader:"))
    made.append(_started(ROOT, sys.executable, "-c", _HAND_OVER, str(folder / "handed")))
    # So that no case has to compile the event engine.
    made.append(
        _started(folder, *_TIERSCOPE, "simulate", "study.yaml", "--out", "warm", "--method", "events", "--quiet")
    )
    for name, path in _darshan_logs():
        shutil.copy(path, folder / name)
    for process in made:
        if process.wait():
            raise SystemExit(f"fuzz: a seed cannot be made: {process.args!r}")
    shutil.rmtree(folder / "res" / "figures")
    shutil.rmtree(folder / "warm")


def _make_foreign(folder: Path) -> None:
    """Files of other programs, and a device as it was measured."""
    for place, path in enumerate(sorted((ROOT / "tests/probe/benchmark_files").iterdir())):
        shutil.copy(path, folder / f"bench-{place}.txt")
    (folder / "points.yaml").write_text(POINTS)
    (folder / "points.csv").write_text(POINTS_CSV)
    (folder / "bare.yaml").write_text(BARE)
    for name, accelerators in (("run1", 2), ("run2", 4)):
        (folder / "dlio" / name).mkdir(parents=True)
        (folder / "dlio" / name / "summary.json").write_text(json.dumps({**SUMMARY, "num_accelerators": accelerators}))
        epochs = {"1": {"duration": "20.5"}, "2": {"duration": "10.5"}}
        (folder / "dlio" / name / "0_per_epoch_stats.json").write_text(json.dumps(epochs))
    (folder / "decoder.json").write_text(json.dumps(DECODER))
    (folder / "device.yaml").write_text(_fewer_rows((ROOT / "validation/h200/device.yaml").read_text()))
    _make_profile(folder)
    from tierscope.measure.live_csv import COLUMNS  # noqa: PLC0415

    (folder / "live.csv").write_text(",".join(COLUMNS) + "\n" + ",".join("tiny" for _ in COLUMNS) + "\n")


def _fewer_rows(device: str) -> str:
    rows, lines = 0, []
    for line in device.splitlines():
        rows = rows + 1 if line.startswith("      ") else 0
        if rows <= _FEW_ROWS:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _make_profile(folder: Path) -> None:
    """A log of DFTracer with a mark, and a trace of torch's profiler with the same one."""
    from tests.imports.dftracer_lines import began, call, named, write  # noqa: PLC0415
    from tests.imports.test_profiler_trace import BASE, TORCH, span, written  # noqa: PLC0415

    data, mark = "/gfs/data/b.bin", "/gfs/data/tierscope-mark-a1"
    calls = [call("read", mark, 210, 1, ret=1), call("pread", data, 1000, 1000, ret=4096)]
    write(folder / "marked.pfw", [*began(), *named(data, mark), *calls])
    events = [*TORCH, span("aten::mm", 1505, 1000), span("gemm", 1600, 10, "kernel", 0, 7)]
    written(folder / "profile.json", events, baseTimeNanoseconds=BASE, distributedInfo={"rank": 0})


def _started(folder: Path, *command: str) -> "subprocess.Popen[bytes]":
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        command,
        cwd=folder,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": paths, TIERS: str(folder.absolute() / "tiers")},
    )


def _darshan_logs() -> list[tuple[str, Path]]:
    """Small ones of PyDarshan's own wheel, where it is installed."""
    from tests.imports.darshan_logs import wheel_logs  # noqa: PLC0415

    small = [path for path in wheel_logs() if path.stat().st_size < 20_000]
    return [(f"log-{place}.darshan", path) for place, path in enumerate(small[:4])]
