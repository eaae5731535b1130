"""Commands on fixed inputs, and the JSON that each of them printed.

`results/` holds result directories of schema version 1, made by version 0.1.0; `logs/` traces in DFTracer's form; `study.yaml` a study to simulate.
`python -m tests.golden.commands` writes `expected/` anew: do so only for a change that the CHANGELOG names.
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
LOGS = ("logs/trace-0-of-2.pfw", "logs/trace-1-of-2.pfw", "--tier", "lfs=/lfs", "--tier", "gfs=/gfs")
COMMANDS: dict[str, tuple[str, ...]] = {
    "analyze-measured": ("analyze", "results/measured"),
    "analyze-measured-busy": ("analyze", "results/measured", "--basis", "busy"),
    "analyze-first-touch": ("analyze", "results/first_touch"),
    "analyze-metrics": ("analyze", "results/first_touch", "--metrics"),
    "analyze-profiled": ("analyze", "results/profiled"),
    "analyze-trained": ("analyze", "results/trained"),
    "analyze-simulated": ("analyze", "results/simulated"),
    "analyze-simulated-events": ("analyze", "results/simulated_events"),
    "analyze-traced": ("analyze", "results/traced"),
    "analyze-imported-dftracer": ("analyze", "results/imported_dftracer"),
    "analyze-imported-darshan": ("analyze", "results/imported_darshan"),
    "analyze-dftracer-logs": ("analyze", *LOGS),
    "characterise-measured": ("characterise", "results/measured", "--point", "1"),
    "characterise-traced": ("characterise", "results/traced"),
    "characterise-dftracer-logs": ("characterise", *LOGS),
    "compare-measured-simulated": ("compare", "results/measured", "results/simulated"),
    "compare-traced-imported": ("compare", "results/traced", "results/imported_dftracer"),
    "estimate-measured": ("estimate", "results/measured", "--improve", "GFS-META=50", "--improve", "LFS-READ=120"),
    "estimate-imported": ("estimate", "results/imported_dftracer", "--improve", "GFS-READ=100"),
    "explore-measured": (
        *(
            "explore",
            "results/measured",
            "--goal",
            "30ms",
            "--vary",
            "GFS-META=0:200:50",
            "--vary",
            "LFS-READ=0:200:50",
        ),
        *("--cost", "GFS-META=3/%", "--cost", "LFS-READ=1/%", "--cost", "lfs.capacity=0.1/GiB"),
    ),
    "simulate-bound": ("simulate", "study.yaml", "--out", "made/bound", "--method", "bound"),
    "simulate-events": ("simulate", "study.yaml", "--out", "made/events", "--method", "events"),
    "explore-simulated": (
        *("explore", "--simulate", "study.yaml", "--method", "bound", "--goal", "20ms"),
        *("--vary", "gfs.metadata_ops=1500,3000,6000"),
        *("--vary", "gfs.servers=1,4", "--cost", "gfs.servers=1000/server"),
    ),
    "require-cosmoflow": (
        *("require", "cosmoflow", "--system", "cori-gpu", "--batch", "1,2,4", "--precision", "amp", "--nodes", "1..8"),
    ),
    "require-resnet50": ("require", "resnet50", "--system", "h200-node", "--batch", "32,64"),
}

# Logs inside PyDarshan's own wheel.
DARSHAN_COMMANDS: dict[str, tuple[str, ...]] = {
    "analyze-darshan-ior": ("analyze", "darshan/ior_hdf5_example.darshan", "--tier", "gfs=/global", "--split-shared"),
    "analyze-darshan-dxt": ("analyze", "darshan/sample-dxt-simple.darshan", "--tier", "gfs=/yellow", "--force"),
    "characterise-darshan-ior": ("characterise", "darshan/ior_hdf5_example.darshan", "--tier", "gfs=/global"),
}


def darshan_logs() -> list[Path]:
    spec = importlib.util.find_spec("darshan")
    if spec is None or spec.origin is None:
        return []
    package = Path(spec.origin).parent
    return [
        package / "examples/example_logs/ior_hdf5_example.darshan",
        package / "tests/input/sample-dxt-simple.darshan",
    ]


def inputs(folder: Path) -> None:
    """A copy of all inputs: commands may finish or convert what they are given."""
    for name in ("results", "logs"):
        shutil.copytree(HERE / name, folder / name)
    shutil.copy(HERE / "study.yaml", folder)
    (folder / "darshan").mkdir()
    for log in darshan_logs():
        shutil.copy(log, folder / "darshan")


def anonymous(text: str) -> str:
    """Without the name of whoever ran the job."""
    return re.sub(r"(/global/(?:u2/s|cscratch1/sd))/\w+", r"\1/user", text)


def expected(name: str) -> Any:
    return json.loads((EXPECTED / f"{name}.json").read_text())


def main() -> None:
    EXPECTED.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        inputs(Path(folder))
        for name, arguments in {**COMMANDS, **DARSHAN_COMMANDS}.items():
            program = [sys.executable, "-P", "-m", "tierscope.cli.main", *arguments, "--json"]
            done = subprocess.run(
                program, check=False, cwd=folder, capture_output=True, text=True, env={**os.environ, "COLUMNS": "160"}
            )
            if done.returncode:
                raise SystemExit(f"{name}: {done.stderr}")
            printed = json.loads(anonymous(done.stdout))
            (EXPECTED / f"{name}.json").write_text(json.dumps(printed, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
