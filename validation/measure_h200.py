"""What the tables in validation/h200 were made with: `python validation/measure_h200.py FOLDER` on a machine with a CUDA device and torch.

NumPy and torch are enough. It prints what it does and writes ceilings.json, steps.json, kernels.json and the runs of three studies.
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
sys.path.insert(0, str(ROOT / "src"))

import torch  # noqa: E402

from tierscope.arch import efficiency  # noqa: E402
from tierscope.arch.networks import build_network  # noqa: E402
from tierscope.arch.precision import PRECISIONS  # noqa: E402
from tierscope.measure.away import run_away  # noqa: E402
from tierscope.spec.load import load_study  # noqa: E402
from tierscope.train import counters, operations  # noqa: E402
from tierscope.train.ceilings import Ceilings, measure_ceilings  # noqa: E402
from tierscope.train.steps import Trainer, measure_steps  # noqa: E402

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
STUDIES = {"cosmoflow": (128, 17_000_000, 4), "deepcam": (48, 61_000_000, 2), "resnet50": (4096, 117_081, 64)}


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
            found = measure_steps(trainer, STEPS)
            del trainer
            wish = {
                "network": name,
                "batch": batch,
                "precision": precision.name,
                "solver": solver,
                "recompute": recompute,
            }
            rows.append({**wish, "library_bytes": library, **asdict(found)})
            print(wish, sorted(found.seconds)[STEPS // 2], found.peak_bytes, flush=True)
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
    found = efficiency.histogram(kernels, source)
    print(
        name,
        precision,
        source,
        found.kernels,
        f"{found.total_seconds:.5f} s, potential {found.potential:.2f}",
        flush=True,
    )
    return {
        "network": name,
        "batch": batch,
        "precision": precision,
        "source": source,
        "kernels": found.kernels,
        "bins_seconds": found.seconds,
        "total_seconds": found.total_seconds,
        "ideal_seconds": found.ideal_seconds,
        "potential": found.potential,
        "slowest": [asdict(kernel) for kernel in efficiency.slowest(kernels, 5)],
    }


def trained(folder: Path) -> None:
    for name, (files, nbytes, batch) in STUDIES.items():
        with tempfile.TemporaryDirectory() as data:
            path = Path(data) / "study.yaml"
            path.write_text(STUDY.format(name=f"h200-{name}", files=files, nbytes=nbytes, batch=batch, network=name))
            print(name, flush=True)
            run_away(load_study(str(path)), str(folder / name), data, print)


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0])
    parts = arguments[1:] or ["ceilings", "steps", "kernels", "counters", "trained"]
    folder.mkdir(parents=True, exist_ok=True)
    ceilings = measure_ceilings(DEVICE)
    print(ceilings, flush=True)
    write(folder, "ceilings.json", ceilings=asdict(ceilings))
    if "steps" in parts:
        write(folder, "steps.json", rows=measured_steps())
    if "kernels" in parts:
        rows = profiled(ceilings)
        rows += counted() if "counters" in parts else []
        write(folder, "kernels.json", rows=rows)
    if "trained" in parts:
        trained(folder)
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONPATH", str(ROOT / "src"))
    sys.exit(main(sys.argv[1:]))
