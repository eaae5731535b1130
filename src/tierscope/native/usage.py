"""What a recorded process spent beside I/O, as it noted it in the head of its state file (c/usage.c)."""

from dataclasses import dataclass

import numpy as np

FRAMEWORKS = {1: "torch", 2: "tensorflow"}
USAGE = np.dtype(
    [
        (name, "<u8")
        for name in (
            *("next_ns", "end_ns", "notes", "user_start_ns", "user_ns", "system_start_ns", "system_ns"),
            *("delay_start_ns", "delay_ns", "has_delay", "worker", "framework"),
        )
    ]
)
_LARGEST = 1 << 62  # no time is as large


@dataclass(frozen=True, slots=True)
class ProcessUsage:
    """From a process's first operation on a tier until this was noted last. `delay_ns`: ready to run without a core; None: the kernel does not say.

    `is_worker`: of torch's DataLoader. `framework`: whose library it had loaded; None: none that is known.
    """

    nanoseconds: int
    user_ns: int
    system_ns: int
    delay_ns: int | None
    is_worker: bool
    framework: str | None


def read_usage(noted: np.void, start_ns: int) -> ProcessUsage | None:
    """None where nothing was noted, or what was cannot be."""
    spent = [int(noted[f"{name}_ns"]) - int(noted[f"{name}_start_ns"]) for name in ("user", "system", "delay")]
    passed = int(noted["end_ns"]) - start_ns
    if not noted["end_ns"] or passed <= 0 or min(spent) < 0 or max(passed, *spent) >= _LARGEST:
        return None
    framework = FRAMEWORKS.get(int(noted["framework"]))
    delay = spent[2] if noted["has_delay"] else None
    return ProcessUsage(passed, spent[0], spent[1], delay, bool(noted["worker"]), framework)
