"""Similarity (D-E-1) of what DLIO, an application and Tierscope do for the same workload, and of real logs with our simulation of them: `validation/measured/similarity.json`.

    make measure-similarity
    .venv/bin/python -m validation.measured_similarity [NAME…]

DLIO runs from its own YAML with its own files; Tierscope runs the same YAML with the same overrides and files that it generates; both, and an application that
really trains, are seen by the same recorder (validation/similar_runs.py). One rank each. Names are of workloads or logs to measure again; the others stay as they are in the file.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

from tierscope.analysis.characterise import Character
from tierscope.analysis.similarity import Similarity, similarity
from validation.similar_logs import LOGS, compared_log
from validation.similar_runs import (
    DLIO_PYTHON,
    STORAGE,
    Workload,
    generate_dlio,
    generate_ours,
    trace_application,
    trace_dlio,
    trace_ours,
)

TARGET = Path(__file__).resolve().parent / "measured" / "similarity.json"
REPETITIONS = 3
_TENSORFLOW = ("reader.read_threads=2", "reader.computation_threads=2", "train.epochs=2", "train.computation_time=0.02")
WORKLOADS = (
    Workload(
        "imagenet",
        "D-F8-1",
        "resnet50_a100",
        True,
        ("dataset.num_files_train=8", "dataset.num_samples_per_file=64", "reader.batch_size=16", *_TENSORFLOW),
        "train_tfrecord.py",
    ),
    Workload("cosmic-tagger", "D-F8-2", "cosmic_tagger", False),
    Workload("cosmoflow", "D-F8-3", "cosmoflow_a100", True, ("dataset.num_files_train=32", *_TENSORFLOW)),
    Workload("dffn", "D-F8-4", "dffn", False),
    Workload("candle", "D-F8-5", "candle", False),
    Workload("frnn", "D-F8-6", "frnn", False),
    Workload(
        "unet3d",
        "",
        "unet3d_a100",
        True,
        (
            *("dataset.num_files_train=24", "dataset.record_length=4194304", "dataset.record_length_stdev=1048576"),
            *("dataset.record_length_resize=65536", "reader.batch_size=4", "reader.read_threads=2"),
            *("train.epochs=2", "train.computation_time=0.02"),
        ),
        "train_npz.py",
    ),
)


def measured(workload: Workload) -> dict[str, Any]:
    """Runs of all programs in turn, so that what else the machine does meets all of them."""
    sides: dict[str, Callable[[Workload, Path, str], Character]] = {"dlio": trace_dlio, "ours": trace_ours}
    if workload.application:
        sides["application"] = trace_application
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        out = Path(folder)
        (out / "traces").mkdir()
        generate_dlio(workload, out)
        generate_ours(workload, out)
        runs: dict[str, list[Character]] = {side: [] for side in sides}
        for repetition in range(REPETITIONS):
            for side, run in sides.items():
                runs[side].append(run(workload, out, f"{side}-{repetition}"))
    pairs = {"dlio-ours": ("dlio", "ours"), "application-dlio": ("application", "dlio")}
    pairs["application-ours"] = ("application", "ours")
    return {
        "name": workload.name,
        "row": workload.row,
        "yaml": f"{workload.file}.yaml",
        "shipped": workload.shipped,
        "overrides": list(workload.scaled),
        "made": today(),
        "compared": {
            name: compared(runs[first], runs[second])
            for name, (first, second) in pairs.items()
            if first in runs and second in runs
        },
        "repeated": spread(
            [
                value
                for this, other in zip(runs["dlio"], runs["dlio"][1:], strict=False)
                if (value := similarity(this, other).cosine) is not None
            ]
        ),
    }


def compared(first: Sequence[Character], second: Sequence[Character]) -> dict[str, Any]:
    """A run of one with a run of the other; the median pair explains."""
    pairs = [similarity(this, other) for this, other in zip(first, second, strict=True)]
    middle = sorted(pairs, key=lambda pair: pair.cosine or 0.0)[len(pairs) // 2]
    return {"cosine": spread([pair.cosine or 0.0 for pair in pairs]), **explained(middle, pairs)}


def explained(middle: Similarity, pairs: Sequence[Similarity]) -> dict[str, Any]:
    metrics = []
    for metric in middle.metrics:
        same = [other for pair in pairs for other in pair.metrics if other.name == metric.name]
        metrics.append(
            {
                "metric": metric.name,
                "first": spread([other.first for other in same]),
                "second": spread([other.second for other in same]),
                "difference": spread([other.difference for other in same]),
                "cosine_without": metric.cosine_without,
            }
        )
    return {"metrics": metrics, "left_out": [metric.name for metric in middle.left_out]}


def spread(values: Sequence[float]) -> dict[str, float]:
    return {"median": median(values), "low": min(values), "high": max(values), "n": len(values)}


def versions() -> dict[str, str]:
    code = "from importlib.metadata import version; print(*(version(name) for name in {names!r}))"
    names = ("dlio-benchmark", "torch", "tensorflow-cpu", "h5py", "numpy", "pandas")
    done = subprocess.run(
        [str(DLIO_PYTHON), "-c", code.format(names=names)], check=True, capture_output=True, text=True
    )
    ours = {"tierscope": metadata.version("tierscope"), "python": ".".join(map(str, sys.version_info[:3]))}
    return {**ours, **dict(zip(names, done.stdout.split(), strict=True))}


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def main() -> None:
    known = [*(workload.name for workload in WORKLOADS), *LOGS]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    names = parser.parse_args().names or known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"{unknown[0]}: choose from {', '.join(known)}")
    if not DLIO_PYTHON.exists():
        parser.error("DLIO is not installed: make measure-similarity installs it")
    for name in names:
        print(f"{name} …", file=sys.stderr)
        if name in LOGS:
            entry = compared_log(name)
            if entry is None:
                print(f"{name}: {LOGS[name].files} is not in ../shared/data; its dated entry stays", file=sys.stderr)
            else:
                _write("logs", {**entry, "made": today()})
        else:
            _write("workloads", measured(next(workload for workload in WORKLOADS if workload.name == name)))


def _write(part: str, entry: Mapping[str, Any]) -> None:
    """With all that the file has by now."""
    before: Mapping[str, Any] = json.loads(TARGET.read_text(encoding="utf-8")) if TARGET.exists() else {}
    entries = {name: {old["name"]: old for old in before.get(name, [])} for name in ("workloads", "logs")}
    entries[part][entry["name"]] = entry
    order = {"workloads": [workload.name for workload in WORKLOADS], "logs": list(LOGS)}
    document = {
        "schema_version": 1,
        "made": today(),
        "ranks": 1,
        "cores": len(os.sched_getaffinity(0)),
        "recorder": "tierscope trace --ops",
        "storage": list(STORAGE),
        "versions": versions(),
        **{name: [entries[name][key] for key in order[name] if key in entries[name]] for name in entries},
    }
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
