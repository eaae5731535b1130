"""The import table of docs/architecture.md, held; and what an import may cost."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "tierscope"
ANYONE = {"errors", "jsonable", "units", "registry", "watch", "__init__"}
# From the bottom up: a room imports only rooms above it in this table.
MAY_IMPORT: dict[str, set[str]] = {
    "spec": set(),
    "formats": set(),
    "native": set(),
    "launch": set(),
    "plan": {"spec", "formats"},
    "trace": {"native"},
    "output": {"spec", "native", "trace"},
    "storage": {"spec", "plan", "native", "trace"},
    "dataset": {"spec", "plan", "formats", "storage", "output"},
    "loaders": {"spec", "plan", "formats", "storage", "trace", "native"},
    "bench": {"spec", "plan", "formats", "storage", "dataset", "trace", "output", "loaders"},
    "analysis": {"spec", "trace"},
    "predict": {"spec", "plan", "formats", "trace", "analysis"},
    "arch": {"spec", "plan", "analysis", "predict"},
    "train": {"spec", "plan", "loaders", "trace", "arch"},
    "imports": {"trace", "output", "analysis"},
    "recording": {"spec", "native", "storage", "trace", "output", "bench", "imports"},
    "measure": {
        *("spec", "plan", "formats", "native", "trace", "output", "storage", "dataset", "loaders", "bench", "arch"),
        *("imports", "recording"),
    },
    "tuning": {"spec", "dataset", "output", "bench", "analysis", "measure"},
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
HEAVY = {"numpy", "polars", "msgspec", "rich", "yaml", "torch", "tensorflow", "scipy", "mpi4py", "crc32c"}


def imported_rooms(path: Path) -> set[str]:
    """The rooms of tierscope that a module imports, anywhere in it."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide which room is meant"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        rooms |= {parts[1] for name in names if (parts := name.split("."))[0] == "tierscope" and len(parts) > 1}
    return rooms


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


def test_runs_that_are_handed_over_need_neither_tables_nor_a_decoder() -> None:
    """`train --hand-over` is for machines where nothing can be installed."""
    names = modules_after("import tierscope.cli.train, tierscope.train.train_plan, tierscope.measure.away")
    assert not names & {"polars", "msgspec"}


# Modules whose plain data stays in their room: lines of foreign files, and what a worker process of ours sends.
PLAIN_INSIDE = {
    "bench/checkpoint_files.py",
    "imports/darshan_library.py",
    "imports/darshan_reader.py",
    "imports/darshan_worker.py",
    "imports/dftracer_events.py",
}


def public_annotations(path: Path) -> list[tuple[str, str]]:
    """(name, annotation) of what other modules may use: functions, methods and fields without an underscore."""
    found: list[tuple[str, str]] = []

    def visit(body: list[ast.stmt], inside: str) -> None:
        for node in body:
            name = getattr(node, "name", "")
            if name.startswith("_"):
                continue
            match node:
                case ast.ClassDef():
                    visit(node.body, f"{name}.")
                case ast.FunctionDef():
                    arguments = [*node.args.args, *node.args.kwonlyargs]
                    parts = [*(each.annotation for each in arguments), node.returns]
                    found.extend((inside + name, ast.unparse(part)) for part in parts if part is not None)
                case ast.AnnAssign(target=ast.Name(id=field)) if inside and not field.startswith("_"):
                    found.append((inside + field, ast.unparse(node.annotation)))

    visit(ast.parse(path.read_text()).body, "")
    return found


def test_no_unnamed_dictionary_crosses_a_border() -> None:
    """What a dictionary holds is said by a type, or by an alias (`JsonObject`, `SweepValues`, `TraceRow`)."""
    for path in SOURCE.rglob("*.py"):
        if str(path.relative_to(SOURCE)) in PLAIN_INSIDE:
            continue
        for name, annotation in public_annotations(path):
            assert "[str, Any]" not in annotation, f"{path.relative_to(SOURCE)}: {name}: {annotation}"
