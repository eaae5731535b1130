"""No words of docs/dialect.txt in what a user reads: messages, help, documents, comments of YAML files."""

from pathlib import Path

import pytest

from tools.docs.dialect import ROOT, comments, documents, matches, messages, prose, words

LISTED = words()
SOURCE = ROOT / "src" / "tierscope"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("In the page cache when epochs began. Read from begin\n to end", "from begin"),
        ("files are on no tier", "are on no tier"),
        ("points that cannot be told apart", "cannot be told"),
        ("this is no number", "is no number"),
        ("So much of the study, like 0.001", "so much of"),
        ("finished runs are kept, the same command goes on", "command goes on"),
        ("a study of ours", "of ours"),
        ("2 (yours to mend)", "yours to mend"),
    ],
)
def test_the_dialect_is_found(text: str, word: str) -> None:
    assert any(f": {word}" in " ".join(hit.lower().split()) for hit in matches(text, LISTED))


@pytest.mark.parametrize(
    "text",
    [
        "there is no room on the device",
        "the job is no longer running",
        "runs begin at the same instant",
        "rerun the same command to continue",
        "statistically indistinguishable",
        "on our machine",
    ],
)
def test_ordinary_english_is_left_alone(text: str) -> None:
    assert list(matches(text, LISTED)) == []


def test_each_line_of_the_list_has_a_replacement() -> None:
    assert all(instead.strip() for _, instead in LISTED)
    assert len({pattern.pattern for pattern, _ in LISTED}) == len(LISTED)


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_documents_are_plain(path: Path) -> None:
    assert list(matches(prose(path), LISTED)) == []


def test_messages_and_help_are_plain() -> None:
    hits = [
        f"{path.relative_to(SOURCE)}: {hit}"
        for path in sorted(SOURCE.rglob("*.py"))
        for hit in matches(" \0 ".join(messages(path)), LISTED)  # no phrase goes from one message to the next
    ]
    assert hits == []


def test_comments_of_yaml_files_are_plain() -> None:
    paths = [*SOURCE.rglob("*.yaml"), *(ROOT / "examples").rglob("*.yaml")]
    assert [f"{path.name}: {hit}" for path in paths for text in comments(path) for hit in matches(text, LISTED)] == []
