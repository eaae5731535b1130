"""Stored samples as what a network takes: bytes gathered in (pinned) memory of the host, copied to the device and cast there.

A sample's bytes are taken as unsigned bytes, or as 16-bit integers where the training set has two for each element, and scaled to about
one. A stored sample that is smaller than the network's input is repeated to fill it; of a larger one the begin is taken.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from tierscope.arch.layer import Shape
from tierscope.loaders import Batch

_DTYPES = {1: torch.uint8, 2: torch.int16}
_SCALES = {1: 1 / 255, 2: 1 / 32768}


class Samples:
    """Memory of one batch."""

    def __init__(
        self,
        shape: Shape,
        element_bytes: int,
        batch_size: int,
        device: torch.device,
        decode: Callable[[memoryview], memoryview] | None = None,
    ) -> None:
        """`decode`: of stored samples, where nobody decoded them yet."""
        self._shape, self._device, self._decode = shape, device, decode
        self._scale, self._dtype = _SCALES[element_bytes], _DTYPES[element_bytes]
        self.sample_bytes = int(np.prod(shape)) * element_bytes
        pinned = device.type == "cuda"
        self._bytes = torch.empty((batch_size, self.sample_bytes), dtype=torch.uint8, pin_memory=pinned)
        self._rows = self._bytes.numpy()
        self.repeated = 0  # times that a sample was repeated at most

    def __call__(self, batch: Batch) -> torch.Tensor:
        count = len(batch.samples)
        if batch.arrays:
            return self._cast(self._of_floats(batch.arrays), 1 / 255)
        for row, payload in zip(self._rows, batch.payloads, strict=False):
            self._fill(row, np.frombuffer(self._decode(payload) if self._decode else payload, np.uint8))
        moved = self._bytes[:count].to(self._device, non_blocking=True)
        return self._cast(moved.view(self._dtype), self._scale)

    def _fill(self, row: np.ndarray, stored: np.ndarray) -> None:
        if len(stored) >= len(row):
            row[:] = stored[: len(row)]
            return
        self.repeated = max(self.repeated, -(-len(row) // max(1, len(stored))))
        row[:] = np.resize(stored, len(row))

    def _of_floats(self, arrays: Sequence[np.ndarray]) -> torch.Tensor:
        elements = int(np.prod(self._shape))
        host = np.empty((len(arrays), elements), np.float32)
        for row, array in zip(host, arrays, strict=True):
            self._fill(row, array)
        return torch.from_numpy(host).to(self._device)

    def _cast(self, values: torch.Tensor, scale: float) -> torch.Tensor:
        return values.float().mul_(scale).view(-1, *self._shape)
