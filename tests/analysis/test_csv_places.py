"""Where in a CSV a mistake is."""

from pathlib import Path

import pytest

from tierscope.analysis import csv_places
from tierscope.analysis.csv_places import CsvText, read_text, shown
from tierscope.errors import UserError

TEXT = '\n"a","b"\n\n1,"x\ny"\n,\n2,z\n'  # a blank line, the header, a blank line, a cell over two lines, an empty row


@pytest.fixture
def text(tmp_path: Path) -> CsvText:
    return written(tmp_path, TEXT.encode())


def written(tmp_path: Path, content: bytes) -> CsvText:
    (tmp_path / "x.csv").write_bytes(content)
    return read_text(str(tmp_path / "x.csv"))


def test_records_carry_the_line_they_begin_on(text: CsvText) -> None:
    assert list(text.records()) == [(2, ["a", "b"]), (4, ["1", "x\ny"]), (7, ["2", "z"])]


def test_rows_are_counted_after_the_header(text: CsvText) -> None:
    assert [text.line_of(row) for row in (0, 1)] == [4, 7]


def test_a_row_that_python_does_not_find_gets_its_likely_line(text: CsvText) -> None:
    assert text.line_of(50) == 52


def test_a_cell_beyond_the_limit_of_python_ends_the_search(tmp_path: Path) -> None:
    text = written(tmp_path, b"a\n" + b"x" * 200_000 + b"\n1,2\n")
    assert list(text.records()) == [(1, ["a"])]
    text.refuse_ragged()


def test_what_is_even_and_text_is_not_refused(text: CsvText) -> None:
    text.refuse_ragged()


def test_the_first_ragged_and_the_first_binary_line_are_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x\.csv:3: has 1 cells, but the header has 2"):
        written(tmp_path, b"a,b\n1,2\n1\n").refuse_ragged()
    with pytest.raises(UserError, match=r"x\.csv:4: is not UTF-8 text"):
        written(tmp_path, b"a,b\n1,2\n1\n\xff\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, "(empty)"),
        ("  ", "(empty)"),
        ("\0", "(empty)"),
        ("a\nb\x1b[c", "a b [c"),
        ("ä€", "ä€"),
        ("x" * 60, "x" * 60),
    ],
)
def test_a_cell_is_shown_in_one_plain_line(text: str | None, expected: str) -> None:
    assert shown(text) == expected


def test_a_long_cell_is_cut() -> None:
    assert shown("x" * 61) == "x" * 57 + "…"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"a,b\r1,2\r3,4\r", "has CR line endings; save it with LF or CRLF"),
        (b"a,b\r1,2\n3,4\n", "has CR line endings"),
        ("a,b\n1,2\n".encode("utf-16"), "is not UTF-8 text"),
        (b"a," * 5000 + b"b\n", "has 5,001 columns; the maximum is 4,096"),
        (b"a" * (2 << 20), "is longer than 1 MiB; the first line must be rank,"),
        (b",".join(b"c%d" % place for place in range(2000)) + b"\n" + b"1\n" * 2000, "has 1 cells, but the header"),
        (b",".join(b"c%d" % place for place in range(2000)) + b"\n" * 2000, "has too many blank lines"),
    ],
)
def test_what_is_no_table_is_refused_before_it_is_read(content: bytes, told: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"x\.csv[:\d]*: ") as caught:
        written(tmp_path, content)
    assert told in str(caught.value)


def test_line_ends_of_windows_are_lines(tmp_path: Path) -> None:
    assert written(tmp_path, b"a,b\r\n1,2\r\n").header() == ["a", "b"]


def test_text_may_lie_across_the_pieces_that_are_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_places, "_PIECE_BYTES", 4)
    assert written(tmp_path, "a,b\n1,€€€\n".encode()).content
    with pytest.raises(UserError, match=r"x\.csv:3: is not UTF-8 text"):
        written(tmp_path, "a,b\n1,€€€\n".encode() + b"1,\xe2\x82\n")


def test_a_table_beyond_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_places, "MOST_BYTES", 10)
    with pytest.raises(UserError, match=r"x\.csv: cannot be read: is too large \(12 B, and at most 10 B are read\)"):
        written(tmp_path, b"a,b\n1,2\n1,2\n")
