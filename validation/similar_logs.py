"""Real logs of UNet3D beside a simulation of the preset at the same scale: as many ranks, files and epochs. Nothing of the logs' times is used to simulate.

The storage of the simulation is Polaris's as the shipped system has it, also for the log of another machine: I/O time and bandwidth compare machines, the rest compares habits.
"""

import glob
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierscope.analysis.similarity import similarity
from tierscope.commands.characterise import characterise_path
from tierscope.imports.paths import TierRules
from tierscope.spec.traced import read_rules
from validation.similar_runs import ROOT


@dataclass(frozen=True, slots=True)
class RealLog:
    files: str
    tier: str
    what: str
    settings: tuple[str, ...]


LOGS = {
    "polaris-darshan": RealLog(
        "darshan/dlio_polaris/*.darshan",
        "gfs=/grand",
        "DLIO's UNet3D on Polaris, Darshan's counters: 4 ranks and their workers, 5 epochs",
        ("ranks_per_node=4", "epochs=5"),
    ),
    "lustre-dftracer": RealLog(
        "dftracer/v1_dlio_unet3d/*.pfw",
        "gfs=/p",
        "DLIO's UNet3D on another Lustre, DFTracer: 8 ranks, 160 files, 5 epochs",
        ("ranks_per_node=8", "epochs=5", "num_files_train=160"),
    ),
}


def compared_log(name: str) -> dict[str, Any] | None:
    """None: its logs are not beside the project."""
    log = LOGS[name]
    paths = sorted(glob.glob(str(ROOT.parent / "shared" / "data" / log.files)))
    if not paths:
        return None
    theirs = characterise_path(paths, TierRules(read_rules((log.tier,)))).character
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "simulated")
        settings = [word for setting in log.settings for word in ("--set", setting)]
        command = [sys.executable, "-m", "tierscope.cli.main", "simulate", "unet3d", *settings, "--out", out, "--quiet"]
        subprocess.run(command, check=True, capture_output=True, text=True)
        ours = characterise_path([out]).character
    likeness = similarity(theirs, ours)
    return {
        "name": name,
        "what": log.what,
        "settings": list(log.settings),
        "cosine": likeness.cosine,
        "ranks": [scale.ranks for scale in likeness.scales],
        "metrics": [
            {
                "metric": metric.name,
                "log": metric.first,
                "simulated": metric.second,
                "difference": metric.difference,
                "cosine_without": metric.cosine_without,
            }
            for metric in likeness.metrics
        ],
        "left_out": [metric.name for metric in likeness.left_out],
    }
