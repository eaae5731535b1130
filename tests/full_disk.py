"""A disk that is full, for this process."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def full_disk(nbytes: int) -> Iterator[None]:
    """No file may grow beyond this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (nbytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
