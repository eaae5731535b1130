"""The text of a CSV, read once and checked before any library sees it, and where in it a mistake is.

Places are found with Python's own reader: slow, so only once something is wrong.
"""

import codecs
import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from tierscope.errors import UserError
from tierscope.plain_files import read_plain
from tierscope.units import about_bytes

MOST_BYTES = 1 << 30
MOST_HEADER_BYTES = 1 << 20
MOST_COLUMNS = 4096
_PIECE_BYTES = 1 << 20
_SPARE_CELLS = 1 << 20  # that a table may have beyond its bytes: blank lines
FIRST_LINE = "the first line must be rank,epoch,class,seconds[,…]"


@dataclass(frozen=True, slots=True)
class CsvText:
    """What a file held when it was read; whatever happens to the file later changes nothing."""

    path: str
    content: bytes

    def records(self) -> Iterator[tuple[int, list[str]]]:
        """Line and cells of the header and of every row that is not blank."""
        return _records(self.content)

    def header(self) -> list[str]:
        """Names of columns, as far as there are any."""
        for _, cells in _records(self.content[:MOST_HEADER_BYTES]):
            return [name.strip() for name in cells]
        return []

    def line_of(self, row: int) -> int:
        """The line of a row, counted from 0 after the header, blank ones left out."""
        return next((line for number, (line, _) in enumerate(self.records(), start=-1) if number == row), row + 2)

    def refuse_ragged(self) -> None:
        header: list[str] = []
        for line, cells in self.records():
            header = header or cells
            if len(cells) != len(header):
                raise UserError(
                    f"{self.path}:{line}: has {len(cells)} cells, but the header has {len(header)}; make them equal"
                ) from None


def read_text(path: str) -> CsvText:
    """A table that is text, of sensible lines and columns; anything else is one error that says what it is."""
    try:
        text = CsvText(path, read_plain(path, MOST_BYTES, follow=True))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except ValueError:  # a NUL in the name
        raise UserError(f"{path}: is not a valid file name") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}; use a table of times as CSV") from None
    _refuse_binary(text)
    _refuse_wide(text)
    return text


def shown(text: str | None) -> str:
    """A cell in a message of one line."""
    clean = "".join(mark if mark.isprintable() else " " for mark in text or "").strip()
    return (f"{clean[:57]}…" if len(clean) > 60 else clean) or "(empty)"


def _records(content: bytes) -> Iterator[tuple[int, list[str]]]:
    with io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", errors="replace", newline="") as source:
        reader = csv.reader(source)
        line = 1
        try:
            for cells in reader:
                if any(cells):
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error:
            return


def _refuse_binary(text: CsvText) -> None:
    """Also line ends of old: what some take for lines is one line to others."""
    path, content = text.path, text.content
    if (place := _no_utf8(content)) is not None:
        line = content.count(b"\n", 0, place) + 1
        raise UserError(f"{path}:{line}: is not UTF-8 text; save the table as CSV in UTF-8")
    if b"\r" in content[:MOST_HEADER_BYTES].lstrip(b"\r\n").partition(b"\n")[0].rstrip(b"\r"):
        raise UserError(f"{path}: has CR line endings; save it with LF or CRLF")


def _refuse_wide(text: CsvText) -> None:
    """Tables that take far more memory than their bytes: a header of millions of columns, or rows that are hardly there."""
    content, columns = text.content, len(text.header())
    if len(content) > MOST_HEADER_BYTES and content.find(b"\n", 0, MOST_HEADER_BYTES) < 0:
        raise UserError(f"{text.path}:1: is longer than {about_bytes(MOST_HEADER_BYTES)}; {FIRST_LINE}")
    if columns > MOST_COLUMNS:
        raise UserError(f"{text.path}:1: has {columns:,} columns; the maximum is {MOST_COLUMNS:,}; {FIRST_LINE}")
    if columns * (content.count(b"\n") + 1) > len(content) + _SPARE_CELLS:
        text.refuse_ragged()
        raise UserError(f"{text.path}: has too many blank lines; remove them")


def _no_utf8(content: bytes) -> int | None:
    """Where text ends; None: it is all text."""
    if content.isascii():
        return None
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(content), _PIECE_BYTES):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(content[start : start + _PIECE_BYTES], final=start + _PIECE_BYTES >= len(content))
        except UnicodeDecodeError as error:
            return start - pending + error.start
    return None
