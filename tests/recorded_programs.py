"""Commands that record without the C library: they copy prepared state files into the folder that TIERSCOPE_RECORD names."""

import shlex
from pathlib import Path


def any_library() -> str:
    """A library that can be preloaded anywhere and changes nothing: the C library itself."""
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    return next(line.split()[-1] for line in maps if line.split()[-1].startswith("/") and "/libc.so" in line)


def recording(prepared: Path, then: str = "true") -> list[str]:
    """A command that leaves the prepared files as its records, and does something else then."""
    return ["sh", "-c", f'cp {shlex.quote(str(prepared))}/* "$TIERSCOPE_RECORD" && {then}']
