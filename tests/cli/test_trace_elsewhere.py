"""What a traced command moved on no tier is told by bytes, beside the headline: it has no seconds there."""

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.small_study import NEEDS_LIBRARY
from tierscope.cli.main import _run

READER = """
import os, sys
for name, count in (("gfs/data", 1), ("other/data", int(sys.argv[1]))):
    with open(name, "rb", buffering=0) as file:
        for _ in range(count):
            os.pread(file.fileno(), 1 << 20, 0)
"""


@NEEDS_LIBRARY
@pytest.mark.parametrize("elsewhere", [0, 63])
def test_little_on_tiers_and_much_elsewhere_is_said_first(
    elsewhere: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Said before: a few microseconds of I/O, as if that were all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "220")
    for folder in ("gfs", "other"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data").write_bytes(bytes(1 << 20))
    program = [sys.executable, "-S", "-c", READER, str(elsewhere)]
    assert _run(["trace", "--tier", "gfs=gfs", "--out", "out", "--", *program]) == 0
    lines = capfd.readouterr().out.splitlines()
    (headline,) = (line for line in lines if line.startswith("I/O on these tiers: " if elsewhere else "I/O: "))
    assert _run(["analyze", "out", "--json"]) == 0
    said = [finding for finding in json.loads(capfd.readouterr().out)["findings"] if finding["kind"] == "elsewhere"]
    if not elsewhere:
        assert headline.endswith("1 rank, 1 process.")
        assert said == []
        return
    assert headline.endswith(
        "1 rank, 1 process. 98 % of the bytes read and written match no tier and are not in this time."
    )
    (finding,) = said
    assert finding["evidence"]["bytes"] >= elsewhere << 20
    assert "add --tier NAME=DIR" in finding["suggestion"]
    assert _run(["report", "out"]) == 0
    page = Path("out/report.html").read_text()
    assert "match no tier and are not in these times" in page[: page.index('id="what-if"')]
    capfd.readouterr()
    assert _run(["trace", "--tier", "gfs=gfs", "--tier", "other=other", "--out", "both", "--", *program]) == 0
    assert "match no tier" not in capfd.readouterr().out


MIXED = """
import os, sys
os.read(os.open("gfs/data", os.O_RDONLY), 4096)
for number in range(3):
    os.read(os.open("other/data", os.O_RDONLY), 1 << 20)
os.write(os.open("other/out", os.O_WRONLY | os.O_CREAT), bytes(2 << 20))
"""
MAPPED = """
import mmap
with open("gfs/data", "rb") as file:
    sum(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)[::4096])
"""


@pytest.fixture
def traced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[[str], str]:
    """What `trace` prints of a Python program."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "220")
    for folder, mib in (("gfs", 4), ("other", 1)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "data").write_bytes(bytes(mib << 20))

    def trace(program: str) -> str:
        assert _run(["trace", "--tier", "gfs=gfs", "--out", "out", "--", sys.executable, "-S", "-c", program]) == 0
        return capfd.readouterr().out

    return trace


@NEEDS_LIBRARY
def test_what_matches_no_tier_is_a_line_however_little_it_is(traced: Callable[[str], str]) -> None:
    """Said before: I/O: 17 µs, and not a word about 5 MiB."""
    lines = traced(MIXED).splitlines()
    (other,) = (line for line in lines if line.startswith("OTHER (not timed): "))
    read, written = re.findall(r"([\d.]+) MiB", other)
    assert float(read) >= 3
    assert float(written) == pytest.approx(2, abs=0.2)
    assert any(line.startswith("I/O on these tiers: ") for line in lines)


@NEEDS_LIBRARY
def test_mapped_reads_are_missing_from_the_headline(traced: Callable[[str], str]) -> None:
    """Said before: 16 µs, 100 % of it metadata; pack samples into larger files."""
    lines = traced(MAPPED).splitlines()
    (headline,) = (line for line in lines if line.startswith("I/O: "))
    assert re.search(r"Up to \d\d % of the bytes read were not recorded and are not in this time\.$", headline)
    assert not any("it spends more time on opens and stats" in line for line in lines)
