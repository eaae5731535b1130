"""Tables of docs/validation.md are what was printed, and its list of missed goals follows from them."""

from validation.document import DOCUMENT, sections_of, with_sections
from validation.table import Row

TEXT = """# Title

<!-- goals -->
old list
<!-- end -->

<!-- printed: one -->
old table
<!-- end -->

prose

<!-- printed: two -->
| section | what | measured | goal | met | note |
|---|---|---|---|---|---|
| two | error | 7 % | ≤ 5 % | **no** |  |
<!-- end -->
"""
ONE = [Row("one", "speed", "3 s"), Row("one", "width", "1.2", "≤ 1.4", True, "n | m"), Row("one", "worst", "9 %", "≤ 5 %", False)]  # fmt: skip


def test_a_printed_section_replaces_its_table_and_no_other() -> None:
    text = with_sections(TEXT, {"one": ONE, "elsewhere": ONE}, "Printed today.")
    assert "old table" not in text
    assert "Printed today.\n\n| section | what |" in text
    assert "| one | speed | 3 s |  |  |  |" in text
    assert "| two | error | 7 % |" in text
    assert "\nprose\n" in text
    assert sections_of(text) == ["one", "two"]


def test_missed_goals_are_those_of_all_tables() -> None:
    text = with_sections(TEXT, {"one": ONE}, "Printed today.")
    goals = text.partition("<!-- goals -->\n")[2].partition("\n<!-- end -->")[0].splitlines()
    assert goals == [
        "3 goals, 1 met, 2 missed:",
        "",
        "- one, worst: 9 %; goal ≤ 5 %",
        "- two, error: 7 %; goal ≤ 5 %",
    ]
    assert with_sections(text, {}, "") == text


def test_the_document_lists_what_its_tables_miss() -> None:
    text = DOCUMENT.read_text()
    assert {"public", "accelerator", "beds", "real_beds", "cluster", "theory"} <= set(sections_of(text))
    assert with_sections(text, {}, "") == text
