"""What validation/h200/counters.json was made with: `python validation/measure_counters.py FILE [NETWORK …]` on a machine with a CUDA device, torch and Nsight Compute.

Operations and bytes of one step by hardware counters, per kernel and added up. A matrix product of known size is counted first: what the counters say of it beside what it needs is in the file.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tierscope.arch.efficiency import BINS, Kernel  # noqa: E402
from tierscope.arch.networks import build_network, shown  # noqa: E402
from tierscope.helper_process import helper_command, helper_environment  # noqa: E402
from tierscope.train.counters import FP32, MEMORY, ONE_STEP, TENSOR, TIME, command, counted_values, kernels_of  # noqa: E402
from validation.measure_h200 import PROFILED, origin  # noqa: E402

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
_SECONDS = 500.0  # for all of it


def tensor_metrics() -> list[str]:
    """Those that this device has, of dense products that add up in 32 bits."""
    listed = subprocess.run(["ncu", "--query-metrics"], capture_output=True, text=True, check=True).stdout
    names = {line.split()[0] for line in listed.splitlines() if line.startswith(TENSOR_OPS)}
    wanted = (f"{TENSOR_OPS}{source}_dst_fp32" for source in ("bf16", "fp16", "tf32"))
    return [f"{name}.sum" for name in wanted if name in names]


def counted(program: list[str], metrics: list[str]) -> str:
    line = command(program, metrics)
    line[1:1] = ["--print-units", "base"]
    return subprocess.run(
        line, env=helper_environment(), capture_output=True, text=True, check=False, timeout=_SECONDS
    ).stdout


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
    rows = [{"seconds": 0.0, "ideal_seconds": 0.0} for _ in range(BINS)]
    for kernel in kernels:
        row = rows[min(BINS - 1, int(kernel.efficiency * BINS))]
        row["seconds"] += kernel.seconds
        row["ideal_seconds"] += kernel.seconds * kernel.efficiency
    return rows


def product(kind: str, metrics: list[str], tensor: list[str]) -> dict[str, Any]:
    text = counted([sys.executable, "-c", _PRODUCT.format(kind=kind)], metrics)
    return {"kind": kind, "size": _SIZE, "flops": 2.0 * _SIZE**3, "counted": added_up(text, tensor)}


def main(path: str, *names: str) -> int:
    began = time.monotonic()
    tensor = tensor_metrics()
    metrics = [TIME, MEMORY, FP32, TENSOR, DRAM, *SINGLE, *HALF, *tensor]
    content: dict[str, Any] = {"schema_version": 1, "origin": origin(), "metrics": metrics, "products": [], "rows": []}
    for kind in ("bfloat16", "float32"):
        content["products"].append(product(kind, metrics, tensor))
        print(content["products"][-1], flush=True)
    for name, batch in PROFILED.items():
        if names and name not in names:
            continue
        for precision in ("amp", "fp32"):
            if time.monotonic() - began > _SECONDS:
                print(f"no time for {name}, {precision}", flush=True)
                continue
            words = (name, str(batch), precision, "sgd", shown(build_network(name).input_shape))
            text = counted(helper_command(ONE_STEP, *words), metrics)
            kernels = kernels_of(text)
            row = {"network": name, "batch": batch, "precision": precision, "kernels": len(kernels)}
            row |= {
                "seconds": sum(kernel.seconds for kernel in kernels),
                **added_up(text, tensor),
                "bins": bins(kernels),
            }
            content["rows"].append(row)
            Path(path).write_text(json.dumps(content, indent=1) + "\n")
            print(
                f"{time.monotonic() - began:.0f} s",
                {key: value for key, value in row.items() if key != "bins"},
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
