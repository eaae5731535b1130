"""How the engine is compiled: pieces become part of the entry that calls them, and the entry is kept on disk.

numba keeps a compiled function until the file that defines it changes. The entry consists of functions of many files, so its key must hold a digest
of all of them: numba's key has the values of variables that a function closes over.

Pieces allocate nothing, so they are compiled without counting references to the arrays that they are handed: counting took ten times as long as
all the rest. The option for that, `_nrt`, is numba's own for its sorting and string functions.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])
_ALL: dict[str, Any] = {"nogil": True, "error_model": "numpy"}  # numpy: no check for division by zero
_PIECE: dict[str, Any] = {**_ALL, "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def piece(function: F) -> F:
    """Compiled for what calls it; Python cannot call it."""
    return cast(F, njit(**_PIECE)(function))


def inlined(function: F) -> F:
    """The same for what is small and called for every event: it becomes part of its caller."""
    return cast(F, njit(**_PIECE, forceinline=True)(function))


def entry(function: F) -> F:
    """Called from Python; compiled once for all processes, where there is a place to keep that."""
    try:
        return cast(F, njit(**_ALL, cache=True)(function))
    except RuntimeError:
        return cast(F, njit(**_ALL)(function))


def sources_digest() -> str:
    """Of all files of the engine."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
