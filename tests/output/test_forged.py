"""Forged files of every kind that is read: seeded, some hundreds each. A line that names the file and exit code 2, or nothing changes; never a traceback."""

import copy
import json
import math
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.in_memory import tmp_path_factory
from tests.output.test_handover import RUN, a_rank
from tests.tiny import TINY
from tierscope.commands.analyze import analyze
from tierscope.commands.characterise import characterise_analysis
from tierscope.errors import TierscopeError
from tierscope.output import handed, handover, manifest
from tierscope.output.op_list import SCHEMA
from tierscope.output.store import RunStore, read_parquet, write_parquet
from tierscope.output.typed_documents import read_typed
from tierscope.plain_json import parse_json
from tierscope.recording.traced import _COMMAND
from tierscope.report.summary import wanted_before
from tierscope.spec.load import parse_study
from tierscope.trace.trace import RunKey
from tierscope.tuning.kept import KEPT

__all__ = ["tmp_path_factory"]

RESULTS = Path(__file__).parent.parent / "golden" / "results"
KEY = RunKey(0, 1)
JUNK: list[Any] = [
    *(None, True, False, "", "a", "\x1b[2J", "\u202e", "é日本", "x" * 5000, [], {}, [None], {"a": 1}, [[[[]]]]),
    *(0, -1, 1, 2**31, 2**63, -(2**63), 10**30, 0.0, -0.0, 0.5, -1.5, 1e308, 5e-324, math.nan, math.inf, -math.inf),
    *("0", "nan", "../../etc/passwd", "\ud800", "\x00"),
]


def forged(tree: Any, dice: random.Random) -> Any:
    """One place of it is something else, missing, or there twice; sometimes several."""
    tree = copy.deepcopy(tree)
    for _ in range(dice.choice((1, 1, 1, 2, 5))):
        places = list(_places(tree))
        if not places:
            return dice.choice(JUNK)
        parent, name = dice.choice(places)
        match dice.randrange(6):
            case 0:
                del parent[name]
            case 1 if isinstance(parent, list):
                parent.append(copy.deepcopy(parent[name]))
            case 1 | 2 if isinstance(parent, dict):
                parent[dice.choice(["more", "kind", "rank", "\x1b", name + "2"])] = copy.deepcopy(parent[name])
            case 3 if isinstance(parent[name], int | float) and not isinstance(parent[name], bool):
                parent[name] = parent[name] * dice.choice((-1, 2, 1000, 1e300)) + dice.choice((0, 1))
            case _:
                parent[name] = dice.choice(JUNK)
    return tree


def _places(tree: Any) -> Iterator[tuple[Any, Any]]:
    for name, value in list(
        tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    ):
        yield tree, name
        yield from _places(value)


def written(tree: Any, dice: random.Random) -> bytes:
    """As text: sometimes with a key twice, cut, nested without end, or no UTF-8."""
    text = json.dumps(tree).encode()
    match dice.randrange(20):
        case 0:
            return text[: dice.randrange(len(text) + 1)]
        case 1:
            return b"[" * 5000 + text + b"]" * 5000
        case 2:
            return text.replace(b"{", b'{"kind": 1, "kind": 2, ', 1)
        case 3:
            return text.replace(b"a", b"\xff", 1)
        case 4:
            return b""
    return text


def refused(look: Callable[[], Any], name: str) -> bool:
    try:
        look()
    except TierscopeError as error:
        if error.exit_code != 2 or name not in str(error) or "\n" in str(error):
            raise AssertionError(f"not a line that names {name}: {error}") from error
        return True
    return False


ROUND = {"entrants": 2, "repetitions": 3, "share": 0.5, "epochs": 2, "is_last": False}
TUNE = {
    "schema_version": 1,
    "kind": "tune",
    "asked": {"study": "study: a", "vary": {"workload.reader.read_threads": ["1", "2"]}, "minimised": "epoch_seconds"},
    "rounds": [ROUND, {**ROUND, "is_last": True, "share": 1.0}],
    **dict.fromkeys(("overhead_seconds", "again_seconds", "staging_seconds", "spent_seconds"), 1.5),
    "result": None,
    "notes": [],
}
COMMAND = {
    "schema_version": 2,
    "recorder": "builtin",
    "command": ["python", "a.py"],
    "epochs": "marks",
    "ops": True,
    "tiers": [{"name": "gfs", "prefixes": ["/gfs"]}],
    "exit_code": None,
    "provenance": {"host": "a", "cores": 2},
}
SUMMARY = {"schema_version": 1, "wanted": {"au": 0.9, "exclude_start_steps": 1, "exclude_end_steps": 0}, "points": []}
MARK = {"schema_version": 1, "made_by": "tierscope", "kind": "dataset", "complete": True, "host": "a", "boot_id": "b"}


@pytest.mark.parametrize(
    ("name", "tree", "look"),
    [
        ("tune.json", TUNE, lambda path: read_typed(path, KEPT)),
        ("trace.json", COMMAND, lambda path: read_typed(path, _COMMAND)),
        ("summary.json", SUMMARY, lambda path: wanted_before(str(path.parent))),
        ("tierscope.json", MARK, lambda path: manifest.read(str(path.parent))),
    ],
)
def test_forged_documents(tmp_path: Path, name: str, tree: Any, look: Callable[[Path], Any]) -> None:
    dice, path = random.Random(name), tmp_path / name
    path.write_text(json.dumps(tree))
    assert not refused(lambda: look(path), name)
    refusals = 0
    for _ in range(300):
        path.write_bytes(written(forged(tree, dice), dice))
        refusals += refused(lambda: look(path), name)
    assert refusals > 75 or name == "summary.json"


