"""DLIO's own main, run by another interpreter: `peer_dlio.py stock|no-index OVERRIDES…`, the overrides as DLIO's users write them.

`no-index` leaves one thing out: of every sample that it reads, DLIO formats the index of all samples for a debug message that nobody sees.
TensorFlow, which DLIO imports for a profiler and does not use here, is replaced by an empty module where it is not installed. That makes its
start shorter than it is for its users.
"""

import importlib
import importlib.util
import sys
from types import ModuleType
from typing import Any


class _Unformatted(dict[int, Any]):
    """An index that is cheap to print."""

    def __format__(self, how: str) -> str:
        return "…"


def main(index: str, overrides: list[str]) -> None:
    if importlib.util.find_spec("tensorflow") is None:
        sys.modules["tensorflow"] = ModuleType("tensorflow")
    sys.argv[1:] = overrides
    dlio = importlib.import_module("dlio_benchmark.main")
    if index == "no-index":
        arguments = importlib.import_module("dlio_benchmark.utils.config").ConfigArguments
        own = arguments.get_global_map_index
        arguments.get_global_map_index = lambda *inputs: _Unformatted(own(*inputs))
    dlio.main()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
