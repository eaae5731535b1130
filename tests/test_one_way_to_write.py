"""What the program writes goes through `output/durable.py`, what it deletes through `output/walk.py`: nobody else asks the system for either."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.source_trees import nodes_of

SOURCE = Path(__file__).parent.parent / "src" / "tierscope"
CHANGES = {"replace", "rename", "renames", "unlink", "remove", "removedirs", "truncate", "ftruncate", "link", "symlink"}
WRITERS = {"write_text", "write_bytes", "write_parquet", "sink_parquet", "write_csv", "sink_csv", "tofile"}
LOOKS = {"which", "get_terminal_size", "disk_usage"}
CREATES = {"O_CREAT", "O_TRUNC", "O_APPEND"}
# Modules that own it, and modules that may do one thing; each with the reason.
ALLOWED = {
    ("api/block.py", "tempfile.TemporaryDirectory"): "two looks at the recorder's counters",
    ("api/studies.py", "tempfile.TemporaryDirectory"): "a fitted system as a file, for one call",
    ("papers/folder_keeper.py", "tempfile.TemporaryDirectory"): "small runs whose results are looked at once",
    ("recording/looks.py", "shutil.copyfile"): "into that folder; it must not import tables",
    ("output/durable.py", "os.open for writing"): "the one way to write",
    ("output/durable.py", "os.replace"): "the one way to write",
    ("output/durable.py", "os.unlink"): "its temporary files, and files by descriptor",
    ("output/durable.py", "os.link"): "logs under a second name, by descriptor",
    ("output/folders.py", "os.unlink"): "what the walk deletes",
    ("output/store.py", "write_parquet"): "into the open file",
    ("output/store.py", "sink_parquet"): "into the open file",
    ("output/op_list.py", "write_parquet"): "the store's",
    ("report/export.py", "write_parquet"): "into the open file",
    ("report/export.py", "write_csv"): "into the open file",
    ("clock_marks.py", "os.open for writing"): "a mark in the user's program; only a new file",
    ("clock_marks.py", "os.unlink"): "that mark",
    ("storage/access.py", "os.open for writing"): "operations that are measured; only new files",
    ("storage/access.py", "os.replace"): "operations that are measured",
    ("storage/access.py", "os.unlink"): "operations that are measured",
    ("storage/emulated.py", "os.replace"): "operations that are measured",
    ("storage/emulated.py", "os.unlink"): "operations that are measured",
    ("storage/emulated.py", "os.truncate"): "anonymous memory",
    ("bench/live.py", "os.truncate"): "anonymous memory",
    ("loaders/held.py", "os.ftruncate"): "anonymous memory",
    ("storage/directory.py", "os.open for writing"): "data files, by descriptor; only new files",
    ("storage/directory.py", "os.replace"): "data files, by descriptor",
    ("storage/directory.py", "os.unlink"): "data files, by descriptor",
    ("trace/recorder.py", "os.open for writing"): "a rank's list of operations; only a new file",
    ("probe/work.py", "os.open for writing"): "the writes that are measured; only new files",
    ("probe/work.py", "os.unlink"): "a file that the measured write did not finish",
    ("commands/doctor.py", "tempfile.NamedTemporaryFile"): "a file that is gone when it is closed",
    ("train/all_reduce.py", "tempfile.TemporaryDirectory"): "where its processes meet; torch makes the file",
    ("cli/terminal.py", "open for writing"): "/dev/null, where there is no standard output",
}


# What is in the text of a module that could do any of it; few can, and parsing them all takes long.
MAY_ASK = re.compile(
    rf"\bos\.({'|'.join(CHANGES | CREATES)})\b|\bopen\(|shutil\.|tempfile\.|from os |\b({'|'.join(WRITERS)})\("
)


def asked(path: Path) -> set[str]:
    if not MAY_ASK.search(path.read_text()):
        return set()
    return {found for node in nodes_of(path) for found in _asked(node)}


def _asked(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in CHANGES:
            yield f"os.{name}"
        case ast.Attribute(value=ast.Name(id="os"), attr=name) if name in CREATES:
            yield "os.open for writing"
        case ast.Attribute(value=ast.Name(id="shutil" | "tempfile" as module), attr=name) if name not in LOOKS:
            yield f"{module}.{name}"
        case ast.ImportFrom(module="shutil" | "tempfile" | "os" as module):
            yield f"from {module} import"
        case ast.Call(func=ast.Name(id="open") | ast.Attribute(value=ast.Name(id="gzip"), attr="open")):
            modes = [node.args[1], *_given(node, "mode")] if len(node.args) > 1 else _given(node, "mode")
            if any(not isinstance(mode, ast.Constant) or set(str(mode.value)) & set("wa+") for mode in modes):
                yield "open for writing"
        case ast.Call(func=ast.Attribute(attr=name)) if name in WRITERS:
            yield name
        case ast.Call(func=ast.Name(id=name)) if name in WRITERS:
            yield name


def _given(call: ast.Call, name: str) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords if keyword.arg == name]


def test_nobody_else_writes_or_deletes() -> None:
    for path in sorted(SOURCE.rglob("*.py")):
        name = str(path.relative_to(SOURCE))
        strange = {call for call in asked(path) if (name, call) not in ALLOWED}
        assert not strange, f"{name}: {sorted(strange)}; write with output/durable.py, delete with output/walk.py"


def test_nothing_is_listed_in_vain() -> None:
    for name, call in ALLOWED:
        assert call in asked(SOURCE / name), (name, call)


def test_it_finds_what_it_looks_for(tmp_path: Path) -> None:
    module = tmp_path / "module.py"
    module.write_text(
        "import os, shutil, gzip\nopen('x', 'w')\nopen('x', mode='ab')\nopen('x', how)\nopen('x')\nopen('x', 'rb')\nopen('x', 'xb')\n"
        "Path('x').write_text('')\nshutil.rmtree('x')\nshutil.which('x')\nos.open('x', os.O_CREAT)\nchange = os.unlink\n"
    )
    assert asked(module) == {"open for writing", "write_text", "shutil.rmtree", "os.open for writing", "os.unlink"}
