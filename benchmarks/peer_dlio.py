"""DLIO's own main, run by another interpreter: `peer_dlio.py stock|no-index OVERRIDES…`, the overrides as DLIO's users write them.

`no-index` leaves one thing out: of every sample that it reads, DLIO formats the index of all samples for a debug message that nobody sees.
TensorFlow, which DLIO imports for a profiler and does not use here, is replaced by an empty module where it is not installed. That makes its
start shorter than it is for its users. Its generator of chunked HDF5 files uses `math` without importing it (2.0.0), and fails: it is given that module.
Its generator of TFRecords calls a tool of DALI for an index that only DALI reads: without the tool there is no index.
"""

import importlib
import importlib.util
import math
import shutil
import sys
from types import ModuleType
from typing import Any


class _Unformatted(dict[int, Any]):
    """An index that is cheap to print."""

    def __format__(self, how: str) -> str:
        return "…"


def main(index: str, overrides: list[str]) -> None:
    has_tensorflow = importlib.util.find_spec("tensorflow") is not None
    if not has_tensorflow:
        sys.modules["tensorflow"] = ModuleType("tensorflow")
    sys.argv[1:] = overrides
    dlio = importlib.import_module("dlio_benchmark.main")
    if importlib.util.find_spec("h5py") is not None:
        importlib.import_module("dlio_benchmark.data_generator.hdf5_generator").math = math  # type: ignore[attr-defined]
    if has_tensorflow and shutil.which("tfrecord2idx") is None:
        importlib.import_module("dlio_benchmark.data_generator.tf_generator").call = lambda _words: 0  # type: ignore[attr-defined]
    if index == "no-index":
        arguments = importlib.import_module("dlio_benchmark.utils.config").ConfigArguments
        own = arguments.get_global_map_index
        arguments.get_global_map_index = lambda *inputs: _Unformatted(own(*inputs))
    dlio.main()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
