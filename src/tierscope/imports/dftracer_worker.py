"""Reads traces of DFTracer for another process: `tierscope.imports.dftracer_worker FD`; passes over files come in, what they found goes out."""

import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from tierscope.errors import MissingResourceError, UserError
from tierscope.helper_process import end_with_starter, greet
from tierscope.imports.dftracer_outline import outline
from tierscope.imports.dftracer_spans import spans_of
from tierscope.imports.dftracer_sums import sum_up
from tierscope.shortage import memory_advice

PASSES: dict[str, Callable[..., Any]] = {"outline": outline, "sum_up": sum_up, "spans_of": spans_of}


def main(fd: int) -> None:
    end_with_starter()
    greet()
    connection = Connection(fd)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            name, path, arguments = connection.recv()
            try:
                answer = PASSES[name](*arguments)
            except UserError as error:
                answer = error
            except MemoryError:
                answer = MissingResourceError(f"{path}: not enough memory to read it; {memory_advice()}")
            connection.send(answer)


if __name__ == "__main__":
    main(int(sys.argv[1]))
