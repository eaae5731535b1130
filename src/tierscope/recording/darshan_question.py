"""Loads a Darshan runtime library for another process, and says what it can do: loading it may start it, or end the process."""

import ctypes
import os
import sys

from tierscope.helper_process import greet

LOADED, RESTARTS_LOG = b"loaded\n", b"begins anew\n"


def main() -> None:
    greet()
    path = sys.stdin.buffer.readline().rstrip(b"\n")
    try:
        library = ctypes.CDLL(os.fsdecode(path))
    except OSError as error:
        sys.exit(str(error))
    os.write(1, LOADED)
    if all(hasattr(library, name) for name in ("darshan_core_initialize", "darshan_core_shutdown")):
        os.write(1, RESTARTS_LOG)


if __name__ == "__main__":
    main()
