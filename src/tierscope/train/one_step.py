"""One step of training between the marks that start and stop a profiler: `tierscope.train.one_step NETWORK BATCH PRECISION SOLVER INPUT`."""

import sys

import torch

from tierscope.arch.networks import build_network
from tierscope.arch.precision import PRECISIONS
from tierscope.helper_process import greet
from tierscope.train.steps import Trainer


def main(name: str, batch: str, precision: str, solver: str, shape: str) -> None:
    greet()
    device = torch.device("cuda", 0)
    network = build_network(name, tuple(map(int, shape.split("x"))))
    trainer = Trainer(network, int(batch), PRECISIONS[precision], solver, device)
    for _ in range(2):
        trainer.step()
    torch.cuda.synchronize(device)
    torch.cuda.profiler.start()
    trainer.step()
    torch.cuda.synchronize(device)
    torch.cuda.profiler.stop()


if __name__ == "__main__":
    main(*sys.argv[1:6])
