"""The table of docs/training.md: what one H200 trained, from validation/h200; `python -m validation.training_rates` prints it."""

import statistics
import sys
from typing import Any

from validation.accelerator import table

NAMES = {"cosmoflow": "CosmoFlow", "deepcam": "DeepCAM", "resnet50": "ResNet-50"}
_HEAD = (
    "network, batch",
    "made on the device",
    "from memory",
    "torch's DataLoader, from memory",
    "from disk",
    "torch's DataLoader, from disk",
    "a plain reader in C, the same disk",
)


def training_table() -> str:
    lines = [f"| {' | '.join(_HEAD)} |", f"|{'---|' * len(_HEAD)}"]
    for study in table("training.json")["studies"]:
        lines.append(f"| {' | '.join(_cells(study))} |")
    return "\n".join(lines)


def _cells(study: dict[str, Any]) -> list[str]:
    """Samples per second: the mean over repetitions; of torch's and of the reader the median over theirs."""
    name = study["network"]
    rates = {point["data"]: point["samples_per_second"] for point in study["points"]}
    beside = next(row for row in table("beside.json")["rows"] if row["network"] == name)
    in_c = statistics.median(table("disk.json")["bytes_per_second"][name]) / beside["sample_bytes"]

    def torch(data: str) -> float:
        return statistics.median(float(row["samples_per_second"]) for row in beside["torch"] if row["data"] == data)

    shown = (rates["synthetic"], rates["memory"], torch("memory"), rates["tiers"], torch("disk"), in_c)
    return [f"{NAMES[name]}, {beside['batch']}", *(f"{rate:,.0f}" if rate >= 1000 else f"{rate:.1f}" for rate in shown)]


if __name__ == "__main__":
    sys.stdout.write(training_table() + "\n")
