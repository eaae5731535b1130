"""The import table of docs/architecture.md, held; what an import may cost; and what keeps a stranger oriented: sizes and names."""

import ast
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tests.source_trees import nodes_of, tree_of
from tierscope.cli.main import COMMANDS

SOURCE = Path(__file__).parent.parent / "src" / "tierscope"
ANYONE = {
    *(
        "checksum",
        "clock_marks",
        "errors",
        "helper_process",
        "jsonable",
        "mounts",
        "plain_files",
        "plain_json",
        "registry",
        "shortage",
        "signals",
    ),
    *("thread_limits", "units", "watch", "__init__"),
}
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
    "dataset": {"spec", "plan", "formats", "native", "storage", "output"},
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
    "tuning": {"spec", "plan", "dataset", "output", "loaders", "bench", "analysis", "measure"},
    "probe": {"spec", "storage", "dataset", "trace", "output", "bench", "analysis"},
    "report": {"spec", "trace", "output", "dataset", "analysis", "predict", "arch", "tuning", "probe"},
    "commands": {
        *("spec", "plan", "native", "launch", "trace", "output", "storage", "dataset", "analysis", "predict", "arch"),
        *("train", "imports", "recording", "measure", "tuning", "report"),
    },
    "papers": {
        "spec",
        "formats",
        "plan",
        "trace",
        "output",
        "storage",
        "analysis",
        "predict",
        "arch",
        "train",
        "measure",
        "tuning",
        "report",
        "commands",
    },
    "cli": {
        *("spec", "bench", "dataset", "analysis", "predict", "train", "imports", "recording", "measure", "tuning"),
        *("probe", "report", "commands", "papers"),
    },
    "api": {
        *("spec", "bench", "analysis", "predict", "arch", "recording", "report", "trace", "commands"),
        "cli",  # how progress and text reach a terminal
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
    "tierscope.recording.recorders": {"BUILTIN", "RECORDERS", "RecorderEntry", "RecordingRequest"},
}
MOST_MODULE_LINES = 350
MOST_FUNCTION_LINES = 80
MOST_ENGINE_LINES = 60
EXCUSE = "Longer than other modules because"
HEAVY = {"numpy", "polars", "msgspec", "rich", "yaml", "torch", "tensorflow", "scipy", "mpi4py", "crc32c"}


@dataclass(frozen=True, slots=True)
class Module:
    """What tests ask of a module: every file is parsed once for all of them."""

    path: str  # below the source folder
    lines: int
    docstring: str
    rooms: set[str]  # of tierscope that it imports, anywhere in it; registries are open to all
    relative_imports: bool
    function_lines: dict[str, int]
    classes: list[str]
    annotations: list[tuple[str, str]]


