"""The import table of docs/architecture.md, held; what an import may cost; and what keeps a stranger oriented: sizes and names."""

import ast
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from tierscope.cli.main import COMMANDS

SOURCE = Path(__file__).parent.parent / "src" / "tierscope"
ANYONE = {"errors", "units", "registry", "watch", "__init__"}
# From the bottom up: a room imports only rooms above it in this table.
MAY_IMPORT: dict[str, set[str]] = {
    "spec": set(),
    "formats": set(),
    "native": set(),
    "launch": set(),
    "plan": {"spec", "formats"},
    "trace": {"native"},
    "output": {"spec", "native", "trace"},
    "storage": {"spec", "plan", "native", "trace", "output"},
    "dataset": {"spec", "plan", "formats", "storage", "output"},
    "loaders": {"spec", "plan", "formats", "storage", "trace", "native", "output"},
    "bench": {"spec", "plan", "formats", "storage", "dataset", "trace", "output", "loaders"},
    "analysis": {"spec", "trace"},
    "predict": {"spec", "plan", "formats", "trace", "analysis"},
    "arch": {"spec", "plan", "analysis", "predict"},
    "train": {"spec", "plan", "loaders", "trace", "arch"},
    "imports": {"trace", "output", "analysis"},
    "recording": {"spec", "native", "storage", "trace", "output", "bench", "imports"},
    "measure": {
        *("spec", "plan", "formats", "native", "trace", "output", "storage", "dataset", "loaders", "bench", "arch"),
        *("train", "imports", "recording"),
    },
    "tuning": {"spec", "dataset", "output", "loaders", "bench", "analysis", "measure"},
    "probe": {"spec", "storage", "dataset", "trace", "output", "bench", "analysis"},
    "report": {"spec", "trace", "output", "dataset", "analysis", "predict", "arch", "tuning", "probe"},
    "commands": {
        *("spec", "plan", "native", "launch", "trace", "output", "storage", "dataset", "analysis", "predict", "arch"),
        *("train", "imports", "recording", "measure", "tuning", "report"),
    },
    "cli": {
        *("spec", "bench", "dataset", "analysis", "predict", "train", "imports", "recording", "measure", "tuning"),
        *("probe", "report", "commands"),
    },
}
# Modules that hold a registry: each imports no room, so anyone may import what it lists.
REGISTRIES = {
    "tierscope.formats": {"FORMATS", "FormatEntry"},
    "tierscope.loaders": {"LOADERS", "LoaderEntry"},
    "tierscope.launch": {"LAUNCHERS", "LauncherEntry"},
    "tierscope.storage": {"STORAGES"},
    "tierscope.train": {"TRAININGS"},
    "tierscope.arch.networks": {"ALIASES", "NETWORKS", "NetworkEntry"},
    "tierscope.recording.recorders": {"RECORDERS", "RecorderEntry", "RecordingRequest"},
}
MOST_MODULE_LINES = 350
MOST_FUNCTION_LINES = 80
EXCUSE = "Longer than other modules because"
HEAVY = {"numpy", "polars", "rich", "yaml", "torch", "tensorflow", "scipy", "mpi4py", "crc32c"}


def imported_rooms(path: Path) -> set[str]:
    """The rooms of tierscope that a module imports, anywhere in it; registries are open to all."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which room is meant"
            open_to_all = REGISTRIES.get(node.module or "", set())
            names = [f"{node.module}.{alias.name}" for alias in node.names if alias.name not in open_to_all]
        rooms |= {parts[1] for name in names if (parts := name.split("."))[0] == "tierscope" and len(parts) > 1}
    return rooms


def modules() -> Iterator[tuple[str, ast.Module, int]]:
    """Every module of the package: its path below the source folder, what is in it, and its lines."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        yield str(path.relative_to(SOURCE)), ast.parse(text), len(text.splitlines())


def test_every_room_is_in_the_table() -> None:
    rooms = {entry.name for entry in SOURCE.iterdir() if entry.is_dir() and entry.name != "__pycache__"}
    assert rooms == set(MAY_IMPORT)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_rooms_import_only_what_they_may(room: str) -> None:
    for path in (SOURCE / room).rglob("*.py"):
        foreign = imported_rooms(path) - ANYONE - {room, "__version__"} - MAY_IMPORT[room]
        assert not foreign, f"{path.relative_to(SOURCE)} imports {sorted(foreign)}"


def test_no_rooms_import_one_another() -> None:
    above: set[str] = set()
    for room, may in MAY_IMPORT.items():
        assert may <= above, f"{room} may import {sorted(may - above)}, which come after it"
        above.add(room)


def test_shared_modules_import_no_room() -> None:
    for name in ANYONE:
        assert imported_rooms(SOURCE / f"{name}.py") <= ANYONE


def runs_at_import(module: ast.Module) -> Iterator[ast.stmt]:
    """Statements that an import executes: not those of functions, nor those for type checkers only."""
    for statement in module.body:
        if isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            continue
        if not isinstance(statement, ast.FunctionDef):
            yield statement


@pytest.mark.parametrize("name", REGISTRIES)
def test_a_registry_imports_no_room(name: str) -> None:
    """So that `spec`, at the bottom, may read what can be named in a study."""
    parts = name.split(".")[1:]
    path = SOURCE.joinpath(*parts, "__init__.py") if len(parts) == 1 else SOURCE.joinpath(*parts).with_suffix(".py")
    for statement in runs_at_import(ast.parse(path.read_text())):
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("tierscope"):
            assert str(statement.module).split(".")[1] in ANYONE, f"{name} imports {statement.module}"


def test_reading_the_registries_costs_no_import() -> None:
    imports = "; ".join(f"import {name}" for name in REGISTRIES)
    assert not modules_after(imports) & (HEAVY | {"click"})


def test_no_module_is_long_without_a_reason() -> None:
    too_long = [
        f"{path}: {lines} lines"
        for path, module, lines in modules()
        if lines > MOST_MODULE_LINES and EXCUSE not in (ast.get_docstring(module) or "")
    ]
    assert not too_long


def test_no_function_is_long() -> None:
    too_long = [
        f"{path}: {node.name}: {length} lines"
        for path, module, _ in modules()
        for node in ast.walk(module)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > MOST_FUNCTION_LINES
    ]
    assert not too_long


def test_public_classes_have_names_of_their_own() -> None:
    """A search for a name finds one thing."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path, module, _ in modules():
        for node in module.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    assert not {name: paths for name, paths in places.items() if len(paths) > 1}


def test_a_use_case_is_named_after_its_command() -> None:
    names = {path.stem for path in (SOURCE / "commands").glob("*.py")} - {"__init__"}
    assert not names - set(COMMANDS)


def modules_after(statement: str) -> set[str]:
    program = f"{statement}; import sys; print(*(name.partition('.')[0] for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_tierscope_pulls_in_nothing_heavy() -> None:
    assert not modules_after("import tierscope") & (HEAVY | {"click"})


def test_help_pulls_in_nothing_heavy() -> None:
    assert not modules_after("import tierscope.cli.main") & HEAVY


def test_ranks_do_not_pull_in_the_table_library() -> None:
    """A fork after Polars ran hangs, a GPU machine may lack it, and 512 ranks would each pay for it."""
    assert not modules_after("import tierscope.bench.rank") & (HEAVY - {"numpy", "yaml", "crc32c"})
