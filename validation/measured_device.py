"""The accelerator that tables of validation/h200 are measured on, and with what."""

import platform
from datetime import UTC, datetime
from typing import Any

import torch

DEVICE = torch.device("cuda", 0)
PROFILED = {"cosmoflow": 4, "deepcam": 2, "resnet50": 64}  # network and batch


def origin() -> dict[str, Any]:
    return {
        "device": torch.cuda.get_device_name(DEVICE),
        "device_memory_bytes": torch.cuda.get_device_properties(DEVICE).total_memory,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "convolutions_in_tf32": torch.backends.cudnn.allow_tf32,
        "products_in_tf32": torch.backends.cuda.matmul.allow_tf32,
        "python": platform.python_version(),
        "system": platform.platform(),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }
