"""Which device a rank trains on."""

import torch

from tierscope.errors import UserError
from tierscope.units import counted


def pick_device(wanted: str, number: int, key: str = "workload.model.device =") -> torch.device:
    """Refuses what is not there. `key`: by which it was asked for."""
    devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted == "cuda" and not devices:
        raise UserError(f"{key} cuda, but torch finds no CUDA device; set cpu or auto")
    if devices and wanted != "cpu":
        if number >= devices:
            raise UserError(
                f"{counted(number + 1, 'rank')} of one host need a device each, but torch finds {devices}; lower system.ranks_per_node or system.nodes, or set workload.model.device = cpu"
            )
        return torch.device("cuda", number)
    return torch.device("cpu")


def memory_bytes(device: torch.device) -> int | None:
    """Of an accelerator; None: a CPU has none of its own."""
    return int(torch.cuda.get_device_properties(device).total_memory) if device.type == "cuda" else None


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
