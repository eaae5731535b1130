"""Tierscope: where training's I/O time goes across storage tiers, and what to do about it.

`import tierscope as ts` gives the commands' use cases as calls: `ts.load(OUT)`, `ts.run`, `ts.simulate`, `ts.calibrate`, `ts.require`, `ts.analyze_logs`
(docs/api.md). They are loaded when they are first used: the import alone takes milliseconds and pulls in no library.

A program that runs under `tierscope trace` may say what it is doing: `ts.mark_epoch(n)` where epoch n begins, and
`with ts.phase("compute"):` around a stretch of work. Elsewhere both do nothing, at next to no cost; under torch's or TensorFlow's profiler a phase is
also a span there. `ts.mark_clock(FOLDER)` marks a moment that such a profiler and an I/O profiler both record, to align their clocks. `with ts.tracing() as block:` measures a stretch of it.
"""

import functools
import operator
import sys
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, SupportsIndex

if TYPE_CHECKING:
    from tierscope.analysis.wording import Finding as Finding
    from tierscope.api.block import TracedBlock as TracedBlock
    from tierscope.api.block import tracing as tracing
    from tierscope.api.calibration import FittedSystem as FittedSystem
    from tierscope.api.calibration import calibrate as calibrate
    from tierscope.api.logs import analyze_logs as analyze_logs
    from tierscope.api.points import ResultPoint as ResultPoint
    from tierscope.api.requirements import NetworkRequirements as NetworkRequirements
    from tierscope.api.requirements import require as require
    from tierscope.api.result import Result as Result
    from tierscope.api.result import load as load
    from tierscope.api.studies import Study as Study
    from tierscope.api.studies import StudyExploration as StudyExploration
    from tierscope.api.studies import run as run
    from tierscope.api.studies import simulate as simulate
    from tierscope.api.whatif import MetOption as MetOption
    from tierscope.api.whatif import ResultEstimate as ResultEstimate
    from tierscope.api.whatif import ResultExploration as ResultExploration
    from tierscope.clock_marks import mark_clock as mark_clock
    from tierscope.errors import PartialResultWarning as PartialResultWarning
    from tierscope.errors import ResultWarning as ResultWarning
    from tierscope.errors import StaleResultWarning as StaleResultWarning
    from tierscope.errors import StoppedError as StoppedError
    from tierscope.errors import TierscopeError as TierscopeError
    from tierscope.errors import UserError as UserError

__version__ = "0.1.0"

_PLACES = {
    "Finding": "analysis.wording",
    **dict.fromkeys(("FittedSystem", "calibrate"), "api.calibration"),
    **dict.fromkeys(("MetOption", "ResultEstimate", "ResultExploration"), "api.whatif"),
    **dict.fromkeys(("NetworkRequirements", "require"), "api.requirements"),
    **dict.fromkeys(("Result", "load"), "api.result"),
    **dict.fromkeys(("Study", "StudyExploration", "run", "simulate"), "api.studies"),
    **dict.fromkeys(("TracedBlock", "tracing"), "api.block"),
    "ResultPoint": "api.points",
    "analyze_logs": "api.logs",
    "mark_clock": "clock_marks",
    **dict.fromkeys(("PartialResultWarning", "ResultWarning", "StaleResultWarning"), "errors"),
    **dict.fromkeys(("StoppedError", "TierscopeError", "UserError"), "errors"),
}
__all__ = [*sorted(_PLACES), "mark_epoch", "phase"]  # noqa: PLE0604  (all of them are text)

if not TYPE_CHECKING:  # a type checker would take every name for known

    def __getattr__(name: str) -> Any:
        """A public name, loaded when it is first asked for."""
        if name not in _PLACES:
            raise AttributeError(f"module 'tierscope' has no attribute {name!r}")
        import importlib  # noqa: PLC0415  (importing tierscope costs nothing)

        if _PLACES[name].startswith("api."):
            from tierscope.thread_limits import check_threads  # noqa: PLC0415

            check_threads()
        value = globals()[name] = getattr(importlib.import_module(f"tierscope.{_PLACES[name]}"), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})


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
    __slots__ = ("_name", "_span")

    def __init__(self, name: bytes) -> None:
        self._name = name
        self._span: AbstractContextManager[object] | None = None

    def __enter__(self) -> None:
        if "torch" in sys.modules or "tensorflow" in sys.modules:
            from tierscope.clock_marks import PHASE_NAME, framework_span  # noqa: PLC0415

            self._span = framework_span(PHASE_NAME + self._name.decode())
        recorder = _recorder()
        if recorder is not None:
            recorder.ts_phase_begin(self._name)

    def __exit__(self, *_error: object) -> None:
        recorder = _recorder()
        if recorder is not None:
            recorder.ts_phase_end()
        if self._span is not None:
            self._span.__exit__(None, None, None)


@functools.cache
def _recorder() -> Any:
    """The recorder's library, if it was preloaded into this process."""
    import ctypes  # noqa: PLC0415  (importing tierscope costs nothing)

    everything = ctypes.CDLL(None)
    return everything if hasattr(everything, "ts_mark_epoch") else None
