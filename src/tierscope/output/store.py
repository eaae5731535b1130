"""Traces on disk: one Parquet file per run, complete or absent.

OUT/tierscope.json            marks the directory as a result of ours
OUT/study.yaml                the resolved study
OUT/runs/0003-r1.parquet      point 3, repetition 1
OUT/ops/0003-r1-node0.parquet its operations (`--ops`), one file per node
"""

import errno
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO

import polars as pl

from tierscope.errors import OutOfSpaceError, ResultError, SpecError, StoppedError, UserError
from tierscope.jsonable import JsonObject, SweepValue, SweepValues
from tierscope.output import disk_errors, durable, manifest, seal
from tierscope.output.manifest import refuse_no_text
from tierscope.output.tables import ABOUT, FIX, read_about, read_parquet, read_table
from tierscope.recording.recorders import BUILTIN
from tierscope.spec.dump import identity
from tierscope.spec.load import parse_study
from tierscope.spec.study import Point
from tierscope.trace.check import wrong_in_table
from tierscope.trace.columns import COLUMNS, LATER_COLUMNS
from tierscope.trace.decode import decode_description, encode
from tierscope.trace.description import Description, Imported, Measured, RunDescription, Simulated, StudyRun, Traced
from tierscope.trace.trace import RunKey, Trace

__all__ = ["RunStore", "read_about", "read_parquet", "write_parquet"]
_NAME = re.compile(r"(\d{4,})-r(\d+)\.parquet")
_MOST_KEPT_BYTES = 256 << 20  # of tables that were read, for whoever asks again


# What the mark of a directory says → the kinds of runs that it holds.
_KINDS: dict[str, tuple[type[RunDescription], ...]] = {
    "result": (Measured,),
    "simulation": (Simulated,),
    "trace": (Traced, Imported),
    "import": (Imported,),
}
_MOVE = "move it away, or choose another --out"


class RunStore:
    """The finished runs of a study. It remembers what it has read: a command that shares one reads every file once.

    Descriptions are kept, and tables as long as all of them are small; a file that has changed meanwhile is read again.
    """

    def __init__(self, out: str) -> None:
        refuse_no_text(out)
        self.out = out
        self.folder = os.path.join(out, "runs")
        self._abouts: dict[RunKey, tuple[_Stamp, Description]] = {}
        self._traces: dict[RunKey, Trace] = {}
        self._kept_bytes = 0
        self._out = out
        self._expected: tuple[type[RunDescription], ...] | None = (
            None  # kinds of runs that belong here; None: nobody has asked yet
        )

    def path(self, key: RunKey) -> str:
        return os.path.join(self.folder, f"{key.point:04d}-r{key.repetition}.parquet")

    def finished(self) -> set[RunKey]:
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return set()
        except OSError as error:
            raise ResultError(
                f"{self.folder}: cannot be listed: {error.strerror}; restore the directory of runs"
            ) from None
        matches = (_NAME.fullmatch(name) for name in names)
        return {RunKey(int(match[1]), int(match[2])) for match in matches if match}

    def save(self, trace: Trace) -> None:
        """Durable before it is visible."""
        os.makedirs(self._out, exist_ok=True)
        write_parquet(self.path(trace.key), trace.table, encode(trace.about), self._out)

    def refuse_others(self, points: Mapping[RunKey, Point], profiler: str | None = None) -> None:
        """Refuse a finished run that was made at another point than the one given for it, or measured with another profiler."""
        resolved: dict[str, str | None] = {}
        for key in sorted(self.finished() & points.keys()):
            about, point = self.describe(key), points[key]
            if (
                not isinstance(about, StudyRun)
                or not _same_study(about.study, identity(point.study), resolved)
                or not _same_values(about.sweep, point.sweep)
            ):
                raise ResultError(f"{self.path(key)}: belongs to a different study; {_MOVE}")
            measured_with = (about.profiler if isinstance(about, Measured) else None) or BUILTIN
            profiler = profiler or measured_with
            if measured_with != profiler:
                raise ResultError(
                    f"{self.path(key)}: was measured with {measured_with}, not with {profiler}; times of two profilers cannot be mixed: "
                    f"choose another --out, or use --profiler {measured_with}"
                )

    def describe(self, key: RunKey) -> Description:
        """The description of a run whose file is whole; its table is not read."""
        path = self.path(key)
        known = self._abouts.get(key)
        if known is not None and known[0] == _stamp(path):
            return known[1]
        self._forget(key)
        stamp, plain = _stamp(path), read_about(path)
        try:
            about = decode_description(plain, FIX)
        except ResultError as error:
            raise error.prefixed(path) from None
        if isinstance(about, StudyRun) and plain.get("point", key.point) not in (None, key.point):
            raise ResultError(f"{path}: contains another run than its name says (point {about.point}); {FIX}")
        self._refuse_other_kind(about, path)
        self._abouts[key] = stamp, about
        return about

    def _refuse_other_kind(self, about: Description, path: str) -> None:
        """Simulated runs are no measurements, whoever put them here. A directory without a mark of runs holds one kind, whichever it is."""
        if self._expected is None:
            self._expected = _KINDS.get(manifest.kind_of(self._out) or "", (type(about),))
        if not isinstance(about, self._expected):
            wanted = " or ".join(run_type.kind for run_type in self._expected)
            raise ResultError(
                f"{path}: is a run of kind '{about.kind}', but {self._out} contains {wanted} ones; {_MOVE}"
            )

    def load(self, key: RunKey) -> Trace:
        path = self.path(key)
        about = self.describe(key)
        if key in self._traces:
            return self._traces[key]
        table = _with_later_columns(read_table(path))
        if wrong := wrong_in_table(table, key, about):
            raise ResultError(f"{path}: {wrong}; {FIX}")
        trace = Trace(key, about, table.select(list(COLUMNS)))
        self._keep(trace)
        return trace

    def load_all(self) -> Iterator[Trace]:
        for key in sorted(self.finished()):
            yield self.load(key)

    def _keep(self, trace: Trace) -> None:
        size = trace.table.estimated_size()
        if self._kept_bytes + size <= _MOST_KEPT_BYTES:
            self._traces[trace.key] = trace
            self._kept_bytes += int(size)

    def _forget(self, key: RunKey) -> None:
        self._abouts.pop(key, None)
        if trace := self._traces.pop(key, None):
            self._kept_bytes -= int(trace.table.estimated_size())


