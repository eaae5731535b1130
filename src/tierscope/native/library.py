"""The C library: where it is, and how it is loaded. It may be missing: then the pure-Python recorder does what it can."""

import ctypes
import functools
import os
from pathlib import Path

BUILD_ADVICE = "install a C compiler and install tierscope again"

_BESIDE = Path(__file__).with_name("libtierscope.so")


def path() -> str | None:
    """The library's file, or None where it was not built. TIERSCOPE_LIBRARY names another build of it."""
    chosen = os.environ.get("TIERSCOPE_LIBRARY")
    if chosen is not None:
        return chosen or None  # empty: do without
    return str(_BESIDE) if _BESIDE.exists() else None


@functools.cache
def load() -> ctypes.CDLL | None:
    """The library in this process, or None where there is none or it cannot be loaded."""
    found = path()
    try:
        return ctypes.CDLL(found, use_errno=True) if found else None
    except OSError:
        return None
