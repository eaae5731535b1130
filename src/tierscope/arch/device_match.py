"""Whether what was measured is of the accelerators that a system has: a system does not name them, but says what they are capable of.

Memory tells many apart; of those with as much of it, what was measured cannot be more than the system's peak, and is not far below it either.
A result that does not say how much memory its device had may have its name, which often does.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tierscope.arch.device_file import DeviceFile
from tierscope.arch.machine import Machine
from tierscope.errors import UserError
from tierscope.units import about_bytes, about_flops

_SAME_MEMORY = 1.25  # times as much is still the same accelerator, counted otherwise
_MOST = 1.1  # of a nominal peak; clocks differ
_LEAST_BANDWIDTH, _LEAST_PRODUCTS = 0.6, 0.45  # of it: an H200 reaches 0.85 and 0.79
_SOLD_WITH = {"T4": 16, "L4": 24, "A10": 24, "A30": 24, "L40S": 48, "H200": 141}  # GB, of names that do not say it
_TWO_MEMORIES = ("GH200", "GB200", "GB300")  # whose name may count the host's
_GIGABYTES = re.compile(r"\b(\d{1,3}) ?GB\b")


@dataclass(frozen=True, slots=True)
class SeenDevice:
    """What a result says of its device. `memory_bytes`: None: nothing; `ceilings`: those that were measured."""

    name: str
    memory_bytes: int | None
    ceilings: Mapping[str, float]


def memory_by_name(name: str) -> int | None:
    """As drivers name accelerators: `Tesla V100-SXM2-16GB`, `NVIDIA H200`; None: the name does not tell."""
    if any(both in name for both in _TWO_MEMORIES):
        return None
    said = _GIGABYTES.search(name)
    if said is not None:
        return int(said[1]) * 10**9
    words = re.split(r"[^A-Za-z0-9]+", name)
    return next((size * 10**9 for word, size in _SOLD_WITH.items() if word in words), None)


def difference(seen: SeenDevice, machine: Machine) -> tuple[str, str] | None:
    """What tells a device from a system's accelerators: its own, and theirs; None: nothing that is known."""
    peaks = machine.device
    if seen.memory_bytes is not None and not 1 / _SAME_MEMORY <= seen.memory_bytes / machine.memory <= _SAME_MEMORY:
        return f"with {about_bytes(seen.memory_bytes)}", f"have {about_bytes(machine.memory)}"
    bandwidth, products = (seen.ceilings.get(name) for name in ("memory_bandwidth", "bf16"))
    if bandwidth is not None and not _LEAST_BANDWIDTH <= bandwidth / peaks.memory_bandwidth <= _MOST:
        measured, nominal = (f"{about_bytes(rate)}/s" for rate in (bandwidth, peaks.memory_bandwidth))
        return f"whose memory was measured at {measured}", f"have {nominal}"
    if peaks.tensor and products is not None and not _LEAST_PRODUCTS <= products / peaks.tensor <= _MOST:
        measured, nominal = (f"{about_flops(rate)}/s" for rate in (products, peaks.tensor))
        return f"whose 16-bit products were measured at {measured}", f"have {nominal}"
    return None


def refuse_other_device(path: str, device: DeviceFile, machine: Machine) -> None:
    """In one line, with both figures."""
    own = device.origin
    differs = difference(SeenDevice(own.device, own.memory_bytes, device.ceilings), machine)
    if differs is not None:
        raise UserError(
            f"--device-file {path}: is of {own.device} {differs[0]}, but accelerators of {machine.name} {differs[1]}; "
            "use the device file of that accelerator, or a --system that has this one"
        )
