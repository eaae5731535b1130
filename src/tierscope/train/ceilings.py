"""What a device really reaches: bandwidth of its memory, and matrix products in the precisions that training uses."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

from tierscope.train.clock import wait

_REPEATS = 7


@dataclass(frozen=True, slots=True)
class Ceilings:
    """Bytes and operations per second, medians. `tf32`: 32-bit products with 19-bit inputs, as convolutions use by default on CUDA."""

    memory_bandwidth: float
    fp32: float
    tf32: float
    bf16: float


def measure_ceilings(device: torch.device) -> Ceilings:
    on_device = device.type == "cuda"
    side = 8192 if on_device else 512
    elements = (1 << 30) if on_device else (1 << 24)
    source = torch.zeros(elements // 4, dtype=torch.float32, device=device)
    target = torch.empty_like(source)
    copied = 2 * source.numel() * source.element_size()  # read and written
    bandwidth = copied / _median(lambda: target.copy_(source), device)
    flops = 2 * side**3
    wide = [torch.randn(side, side, device=device) for _ in range(2)]
    narrow = [matrix.bfloat16() for matrix in wide]
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32 = False
        fp32 = flops / _median(lambda: wide[0] @ wide[1], device)
        torch.backends.cuda.matmul.allow_tf32 = True
        tf32 = flops / _median(lambda: wide[0] @ wide[1], device)
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    return Ceilings(bandwidth, fp32, tf32, flops / _median(lambda: narrow[0] @ narrow[1], device))


def _median(work: Callable[[], object], device: torch.device) -> float:
    def once() -> float:
        start = time.perf_counter()
        work()
        wait(device)
        return time.perf_counter() - start

    for _ in range(2):
        once()
    return statistics.median(once() for _ in range(_REPEATS))
