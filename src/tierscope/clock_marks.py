"""Marks that two profilers see: a span of the framework's profiler, and within it the read of a file that has the span's name.

From both, `tierscope characterise --timeline` learns how far their clocks are apart. Importing this costs nothing: a framework is asked only if the program has loaded it.
"""

import os
import secrets
import sys
from contextlib import ExitStack

SPAN_NAME, FILE_NAME = "tierscope.mark ", "tierscope-mark-"  # each before the mark's token
PHASE_NAME = "tierscope.phase "


def mark_clock(folder: str | os.PathLike[str]) -> None:
    """Mark this moment for a framework's profiler and an I/O profiler at once. `folder`: one that the I/O profiler records; a file of a byte is made there, read and removed.

    Takes four small file operations. Call it while the framework's profiler records, at the start and the end: two marks show whether a clock drifts.
    """
    token = secrets.token_hex(6)
    path = os.path.join(folder, FILE_NAME + token)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, b"m")
        os.close(descriptor)
        with framework_span(SPAN_NAME + token):
            descriptor = os.open(path, os.O_RDONLY)
            os.read(descriptor, 1)
            os.close(descriptor)
    finally:
        os.unlink(path)


def framework_span(name: str) -> ExitStack:
    """A span of this name in whichever frameworks are loaded; entered already, ended by leaving the block."""
    spans = ExitStack()
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "profiler") and torch.autograd._profiler_enabled():
        spans.enter_context(torch.profiler.record_function(name))
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is not None and hasattr(tensorflow, "profiler"):
        spans.enter_context(tensorflow.profiler.experimental.Trace(name))
    return spans
