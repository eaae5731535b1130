"""The table of docs/workloads.md is that of the dated file."""

import json

import pytest

from validation.measured_workloads import DOCUMENT, FILE, documented, table


def test_the_document_has_what_was_measured() -> None:
    known = json.loads(FILE.read_bytes())
    text = DOCUMENT.read_text(encoding="utf-8")
    assert documented(text, known["made"], known["rows"]) == text


def test_another_measurement_replaces_date_and_table() -> None:
    known = json.loads(FILE.read_bytes())
    known["rows"]["dffn"]["simulated_share"] = 77.0
    text = documented(DOCUMENT.read_text(encoding="utf-8"), "2030-01-02", known["rows"])
    assert "Printed by it on 2030-01-02 (" in text
    assert table(known["rows"]) in text
    assert "| DFFN | 18 % | 77 % |" in text
    with pytest.raises(ValueError, match="0 dates and 0 tables"):
        documented("nothing", "2030-01-02", known["rows"])
