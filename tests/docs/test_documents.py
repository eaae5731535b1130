"""What the documents say is true: links lead somewhere, commands and options exist, nothing in the reference is missing."""

import importlib
import re
import shlex
from pathlib import Path

import click
import pytest
import yaml

from tests.test_architecture import MAY_IMPORT
from tierscope.analysis.wording import WORDING
from tierscope.cli.main import ALIASES, COMMANDS
from tierscope.spec.dlio_keys import RULES
from tierscope.spec.keys import leaf_keys
from tierscope.spec.load import parse_study
from tierscope.spec.study import Study
from tools.docs.blocks import blocks
from tools.docs.check import documents
from tools.docs.links import broken, has_link
from tools.docs.reference import fetched, pages

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()
PAGES = sorted(path.relative_to(ROOT).as_posix() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
GENERATED = tuple(Path(path).name for path in pages())
TASKS = {
    "See where the time goes in my job": ("trace", "docs/tutorials/trace-a-script.md"),
    "Read logs my site has": ("analyze", "docs/tutorials/darshan-logs.md"),
    "Run a study": ("run", "docs/tutorials/first-study.md"),
    "What should I buy?": ("explore", "docs/tutorials/planning.md"),
    "Does storage matter for this network at all?": ("require", "docs/requirements.md"),
}


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    assert list(broken(ROOT / name, GENERATED)) == []


def shown_commands(text: str) -> list[list[str]]:
    """Commands of fenced blocks and of code in a sentence, as words."""
    lines = re.findall(r"^ *(?:\$ )?(tierscope [a-z].*)$", text, re.MULTILINE) + re.findall(
        r"`(tierscope [a-z][^`\n]*)`", text
    )
    found = []
    for line in lines:
        try:
            found.append(shlex.split(re.split(r" #|\s[|>;&]", line)[0]))
        except ValueError:  # an apostrophe: a sentence, not a command
            continue
    return found


@pytest.mark.parametrize("name", [*PAGES, *pages()])
def test_commands_and_options_exist(name: str) -> None:
    text = pages()[name] if name in pages() else (ROOT / name).read_text()
    for _, given, *words in shown_commands(text):
        command = ALIASES.get(given, given)
        assert command in COMMANDS, f"{name}: tierscope {command}"
        loaded: click.Command = importlib.import_module(COMMANDS[command].module).command
        known = {option for parameter in loaded.params for option in (*parameter.opts, *parameter.secondary_opts)}
        own = words[: words.index("--")] if "--" in words else words
        for word in own:
            if re.match(r"--?[a-z]", word):
                assert word.partition("=")[0] in known | {"--help", "-h"}, f"{name}: tierscope {command} {word}"


def test_the_reference_has_every_command_key_and_finding() -> None:
    reference = pages()
    for command in COMMANDS:
        assert f"\n### {command}\n" in reference["reference/commands.md"]
    for key in leaf_keys(Study, ["NAME"]):
        assert f"| `{key}` |" in reference["reference/keys.md"]
    for kind in WORDING:
        assert f"| `{kind}` |" in reference["reference/findings.md"]
    for path, rule in RULES.items():
        assert f"| `{path}.*` |" in reference["reference/dlio.md"] or not rule.whole
        assert rule.whole or f"| `{path}` |" in reference["reference/dlio.md"]


def test_the_reference_has_every_key_of_a_result() -> None:
    text = pages()["reference/json.md"]
    for key in ("points[].io_seconds", "summary[].bottleneck", "findings[].kind", "best", "schema_version"):
        assert f"| `{key}` |" in text


def test_every_option_has_its_help() -> None:
    text = pages()["reference/commands.md"]
    for entry in COMMANDS.values():
        for parameter in importlib.import_module(entry.module).command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert parameter.opts[0] in text


def listed(nav: object) -> set[str]:
    match nav:
        case list():
            return {path for entry in nav for path in listed(entry)}
        case dict():
            return {path for entry in nav.values() for path in listed(entry)}
    return {str(nav)}


def test_every_page_is_in_the_navigation() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    there = {path.removeprefix("docs/") for path in PAGES if path.startswith("docs/")} | set(pages())
    assert listed(site["nav"]) == there


def test_the_site_needs_no_network() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert site["theme"]["font"] is False
    assert "extra_javascript" not in site
    assert not [link for link in site["extra_css"] if link.startswith("http")]
    assert "http" not in (ROOT / "docs" / "site.css").read_text()


@pytest.mark.parametrize(
    "text",
    [
        '<script src="https://cdn.example/x.js"></script>',
        '<link rel="stylesheet" href="https://fonts.example/css">',
        '<img alt="" src=http://example/x.png>',
        "body { background: url(https://example/x.png) }",
        '@import "https://example/x.css";',
    ],
)
def test_what_a_page_would_fetch_is_found(text: str) -> None:
    assert len(fetched(text)) == 1


def test_what_a_reader_may_click_is_not_fetched() -> None:
    assert fetched('<a href="https://example.org">x</a><script src="assets/x.js"></script>') == []


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 110


@pytest.mark.parametrize("task", TASKS)
def test_each_task_has_a_command_that_is_run_and_a_page_that_goes_further(task: str) -> None:
    command, page = TASKS[task]
    section = README.partition(f"### {task}\n")[2].partition("\n##")[0]
    assert f"$ tierscope {command} " in section
    assert has_link(ROOT / "README.md", page)
    run = {
        shown.command.split()[1]
        for block in blocks(ROOT / "README.md")
        if not block.rule("shown")
        for shown in block.commands
    }
    assert command in run
    assert f"check: click README.md {page} " in (ROOT / "docs" / "five-tasks.md").read_text()
    if "tutorials" in page:
        assert ROOT / page in documents()


def test_the_first_own_study_loads_and_is_short() -> None:
    (example,) = re.findall(r"```yaml title=\"mine.yaml\"\n(.*?)```", README, re.DOTALL)
    study = parse_study(example, "README.md")
    assert [tier.name for tier in study.system.tiers] == ["lfs", "gfs"]
    assert len(study.sweep[0].values) == 5
    assert len(example.splitlines()) <= 12
    assert (ROOT / "examples" / "mine.yaml").read_text() == example


@pytest.mark.parametrize("name", PAGES)
def test_make_targets_exist(name: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"`make ([a-z-]+)", (ROOT / name).read_text())) <= targets


