"""Stored samples as what a network takes.

A sample's bytes are taken as unsigned bytes, or as 16-bit integers where the training set has two for each element, and scaled to about
one; what preprocessing made is taken as 32-bit floats. A stored sample that is smaller than the network's input is repeated to fill it; of a larger one the first bytes are used.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from tierscope.arch.layer import Shape
from tierscope.loaders import Batch

_DTYPES = {1: torch.uint8, 2: torch.int16}
_SCALES = {1: 1 / 255, 2: 1 / 32768}


@dataclass(frozen=True, slots=True)
class InputRows:
    """Rows of bytes as inputs of a network."""

    dtype: torch.dtype
    scale: float
    shape: Shape
    row_bytes: int

    def cast(self, rows: torch.Tensor) -> torch.Tensor:
        return torch.mul(rows.view(self.dtype), self.scale).view(-1, *self.shape)


class StoredSamples:
    """How samples of a study lie in memory. `decode`: of stored ones, where nobody decoded them yet."""

    def __init__(
        self, shape: Shape, element_bytes: int, decode: Callable[[memoryview], memoryview] | None = None
    ) -> None:
        elements = int(np.prod(shape))
        self._decode = decode
        self._bytes = InputRows(_DTYPES[element_bytes], _SCALES[element_bytes], shape, elements * element_bytes)
        self._floats = InputRows(torch.float32, 1 / 255, shape, elements * 4)
        self.repeated = 0  # times that a sample was repeated at most

    @property
    def decodes(self) -> bool:
        return self._decode is not None

    def kind(self, batch: Batch) -> InputRows:
        return self._floats if batch.arrays else self._bytes

    def gather(self, batch: Batch, rows: npt.NDArray[np.uint8]) -> None:
        """A batch into rows of bytes, each as long as a network's input."""
        if batch.arrays:
            for row, array in zip(rows.view(np.float32), batch.arrays, strict=False):
                self._fill(row, array)
            return
        for row, payload in zip(rows, batch.payloads, strict=False):
            self._fill(row, np.frombuffer(self._decode(payload) if self._decode else payload, np.uint8))

    def _fill(self, row: np.ndarray, stored: np.ndarray) -> None:
        if len(stored) >= len(row):
            row[:] = stored[: len(row)]
            return
        self.repeated = max(self.repeated, -(-len(row) // max(1, len(stored))))
        row[:] = np.resize(stored, len(row))


class HostSamples:
    """For a network that is trained by the host itself: memory of one batch."""

    def __init__(self, stored: StoredSamples, batch_size: int) -> None:
        self._stored, self._batch_size = stored, batch_size
        self._rows: torch.Tensor | None = None

    def __call__(self, batch: Batch) -> torch.Tensor:
        kind = self._stored.kind(batch)
        if self._rows is None or self._rows.shape[1] != kind.row_bytes:
            self._rows = torch.empty((self._batch_size, kind.row_bytes), dtype=torch.uint8)
        self._stored.gather(batch, self._rows.numpy())
        return kind.cast(self._rows[: len(batch.samples)])

    nbytes = 0  # of an accelerator's memory

    def release(self) -> None:
        """A batch's memory may be used again at once."""
