"""What the commands say that a user has: `calibrate` of measured results, `simulate` on the system that it wrote."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tierscope.analysis.breakdown import sweep_text
from tools.cluster_record import ClusterError
from validation.bed_runs import environment, tierscope_words
from validation.measuring import scratch


@dataclass(frozen=True, slots=True)
class Simulated:
    """A point of a simulated sweep. `told`: why it is no plain number."""

    rate: float
    seconds: float
    low: float
    high: float
    bottleneck: str
    told: str


def said(*words: str) -> str:
    """What `tierscope` says to this."""
    variables = {**os.environ, **environment()}
    done = subprocess.run([*tierscope_words(), *words], capture_output=True, text=True, env=variables, check=False)
    if done.returncode:
        raise ClusterError(f"tierscope {' '.join(words)}: ended with {done.returncode}: {done.stderr.strip()[-500:]}")
    return done.stdout


def calibrated(path: Path, outs: Sequence[str]) -> str:
    """The system's file; what `calibrate` said lies beside it."""
    told = said("calibrate", *outs, "-o", str(path), "--force", "--quiet", "--json")
    path.with_suffix(".calibration").write_text(told)
    return str(path)


def simulated(study: str, system: str, *settings: str) -> list[Simulated]:
    with scratch() as out:
        words = [word for setting in settings for word in ("--set", setting)]
        told = json.loads(
            said("simulate", study, "--system", system, *words, "--out", f"{out}/simulated", "--quiet", "--json")
        )
    why = _not_identified(told)
    return [
        Simulated(
            rate=point["sweep"]["cache_rate"],
            seconds=point["io_seconds"],
            low=point["io_seconds_low"],
            high=point["io_seconds_high"],
            bottleneck=point["bottleneck"],
            told=why.get(sweep_text(point["sweep"]), ""),
        )
        for point in told["summary"]
    ]


def _not_identified(told: Mapping[str, Any]) -> dict[str, str]:
    """Why a point's number is no plain one, by its name."""
    evidences = [finding["evidence"] for finding in told["findings"] if finding["kind"] == "not_identified"]
    return {point: evidence["why"] for evidence in evidences for point in evidence["points"]}
