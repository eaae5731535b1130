"""Operations and bytes of one step by hardware counters (Nsight Compute), per kernel and added up: a part of measure_h200.py.

A matrix product of known size is counted too: what the counters say of it beside what it needs.
"""

import subprocess
import sys
from typing import Any

from tierscope.arch.efficiency import BINS, Kernel
from tierscope.arch.networks import build_network, shown
from tierscope.errors import UserError
from tierscope.helper_process import helper_command, helper_environment
from tierscope.train.counters import FP32, MEMORY, ONE_STEP, TENSOR, TIME, command, counted_values, kernels_of
from validation.resumable import OutOfTimeError, TooLongError

DRAM = "dram__bytes.sum"
SINGLE = {  # instructions of threads, and operations of each
    "sm__sass_thread_inst_executed_op_fadd_pred_on.sum": 1,
    "sm__sass_thread_inst_executed_op_fmul_pred_on.sum": 1,
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum": 2,
}
HALF = {
    "sm__sass_thread_inst_executed_op_hadd_pred_on.sum": 1,
    "sm__sass_thread_inst_executed_op_hmul_pred_on.sum": 1,
    "sm__sass_thread_inst_executed_op_hfma_pred_on.sum": 2,
}
TENSOR_OPS = "sm__ops_path_tensor_src_"
_SIZE = 4096
_PRODUCT = f"""
import torch
torch.backends.cuda.matmul.allow_tf32 = True
a = torch.randn({_SIZE}, {_SIZE}, device="cuda").to(torch.{{kind}})
b = a @ a
torch.cuda.synchronize()
torch.cuda.profiler.start()
b = a @ a
torch.cuda.synchronize()
torch.cuda.profiler.stop()
"""
_MOST_SECONDS = 400.0  # of one step: every kernel is run several times


def tensor_metrics() -> list[str]:
    """Those that this device has, of dense products that add up in 32 bits."""
    listed = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True, check=False)
    if listed.returncode:
        said = (listed.stderr or listed.stdout).strip().partition("\n")[0]
        raise UserError(f"ncu --query-metrics ended with {listed.returncode}: {said}; leave the part counters out")
    names = {line.split()[0] for line in listed.stdout.splitlines() if line.startswith(TENSOR_OPS)}
    wanted = (f"{TENSOR_OPS}{source}_dst_fp32" for source in ("bf16", "fp16", "tf32"))
    return [f"{name}.sum" for name in wanted if name in names]


def allowed(seconds_left: float) -> float:
    """Seconds for one count in a call that has so many left."""
    return min(_MOST_SECONDS, seconds_left)


def took_all(seconds: float) -> OutOfTimeError | TooLongError:
    """What is said of a count that did not end within what was allowed."""
    said = f"counting took more than {seconds:g} s"
    return OutOfTimeError(said) if seconds < _MOST_SECONDS else TooLongError(said)


def counted(program: list[str], metrics: list[str], seconds: float) -> str:
    line = command(program, metrics)
    line[1:1] = ["--print-units", "base"]
    try:
        return subprocess.run(
            line, env=helper_environment(), capture_output=True, text=True, check=False, timeout=seconds
        ).stdout
    except subprocess.TimeoutExpired:
        raise took_all(seconds) from None


def added_up(text: str, tensor: list[str]) -> dict[str, Any]:
    sums: dict[str, float] = {}
    names: set[str] = set()
    for _, name, metric, _, value in counted_values(text):
        sums[metric] = sums.get(metric, 0.0) + value
        names.add(name)
    return {
        "unique_kernels": len(names),
        "dram_bytes": sums.get(DRAM),
        "fp32_flops": sum(times * sums.get(metric, 0.0) for metric, times in SINGLE.items()),
        "fp16_flops": sum(times * sums.get(metric, 0.0) for metric, times in HALF.items()),
        "tensor_flops": {
            metric.removeprefix(TENSOR_OPS).removesuffix(".sum"): sums.get(metric, 0.0) for metric in tensor
        },
    }


def bins(kernels: list[Kernel]) -> list[dict[str, float]]:
    """By efficiency; kernels of one name may be in several bins."""
    rows = [{"seconds": 0.0, "ideal_seconds": 0.0} for _ in range(BINS)]
    names: list[set[str]] = [set() for _ in range(BINS)]
    for kernel in kernels:
        place = min(BINS - 1, int(kernel.efficiency * BINS))
        rows[place]["seconds"] += kernel.seconds
        rows[place]["ideal_seconds"] += kernel.seconds * kernel.efficiency
        names[place].add(kernel.name)
    return [{**row, "unique_kernels": len(own)} for row, own in zip(rows, names, strict=True)]


def wanted_metrics(tensor: list[str]) -> list[str]:
    return [TIME, MEMORY, FP32, TENSOR, DRAM, *SINGLE, *HALF, *tensor]


def count_product(kind: str, metrics: list[str], tensor: list[str], seconds: float) -> dict[str, Any]:
    text = counted([sys.executable, "-c", _PRODUCT.format(kind=kind)], metrics, seconds)
    return {"size": _SIZE, "flops": 2.0 * _SIZE**3, "counted": added_up(text, tensor)}


def count_step(
    network: str, batch: int, precision: str, metrics: list[str], tensor: list[str], seconds: float
) -> dict[str, Any]:
    words = (network, str(batch), precision, "sgd", shown(build_network(network).input_shape))
    text = counted(helper_command(ONE_STEP, *words), metrics, seconds)
    kernels = kernels_of(text)
    taken = sum(kernel.seconds for kernel in kernels)
    return {"kernels": len(kernels), "seconds": taken, **added_up(text, tensor), "bins": bins(kernels)}
