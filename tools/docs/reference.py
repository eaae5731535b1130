"""Reference pages, made from the code when the site is built: commands, keys of a study, findings, JSON, DLIO's keys.

Nothing here is written by hand, so nothing can be forgotten: `tests/docs` asserts that every command, key and finding occurs.
MkDocs calls `on_files`, which adds the pages (`hooks:` in mkdocs.yml).
"""

import importlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from tierscope.analysis.wording import WORDING
from tierscope.cli.main import COMMANDS, GROUPS
from tierscope.spec import schema
from tierscope.spec.dlio_keys import RULES
from tierscope.spec.kinds import Choice, Optional
from tierscope.spec.study import Study

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"


def pages() -> dict[str, str]:
    """Path below docs/ → Markdown."""
    return {
        "reference/commands.md": commands(),
        "reference/keys.md": study_keys(),
        "reference/dlio.md": dlio_keys(),
        "reference/findings.md": findings(),
        "reference/json.md": json_keys(),
    }


def commands() -> str:
    lines = ["# Commands", "", "Tables go to stdout, progress to stderr; `--json` prints JSON only.", ""]
    lines += _table(("exit code", "meaning"), EXIT_CODES)
    for group, title in GROUPS.items():
        lines += ["", f"## {title}", ""]
        for name, entry in COMMANDS.items():
            if entry.group == group:
                lines += _command(name, entry.research)
    return "\n".join(lines) + "\n"


EXIT_CODES = [
    ("0", "done"),
    ("1", "a bug in Tierscope, or a goal that `analyze --goal` finds missed"),
    ("2", "your input needs a fix; one line says what"),
    ("3", "stopped, and can be resumed with the same command"),
    (
        "other",
        "`trace` exits with the code of the traced command (127 not found, 126 not executable, 128 + N killed by signal N)",
    ),
]


def _command(name: str, research: bool) -> Iterator[str]:
    command: click.Command = importlib.import_module(COMMANDS[name].module).command
    context = click.Context(command, info_name=f"tierscope {name}")
    usage = " ".join(command.collect_usage_pieces(context))
    yield from (f"### {name}", "", f"```text\ntierscope {name} {usage}\n```", "")
    if research:
        yield from ("*A research tool: for questions about training itself, not for daily work.*", "")
    yield from (_prose(command.help or ""), "")
    rows = []
    for option in command.params:
        record = option.get_help_record(context)
        if record and "--help" not in record[0]:
            rows.append((f"`{record[0]}`", record[1]))
    if rows:
        yield from (*_table(("option", "meaning"), rows), "")


def study_keys() -> str:
    lines = [
        "# Keys of a study",
        "",
        "Every key that a study file may have, with its default. `tierscope presets demo` prints a study with all of them. "
        "On the command line (`--set`, `--vary`) any unambiguous end of a path is enough: `cache_rate`, `gfs.bandwidth`.",
    ]
    lines += _section(Study, "", "Study")
    lines += [
        "",
        "## sweep and cases",
        "",
        "`sweep:` maps keys to values (`0%..100% step 25%`, or a list); every combination is a point. ",
    ]
    lines += ["`cases:` maps names to keys that change together; every case has the whole sweep."]
    return "\n".join(lines) + "\n"


def _section(section: type, prefix: str, title: str) -> Iterator[str]:
    rows: list[tuple[str, str, str]] = []
    inner: list[tuple[type, str, str]] = []
    for field in schema.fields(section):
        path = f"{prefix}{field.yaml}"
        match field.meta:
            case schema.Key(kind=kind, help=text):
                default = (
                    "required"
                    if field.required
                    else f"`{kind.format(field.default) if field.default is not None else 'null'}`"
                )
                chosen = kind.kind if isinstance(kind, Optional) else kind
                names = f" ({', '.join(chosen.names)})" if isinstance(chosen, Choice) else ""
                rows.append((f"`{path}`", default, text + names))
            case schema.Section(type=type_, help=text):
                inner.append((type_, f"{path}.", f"{path}: {text}"))
            case schema.NamedSections(type=type_, help=text):
                inner.append((type_, f"{path}.NAME.", f"{path}: {text}"))
    if rows:
        yield from ("", f"## {title}", "")
        yield from _table(("key", "default", "meaning"), rows)
    for type_, path, heading in inner:
        yield from _section(type_, path, heading)


def dlio_keys() -> str:
    lines = [
        "# DLIO keys",
        "",
        "What `run`, `simulate`, `generate` and `convert` do with every key of a DLIO file. Any other key is refused, with a suggestion.",
        "",
    ]
    rows = []
    for path, rule in RULES.items():
        to = ", ".join(f"`{key}`" for key in rule.to)
        rows.append((f"`{path}.*`" if rule.whole else f"`{path}`", f"{rule.does}{': ' + to if to else ''}", rule.says))
    lines += _table(("key", "here", "what it does"), rows)
    return "\n".join(lines) + "\n"


