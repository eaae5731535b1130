"""The C library: where it is, and how it is loaded. It may be missing: then the pure-Python recorder does what it can."""

import ctypes
import functools
import os
from pathlib import Path

from tierscope.errors import TierscopeError

BUILD_ADVICE = "install a C compiler and reinstall tierscope"

_BESIDE = Path(__file__).with_name("libtierscope.so")


def path() -> str | None:
    """The library's file, or None where it was not built. TIERSCOPE_LIBRARY names another build of it."""
    chosen = os.environ.get("TIERSCOPE_LIBRARY")
    if chosen is not None:
        return chosen or None  # empty: do without
    return str(_BESIDE) if _BESIDE.exists() else None


def need() -> ctypes.CDLL:
    """The library, for who knows that there is one."""
    library = load()
    if library is None:
        raise TierscopeError("the native library is missing")
    return library


@functools.cache
def load() -> ctypes.CDLL | None:
    """The library in this process, or None where there is none, it cannot be loaded, or the file is another library."""
    file = path()
    try:
        loaded = ctypes.CDLL(file, use_errno=True) if file else None
    except OSError:
        return None
    return loaded if hasattr(loaded, "ts_engine_create") else None
