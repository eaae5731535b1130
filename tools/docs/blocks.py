"""A document as the checker sees it: files, commands with what they print, and rules for both.

    ```yaml title="mine.yaml"     a file that is written into the working directory (any language)
    ```console                    lines `$ command`, each followed by what the command prints; a line `…` stands for lines that are left out
    <!-- check: RULE -->          a rule for the next block

Rules, all of them visible in the source:

    nightly             the block is run by `make docs-check NIGHTLY=1` only
    shown REASON        the block is not run, and why
    exit 2              the exit code of the block's last command, if not 0
    varies REGEX        what matches may differ from run to run: it is compared as `~`
    measured            the same for every number with its unit, and for bars; a document that has it may be run three times
    setup COMMAND       is run here, and not shown to readers
    replace TEXT WITH   in commands of the whole document, TEXT is run as WITH (a site's paths, for example)
    click FROM TO       page FROM has a link to page TO (with #anchor, if given)

A fenced block that is none of these is an error: nothing is ignored silently.
"""

import re
from dataclasses import dataclass
from pathlib import Path

RULE = re.compile(r"<!-- check: (?P<rule>.*?) -->")
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w-]*)(?: title=\"(?P<title>[^\"]+)\")?\s*$")
NAMES = ("nightly", "shown", "exit", "varies", "measured", "setup", "replace", "click")
NUMBER = r"(?<![\d=.])<?\d[\d,.]*(?![\d,.]*%)"  # neither a setting (50%) nor a count (n=2)
MEASURED = (rf"{NUMBER}(?:–{NUMBER})?", r"\b(?:ns|µs|ms|s)\b", "█+")


class DocumentError(Exception):
    """A document that the checker does not understand: file, line and what to write."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A command of a document and the lines below it, which it must print. `line`: of the command, from 0."""

    line: int
    command: str
    output: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block with the rules in front of it. A bare rule that needs no block (setup, click) is one without text."""

    line: int
    language: str
    title: str | None
    text: tuple[str, ...]
    rules: tuple[tuple[str, str], ...]

    def rule(self, name: str) -> list[str]:
        return [value for given, value in self.rules if given == name]

    @property
    def varies(self) -> list[str]:
        """Patterns of what may differ from run to run."""
        return [*(MEASURED if self.rule("measured") else ()), *self.rule("varies")]

    @property
    def commands(self) -> list[Shown]:
        return list(_commands(self.text, self.line + 1)) if self.language == "console" else []


def blocks(path: Path) -> list[Block]:
    """All blocks of a document, in order, and rules that stand alone as blocks without text."""
    lines = path.read_text(encoding="utf-8").splitlines()
    listed: list[Block] = []
    rules: list[tuple[str, str]] = []
    number = 0
    while number < len(lines):
        if match := RULE.search(lines[number]):
            name, _, value = match["rule"].partition(" ")
            if name not in NAMES:
                raise DocumentError(f"{path}:{number + 1}: no rule '{name}'; rules: {', '.join(NAMES)}")
            if name in ("setup", "click"):
                listed.append(Block(number, "", None, (), ((name, value),)))
            else:
                rules.append((name, value))
        elif match := FENCE.match(lines[number]):
            end = next((later for later in range(number + 1, len(lines)) if lines[later].strip() == "```"), None)
            if end is None:
                raise DocumentError(f"{path}:{number + 1}: the block has no end")
            indent = len(match["indent"])
            text = tuple(line[indent:] for line in lines[number + 1 : end])
            block = Block(number, match["language"], match["title"], text, tuple(rules))
            listed.append(_understood(block, path))
            rules, number = [], end
        number += 1
    if rules:
        raise DocumentError(f"{path}: the rule '{rules[0][0]}' has no block behind it")
    return listed


def _understood(block: Block, path: Path) -> Block:
    if not (block.language == "console" or block.title or block.rule("shown")):
        raise DocumentError(
            f"{path}:{block.line + 1}: a block that is neither console nor a file with title=…: "
            "nobody would run it; write <!-- check: shown REASON --> above it"
        )
    try:
        _ = block.commands
    except DocumentError as error:
        raise DocumentError(f"{path}: {error}") from None
    return block


def _commands(text: tuple[str, ...], first: int) -> list[Shown]:
    """A command may go over several lines, each but the last ending in a backslash."""
    shown: list[Shown] = []
    number = 0
    while number < len(text):
        start = number
        if not text[number].startswith("$ "):
            raise DocumentError(f"line {first + number + 1}: a console block starts with '$ command'")
        command = text[number][2:]
        while command.endswith("\\") and number + 1 < len(text):
            number += 1
            command = f"{command[:-1].rstrip()} {text[number].strip()}"
        number += 1
        output = number
        while number < len(text) and not text[number].startswith("$ "):
            number += 1
        shown.append(Shown(first + start, command, text[output:number]))
    return shown


def plain(lines: tuple[str, ...] | list[str], varies: list[str]) -> list[str]:
    """Without the spaces that only align, without rules of tables, and with `~` for what may differ."""
    kept = []
    for line in lines:
        short = " ".join(line.split())
        for pattern in varies:
            short = re.sub(pattern, "~", short)
        if short and not set(short) <= {"─", " "}:
            kept.append(short)
    return kept


def same(shown: list[str], printed: list[str]) -> bool:
    """`…` on a line of its own stands for any number of lines."""
    if "…" not in shown:
        return shown == printed
    head, rest = shown[: shown.index("…")], shown[shown.index("…") + 1 :]
    if printed[: len(head)] != head:
        return False
    left = printed[len(head) :]
    return not rest or any(same(rest, left[start:]) for start in range(len(left) + 1))


def renewed(shown: tuple[str, ...], printed: list[str]) -> list[str]:
    """What a document shows, after an update: as many lines before and behind `…` as there were."""
    if "…" not in shown:
        return printed
    head = shown.index("…")
    tail = len(shown) - 1 - max(at for at, line in enumerate(shown) if line == "…")
    return [*printed[:head], "…", *(printed[len(printed) - tail :] if tail else [])]