def findings() -> str:
    lines = [
        "# Findings",
        "",
        "Every finding that a command can print, by its `kind` in the JSON. Words in braces are filled in from the finding's evidence.",
        "",
    ]
    lines += _table(
        ("kind", "what was found", "what to do"),
        [(f"`{kind}`", _slots(wording), _slots(advice)) for kind, (wording, advice) in WORDING.items()],
    )
    return "\n".join(lines) + "\n"


def _slots(text: str) -> str:
    """`{percent:.0f}` as `{percent}`, `{points:count point}` as `{points} points`, `{points:if is|are}` as `are`."""
    text = re.sub(r"\{(\w+):count ([^{}]+)\}", r"{\1} \2s", text)
    text = re.sub(r"\{\w+:if [^{}|]*\|([^{}]*)\}", r"\1", text)
    return re.sub(r"\{(\w+)[^{}]*\}", r"`{\1}`", text)


def json_keys() -> str:
    lines = [
        "# JSON",
        "",
        "What `--json` prints, key by key, from examples that the tests compare with every version. Units are seconds, bytes and operations unless a name says otherwise; "
        "shares are within 0–1. `[]` is every element of a list, `*` every name that a study chooses. A key that is unknown is `null`, never 0. What the numbers mean: [numbers](../numbers.md).",
    ]
    by_command: dict[str, dict[str, set[str]]] = {}
    for file in sorted((GOLDEN / "expected").glob("*.json")):
        keys = by_command.setdefault(file.name.partition("-")[0], {})
        for path, kind in _paths(json.loads(file.read_text(encoding="utf-8")), ""):
            keys.setdefault(path, set()).add(kind)
    for command, keys in by_command.items():
        lines += ["", f"## tierscope {command} --json", ""]
        lines += _table(
            ("key", "type"), [(f"`{path}`", ", ".join(sorted(kinds))) for path, kinds in keys.items() if path]
        )
    return "\n".join(lines) + "\n"


def _paths(value: Any, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            yield path, "object"
            for name, inner in value.items():
                named = re.search(r"[A-Z/ ]|\d", name) or (path and path.endswith(("evidence", "sweep")))
                yield from _paths(inner, f"{path}.{'*' if named else name}".lstrip("."))
        case list():
            yield path, "list"
            for inner in value:
                yield from _paths(inner, f"{path}[]")
        case None:
            yield path, "null"
        case bool():
            yield path, "true or false"
        case int() | float():
            yield path, "number"
        case _:
            yield path, "text"


def _table(heads: tuple[str, ...], rows: list[Any]) -> Iterator[str]:
    yield "| " + " | ".join(heads) + " |"
    yield "|" + "---|" * len(heads)
    for row in rows:
        yield "| " + " | ".join(_cell(cell) for cell in row) + " |"


def _cell(text: str) -> str:
    text = " ".join(text.split()).replace("|", "\\|")
    return re.sub(r"<(?=\w)", "&lt;", text) if "`" not in text else text


def _prose(text: str) -> str:
    """Help of a command: paragraphs, which click marks with \\b where lines are kept."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    shown = []
    for paragraph in paragraphs:
        if paragraph.startswith("\b"):
            shown.append("```text\n" + paragraph.removeprefix("\b").strip("\n") + "\n```")
        else:
            shown.append(" ".join(paragraph.split()).replace("<", "&lt;").replace("*", "\\*"))
    return "\n\n".join(shown)


def on_files(files: Any, config: Any) -> Any:
    """MkDocs's hook: pages that are not on disk."""
    from mkdocs.structure.files import File  # noqa: PLC0415

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def fetched(text: str) -> list[str]:
    """What a browser would fetch from the network for this HTML or CSS. Links that a reader may click are not fetched."""
    loads = r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?(https?:[^\"\s>]+)|<link[^>]*\shref=\"?(https?:[^\"\s>]+)"
    css = r"url\([\"']?(https?:[^)\"']+)|@import\s+[\"'](https?:[^\"']+)"
    return [part for match in re.findall(f"{loads}|{css}", text) for part in match if part]


def on_post_build(config: Any) -> None:
    """MkDocs's hook: the site must work without a network."""
    from mkdocs.exceptions import PluginError  # noqa: PLC0415

    for path in sorted(Path(config["site_dir"]).rglob("*")):
        if path.suffix in (".html", ".css") and (hosts := fetched(path.read_text(encoding="utf-8"))):
            raise PluginError(f"{path.name} fetches {', '.join(hosts)}; the site must work without a network")
