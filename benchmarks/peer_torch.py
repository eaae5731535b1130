"""torch's DataLoader over a folder of npz files, as its users write it: run by another interpreter, prints seconds of every round as JSON."""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset


class Archives(Dataset[torch.Tensor]):  # type: ignore[misc]
    def __init__(self, paths: list[str]) -> None:
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, number: int) -> torch.Tensor:
        with np.load(self._paths[number]) as archive:
            return torch.from_numpy(archive["x"][0])


def main(folder: str, batch: int, workers: int, rounds: int) -> None:
    paths = sorted(map(str, Path(folder).glob("*.npz")))
    seconds = []
    loader = DataLoader(Archives(paths), batch, num_workers=workers, persistent_workers=workers > 0)
    for number in range(rounds + 1):  # the first starts workers
        start = time.monotonic()
        read = sum(len(samples) for samples in loader)
        assert read == len(paths)
        if number:
            seconds.append(time.monotonic() - start)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main(sys.argv[1], *(int(argument) for argument in sys.argv[2:5]))
