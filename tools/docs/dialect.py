"""Text that a user can meet, and the words of docs/dialect.txt that occur in it."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = ROOT / "docs" / "dialect.txt"


def words(path: Path = LIST) -> list[tuple[re.Pattern[str], str]]:
    """Pattern and what to write instead."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    pairs = [line.split("\t") for line in lines]
    return [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in pairs]


def matches(text: str, listed: list[tuple[re.Pattern[str], str]]) -> Iterator[str]:
    """White space counts as one space, so that a phrase over two lines is found."""
    plain = " ".join(text.split())
    for pattern, instead in listed:
        for match in pattern.finditer(plain):
            yield f"“{plain[max(0, match.start() - 30) : match.end() + 20]}”: {match[0]} → {instead}"


def messages(path: Path) -> Iterator[str]:
    """Texts in a module with a space in them: messages, help, templates. Docstrings are for developers, except those of commands, which are help."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    help_texts = "cli" in path.parts
    developers: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else []:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                is_command = help_texts and isinstance(node, ast.FunctionDef) and node.decorator_list
                developers.update(() if is_command else (id(statement.value),))
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in developers
            and " " in node.value.strip()
        ):
            yield node.value


def comments(path: Path) -> Iterator[str]:
    """Of a YAML file; lines that follow one another are one text."""
    lines = path.read_text(encoding="utf-8").splitlines()
    yield " ".join(line.partition("#")[2].strip() if "#" in line else "" for line in lines)


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def prose(path: Path) -> str:
    """A document without what commands print, in blocks and in a line: that is checked where it is written."""
    text = re.sub(r"^ *```.*?^ *```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "``", text)
