"""What the documents say is true: examples load, commands exist, tables are those that the code holds."""

import re
from pathlib import Path

import pytest

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


def test_the_rooms_in_the_document_are_those_that_are_held_in_their_order() -> None:
    table = ARCHITECTURE.partition("## Rooms")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == list(MAY_IMPORT)


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "docs").glob("*.md")))
def test_modules_that_documents_name_exist(name: str) -> None:
    text = (ROOT / "docs" / name).read_text()
    rooms = "|".join((*MAY_IMPORT, "tests"))
    named = set(re.findall(rf"`((?:{rooms})/[a-z_/]+\.py)", text))
    missing = {path for path in named if not (ROOT / path).is_file() and not (ROOT / "src/tierscope" / path).is_file()}
    assert not missing


def test_constraints_pin_by_name_and_version_only() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line) for line in lines)
    pinned = {line.partition("==")[0].lower().replace("_", "-") for line in lines}
    declared = set(re.findall(r'"([A-Za-z0-9-]+)>=', (ROOT / "pyproject.toml").read_text()))
    assert {name.lower() for name in declared} <= pinned
