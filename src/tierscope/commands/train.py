"""Train: a study with a real network, measured as any other study; of several varied keys, a result each and one table over all."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tierscope.analysis.analysis import Analysis
from tierscope.analysis.training import Training, training_json
from tierscope.analysis.wording import Finding
from tierscope.commands.analyze import analyze
from tierscope.errors import ResultError
from tierscope.jsonable import JsonObject
from tierscope.measure.crews import Crews
from tierscope.measure.run import run_study
from tierscope.measure.trained import check_training
from tierscope.output import manifest
from tierscope.output.disk_errors import explained, plain
from tierscope.output.result import locked
from tierscope.output.store import RunStore
from tierscope.recording.recorders import BUILTIN
from tierscope.spec import sweep
from tierscope.train.training_study import Planned
from tierscope.tuning.candidates import in_common
from tierscope.watch import Watch

KIND = "training"
_FILE = "training.json"


@dataclass(frozen=True, slots=True)
class TrainedPart:
    """One result: what is varied in it (None: nothing by itself), where it is, and what came out."""

    key: str | None
    folder: str
    analysis: Analysis

    @property
    def training(self) -> Training:
        if self.analysis.training is None:
            raise ResultError(f"{self.folder}: contains no real training; name the --out of 'tierscope train'")
        return self.analysis.training


def train(planned: Planned, out: str, crews: Crews, watch: Watch) -> list[TrainedPart]:
    """Every part that is not finished; the same command goes on where it stopped."""
    for note in planned.notes:
        watch.note(f"note: {note}")
    check_training((point.study for _, study in planned.parts for point in sweep.points(study)), BUILTIN)
    several = len(planned.parts) > 1
    with _whole(out) if several else _nothing():
        stores = []
        for key, study in planned.parts:
            if several:
                watch.note(f"varying {key}")
            folder = _folder(out, key, several)
            stores.append(run_study(in_common(study, out) if several else study, folder, crews, watch))
    return [
        _part(_folder(out, key, several), key, store) for (key, _), store in zip(planned.parts, stores, strict=True)
    ]


def _folder(out: str, key: str | None, several: bool) -> str:
    return os.path.join(out, key) if several and key else out


def _part(folder: str, key: str | None, store: RunStore) -> TrainedPart:
    return TrainedPart(key, folder, analyze(folder, store=store))


@contextmanager
def _whole(out: str) -> Iterator[None]:
    manifest.claim(out, KIND)
    with locked(out):
        yield


@contextmanager
def _nothing() -> Iterator[None]:
    yield


def findings_of(parts: list[TrainedPart]) -> list[Finding]:
    """Of all parts, each once."""
    distinct: dict[tuple[str, str], Finding] = {}
    for part in parts:
        for finding in part.analysis.findings:
            distinct.setdefault((finding.kind, finding.text), finding)
    return list(distinct.values())


def described(study: str, parts: list[TrainedPart]) -> JsonObject:
    return training_json(study, [(part.key, part.training) for part in parts], findings_of(parts))


def write_training(out: str, content: JsonObject) -> None:
    """OUT/training.json, anew by every `train`."""
    with explained(os.path.join(out, _FILE), plain("make it writable")):
        manifest.put(out, {_FILE: (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()})