@pytest.mark.parametrize("kind", ["measured", "simulated", "traced", "imported_dftracer"])
def test_forged_descriptions(tmp_path: Path, kind: str) -> None:
    """Sealed again. What is accepted is analysed, too."""
    dice, out = random.Random(kind), Path(shutil.copytree(RESULTS / kind, tmp_path / "out"))
    path = RunStore(str(out)).path(KEY)
    about, table = read_parquet(path)
    refusals = 0
    for number in range(60):
        write_parquet(path, table, forged(about, dice))
        found = refused(lambda: RunStore(str(out)).load(KEY), "0000-r1.parquet")
        refusals += found
        if not found and number % 8 == 0:
            refused(lambda: analyze(str(out)), "out")
    assert refusals > 20


@pytest.mark.parametrize("kind", ["measured", "traced"])
def test_forged_operations(tmp_path: Path, kind: str) -> None:
    dice, out = random.Random(kind), Path(shutil.copytree(RESULTS / kind, tmp_path / "out"))
    analysis = analyze(str(out))
    point = 0
    characterise_analysis(str(out), analysis, point)
    path = out / "ops" / "0000-r1-node0.parquet"
    about, table = read_parquet(str(path))
    for _ in range(60):
        write_parquet(str(path), forged_rows(table, dice), about)
        assert refused(lambda: characterise_analysis(str(out), analysis, point), path.name)


def forged_rows(table: pl.DataFrame, dice: random.Random) -> pl.DataFrame:
    """Rows that would change what the run's table says, or cannot be."""
    values: dict[str, list[Any]] = {
        "rank": [-1, 7000],
        "epoch": [None, -1, 99],
        "tier": [None, "pfs", "\x1b"],
        "kind": [None, "ioctl", ""],
        "bytes": [None, -1, 2**62],
        "start_seconds": [None, math.nan, math.inf],
        "seconds": [None, math.nan, -1.0, 1e13, 1e11],
    }
    match dice.randrange(8):
        case 0:
            return pl.concat([table, table.head(dice.choice((1, len(table))))])
        case 1:
            return table.drop(dice.choice(table.columns))
        case 2:
            return table.with_columns(pl.col("bytes").cast(pl.Int32))
        case _:
            name = dice.choice(list(values))
            column = table[name].to_list()
            column[dice.randrange(len(column))] = dice.choice(values[name])
            return table.with_columns(pl.Series(name, column, SCHEMA[name]))


def test_forged_names_of_files(tmp_path: Path) -> None:
    out = shutil.copytree(RESULTS / "traced", tmp_path / "out")
    analysis, path = analyze(str(out)), out / "ops" / "files.parquet"
    about, table = read_parquet(str(path))
    for changed in (
        pl.concat([table, table]),
        table.with_columns(pl.lit(None, pl.String).alias("path")),
        table.drop("file"),
    ):
        write_parquet(str(path), changed, about)
        assert refused(lambda: characterise_analysis(str(out), analysis), "files.parquet")


def test_forged_runs_that_were_handed_over(tmp_path: Path) -> None:
    dice, path = random.Random(7), tmp_path / "0000-r1.npz"
    handover.save(str(path), RUN, [a_rank()])
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    tree = json.loads(arrays.pop(handover.TREE).tobytes())
    refusals = 0
    for _ in range(150):
        changed = dict(arrays)
        if dice.randrange(3) == 0:
            name = dice.choice(list(changed))
            changed[name] = dice.choice(
                [changed[name] * -1, changed[name][:-1], changed[name].astype(np.float32), changed[name].reshape(1, -1)]
            )
        text = json.dumps(forged(tree, dice)).encode()
        np.savez(path, allow_pickle=False, **{**changed, handover.TREE: np.frombuffer(text, np.uint8)})
        refusals += refused(lambda: handed.load(str(path)), path.name)
    assert refusals > 60


def test_forged_studies(tmp_path: Path) -> None:
    dice = random.Random(11)
    lines = TINY.splitlines()
    words = [
        "",
        "~",
        "[]",
        "{a: {b: c}}",
        "!!python/object:os.system",
        "&a [*a]",
        "1e-310",
        "-0",
        "nan",
        ".inf",
        '"\\e"',
        "9" * 400,
    ]
    for _ in range(300):
        changed = list(lines)
        place = dice.randrange(len(changed))
        key = changed[place].partition(":")[0]
        changed[place] = dice.choice(
            [f"{key}: {dice.choice(words)}", changed[place] * 2, "", f"{key}\t: 1", f"  {changed[place]}"]
        )
        refused(lambda changed=changed: parse_study("\n".join(changed), "s.yaml"), "s.yaml")  # type: ignore[misc]


def test_a_key_that_is_given_twice_is_named_without_a_search_in_squares() -> None:
    """A document of a megabyte has a hundred thousand keys."""
    pairs = ",".join(f'"{number:x}": 0' for number in range(60_000))
    start = time.process_time()
    with pytest.raises(ValueError, match="ea5f is given twice"):
        parse_json(f'{{{pairs}, "ea5f": 0}}')
    assert time.process_time() - start < 2
