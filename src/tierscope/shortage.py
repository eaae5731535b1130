"""What the system did not give: memory, threads, open files. Never to be taken for damage of what was being read.

Libraries tell of it in words only, so it is known by their words. The answer says which limit to raise, and where it stands.
"""

import os
import resource

from tierscope.errors import MissingResourceError
from tierscope.units import about_bytes

_MEMORY = (
    *("MemoryError", "annot allocate memory", "out of memory", "Out of memory", "failed to map segment", "bad_alloc"),
    *("nable to allocate", "emory allocation", "not enough memory"),
)
_THREADS = ("can't start new thread", "pthread_create", "Resource temporarily unavailable", "could not spawn threads")
_FILES = ("Too many open files",)


def shortage(said: str) -> str | None:
    """What was short and what to do about it, by what a library or the system said; None: it tells of nothing of the kind."""
    if any(words in said for words in _MEMORY):
        return f"not enough memory; {memory_advice()}"
    if any(words in said for words in _THREADS):
        return f"not enough threads; {_threads_advice()}"
    if any(words in said for words in _FILES):
        return f"too many open files; raise the limit (ulimit -n, now {_limit(resource.RLIMIT_NOFILE)})"
    return None


def shortage_of(error: BaseException) -> str | None:
    """The same of an exception, whichever library raised it."""
    if isinstance(error, OSError) and error.errno:
        return shortage(os.strerror(error.errno))
    return shortage(f"{type(error).__name__}: {error}")


def missing_resource(what: str, error: BaseException) -> MissingResourceError | None:
    """`what` cannot be done for want of something: the error to raise. None: this was something else."""
    short = shortage_of(error)
    return None if short is None else MissingResourceError(f"{what}: {short}")


def memory_advice() -> str:
    allowed = address_space()
    if allowed is None:
        return "use a machine with more, or end other programs"
    return f"raise the limit on address space (ulimit -v, now {about_bytes(allowed)})"


def address_space() -> int | None:
    """How many bytes this process may map; None: any number."""
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    return None if allowed == resource.RLIM_INFINITY else allowed


def _threads_advice() -> str:
    processes = f"the limit on processes (ulimit -u, now {_limit(resource.RLIMIT_NPROC)})"
    allowed = address_space()
    return f"raise {processes}" + (
        "" if allowed is None else f" or on address space (ulimit -v, now {about_bytes(allowed)})"
    )


def _limit(kind: int) -> str:
    allowed = resource.getrlimit(kind)[0]
    return "unlimited" if allowed == resource.RLIM_INFINITY else str(allowed)
