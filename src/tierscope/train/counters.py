"""Kernels from the hardware's counters, as Nsight Compute (`ncu --csv`) prints them.

One step of a program is profiled between the calls that start and stop the profiler (`ncu --profile-from-start off`).
"""

import csv
import io
import subprocess
from collections.abc import Iterable, Iterator

from tierscope.arch.efficiency import Kernel
from tierscope.arch.network import Network
from tierscope.arch.networks import shown
from tierscope.errors import StoppedError, UserError
from tierscope.helper_process import could_not_start, has_greeted, helper_command, helper_environment

TIME = "gpu__time_duration.sum"
MEMORY = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
FP32 = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"
TENSOR = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
ONE_STEP = "tierscope.train.one_step"
_ERROR = "==ERROR=="
_SECONDS = {
    "nsecond": 1e-9,
    "ns": 1e-9,
    "usecond": 1e-6,
    "us": 1e-6,
    "msecond": 1e-3,
    "ms": 1e-3,
    "second": 1.0,
    "s": 1.0,
}


def command(program: list[str], metrics: Iterable[str] = (TIME, MEMORY, FP32, TENSOR)) -> list[str]:
    """The command that profiles another one."""
    wanted = ",".join(metrics)
    return ["ncu", "--csv", "--profile-from-start", "off", "--clock-control", "none", "--metrics", wanted, *program]


def profile_step(
    network: Network, batch: int, precision: str, solver: str = "sgd", seconds: float = 600
) -> list[Kernel]:
    """The kernels of one step, in a process of its own."""
    words = (network.name, str(batch), precision, solver, shown(network.input_shape))
    try:
        done = subprocess.run(
            command(helper_command(ONE_STEP, *words)),
            env=helper_environment(),
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except FileNotFoundError:
        raise UserError("ncu is not in PATH; install NVIDIA Nsight Compute, or remove --counters") from None
    except subprocess.TimeoutExpired:
        raise StoppedError(f"ncu took more than {seconds:g} s; try a smaller batch, or remove --counters") from None
    if not has_greeted(ONE_STEP, done.stdout) and _ERROR not in done.stdout:  # else ncu says it better
        raise could_not_start(ONE_STEP, "--counters", done.returncode, done.stderr)
    return kernels_of(done.stdout)


def kernels_of(text: str) -> list[Kernel]:
    """What `ncu --csv` printed, lines of the program among it."""
    values: dict[str, dict[str, float]] = {}
    names: dict[str, str] = {}
    for number, name, metric, unit, value in counted_values(text):
        names[number] = name
        values.setdefault(number, {})[metric] = value * _SECONDS.get(unit, 1.0) if metric == TIME else value / 100
    return [
        Kernel(
            names[number],
            of_kernel[TIME],
            of_kernel.get(TENSOR, 0.0),
            of_kernel.get(FP32, 0.0),
            of_kernel.get(MEMORY, 0.0),
        )
        for number, of_kernel in values.items()
        if TIME in of_kernel
    ]


def counted_values(text: str) -> Iterator[tuple[str, str, str, str, float]]:
    """Number and name of a kernel, metric, its unit and value, as they were printed; without what was not available."""
    lines = text.splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        reason = next((line for line in lines if line.startswith(_ERROR)), "no table in its output")
        raise UserError(f"ncu returned no counters: {reason.removeprefix(_ERROR).strip()}")
    for row in csv.DictReader(io.StringIO("\n".join(lines[start:]))):
        metric, number = row.get("Metric Name"), row.get("Metric Value")
        if not row["ID"] or not row["ID"].isdigit() or metric is None or number is None:
            continue
        try:
            value = float(number.replace(",", ""))
        except ValueError:
            continue  # not available for this kernel
        yield row["ID"], row.get("Kernel Name") or "?", metric, row.get("Metric Unit") or "", value
