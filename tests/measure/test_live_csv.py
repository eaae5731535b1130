"""`--live-csv`: whole lines, continued by the same study only, and nobody else's file touched."""

import csv
import os
from pathlib import Path

import pytest

from tests.measure.test_live import Clock, Ranks, tracked
from tierscope.errors import UserError
from tierscope.measure.live import LiveState
from tierscope.measure.live_csv import COLUMNS, LiveCsv


def state() -> LiveState:
    clock = Clock()
    ranks = Ranks(clock)
    tracker = tracked(clock, ranks)
    ranks.note(0)
    ranks.note(1)
    tracker.state()
    clock.pass_by(2)
    ranks.note(0, samples=20, read=4000, ops=40)
    ranks.note(1, samples=10, read=2000, ops=20)
    return tracker.state()


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as source:
        return list(csv.DictReader(source))


def test_a_row_per_look_and_tier(tmp_path: Path) -> None:
    kept = LiveCsv(str(tmp_path / "live.csv"), "my, study")
    kept.add(state())
    kept.close()
    first, second = rows(tmp_path / "live.csv")
    assert tuple(first) == COLUMNS
    assert (first["tier"], second["tier"]) == ("lfs", "gfs")
    wanted = {"study": "my, study", "point": "0", "epoch": "1", "bytes_per_second": "3000.0", "ops_per_second": "30.0"}
    assert {name: second[name] for name in wanted} == wanted
    assert second["slowest_rank"] == "1"


def test_the_same_study_continues_it_and_a_cut_line_goes(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    for _ in range(2):
        kept = LiveCsv(str(path), "study")
        kept.add(state())
        kept.close()
        with path.open("a") as out:
            out.write("2026-01-01T00:00,12,stu")  # as a kill may leave it
    LiveCsv(str(path), "study").close()
    assert len(rows(path)) == 4
    assert path.read_bytes().endswith(b"\n")
    assert all(None not in row and None not in row.values() for row in rows(path))


@pytest.mark.parametrize("content", ["", "a,b\n1,2\n", "time,seconds\n", "\0" * 100])
def test_a_file_that_is_not_ours_is_refused_and_kept(tmp_path: Path, content: str) -> None:
    path = tmp_path / "live.csv"
    path.write_text(content)
    with pytest.raises(UserError, match="was not written by --live-csv; choose another name"):
        LiveCsv(str(path), "study")
    assert path.read_text() == content


def test_figures_of_another_study_are_not_mixed_in(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    kept = LiveCsv(str(path), "one")
    kept.add(state())
    kept.close()
    with pytest.raises(UserError, match="contains figures of study one, not of two"):
        LiveCsv(str(path), "two")


def test_what_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, reason in (
        ("pipe", "not a regular file"),
        ("no/such", "No such file or directory"),
        (".", "a directory"),
    ):
        with pytest.raises(UserError, match=reason):
            LiveCsv(str(tmp_path / name), "study")


def test_a_last_line_that_is_no_row_is_left_as_it_is(tmp_path: Path) -> None:
    """Behind our header anything may stand; it names no other study."""
    path = tmp_path / "live.csv"
    content = (",".join(COLUMNS) + "\n").encode() + b"a\rb\n"
    path.write_bytes(content)
    LiveCsv(str(path), "mine").close()
    assert path.read_bytes() == content


def test_a_line_that_was_cut_goes_however_long_it_is(tmp_path: Path) -> None:
    path = tmp_path / "live.csv"
    header = (",".join(COLUMNS) + "\n").encode()
    path.write_bytes(header + b"x" * 300_000)
    LiveCsv(str(path), "mine").close()
    assert path.read_bytes() == header


def test_a_file_of_another_study_is_refused_as_it_is(tmp_path: Path) -> None:
    """Also where its last line was cut: that is for its own study to mend."""
    path = tmp_path / "live.csv"
    content = (",".join(COLUMNS) + "\n" + ",".join("theirs" for _ in COLUMNS) + "\ncut").encode()
    path.write_bytes(content)
    with pytest.raises(UserError, match="contains figures of study theirs, not of mine"):
        LiveCsv(str(path), "mine")
    assert path.read_bytes() == content
