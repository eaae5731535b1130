"""What an accelerator does with the kinds of work that layers are made of: seconds of drawn sizes, in every precision; what the host spends.

The device is timed by its own events, behind a pause that lets the host run ahead, so that seconds are the device's and not those of launches.
"""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice

import torch

from tierscope.arch.device_file import FEWEST_ROWS, DeviceFile, DeviceOrigin, WorkRow
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.work_draws import COUNTS, draws
from tierscope.arch.work_kinds import KINDS, Sizes
from tierscope.errors import UserError
from tierscope.train.ceilings import measure_ceilings
from tierscope.train.clock import wait
from tierscope.train.device_work import Call, WorkMemory, calls_of
from tierscope.train.host_cost import host_seconds

_MOST_ELEMENTS = 1 << 30
_MEMORY_SHARE = 24  # of the device's memory, bytes for one element of the buffer
_GROUPS = 3
_LONG = 1e-3  # a call of more is timed alone
_VERY_LONG = 2e-2  # and one of more only once
_CYCLES = 2e9  # of a device in a second, about


def probe_device(device: torch.device, say: Callable[[str], None], share: float = 1.0) -> DeviceFile:
    """`share`: of the sizes that are drawn for each kind."""
    ceilings = measure_ceilings(device)
    rows: dict[tuple[str, str], tuple[WorkRow, ...]] = {}
    left_out: dict[str, int] = {}
    memory = WorkMemory.of(device, _elements(device))
    for precision in PRECISIONS.values():
        own = WorkMemory(memory.wide, memory.narrow, precision.copies_weights)
        for kind, count in COUNTS.items():
            start = time.perf_counter()
            measured = [
                _row(kind, sizes, own, device) for sizes in islice(draws(kind), max(FEWEST_ROWS, round(count * share)))
            ]
            rows[kind, precision.name] = tuple(row for row in measured if row is not None)
            left_out[kind] = left_out.get(kind, 0) + sum(row is None for row in measured)
            say(f"{kind}, {precision.name}: {len(measured)} sizes in {time.perf_counter() - start:.1f} s")
    del own, memory
    known = _with_kernels(rows, say)
    rows = {key: row for key, row in rows.items() if key[1] in known}
    host = {name: host_seconds(device, PRECISIONS[name]) for name in known}
    return DeviceFile(_origin(device), asdict(ceilings), rows, host, left_out)


def _with_kernels(rows: Mapping[tuple[str, str], tuple[WorkRow, ...]], say: Callable[[str], None]) -> list[str]:
    """Precisions with enough sizes of every kind: older devices do not convolve in 16 bits."""
    lacking = {precision: kind for (kind, precision), row in rows.items() if len(row) < FEWEST_ROWS}
    for precision, kind in lacking.items():
        say(f"{precision}: left out: the device has no kernels of {kind} for it, or no room")
    if len(lacking) == len(PRECISIONS):
        raise UserError(
            "--accelerator: the device has kernels, or room, for too few sizes in any precision; use another device"
        )
    return [precision for precision in PRECISIONS if precision not in lacking]


def _elements(device: torch.device) -> int:
    if device.type != "cuda":
        return 1 << 22
    return min(_MOST_ELEMENTS, int(torch.cuda.get_device_properties(device).total_memory) // _MEMORY_SHARE)


def _row(kind: str, sizes: Sizes, memory: WorkMemory, device: torch.device) -> WorkRow | None:
    """None: the device has no room for it, or no way to do it."""
    try:
        calls = calls_of(kind, sizes, memory)
        return WorkRow(sizes, tuple(_seconds(calls[way], device) for way in KINDS[kind].ways))
    except RuntimeError:  # no room, or no kernel for it
        if device.type == "cuda":
            torch.cuda.empty_cache()
        return None


def _seconds(call: Call, device: torch.device) -> float:
    call()
    wait(device)
    start = time.perf_counter()
    call()
    issued = time.perf_counter() - start
    wait(device)
    taken = time.perf_counter() - start
    count = 1 if taken > _LONG else 4
    if device.type != "cuda":
        return taken
    return statistics.median(_group(call, count, issued) for _ in range(1 if taken > _VERY_LONG else _GROUPS))


def _group(call: Call, count: int, issued: float) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda._sleep(int(_CYCLES * (1e-4 + 1.5 * count * min(issued, 5e-3))))
    start.record()
    for _ in range(count):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / count


def _origin(device: torch.device) -> DeviceOrigin:
    on_device = device.type == "cuda"
    return DeviceOrigin(
        device=torch.cuda.get_device_name(device) if on_device else "cpu",
        memory_bytes=int(torch.cuda.get_device_properties(device).total_memory) if on_device else 0,
        torch=torch.__version__,
        cudnn=str(torch.backends.cudnn.version()),
        time=datetime.now(UTC).isoformat(timespec="seconds"),
    )
