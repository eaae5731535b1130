"""Calibration from Python: a system's rates, fitted to measured results."""

import os
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from tierscope.api import pictures
from tierscope.api.given import StrPath, listed, path_text
from tierscope.api.progress import shown
from tierscope.api.result import Result
from tierscope.commands.calibrate import Calibrated, calibrate_results, write_system
from tierscope.errors import UserError
from tierscope.jsonable import JsonObject
from tierscope.predict.model_json import calibration_json
from tierscope.report.models import CalibrationView
from tierscope.spec.known import dump_system


class FittedSystem:
    """A system whose rates were fitted to measurements, each with its interval. From `calibrate`; hand it to `simulate`, or `save` it for `--system`. Holds numbers only."""

    __slots__ = ("_calibrated",)

    def __init__(self, calibrated: Calibrated) -> None:
        """Not for callers."""
        self._calibrated = calibrated

    @property
    def name(self) -> str:
        """Of the study that it was fitted to. Costs nothing."""
        return self._calibrated.name

    @property
    def epochs(self) -> int:
        """How many measured epochs it was fitted to. Costs nothing."""
        return self._calibrated.epochs

    def rates(self) -> pl.DataFrame:
        """A row per rate, in base units: value, low, high (90 %). `kind` "at_least": the results only tell a lower limit, and `value` is null. Costs nothing."""
        columns = ("key", "kind", "value", "low", "high", "sensitivity_percent")
        rows = [{name: parameter[name] for name in columns} for parameter in self.to_dict()["parameters"]]
        return pl.DataFrame(rows, strict=False, infer_schema_length=None)

    def to_yaml(self) -> str:
        """As `tierscope calibrate -o` writes it. Costs nothing."""
        return dump_system(self._calibrated.known)

    def save(self, path: StrPath, *, force: bool = False) -> Path:
        """Write the YAML for `system=` and `--system`; a file that is there stays, unless `force`. Takes milliseconds."""
        from tierscope.cli.common import refuse_existing  # noqa: PLC0415  (click)

        target = path_text("path", path)
        refuse_existing(target, force)
        write_system(self._calibrated, target)
        return Path(target)

    def to_dict(self) -> JsonObject:
        """What `tierscope calibrate --json` prints. Costs next to nothing."""
        calibrated = self._calibrated
        return {**calibration_json(calibrated.calibration, calibrated.proposals, calibrated.epochs), "complete": True}

    def __repr__(self) -> str:
        return f"<FittedSystem {self.name!r}: {len(self._calibrated.calibration.estimates)} rates, fitted to {self.epochs} epochs>"

    def __str__(self) -> str:
        return pictures.as_text([self._view])

    def _repr_html_(self) -> str:
        return pictures.as_html([self._view])

    @property
    def _view(self) -> CalibrationView:
        calibrated = self._calibrated
        return CalibrationView(calibrated.name, calibrated.calibration, calibrated.proposals, calibrated.epochs)


def calibrate(results: Result | StrPath | Iterable[Result | StrPath], *, progress: bool = True) -> FittedSystem:
    """Fit the rates of a system's servers and latencies to one or several measured results of it.

    Rates that a study configured are not looked at. Several results (other file sizes, server or node counts) tell more than one; what they cannot tell is given
    as "at least". Needs SciPy (`tierscope[predict]`); takes seconds to minutes. Interrupted, it raises KeyboardInterrupt and keeps nothing.
    """
    several = (
        [results]
        if isinstance(results, Result | str | os.PathLike)
        else listed("results", results, "a result, or several of them")
    )
    outs = [_place(result) for result in several]
    with shown(progress) as watch:
        calibrated = calibrate_results(outs, watch)
    if calibrated.stopped:
        raise KeyboardInterrupt
    return FittedSystem(calibrated)


def _place(result: Result | StrPath) -> str:
    if not isinstance(result, Result):
        return path_text("results", result)
    if result.path is None:
        raise UserError("calibrate: these logs were not kept as a result; the model has to know who read what")
    return result.path
