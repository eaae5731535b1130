"""What compiled code is handed has the shapes and types that it relies on: checked here, once for each epoch, for there nothing is checked.

What the arrays hold is checked by `ranges`.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from tierscope.errors import TierscopeError
from tierscope.predict.engine.inputs import TIER, LoaderInputs, Requests, SaveInputs, StartInputs, SystemInputs

Kinds = Iterable[tuple[str, np.dtype[Any]]]
Shape = tuple[int, ...]


def _kinds(dtype: Any, *names: str) -> Kinds:
    return tuple((name, np.dtype(dtype)) for name in names)


_OF_SAMPLES = (*_kinds(np.int8, "tiers"), *_kinds(np.int64, "files"), *_kinds(np.bool_, "opens"))
_OF_BUFFERS = (*_kinds(np.int64, "counts", "offsets"), *_kinds(np.float64, "lasts"))
_NOT_ALWAYS = (
    *_kinds(np.int64, "first_stripes"),
    *_kinds(np.bool_, "fills", "fetched"),
    *_kinds(np.float64, "sizes"),
    *_OF_BUFFERS,
)
_OF_RANKS = (*_kinds(np.int64, "nodes", "order"), *_kinds(np.float64, "seconds"))
_WINDOW = _kinds(np.int64, "window")
_TIERS, _NBYTES, _OPS = _kinds(TIER, "tiers"), _kinds(np.float64, "nbytes"), _kinds(np.float64, "ops")
_OF_STATIONS = (
    *_kinds(np.float64, "per_op", "per_byte", "write_per_op", "write_per_byte", "log_mean", "log_deviation"),
    *_kinds(np.bool_, "sharing"),
    *_kinds(np.float64, "speed", "credit", "stock", "period"),
)
_OF_SAVERS = _kinds(np.int64, "first", "commit", "end", "drained")
_OF_OPERATIONS = (*_kinds(np.int64, "kinds", "tiers", "files", "rows", "nbytes"), *_kinds(np.float64, "turns"))
_OF_LEFT = (
    *_kinds(np.int64, "resumes", "resumes_drain"),
    *_kinds(np.bool_, "unsettled"),
    *_kinds(np.float64, "since"),
)
_NONE_OF_THEM = (0, 0)


def check_shapes(
    requests: Requests, start: StartInputs, system: SystemInputs, loader: LoaderInputs, saving: SaveInputs
) -> None:
    shape = requests.tiers.shape
    ranks, _ = shape if len(shape) == 2 else (0, 0)
    _check("requests", requests, _OF_SAMPLES, shape if len(shape) == 2 else _NONE_OF_THEM)
    _check_not_always(requests, shape)
    _check("start", start, _OF_RANKS, (ranks,))
    if len(requests.fetched) or len(start.window):
        _check("start", start, _WINDOW, (ranks,))
    _check_system(system)
    if loader.batch < 1 or loader.threads < 1 or loader.prefetch < 0:
        raise TierscopeError(
            f"event engine: loader has batch {loader.batch}, threads {loader.threads}, prefetch {loader.prefetch}; not at least 1, 1, 0"
        )
    if len(saving.first) or len(saving.kinds):
        _check("saving", saving, _OF_SAVERS, (ranks,))
        _check("saving", saving, _OF_OPERATIONS, saving.kinds.shape[:1])
        _check("saving.left", saving.left, _OF_LEFT, (ranks,))


def _check_not_always(requests: Requests, shape: Shape) -> None:
    """Of all samples, or of none; of samples that are cut from a buffer there are all three."""
    for name, dtype in _NOT_ALWAYS:
        array = getattr(requests, name)
        if array.shape not in (_NONE_OF_THEM, shape) or array.dtype != dtype:
            raise _wrong(f"requests.{name}", array, shape, dtype)
    if not requests.counts.shape == requests.offsets.shape == requests.lasts.shape:
        _check("requests", requests, _OF_BUFFERS, shape)


def _check_system(system: SystemInputs) -> None:
    shape = system.nbytes.shape
    tiers, rows, stripes = shape if len(shape) == 3 else (0, 0, 0)
    _check("system", system, _NBYTES, (tiers, rows, stripes))
    _check("system", system, _OPS, (tiers, rows))
    _check("system", system, _TIERS, (tiers,))
    _check("system", system, _OF_STATIONS, system.per_op.shape[:1])
    if not tiers or not stripes or not 0 <= system.reads < rows:
        raise TierscopeError(f"event engine: system.reads is {system.reads}, system.nbytes has shape {shape}")


def _check(whose: str, arrays: Any, kinds: Kinds, shape: Shape) -> None:
    for name, dtype in kinds:
        array = getattr(arrays, name)
        if array.shape != shape or (array.dtype is not dtype and array.dtype != dtype):
            raise _wrong(f"{whose}.{name}", array, shape, dtype)


def _wrong(name: str, array: Any, shape: Shape, dtype: np.dtype[Any]) -> TierscopeError:
    return TierscopeError(
        f"event engine: {name} has shape {array.shape} of {_shown(array.dtype)}, not {shape} of {_shown(dtype)}"
    )


def _shown(dtype: np.dtype[Any]) -> str:
    return "rows of a tier" if dtype == TIER else "other rows" if dtype.names else str(dtype)
