"""A training script as people write them, with torch: packed records through a buffered file, or HDF5 by h5py, and a small network that learns from them.

It knows nothing of Tierscope. Prints the seconds of its last epoch, as JSON.
"""

import argparse
import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

_HEADER, _FOOTER_BYTES = struct.Struct("<QI"), 4
_SIDE = 64


class Records(IterableDataset[torch.Tensor]):  # type: ignore[misc]
    """All samples of all files; every worker has its share of the files."""

    def __init__(self, files: list[Path], buffer_bytes: int) -> None:
        self._files, self._buffer_bytes = files, buffer_bytes

    def __iter__(self) -> Iterator[torch.Tensor]:
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker else (0, 1)
        for path in self._files[first::step]:
            yield from (_picture(sample) for sample in self._samples(path))

    def _samples(self, path: Path) -> Iterator[bytes]:
        if path.suffix == ".h5":
            with h5py.File(path) as file:
                data, start = file["x"], 0
                for end in file["ends"][:].tolist():
                    yield data[start:end].tobytes()
                    start = end
            return
        with open(path, "rb", buffering=self._buffer_bytes) as source:
            while header := source.read(_HEADER.size):
                yield source.read(_HEADER.unpack(header)[0])
                source.read(_FOOTER_BYTES)


def _picture(sample: bytes) -> torch.Tensor:
    pixels = torch.frombuffer(bytearray(sample[: 3 * _SIDE * _SIDE]), dtype=torch.uint8)
    return pixels.reshape(3, _SIDE, _SIDE).float() / 255


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--buffer", type=int, default=256 * 1024)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--epochs", type=int, default=2)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    files = sorted(path for path in given.folder.rglob("*") if path.suffix in (".tfrecord", ".h5"))
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3, stride=8), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(2)
    )
    network(torch.zeros(1, 3, _SIDE, _SIDE))
    solver = torch.optim.SGD(network.parameters(), lr=0.01)
    loader: Any = DataLoader(
        Records(files, given.buffer),
        batch_size=given.batch,
        num_workers=given.workers,
        multiprocessing_context="fork" if given.workers else None,
        persistent_workers=given.workers > 0,
    )
    seconds = 0.0
    for _ in range(given.epochs):
        began = time.perf_counter()
        for batch in loader:
            loss = torch.nn.functional.cross_entropy(network(batch), torch.zeros(len(batch), dtype=torch.int64))
            solver.zero_grad()
            loss.backward()
            solver.step()
        seconds = time.perf_counter() - began
    print(json.dumps({"seconds": seconds, "files": len(files)}))


if __name__ == "__main__":
    main()
