"""What ranks handed over, in one file of plain NumPy arrays: for machines without a table library, to be gathered elsewhere.

Only these types are read back, by name, and no pickles; what is inside is checked by whoever makes a trace of it.
"""

import dataclasses
import json
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from tierscope.errors import ResultError
from tierscope.output.durable import open_plain
from tierscope.trace.provenance import Provenance
from tierscope.trace.rank_trace import CheckpointLog, Phases, RankEpoch, RankTrace, Residency, TrainingLog
from tierscope.trace.recorder import LaneTable

SCHEMA_VERSION = 1
_TYPES: dict[str, type] = {
    kind.__name__: kind for kind in (RankTrace, RankEpoch, Residency, LaneTable, CheckpointLog, TrainingLog, Phases)
}
_ABOUT = "about"
_MOST_BYTES = 1 << 30  # unpacked
_BROKEN = (
    OSError,
    KeyError,
    TypeError,
    ValueError,
    AttributeError,
    EOFError,
    NotImplementedError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
)  # what damaged archives and trees raise


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class HandedRun:
    """Which run it is, and what is known of it beside its ranks. `overhead`: seconds by name, as bench/overhead.py has them."""

    point: int
    repetition: int
    overhead: Mapping[str, float | None] = dataclasses.field(default_factory=dict)
    provenance: Provenance = Provenance()


def save(path: str, run: HandedRun, ranks: list[RankTrace]) -> None:
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    tree = {
        "schema_version": SCHEMA_VERSION,
        "about": dataclasses.asdict(run),
        "ranks": [_packed(rank, arrays) for rank in ranks],
    }
    arrays[_ABOUT] = np.frombuffer(json.dumps(tree).encode(), np.uint8)
    with open(path, "wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def load(path: str) -> tuple[HandedRun, list[RankTrace]]:
    from tierscope.trace.decode import decode  # noqa: PLC0415  (needs msgspec, which a machine that only trains may lack)

    try:
        with open_plain(path) as file:
            with zipfile.ZipFile(file) as archive:
                if sum(entry.file_size for entry in archive.infolist()) > _MOST_BYTES:
                    raise ValueError("is too large")
            file.seek(0)
            with np.load(file, allow_pickle=False) as found:
                arrays = {name: found[name] for name in found.files}
        tree = json.loads(arrays.pop(_ABOUT).tobytes())
        if tree["schema_version"] != SCHEMA_VERSION or not isinstance(tree["about"], dict):
            raise ValueError("is of another version")
        ranks = [_unpacked(rank, arrays) for rank in tree["ranks"]]
        if not ranks or not all(isinstance(rank, RankTrace) for rank in ranks):
            raise ValueError("holds no ranks")
    except _BROKEN as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ResultError(
            f"{path}: is no run that was handed over ({reason}); copy it again, or measure it again"
        ) from None
    try:
        return decode(tree["about"], HandedRun, "copy it again, or measure it again"), ranks
    except ResultError as error:
        raise error.prefixed(path) from None


def _packed(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {"$array": name}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _packed(getattr(value, field.name), arrays) for field in dataclasses.fields(value)}
        return {"$type": type(value).__name__, **fields}
    if isinstance(value, list | tuple):
        return [_packed(item, arrays) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _unpacked(value: Any, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, list):
        return tuple(_unpacked(item, arrays) for item in value)
    if not isinstance(value, dict):
        return value
    if "$array" in value:
        return arrays[value["$array"]]
    kind = _TYPES[value["$type"]]
    return kind(**{name: _unpacked(item, arrays) for name, item in value.items() if name != "$type"})
