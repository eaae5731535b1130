"""`make papers`: what a study's folder gives to the documents."""

from pathlib import Path

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
