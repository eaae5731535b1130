"""What ranks hand over, in one file of plain NumPy arrays: for machines without a table library, to be gathered elsewhere (`handed`)."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from tierscope.output.durable import replacing
from tierscope.trace.provenance import Provenance
from tierscope.trace.rank_trace import RankTrace

SCHEMA_VERSION = 1
TREE = "about"  # the array that holds all but the other arrays, as JSON
ARRAY = "$array"  # the key of what stands for an array there


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
    arrays[TREE] = np.frombuffer(json.dumps(tree).encode(), np.uint8)
    with replacing(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def _packed(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return {ARRAY: name}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _packed(getattr(value, field.name), arrays) for field in dataclasses.fields(value)}
        return {"$type": type(value).__name__, **fields}
    if isinstance(value, list | tuple):
        return [_packed(item, arrays) for item in value]
    return value.item() if isinstance(value, np.generic) else value
