"""What the tables in validation/h200 were made with: `python validation/measure_h200.py FOLDER` on a machine with a CUDA device and torch.

NumPy and torch are enough, with the C library (src/tierscope/native/libtierscope.so, built by `pip install -e .` on any machine of this kind): without it
samples would be read by Python threads, and their files take minutes to make. It prints what it does and writes ceilings.json, steps.json,
kernels.json, decoder.json and the runs of three studies.
"""

import json
import os
import platform
import sys
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

import torch  # noqa: E402

from tierscope.arch import efficiency  # noqa: E402
from tierscope.arch.device_file import dump_device  # noqa: E402
from tierscope.arch.networks import build_network, find_network  # noqa: E402
from tierscope.arch.precision import PRECISIONS  # noqa: E402
from tierscope.arch.step_time import with_smooth  # noqa: E402
from tierscope.measure.away import run_away  # noqa: E402
from tierscope.native import library  # noqa: E402
from tierscope.spec.load import load_study  # noqa: E402
from tierscope.train import counters, operations  # noqa: E402
from tierscope.train.ceilings import Ceilings, measure_ceilings  # noqa: E402
from tierscope.train.device_probe import probe_device  # noqa: E402
from tierscope.train.steps import Trainer, measure_steps  # noqa: E402
from validation.measure_decoder import decoder_rows  # noqa: E402
from validation.measure_loaders import plain_reader, torch_loader, write_files  # noqa: E402

BATCHES = {
    "cosmoflow": (1, 4, 8),
    "deepcam": (1, 2, 4),
    "resnet50": (16, 64, 128),
    "resnet101": (32,),
    "alexnet": (64, 256),
    "lenet5": (1024,),
}
PROFILED = {"cosmoflow": 4, "deepcam": 2, "resnet50": 64}
STEPS = 15
DEVICE = torch.device("cuda", 0)

STUDY = """
study: {name}
seed: 8
workload:
  dataset: {{format: raw, num_files_train: {files}, num_samples_per_file: 1, record_length_bytes: {nbytes}}}
  reader: {{batch_size: {batch}, read_threads: 8, prefetch_size: 4, transfer_size: 4 MiB}}
  train: {{epochs: 2}}
  model: {{network: {network}, device: cuda, arithmetic: amp}}
system:
  nodes: 1
  ranks_per_node: 1
  tiers:
    disk: {{path: "{{out}}/tiers/disk", visible_to: global}}
placement: {{cache_rate: 0%}}
sweep:
  workload.model.data: [tiers, memory, synthetic]
repetitions: 5
"""
# files and their bytes: those that storage must deliver for a sample (Ibrahim et al., PMBS 2021)
STUDIES = {"cosmoflow": (256, 17_000_000, 4), "deepcam": (96, 61_000_000, 2), "resnet50": (4096, 117_081, 64)}


