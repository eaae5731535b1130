"""Tierscope: where training's I/O time goes across storage tiers, and what to do about it.

A program that runs under `tierscope trace` may say what it is doing: `tierscope.mark_epoch(n)` where epoch n begins, and
`with tierscope.phase("compute"):` around a stretch of work. Elsewhere both do nothing, at next to no cost.
"""

import functools
import operator
from contextlib import AbstractContextManager
from typing import Any, SupportsIndex

__version__ = "0.1.0"

_LARGEST_EPOCH = 2**31 - 1
_LONGEST_PHASE = 23  # bytes of its name


def mark_epoch(number: SupportsIndex) -> None:
    """Epoch `number` (1, 2, …) begins now, in this rank with all its processes. What happened before the first mark is epoch 1's."""
    if isinstance(number, bool) or not hasattr(number, "__index__"):
        raise TypeError(f"mark_epoch takes a whole number, not {number!r}")
    epoch = operator.index(number)
    if not 1 <= epoch <= _LARGEST_EPOCH:
        raise ValueError(f"mark_epoch takes a number of 1 to {_LARGEST_EPOCH}, not {epoch}")
    recorder = _recorder()
    if recorder is not None:
        recorder.ts_mark_epoch(epoch)


def phase(name: str) -> AbstractContextManager[None]:
    """The block counts as this phase; "compute" is what the breakdown sets against I/O. An inner phase counts for the outer one too."""
    if not isinstance(name, str):
        raise TypeError(f"phase takes a name, not {name!r}")
    encoded = name.encode("utf-8", "replace")
    if not encoded or len(encoded) > _LONGEST_PHASE or "\0" in name:
        raise ValueError(f"a phase's name must be of 1 to {_LONGEST_PHASE} bytes, not {name!r}")
    return _Phase(encoded)


class _Phase(AbstractContextManager[None]):
    __slots__ = ("_name",)

    def __init__(self, name: bytes) -> None:
        self._name = name

    def __enter__(self) -> None:
        recorder = _recorder()
        if recorder is not None:
            recorder.ts_phase_begin(self._name)

    def __exit__(self, *_error: object) -> None:
        recorder = _recorder()
        if recorder is not None:
            recorder.ts_phase_end()


@functools.cache
def _recorder() -> Any:
    """The recorder's library, if it was preloaded into this process."""
    import ctypes  # noqa: PLC0415  (importing tierscope costs nothing)

    everything = ctypes.CDLL(None)
    return everything if hasattr(everything, "ts_mark_epoch") else None
