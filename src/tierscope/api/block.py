"""Tracing a block of the running program, where `tierscope trace` started it."""

import os
import tempfile
import time
from types import TracebackType
from typing import TYPE_CHECKING

import tierscope
from tierscope.errors import UserError
from tierscope.recording.looks import is_recording, look

if TYPE_CHECKING:
    from tierscope.api.result import Result

_START = (
    "start it with 'tierscope trace --tier NAME=/PATH -- python SCRIPT.py', or a notebook with "
    "'tierscope trace --tier NAME=/PATH -- jupyter lab'"
)


class TracedBlock:
    """What this process, and those of its rank, did on the tiers within a `with tracing():` block. From `tracing`; use one for one block.

    Two copies of the recorder's sums, some KB per process and thread, until `result` is asked for.
    """

    __slots__ = ("_began", "_folder", "_looks", "_result", "_seconds")

    def __init__(self, folder: str) -> None:
        """Not for callers."""
        self._folder = folder
        self._looks: tempfile.TemporaryDirectory[str] | None = None
        self._began = 0
        self._seconds: float | None = None
        self._result: Result | None = None

    def __enter__(self) -> "TracedBlock":
        if self._looks is not None or self._result is not None:
            raise UserError("tracing: this block was used before; call ts.tracing() for another one")
        self._looks = tempfile.TemporaryDirectory(prefix="tierscope-")
        look(self._folder, self._place("before"))
        self._began = time.monotonic_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._seconds = (time.monotonic_ns() - self._began) / 1e9
        look(self._folder, self._place("after"))

    @property
    def seconds(self) -> float:
        """How long the block took, by the clock. Costs nothing."""
        if self._seconds is None:
            raise UserError("tracing: the block has not ended; ask behind it")
        return self._seconds

    @property
    def result(self) -> "Result":
        """Where the block's I/O time went. Imports the table library and takes about a second the first time: ask when training is over."""
        if self._result is None:
            seconds = self.seconds
            from tierscope.api.result import Result  # noqa: PLC0415  (tables: not while training)
            from tierscope.commands.analyze import analyze_traced  # noqa: PLC0415
            from tierscope.recording.stretch import stretch_of  # noqa: PLC0415

            places = self._place("before"), self._place("after")
            trace, about = stretch_of(self._folder, *places, seconds, os.getpid())
            self._result = Result(analyze_traced(trace, about))
            assert self._looks is not None
            self._looks.cleanup()
        return self._result

    def _place(self, name: str) -> str:
        assert self._looks is not None
        path = os.path.join(self._looks.name, name)
        os.makedirs(path, exist_ok=True)
        return path

    def __repr__(self) -> str:
        return f"<TracedBlock: {'not ended' if self._seconds is None else f'{self._seconds:.3f} s'}>"


def tracing() -> TracedBlock:
    """Measure a block of this very program: `with ts.tracing() as block: …`, then `block.result`.

    Works where Tierscope's library is preloaded into the process, that is under `tierscope trace`, which also says which paths are which tier; elsewhere it is refused
    with the command to use. For one epoch, one function or one cell of a notebook among many. Entering and leaving take about a millisecond; nothing else changes
    in how the program is recorded, and `tierscope trace` still shows the whole of it.
    """
    if tierscope._recorder() is None:
        raise UserError(f"tracing: Tierscope's library is not preloaded into this process; {_START}")
    folder = os.environ.get("TIERSCOPE_RECORD")
    if folder is None or not is_recording(folder):
        raise UserError(
            f"tracing: Tierscope's library is preloaded into this process, but TIERSCOPE_RECORD names no recording; {_START}"
        )
    return TracedBlock(folder)
