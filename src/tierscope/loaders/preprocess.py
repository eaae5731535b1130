"""What is done with samples between reading and training: nothing, a core kept busy, its time slept, or decoding and a cast to floats."""

import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tierscope.formats import Format
from tierscope.loaders.busy import Busy

Floats = npt.NDArray[np.float32]


class Preprocess:
    """Of the samples of a batch, or of a part of it; may be used by several threads."""

    def __init__(self, mode: str, seconds: float, form: Format) -> None:
        """`seconds`: of each sample, where it is `busy` or `sleep`."""
        self._mode, self._seconds, self._format = mode, seconds, form
        self._busy = Busy()

    def __call__(self, payloads: Sequence[memoryview]) -> list[Floats]:
        """What training would get; nothing where its time only passed. ValueError: what is stored cannot be decoded."""
        if self._mode == "sleep":
            time.sleep(len(payloads) * self._seconds)
            return []
        if self._mode == "busy":
            for _ in payloads:
                self._busy(self._seconds)
            return []
        return [np.frombuffer(self._format.decode(payload), np.uint8).astype(np.float32) for payload in payloads]


def make_preprocess(mode: str, seconds: float, form: Format) -> Preprocess | None:
    return None if mode == "none" or (mode in ("busy", "sleep") and not seconds) else Preprocess(mode, seconds, form)