@cache
def module_of(path: Path) -> Module:
    text = path.read_text()
    tree = tree_of(path)
    rooms: set[str] = set()
    relative = False
    function_lines: dict[str, int] = {}
    for node in ast.walk(tree):
        names: list[str] = []
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom():
                relative |= node.level > 0
                open_to_all = REGISTRIES.get(node.module or "", set())
                names = [f"{node.module}.{alias.name}" for alias in node.names if alias.name not in open_to_all]
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                function_lines[node.name] = max(length, function_lines.get(node.name, 0))
        rooms |= {parts[1] for name in names if (parts := name.split("."))[0] == "tierscope" and len(parts) > 1}
    return Module(
        str(path.relative_to(SOURCE)),
        len(text.splitlines()),
        ast.get_docstring(tree) or "",
        rooms,
        relative,
        function_lines,
        [node.name for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")],
        public_annotations(tree),
    )


def public_annotations(module: ast.Module) -> list[tuple[str, str]]:
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

    visit(module.body, "")
    return found


def imported_rooms(path: Path) -> set[str]:
    module = module_of(path)
    assert not module.relative_imports, f"{path}: relative imports hide which room is meant"
    return module.rooms


def modules() -> Iterator[Module]:
    """Every module of the package."""
    return map(module_of, sorted(SOURCE.rglob("*.py")))


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
    """But for the package itself, which hands on the names of `api`: when they are asked for, and to type checkers."""
    for name in ANYONE:
        handed_on = {"api", "analysis"} if name == "__init__" else set()
        assert imported_rooms(SOURCE / f"{name}.py") - {"__version__"} - handed_on <= ANYONE


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
    for statement in runs_at_import(tree_of(path)):
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("tierscope"):
            assert str(statement.module).split(".")[1] in ANYONE, f"{name} imports {statement.module}"


def test_reading_the_registries_costs_no_import() -> None:
    imports = "; ".join(f"import {name}" for name in REGISTRIES)
    assert not modules_after(imports) & (HEAVY | {"click"})


def test_no_module_is_long_without_a_reason() -> None:
    too_long = [
        f"{module.path}: {module.lines} lines"
        for module in modules()
        if module.lines > MOST_MODULE_LINES and EXCUSE not in module.docstring
    ]
    assert not too_long


def test_no_function_is_long() -> None:
    too_long = [
        f"{module.path}: {name}: {length} lines"
        for module in modules()
        for name, length in module.function_lines.items()
        if length > (MOST_ENGINE_LINES if "predict/engine/" in module.path else MOST_FUNCTION_LINES)
    ]
    assert not too_long


def test_public_classes_have_names_of_their_own() -> None:
    """A search for a name finds one thing. `ts.Study` holds a Study and how it was read: to users it is one."""
    same_noun = {"Study": ["api/studies.py", "spec/study.py"]}
    places: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules():
        for name in module.classes:
            places[name].append(module.path)
    assert {name: paths for name, paths in places.items() if len(paths) > 1} == same_noun


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


def test_runs_that_are_handed_over_need_neither_tables_nor_a_decoder() -> None:
    """`train --hand-over` is for machines where nothing can be installed."""
    names = modules_after("import tierscope.cli.train, tierscope.train.training_study, tierscope.measure.away")
    assert not names & {"polars", "msgspec"}


# Modules whose plain data stays in their room: lines of foreign files, and what a worker process of ours sends.
PLAIN_INSIDE = {
    "imports/darshan_library.py",
    "imports/darshan_reader.py",
    "imports/darshan_worker.py",
    "imports/dftracer_events.py",
}


# Why objects of any type may cross a border there.
ANY_OBJECTS = {
    "probe/readers/phase.py": "JSON of foreign tools, which its readers take apart with `section` and `entries`",
    "api/given.py": "what a caller gives, before it is checked",
    "api/studies.py": "what a caller gives, before it is checked",
}


def test_no_unnamed_dictionary_crosses_a_border() -> None:
    """What a dictionary holds is said by a type, or by an alias (`JsonObject`, `SweepValues`, `TraceRow`)."""
    for module in modules():
        if module.path in PLAIN_INSIDE:
            continue
        unnamed = ("[str, Any]",) if module.path in ANY_OBJECTS else ("[str, Any]", "[str, object]")
        for name, annotation in module.annotations:
            assert not any(words in annotation for words in unnamed), f"{module.path}: {name}: {annotation}"


# What starts Python by other means than `helper_process`, and so would look into the current folder first.
_OTHER_STARTS = {
    "sys.executable": "the interpreter's name",
    "sys._base_executable": "the interpreter's name",
    "multiprocessing": "processes of multiprocessing",
    "multiprocessing.context": "processes of multiprocessing",
    "multiprocessing.pool": "processes of multiprocessing",
    "multiprocessing.process": "processes of multiprocessing",
    "concurrent.futures.ProcessPoolExecutor": "processes of multiprocessing",
    "concurrent.futures.process": "processes of multiprocessing",
    "runpy": "modules run as programs",
}


def dotted(node: ast.expr) -> str:
    """`a.b.c`; of anything else only what is behind the last dot."""
    match node:
        case ast.Attribute(value=value, attr=name):
            return f"{dotted(value)}.{name}"
        case ast.Name(id=name):
            return name
    return ""


def starts_of_python(tree: ast.Module) -> Iterator[str]:
    """Names that a module uses; commands that begin with the name of an interpreter count as its name."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module)):
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.Attribute():
                yield dotted(node)
            case ast.List(elts=[ast.Constant(value=str(text)), *_]) if re.fullmatch(r"(.*/)?python[0-9.]*", text):
                yield "sys.executable"


def test_only_one_module_starts_python() -> None:
    found = {
        str(path.relative_to(SOURCE)): used
        for path in sorted(SOURCE.rglob("*.py"))
        if (used := set(starts_of_python(tree_of(path))) & _OTHER_STARTS.keys())
    }
    assert found == {"helper_process.py": {"sys.executable"}}


def test_only_one_module_opens_what_may_be_no_file() -> None:
    """Logs and tables are opened as plain files: a pipe of that name is never waited for."""
    for room in ("analysis", "imports"):
        for path in sorted((SOURCE / room).rglob("*.py")):
            for node in nodes_of(path):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in {"open", "os.open", "io.open", "gzip.open"}:
                    kernel = ast.unparse(node.args[0]).strip("f'\"").startswith("/proc/")
                    assert kernel, f"{path.relative_to(SOURCE)}:{node.lineno}: open; use plain_files"


# Names of variables and parameters that do not say what they hold. `begin` as a method is a verb, and may stay.
EMPTY_NAMES = {"found", "each", "one", "begin"}


def empty_names(nodes: Sequence[ast.AST]) -> Iterator[tuple[int, str]]:
    """Line and name of variables, parameters and what patterns bind; fields of classes are not among them, they may be keys of a file."""
    fields = {
        id(target)
        for node in nodes
        if isinstance(node, ast.ClassDef)
        for line in node.body
        for target in (getattr(line, "target", None), *getattr(line, "targets", ()))
    }
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Store()) if name in EMPTY_NAMES and id(node) not in fields:
                yield node.lineno, name
            case ast.arg(arg=name) if name in EMPTY_NAMES:
                yield node.lineno, name
            case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name) if (
                name in EMPTY_NAMES
            ):
                yield node.lineno, name


@pytest.mark.parametrize(
    "text",
    [
        "found = 1",
        "found: int = 1",
        "if begin := now(): ...",
        "for each in rows: ...",
        "with opened as (found, other): ...",
        "names = [one.name for one in rows]",
        "def judged(found): ...",
        "def judged(*, each=1): ...",
        "rows.sort(key=lambda each: each.name)",
        "try: ...\nexcept OSError as found: ...",
        "match row:\n    case [one, *each]: ...",
    ],
)
def test_a_name_that_says_nothing_is_noticed(text: str) -> None:
    assert list(empty_names(list(ast.walk(ast.parse(text)))))


@pytest.mark.parametrize(
    "text", ["class Answer:\n    found: int", "lane.begin()", "def begin(self): ...", "founded = 1", "rows.found = 1"]
)
def test_fields_and_verbs_keep_their_names(text: str) -> None:
    assert not list(empty_names(list(ast.walk(ast.parse(text)))))


def test_names_say_what_they_hold() -> None:
    places = [
        f"{path.relative_to(SOURCE)}:{line}: {name}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, name in empty_names(nodes_of(path))
    ]
    assert not places
