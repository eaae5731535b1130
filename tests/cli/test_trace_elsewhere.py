"""What a traced command moved on no tier is told by bytes, beside the headline: it has no seconds there."""

import json
import sys
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
    (headline,) = (line for line in lines if line.startswith("I/O: "))
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
