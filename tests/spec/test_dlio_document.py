"""docs/dlio.md says what the code does."""

from pathlib import Path

import pytest

from tierscope.spec.dlio_keys import RULES

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "dlio.md"


@pytest.mark.parametrize("path", RULES)
def test_every_key_has_its_line(path: str) -> None:
    rule = RULES[path]
    name = f"`{path}.*`" if rule.whole else f"`{path}`"
    to = ", ".join(f"`{each}`" for each in rule.to)
    line = f"| {name} | {rule.does}{': ' + to if to else ''} | {rule.says} |"
    assert line in DOCUMENT.read_text(encoding="utf-8").splitlines()


def test_there_are_no_others() -> None:
    lines = [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert len(lines) == len(RULES)
