"""All-reduce over several devices, measured alone: a process for each, as ranks that train together are.

`python -m tierscope.train.all_reduce RANK SIZE MEETING DEVICE BYTES…` is one of these processes; it prints seconds, one for each size.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import distributed

from tierscope.arch.device_file import AllReduce
from tierscope.helper_process import Helper, end_with_starter, greet
from tierscope.train.clock import wait
from tierscope.train.helper_answers import answers_of
from tierscope.train.work import join

SIZES = tuple(float(1 << place) for place in range(12, 30))
_WARM, _REPEATS = 3, 9
_ELEMENT_BYTES = 4
_MOST_SECONDS = 900.0  # for all sizes
_MODULE = "tierscope.train.all_reduce"


def measure_all_reduce(devices: Sequence[str], sizes: Sequence[float] = SIZES) -> AllReduce:
    """Of gradients in 32 bits; the slowest process counts. `devices`: as torch calls them."""
    count = len(devices)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ended:
        meeting = str(Path(folder, "meet"))
        helpers = [
            ended.enter_context(Helper(_MODULE, (str(rank), str(count), meeting, device, *(f"{size:.0f}" for size in sizes)), needed_for="all-reduce"))
            for rank, device in enumerate(devices)
        ]  # fmt: skip
        for helper in helpers:
            helper.expect_greeting()
        told = answers_of(helpers, f"all-reduce over {count} devices", _MOST_SECONDS)
    slowest = [max(taken) for taken in zip(*map(json.loads, told), strict=True)]
    backend = "nccl" if devices[0].startswith("cuda") else "gloo"
    return AllReduce(count, backend, tuple(zip(map(float, sizes), slowest, strict=True)))


def _seconds(elements: int, device: torch.device) -> float:
    buffer = torch.ones(elements, device=device)
    taken = []
    for _ in range(_WARM + _REPEATS):
        distributed.barrier()
        wait(device)
        start = time.perf_counter()
        distributed.all_reduce(buffer)
        wait(device)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken[_WARM:])


def main(rank: str, size: str, meeting: str, name: str, *sizes: str) -> None:
    device = torch.device(name)
    end_with_starter()
    greet()
    join(SimpleNamespace(rank=int(rank), size=int(size), ranks_on_host=int(size), meeting=meeting), device)
    taken = [_seconds(max(1, int(nbytes) // _ELEMENT_BYTES), device) for nbytes in sizes]
    sys.stdout.write(json.dumps(taken) + "\n")
    sys.stdout.flush()
    distributed.barrier()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
