"""`make papers`: what a study's folder gives to the documents."""

import json
from pathlib import Path

import pytest

from tierscope.papers.verdict import UNEXPLAINED
from tools.docs import papers
from tools.docs.papers import publish


def test_pages_and_drawings_are_copied_and_old_drawings_removed(tmp_path: Path) -> None:
    made, documents = tmp_path / "made", tmp_path / "docs"
    for name in ("made/dlio/figures/dlio-f1.svg", "made/dlio/figures/dlio-f1.png", "made/dlio/dlio.md", "made/stray/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    for name in ("dlio-f0.svg", "hierarchy-f1.svg"):
        (documents / "figures").mkdir(parents=True, exist_ok=True)
        (documents / "figures" / name).write_text("old")
    publish(made, documents)
    left = sorted(path.relative_to(documents).as_posix() for path in documents.rglob("*") if path.is_file())
    assert left == ["dlio.md", "figures/dlio-f1.svg", "figures/hierarchy-f1.svg"]


@pytest.mark.parametrize(
    ("why", "explained"),
    [
        ("a slow stream; on one node", True),
        ("on one node", False),
        ("", False),
        (f"5 of 20 seeds; {UNEXPLAINED}", False),
    ],
)
def test_a_row_that_does_not_hold_must_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], why: str, explained: bool
) -> None:
    rows = [
        {"id": "D-1", "outcome": "holds", "why": "on one node"},
        {"id": "D-2", "outcome": "does not hold", "why": why},
    ]
    made = tmp_path / "made" / "dlio"
    made.mkdir(parents=True)
    (made / "dlio.json").write_text(json.dumps({"rows": rows}))
    (made / "tierscope.json").write_text("{}")
    monkeypatch.setattr(papers, "MADE", tmp_path / "made")
    monkeypatch.setattr(papers, "DOCUMENTS", tmp_path / "docs")
    assert papers.main() == (0 if explained else 1)
    assert capsys.readouterr().err == ("" if explained else "rows that do not hold and give no reason: D-2\n")
