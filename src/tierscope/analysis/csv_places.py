"""Where in a CSV a mistake is. Reads the text again with Python's own reader: slow, so only once something is wrong."""

import csv
from collections.abc import Iterator

from tierscope.errors import UserError


def records(path: str) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of the header and of every row that is not blank."""
    with open(path, encoding="utf-8-sig", errors="replace", newline="") as source:
        reader = csv.reader(source)
        line = 1
        try:
            for cells in reader:
                if any(cells):
                    yield line, cells
                line = reader.line_num + 1
        except csv.Error:
            return


def line_of(path: str, row: int) -> int:
    """The line of a row, counted from 0 after the header, blank ones left out."""
    return next((line for number, (line, _) in enumerate(records(path), start=-1) if number == row), row + 2)


def refuse_ragged(path: str) -> None:
    header: list[str] = []
    for line, cells in records(path):
        header = header or cells
        if len(cells) != len(header):
            raise UserError(
                f"{path}:{line}: has {len(cells)} cells where the header has {len(header)}; make them equal"
            ) from None


def refuse_binary(path: str) -> None:
    with open(path, "rb") as source:
        for number, line in enumerate(source, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                raise UserError(f"{path}:{number}: is not UTF-8 text; save the table as CSV in UTF-8") from None


def shown(text: str | None) -> str:
    """A cell in a message of one line."""
    clean = "".join(mark if mark.isprintable() else " " for mark in text or "").strip()
    return (f"{clean[:57]}…" if len(clean) > 60 else clean) or "(empty)"
