"""Result trees of DLIO and `mlpstorage`: every `summary.json` below a folder is a run, the `*_per_epoch_stats.json` beside it has its epochs' seconds."""

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from tierscope.errors import UserError
from tierscope.plain_files import read_plain
from tierscope.plain_json import parse_json
from tierscope.predict.measured_table import MeasuredTable, Row, table_of
from tierscope.units import about_bytes

_SUMMARY = "summary.json"
_PER_EPOCH = "_per_epoch_stats.json"
_MOST_BYTES, _MOST_RUNS, _MOST_FOLDERS = 16 << 20, 10_000, 100_000
_MOST_VALUE_CHARS, _MOST_CHARS = 64 << 10, 64 << 20  # of one value; of all runs together
_EPOCH = re.compile(r"[0-9]{1,9}")
_NAMES = {"num_accelerators": "accelerators", "num_hosts": "hosts", "num_files_train": "files"}
_MEASURED = ("au_percent", "mbps", "samples_per_s", "epoch_seconds")


def read_results(folder: str) -> MeasuredTable:
    """All runs below a folder as a table; runs of as many accelerators are repetitions."""
    runs = list(_rows(folder))
    rows = [(path, row) for path, row in runs if any(name in row for name in _MEASURED)]
    if runs and not rows:
        raise UserError(
            f"{runs[0][0]}: has no AU, throughput or seconds of training; name results of runs that finished training"
        )
    if not rows:
        raise UserError(
            f"{folder}: contains no {_SUMMARY} of DLIO; name the results of mlpstorage or DLIO, or a CSV file"
        )
    return table_of(folder, rows)


def _rows(folder: str) -> Iterator[tuple[str, Row]]:
    """With the path of its summary."""
    runs = chars = 0
    for number, (place, folders, files) in enumerate(os.walk(folder, onerror=_refuse_unreadable)):
        if number > _MOST_FOLDERS or runs > _MOST_RUNS:
            raise UserError(f"{folder}: contains too many directories or runs; name a part of it")
        folders.sort()
        if _SUMMARY in files and (row := _run(place, sorted(files))):
            runs += 1
            chars += sum(map(len, row.values()))
            if chars > _MOST_CHARS:
                raise UserError(f"{folder}: contains too many epochs; name a part of it")
            yield row["path"], row


def _refuse_unreadable(error: OSError) -> NoReturn:
    """What cannot be listed may have runs: without them the others are not all."""
    raise UserError(
        f"{error.filename}: cannot be read: {error.strerror}; make it readable, or name a directory without it"
    )


def _run(place: str, files: list[str]) -> Row | None:
    path = os.path.join(place, _SUMMARY)
    summary = _document(path)
    metric = summary.get("metric")
    if not isinstance(metric, dict) or "num_accelerators" not in summary:
        return None  # of another program, or of a run without training
    row = {ours: _text(summary.get(theirs)) for theirs, ours in _NAMES.items()}
    row["au_percent"] = _text(metric.get("train_au_mean_percentage"))
    row["mbps"] = _text(metric.get("train_io_mean_MB_per_second"))
    row["samples_per_s"] = _text(metric.get("train_throughput_mean_samples_per_second"))
    row["epoch_seconds"] = _epochs(place, files)
    if long := next((name for name, text in row.items() if len(text) > _MOST_VALUE_CHARS), None):
        raise UserError(
            f"{path}: {long} of its run is longer than {about_bytes(_MOST_VALUE_CHARS)}; remove it, or name another directory"
        )
    row["path"] = path
    return {name: text for name, text in row.items() if text} | {"accelerators": row["accelerators"]}


def _epochs(place: str, files: list[str]) -> str:
    """Seconds of every epoch of the first rank, as the table has them."""
    name = next((name for name in files if name.endswith(_PER_EPOCH)), None)
    if name is None:
        return ""
    epochs = {key: value for key, value in _document(os.path.join(place, name)).items() if _EPOCH.fullmatch(key)}
    values = [epochs[key] for key in sorted(epochs, key=int)]
    seconds = [_text(value.get("duration")) for value in values if isinstance(value, dict)]
    return " ".join(text for text in seconds if text)


def _document(path: str) -> Mapping[str, Any]:
    try:
        document = parse_json(read_plain(path, _MOST_BYTES), finite=False)
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror}; remove it, or name another directory") from None
    except ValueError as error:
        reason = "" if isinstance(error, UnicodeError) else f": {str(error)[:80]}"
        raise UserError(f"{path}: is not JSON{reason}; copy it again from where it was written, or remove it") from None
    return document if isinstance(document, dict) else {}


def _text(value: object) -> str:
    """A number, or one in a text, as DLIO has durations; empty: nothing."""
    return "" if value is None or isinstance(value, bool | list | dict) else str(value)