def test_every_extra_is_explained() -> None:
    extras = re.search(
        r"\[project.optional-dependencies\]\n(.*?)\n\n", (ROOT / "pyproject.toml").read_text(), re.DOTALL
    )
    assert extras
    names = set(re.findall(r"^(\w+) =", extras[1], re.MULTILINE)) - {"dev", "witness", "browser", "docs"}
    started = (ROOT / "docs" / "getting-started.md").read_text()
    assert names <= set(re.findall(r"`(\w+)`", started))


def test_the_tutorial_on_planning_answers_the_question() -> None:
    """One sequence: simulate, explore with prices, a limit, a tender, and the search."""
    page = ROOT / "docs" / "tutorials" / "planning.md"
    commands = [shown.command for block in blocks(page) for shown in block.commands]
    assert commands[0].startswith("tierscope simulate architect.yaml")
    for word in (
        "--cost gfs.servers=30000/server",
        "--max-price",
        "--tender",
        "--most ranks_per_node",
        "--goal io=10min",
    ):
        assert any(word in command for command in commands)


def test_the_rooms_in_the_document_are_those_that_are_held_in_their_order() -> None:
    table = ARCHITECTURE.partition("## Rooms")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(MAY_IMPORT)


@pytest.mark.parametrize("name", PAGES)
def test_modules_that_documents_name_exist(name: str) -> None:
    rooms = "|".join((*MAY_IMPORT, "tests", "tools"))
    named = set(re.findall(rf"`((?:{rooms})/[a-z_/]+\.py)", (ROOT / name).read_text()))
    missing = {path for path in named if not (ROOT / path).is_file() and not (ROOT / "src/tierscope" / path).is_file()}
    assert not missing


def test_constraints_pin_by_name_and_version_only() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    declared = set(re.findall(r'"([A-Za-z0-9-]+)>=', (ROOT / "pyproject.toml").read_text()))
    assert {name.lower() for name in declared} <= pinned
