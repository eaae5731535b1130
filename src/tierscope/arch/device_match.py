"""Whether a device file is of the accelerators that a system has: a system does not name them, but says what they are capable of.

Memory tells many apart; of those with as much of it, what was measured cannot be more than the system's peak, and is not far below it either.
"""

from tierscope.arch.device_file import DeviceFile
from tierscope.arch.machine import Machine
from tierscope.errors import UserError
from tierscope.units import about_bytes, about_flops

_SAME_MEMORY = 1.25  # times as much is still the same accelerator, counted otherwise
_MOST = 1.1  # of a nominal peak; clocks differ
_LEAST_BANDWIDTH, _LEAST_PRODUCTS = 0.6, 0.45  # of it: an H200 reaches 0.85 and 0.79


def refuse_other_device(path: str, device: DeviceFile, machine: Machine) -> None:
    """In one line, with both figures."""
    own, ceilings, peaks = device.origin, device.ceilings, machine.device
    if not 1 / _SAME_MEMORY <= own.memory_bytes / machine.memory <= _SAME_MEMORY:
        _refuse(path, device, machine, f"with {about_bytes(own.memory_bytes)}", f"have {about_bytes(machine.memory)}")
    if not _LEAST_BANDWIDTH <= ceilings["memory_bandwidth"] / peaks.memory_bandwidth <= _MOST:
        measured, nominal = (
            f"{about_bytes(rate)}/s" for rate in (ceilings["memory_bandwidth"], peaks.memory_bandwidth)
        )
        _refuse(path, device, machine, f"whose memory was measured at {measured}", f"have {nominal}")
    if peaks.tensor and not _LEAST_PRODUCTS <= ceilings["bf16"] / peaks.tensor <= _MOST:
        measured, nominal = (f"{about_flops(rate)}/s" for rate in (ceilings["bf16"], peaks.tensor))
        _refuse(path, device, machine, f"whose 16-bit products were measured at {measured}", f"have {nominal}")


def _refuse(path: str, device: DeviceFile, machine: Machine, has: str, have: str) -> None:
    raise UserError(
        f"--device-file {path}: is of {device.origin.device} {has}, but accelerators of {machine.name} {have}; "
        "use the device file of that accelerator, or a --system that has this one"
    )