def origin() -> dict[str, Any]:
    return {
        "device": torch.cuda.get_device_name(DEVICE),
        "device_memory_bytes": torch.cuda.get_device_properties(DEVICE).total_memory,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "convolutions_in_tf32": torch.backends.cudnn.allow_tf32,
        "products_in_tf32": torch.backends.cuda.matmul.allow_tf32,
        "python": platform.python_version(),
        "system": platform.platform(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write(folder: Path, name: str, **content: Any) -> None:
    (folder / name).write_text(json.dumps({"schema_version": 1, "origin": origin(), **content}, indent=1) + "\n")


def measured_steps() -> list[dict[str, Any]]:
    torch.randn(64, 64, device=DEVICE) @ torch.randn(64, 64, device=DEVICE)  # libraries take their memory now
    library = torch.cuda.memory_allocated(DEVICE)
    rows = []
    wishes = [(name, batch, "sgd", False) for name, batches in BATCHES.items() for batch in batches]
    wishes += [("resnet50", 64, "adam", False), ("alexnet", 64, "adam", False)]
    wishes += [(name, batch, "sgd", True) for name, batch in PROFILED.items()]
    for name, batch, solver, recompute in wishes:
        for precision in PRECISIONS.values():
            torch.cuda.empty_cache()
            trainer = Trainer(build_network(name), batch, precision, solver, DEVICE, recompute)
            steps = measure_steps(trainer, STEPS)
            del trainer
            wish = {
                "network": name,
                "batch": batch,
                "precision": precision.name,
                "solver": solver,
                "recompute": recompute,
            }
            rows.append({**wish, "library_bytes": library, **asdict(steps)})
            print(wish, sorted(steps.seconds)[STEPS // 2], steps.peak_bytes, flush=True)
    return rows


def profiled(ceilings: Ceilings) -> list[dict[str, Any]]:
    rows = []
    for name, batch in PROFILED.items():
        for precision in PRECISIONS.values():
            trainer = Trainer(build_network(name), batch, precision, "sgd", DEVICE)
            kernels = operations.as_kernels(operations.watch_step(trainer), ceilings)
            rows.append(_row(name, batch, precision.name, efficiency.COUNTED, kernels))
            del trainer
    return rows


def counted() -> list[dict[str, Any]]:
    """By Nsight Compute, in processes of their own."""
    rows = []
    for name, batch in PROFILED.items():
        for precision in PRECISIONS:
            kernels = counters.profile_step(build_network(name), batch, precision)
            rows.append(_row(name, batch, precision, efficiency.COUNTERS, kernels))
    return rows


def _row(name: str, batch: int, precision: str, source: str, kernels: list[efficiency.Kernel]) -> dict[str, Any]:
    histogram = efficiency.histogram(kernels, source)
    print(
        name,
        precision,
        source,
        histogram.kernels,
        f"{histogram.total_seconds:.5f} s, potential {histogram.potential:.2f}",
        flush=True,
    )
    return {
        "network": name,
        "batch": batch,
        "precision": precision,
        "source": source,
        "kernels": histogram.kernels,
        "bins_seconds": histogram.seconds,
        "total_seconds": histogram.total_seconds,
        "ideal_seconds": histogram.ideal_seconds,
        "potential": histogram.potential,
        "slowest": [asdict(kernel) for kernel in efficiency.slowest(kernels, 5)],
    }


def trained(folder: Path) -> None:
    """After every run a plain reader in C reads the same files from the same disk, which is not equally fast from one minute to the next."""
    disk: dict[str, list[float]] = {}
    for name, (files, nbytes, batch) in STUDIES.items():
        with tempfile.TemporaryDirectory() as data:
            path = Path(data) / "study.yaml"
            path.write_text(STUDY.format(name=f"h200-{name}", files=files, nbytes=nbytes, batch=batch, network=name))
            rates = disk.setdefault(name, [])

            def say(line: str, data: str = data, rates: list[float] = rates) -> None:
                rates += plain_reader(sorted(map(str, Path(data, "tiers", "disk").rglob("*.raw"))), Path(data), 1)
                print(line, f"beside it {rates[-1] / 1e9:.2f} GB/s in C", flush=True)

            run_away(load_study(str(path)), str(folder / name), data, say)
    write(folder, "disk.json", bytes_per_second=disk)


def beside(repeats: int = 3) -> list[dict[str, Any]]:
    """torch's DataLoader on files as those of the studies."""
    rows = []
    for name, (files, nbytes, batch) in STUDIES.items():
        with tempfile.TemporaryDirectory() as data:
            paths = write_files(Path(data), files, nbytes)
            trainer = Trainer(build_network(name), batch, PRECISIONS["amp"], "sgd", DEVICE)
            loader = torch_loader(trainer, paths, batch, find_network(name).data.element_bytes, repeats)
        rows.append({"network": name, "batch": batch, "sample_bytes": nbytes, "torch": loader})
        print(rows[-1], flush=True)
    return rows


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    parts = arguments[1:] or ["ceilings", "device", "steps", "kernels", "counters", "decoder", "trained"]
    if "trained" in parts and library.load() is None:
        print("trained: the C library is missing; build it with pip install -e . and bring libtierscope.so along")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    ceilings = measure_ceilings(DEVICE)
    print(ceilings, flush=True)
    write(folder, "ceilings.json", ceilings=asdict(ceilings))
    if "device" in parts:  # as `tierscope probe --accelerator cuda` does
        device = with_smooth(probe_device(DEVICE, lambda line: print(line, flush=True)))
        (folder / "device.yaml").write_text(dump_device(device))
    if "steps" in parts:
        write(folder, "steps.json", rows=measured_steps())
    if "kernels" in parts:
        rows = profiled(ceilings)
        rows += counted() if "counters" in parts else []
        write(folder, "kernels.json", rows=rows)
    if "decoder" in parts:
        write(folder, "decoder.json", rows=decoder_rows(DEVICE))
    if "beside" in parts:
        write(folder, "beside.json", rows=beside())
    if "trained" in parts:
        trained(folder)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT / "src"))
    sys.exit(main(sys.argv[1:]))
