"""The published rows as they ship."""

import pytest

from tierscope.papers.rows import JUDGED, rows_of


@pytest.mark.parametrize(
    ("study", "rows", "artefacts"),
    [("hierarchy", 85, 4), ("dlio", 140, 15), ("architecture", 151, 11), ("training", 107, 16)],
)
def test_published_rows_are_complete(study: str, rows: int, artefacts: int) -> None:
    known = rows_of(study)
    assert len(known) == rows + artefacts
    assert sum(row.kind == "artefact" for row in known.values()) == artefacts
    assert {row.kind for row in known.values()} <= {*JUDGED, "setup", "left open", "quoted", "ambiguity"}
    assert all(row.published for row in known.values())