_Stamp = tuple[int, int, int] | None


def _stamp(path: str) -> _Stamp:
    """What changes when a file is replaced or written to."""
    try:
        status = os.stat(path, follow_symlinks=False)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _same_values(first: SweepValues, second: SweepValues) -> bool:
    """Numbers may have been rounded when a study was written down."""
    return list(first) == list(second) and all(map(_same_value, first.values(), second.values()))


def _same_value(first: SweepValue, second: SweepValue) -> bool:
    if isinstance(first, int | float) and isinstance(second, int | float):
        return math.isclose(first, second)
    return first == second


def _same_study(text: str | None, expected: str, resolved: dict[str, str | None]) -> bool:
    """By what it means: one that was written before a key was there has that key's default. `resolved` remembers texts."""
    if text is None or text == expected:
        return text is not None
    if text not in resolved:
        try:
            resolved[text] = identity(parse_study(text, "the study of a run"))
        except SpecError:
            resolved[text] = None
    return resolved[text] == expected


def write_parquet(path: str, table: pl.DataFrame | pl.LazyFrame, about: JsonObject, out: str | None = None) -> None:
    """Description and checksum go into the file's metadata. `out`: the result that it is in, from where on links are refused."""
    metadata = {ABOUT: json.dumps(about), "tierscope_checksum": seal.BLANK}
    try:
        with durable.replacing(path, out) as file:
            try:
                if isinstance(table, pl.LazyFrame):
                    table.sink_parquet(file, metadata=metadata)
                else:
                    table.write_parquet(file, metadata=metadata)
            except pl.exceptions.ComputeError:
                _meet_again(file)
                raise
            seal.stamp(file)
    except (OSError, pl.exceptions.ComputeError) as error:  # Polars meets a full disk as the latter
        raise _explanation(error, path) from None


def _explanation(error: Exception, path: str) -> Exception:
    """Of some errors Polars has the system's number in its words only, and of some not even that."""
    number = _number_of(error)
    if number == errno.EFBIG or (number is None and not isinstance(error, OSError)):  # a limit, or room that ran out
        reason = os.strerror(number) if number else str(error).splitlines()[0]
        return OutOfSpaceError(f"{path}: {disk_errors.TABLE.full.replace('{said}', reason)}")
    cause = disk_errors.explanation(
        OSError(number, str(error)) if number else OSError(str(error)), path, disk_errors.TABLE
    )
    return StoppedError(str(cause)) if isinstance(cause, UserError) else cause  # the run is lost, and the study goes on


def _meet_again(file: BinaryIO) -> None:
    """Raise what the system says when more is written to a file: of some errors Polars only tells that there was one."""
    for _ in range(16):
        os.write(file.fileno(), bytes(1 << 16))
    os.fsync(file.fileno())


def _number_of(error: Exception) -> int | None:
    """Of a system's error; Polars has it in its words only."""
    told = re.search(r"\(os error (\d{1,4})\)", str(error))
    return getattr(error, "errno", None) or (int(told[1]) if told else None)


def _with_later_columns(table: pl.DataFrame) -> pl.DataFrame:
    """A run that was made before these columns were: nobody preprocessed, met after steps or wrote checkpoints then."""
    return table.with_columns(
        pl.lit(0.0, pl.Float64).alias(name) for name in LATER_COLUMNS if name not in table.columns
    )
