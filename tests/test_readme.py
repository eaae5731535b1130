"""What the documents say is true: examples load, commands exist, tables are those that the code holds."""

import re
from pathlib import Path

from tests.test_architecture import MAY_IMPORT
from tierscope.cli.main import COMMANDS
from tierscope.spec.load import parse_study

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text()


def test_the_first_own_study_loads_and_is_short() -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)
    study = parse_study(example, "README.md")
    assert [tier.name for tier in study.system.tiers] == ["lfs", "gfs"]
    assert len(study.sweep[0].values) == 5
    assert len(example.splitlines()) <= 12
    assert (ROOT / "examples" / "mine.yaml").read_text() == example


def test_every_command_is_documented_and_every_documented_command_exists() -> None:
    mentioned = set(re.findall(r"tierscope ([a-z]+)", README)) - {"is"}
    assert mentioned == set(COMMANDS)


def test_make_targets_in_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"make ([a-z-]+)", README)) <= targets


def test_the_import_table_in_the_document_is_the_one_that_is_held() -> None:
    rows = re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", ARCHITECTURE, re.MULTILINE)
    everything = set(MAY_IMPORT)
    meaning = {"–": set[str](), "all of these": everything - {"studies", "cli"}, "everything": everything - {"cli"}}
    assert {room: meaning.get(cell, set(cell.split(", "))) for room, cell in rows} == MAY_IMPORT


def test_constraints_pin_by_name_and_version_only() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    declared = set(re.findall(r'"([A-Za-z0-9-]+)>=', (ROOT / "pyproject.toml").read_text()))
    assert {name.lower() for name in declared} <= pinned
