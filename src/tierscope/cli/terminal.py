"""The one place through which our text reaches standard output and standard error: nothing in it is obeyed by a terminal.

Names of files, commands, jobs and hosts, YAML keys and arguments are strangers' text. What does not print (escape sequences, marks that turn the direction of
text, bytes that are no UTF-8) is shown as an escape, like `\\x1b`; letters of any script stay. Colours and bars are Rich's own: a console of ours escapes
the text in them and writes past the guarded stream.
"""

import errno
import io
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from tierscope.errors import escaped

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console

_KEPT = "\n\t"


class EscapedStream(io.TextIOBase):
    """A stream that writes what prints. `trusted`: the stream behind it, for who has escaped all strangers' text. It has no `buffer` to write past it."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.trusted = stream

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.trusted.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.trusted.errors

    def write(self, text: str, /) -> int:
        self.trusted.write(escaped(text, _KEPT))
        return len(text)

    def writelines(self, lines: Iterable[str], /) -> None:  # type: ignore[override]
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self.trusted.flush()

    def isatty(self) -> bool:
        return self.trusted.isatty()

    def fileno(self) -> int:
        return self.trusted.fileno()

    def writable(self) -> bool:
        return True


@contextmanager
def escaped_streams() -> Iterator[None]:
    """Any text can be printed anywhere meanwhile: signs that a terminal's encoding lacks are replaced, a closed stream swallows."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (EscapedStream(_printable(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _printable(stream: TextIO | None) -> TextIO:
    if stream is None:
        return open(os.devnull, "w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="replace")
    return stream


def show_bug(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """What the interpreter would print of an error that nobody expected, escaped."""
    text = "".join(traceback.format_exception(kind, error, trace))
    if sys.stderr is not None:
        sys.stderr.write(escaped(text, _KEPT))


def trusted(stream: TextIO) -> TextIO:
    return stream.trusted if isinstance(stream, EscapedStream) else stream


def console(stream: TextIO, **options: Any) -> "Console":
    """Rich's, on one of the two streams: its own colours and movements pass, what it shows is escaped."""
    from rich.console import Console  # noqa: PLC0415

    class EscapedConsole(Console):
        def render(self, renderable: Any, options: Any = None) -> Any:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=escaped(segment.text, "\n"))

        def on_broken_pipe(self) -> None:
            """Rich would end the program here, with an exit code that is not its to choose."""
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    return EscapedConsole(file=trusted(stream), **options)
