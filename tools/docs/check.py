"""`python -m tools.docs.check`: run the commands of the documents, each document in an empty directory of its own, and compare what they print.

`--update` writes what was printed into the documents instead; `--nightly` also runs blocks that take long. The rules of a document: `tools/docs/blocks.py`.
"""

import argparse
import difflib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.docs.blocks import Block, DocumentError, Shown, blocks, plain, renewed, same
from tools.docs.links import has_link

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("README.md", "docs/getting-started.md", "docs/five-tasks.md", "docs/concepts.md", "docs/tutorials/*.md")
LONGEST_SECONDS = 1800
MEASURED_TRIES = 3  # other processes of this machine may move a bottleneck, never three times in a row


@dataclass(frozen=True, slots=True)
class Wish:
    """What the caller asked for."""

    update: bool = False
    nightly: bool = False


@dataclass(slots=True)
class Outcome:
    """What became known about one document."""

    path: Path
    tries: int = 1
    ran: int = 0
    left_to_nightly: int = 0
    seconds: float = 0.0
    problems: list[str] | None = None


def documents(names: Sequence[str] = DOCUMENTS) -> list[Path]:
    return [path for name in names for path in sorted(ROOT.glob(name))]


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name


def check(path: Path, wish: Wish) -> Outcome:
    """Run a document in an empty directory; problems are lines for a person."""
    started = time.monotonic()
    try:
        listed = blocks(path)
    except DocumentError as error:
        return Outcome(path, problems=[str(error)])
    tries = MEASURED_TRIES if any(block.rule("measured") for block in listed) else 1
    for number in range(1, tries + 1):
        outcome = Outcome(path, tries=number, problems=[])
        with tempfile.TemporaryDirectory(prefix="docs-") as folder:
            changes = _run(listed, Sandbox(Path(folder), listed), wish, outcome)
        if not outcome.problems:
            break
    if wish.update and changes:
        _rewrite(path, changes)
    outcome.seconds = time.monotonic() - started
    return outcome


class Sandbox:
    """An empty directory with `tierscope` and `python` of this environment on its PATH."""

    def __init__(self, folder: Path, listed: list[Block]) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        programs = folder / "bin"
        programs.mkdir()
        for name, start in (
            ("tierscope", f'"{sys.executable}" -m tierscope.cli.main'),
            ("python", f'"{sys.executable}"'),
        ):
            (programs / name).write_text(f'#!/bin/sh\nexec {start} "$@"\n')
            (programs / name).chmod(0o755)
        self._replaced = [value.split(" ", 1) for block in listed for value in block.rule("replace")]
        paths = os.pathsep.join(part for part in (str(ROOT / "src"), os.environ.get("PYTHONPATH", "")) if part)
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in ("COLUMNS", "PYTHONPATH")},
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "PYTHONPATH": paths,
        }

    def write(self, name: str, text: str) -> None:
        target = self.work / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self._here(text))

    def _here(self, text: str) -> str:
        """A document's paths as those of this directory."""
        for theirs, instead in self._replaced:
            text = text.replace(theirs, instead.replace("$PWD", str(self.work)))
        return text

    def run(self, command: str) -> tuple[int, list[str]]:
        """Exit code and lines: of stdout, and of stderr too where the command failed."""
        ended = subprocess.run(
            ["bash", "-c", self._here(command)],
            cwd=self.work,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
        printed = ended.stdout + (ended.stderr if ended.returncode else "")
        for text, instead in self._replaced:
            printed = printed.replace(instead.replace("$PWD", str(self.work)), text)
        return ended.returncode, [line.rstrip() for line in printed.replace(str(self.work), "/home/me").splitlines()]


def _run(listed: list[Block], sandbox: Sandbox, wish: Wish, outcome: Outcome) -> list[tuple[Shown, list[str]]]:
    changes: list[tuple[Shown, list[str]]] = []
    for block in listed:
        if block.rule("nightly") and not wish.nightly:
            outcome.left_to_nightly += 1
            continue
        if block.title:
            sandbox.write(block.title, "\n".join(block.text) + "\n")
        problems = _steps(block, sandbox)
        if not block.rule("shown"):
            for shown, exit_code in _with_exit_codes(block):
                outcome.ran += 1
                code, printed = sandbox.run(shown.command)
                if wish.update and code == exit_code:
                    changes.append((shown, printed))
                else:
                    problems += _compare(shown, block.varies, code, exit_code, printed)
        assert outcome.problems is not None
        outcome.problems += [f"{_name(outcome.path)}:{problem}" for problem in problems]
    return changes


def _steps(block: Block, sandbox: Sandbox) -> list[str]:
    """What a reader does not see: clicks and preparations."""
    problems = []
    for value in block.rule("click"):
        start, target = value.split()
        if not has_link(ROOT / start, target):
            problems.append(f"{block.line + 1}: {start} has no link to {target}")
    for command in block.rule("setup"):
        code, printed = sandbox.run(command)
        if code:
            problems.append(f"{block.line + 1}: setup failed: {command}: {' '.join(printed)}")
    return problems


def _with_exit_codes(block: Block) -> Iterator[tuple[Shown, int]]:
    commands = block.commands
    last = int(block.rule("exit")[0]) if block.rule("exit") else 0
    for shown in commands:
        yield shown, last if shown is commands[-1] else 0


def _compare(shown: Shown, varies: list[str], code: int, exit_code: int, printed: list[str]) -> list[str]:
    if code != exit_code:
        return [f"{shown.line + 1}: $ {shown.command}\nexit code {code}, not {exit_code}:\n" + "\n".join(printed[-20:])]
    expected, got = plain(shown.output, varies), plain(printed, varies)
    if not expected and shown.output == ():  # a command whose output is not shown at all
        return []
    if same(expected, got):
        return []
    difference = "\n".join(difflib.unified_diff(expected, got, "in the document", "printed", lineterm=""))
    return [f"{shown.line + 1}: $ {shown.command}\n{difference}"]


def _rewrite(path: Path, changes: list[tuple[Shown, list[str]]]) -> None:
    """From the last to the first, so that lines keep their numbers."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for shown, printed in sorted(changes, key=lambda change: -change[0].line):
        if shown.output:
            end = shown.line + 1
            while lines[end - 1].endswith("\\"):
                end += 1
            indent = lines[shown.line][: -len(lines[shown.line].lstrip())]
            new = [f"{indent}{line}".rstrip() for line in renewed(shown.output, printed)]
            lines[end : end + len(shown.output)] = new
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.docs.check", description=__doc__)
    parser.add_argument(
        "names", nargs="*", default=DOCUMENTS, help="documents, relative to the repository; patterns too"
    )
    parser.add_argument("--update", action="store_true", help="write what was printed into the documents")
    parser.add_argument("--nightly", action="store_true", help="also run blocks marked nightly")
    given = parser.parse_args()
    wish = Wish(given.update, given.nightly)
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda path: check(path, wish), documents(given.names)))
    for outcome in outcomes:
        later = f", {outcome.left_to_nightly} blocks left to NIGHTLY=1" if outcome.left_to_nightly else ""
        again = f", try {outcome.tries} of {MEASURED_TRIES}" if outcome.tries > 1 else ""
        sys.stdout.write(f"{_name(outcome.path)}: {outcome.ran} commands, {outcome.seconds:.1f} s{again}{later}\n")
    problems = [problem for outcome in outcomes for problem in outcome.problems or []]
    for problem in problems:
        sys.stdout.write(f"\n{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
