"""What a rank has read, written and done so far, by tier, while it is being recorded.

A thread asks for it a few times a second; the hot path of recording does nothing for it. Without anybody who follows, nothing of this exists.
"""

import threading
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

MOVED = 3  # columns: bytes read, bytes written, operations
READ_BYTES, WRITTEN_BYTES, OPERATIONS = range(MOVED)

Moved = npt.NDArray[np.int64]  # tier × MOVED
Source = Callable[[], Moved | None]  # None: cannot be told at this moment; ask again


class LiveTotals:
    """Sums over sources: lanes of the epoch under way, and those that last for the whole run. Any thread may ask."""

    def __init__(self, tiers: int) -> None:
        self._lock = threading.Lock()
        self._ended = np.zeros((tiers, MOVED), np.int64)
        self._sources: list[tuple[Source, Moved, bool]] = []

    def follow(self, source: Source, lasting: bool = False) -> None:
        with self._lock:
            self._sources.append((source, np.zeros_like(self._ended), lasting))

    def end_epoch(self) -> None:
        """What the epoch's lanes hold is final: they are asked once more, and let go."""
        with self._lock:
            self._look()
            self._ended += sum((last for _, last, lasting in self._sources if not lasting), np.zeros_like(self._ended))
            self._sources = [source for source in self._sources if source[2]]

    def now(self) -> Moved:
        """Never less than before: a source that cannot tell counts as it was."""
        with self._lock:
            self._look()
            return sum((last for _, last, _ in self._sources), self._ended.copy())

    def _look(self) -> None:
        for source, last, _ in self._sources:
            totals = source()
            if totals is not None:
                np.maximum(last, totals, out=last)
