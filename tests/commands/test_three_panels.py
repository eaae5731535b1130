"""The Hierarchy study's three cases, from one study to figures 1 and 2 with a panel each (H-F1, H-F2, H-S-15)."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.test_commands import run

pytestmark = pytest.mark.whole

SVG = "{http://www.w3.org/2000/svg}"


def test_one_command_draws_the_three_cases_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numba")
    few = "sweep={placement.cache_rate: [0%, 50%, 100%]}"
    assert run("simulate", "mini-hierarchy", "--method", "bound", "--set", few, "--out", tmp_path / "out") == 0
    capsys.readouterr()
    assert run("report", tmp_path / "out") == 0
    for name in ("time", "breakdown"):
        root = ET.fromstring((tmp_path / "out" / "figures" / f"{name}.svg").read_bytes())
        panels = [each for each in root.iter(f"{SVG}g") if each.get("class") == "inset"]
        heads = [
            text.text or ""
            for panel in panels
            for text in panel.iter(f"{SVG}text")
            if "heading" in text.get("class", "")
        ]
        assert [head.partition(" · ")[0] for head in heads] == ["small-many-osts", "small-one-ost", "large-many-osts"]
        titles = {text.text for text in root.iter(f"{SVG}text")}
        assert "cache rate" in titles
    classes = {"GFS-READ", "GFS-META", "LFS-READ", "LFS-META"}
    assert classes <= titles
    assert "simulated" in (tmp_path / "out" / "figures" / "breakdown.svg").read_text()
