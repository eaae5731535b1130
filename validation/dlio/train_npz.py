"""An application: a small network trained by torch on NPZ files, by `train_npz.py FOLDER`. It computes for real; its loader is torch's own."""

import sys
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset

EPOCHS, BATCH, WORKERS, SIDE = 2, 4, 2, 64


class Volumes(Dataset):  # type: ignore[misc]
    def __init__(self, folder: Path) -> None:
        self.paths = sorted(folder.glob("*.npz"))

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, number: int) -> torch.Tensor:
        volume = np.load(self.paths[number])["x"]
        return torch.from_numpy(np.resize(volume, (1, SIDE, SIDE)).astype(np.float32) / 255)


def main(folder: Path) -> None:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * (SIDE - 2) ** 2, 1)
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-3)
    loader = DataLoader(Volumes(folder), BATCH, shuffle=True, num_workers=WORKERS)
    for _ in range(EPOCHS):
        for batch in loader:
            optimizer.zero_grad()
            network(batch).square().mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
