"""C programs under the shim, counted exactly; `make test-sanitizers` runs the same against a sanitized build."""

import random
import resource
from pathlib import Path

import numpy as np
import pytest

from tests import native_programs as programs
from tests.native_truth import INSIDE, Case, compare, plant, shell, tiers_below
from tests.strace_log import tier_of
from tierscope.native import state
from tierscope.trace.ops import OP_ROW, READ

pytestmark = [pytest.mark.native, pytest.mark.sanitizers]

MANY = 10_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tier with one file."""
    place = tmp_path / "tier"
    place.mkdir()
    (place / "data.bin").write_bytes(bytes(300_000))
    return place


def counted(command: list[str], folder: Path, options: int = 0) -> programs.Recorded:
    """Nothing lost, nothing damaged."""
    recorded = programs.run_recorded(command, folder.parent / "record", {"one": folder}, options)
    assert recorded.ended.code == 0, recorded.ended.err.decode()
    assert recorded.problems == []
    assert all(lane.whole for lane in recorded.lanes)
    assert recorded.lost_ops == 0
    return recorded


def test_plain_calls(tmp_path: Path) -> None:
    program = programs.compiled("plain", tmp_path)
    truth = compare(Case(lambda root: [program, str(root)]), tmp_path)
    assert {kind for _, kind in truth} == {"open", "read", "close", "stat", "write", "seek", "mmap", "sync"}


@pytest.mark.parametrize("seed", range(6))
def test_streams(seed: int, tmp_path: Path) -> None:
    program = programs.compiled("stdio", tmp_path)
    compare(Case(lambda root: [program, str(root), str(seed), "40"], INSIDE), tmp_path)


def test_standard_output_and_what_exit_flushes(tmp_path: Path) -> None:
    program = programs.compiled("stdio", tmp_path)
    truth = compare(shell(f"{program} . 1 0 0 > two/output", INSIDE), tmp_path)
    assert truth["two", "write"][1] > 30_000


def test_many_descriptors_that_change_hands(tmp_path: Path) -> None:
    program = programs.compiled("descriptors", tmp_path)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    truth = compare(Case(lambda root: [program, str(root), str(min(MANY, most - 200))]), tmp_path)
    assert truth["one", "read"][0] > 5000 or most < MANY


def test_children_of_vfork_leave_no_trace(tmp_path: Path) -> None:
    program = programs.compiled("vforks", tmp_path)
    truth = compare(Case(lambda root: [program, str(root)]), tmp_path)
    assert truth["one", "read"][1] == 9 * 3 + sum(10 + way for way in range(9)) + 33


@pytest.mark.parametrize("options", [0, state.OPTION_OPS, state.OPTION_REREADS])
def test_signal_handlers_that_read(options: int, folder: Path) -> None:
    """The timer also strikes while the first record is being made."""
    program = programs.compiled("signals", folder.parent)
    recorded = counted([program, str(folder), "20000"], folder, options)
    own, handled = map(int, recorded.ended.out.split())
    assert handled > 100
    assert recorded.totals["one", "read"] == (own + handled, 100 * own + 10 * handled)
    if options & state.OPTION_OPS:
        rows = sum(len(rows) for rows in recorded.rows) // OP_ROW.itemsize
        assert rows + recorded.heads[0].lost_rows == sum(ops for ops, _ in recorded.totals.values())


def test_threads_that_come_and_go(folder: Path) -> None:
    program = programs.compiled("crowds", folder.parent)
    recorded = counted([program, str(folder), "threads", str(MANY)], folder)
    assert recorded.totals["one", "read"] == (MANY, 10 * MANY)
    assert recorded.heads[0].used < 1 << 20, "lanes of threads that ended are not used again"


def test_hundreds_of_children(folder: Path) -> None:
    program = programs.compiled("crowds", folder.parent)
    recorded = counted([program, str(folder), "forks", "500"], folder)
    assert recorded.ended.out == b"0 0\n"
    assert recorded.totals["one", "read"] == (500, 5000)
    assert len(recorded.heads) == 501


def test_children_beside_busy_threads(folder: Path) -> None:
    program = programs.compiled("crowds", folder.parent)
    recorded = counted([program, str(folder), "both", "200"], folder)
    bad, beside = map(int, recorded.ended.out.split())
    assert bad == 0
    assert recorded.totals["one", "read"] == (200 + beside, 10 * (200 + beside))


def test_a_child_that_ends_as_a_thread(folder: Path) -> None:
    """What the shim does at the end of a thread must not touch what belongs to the parent."""
    program = programs.compiled("crowds", folder.parent)
    recorded = counted([program, str(folder), "leaving", "20"], folder)
    assert recorded.ended.out == b"0 0\n"
    assert recorded.totals["one", "read"] == (20, 200)


def spelled(path: str, dice: random.Random, links: list[tuple[str, str]]) -> str:
    """Another way to say the same: doubled slashes, dots, steps back and forth, and links."""
    for link, target in dice.sample(links, len(links)):
        if path.startswith(target + "/") and dice.random() < 0.5:
            path = link + path[len(target) :]
    parts = path.split("/")[1:]
    said = ""
    for number, part in enumerate(parts):
        said += dice.choice(["/", "/", "/", "//", "/./", "/.//"])
        if 0 < number < len(parts) and dice.random() < 0.1:
            said += "../" + parts[number - 1] + "/" if not parts[number - 1].startswith("link") else ""
        said += part
    return said


def random_tree(root: Path, dice: random.Random) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Folders in folders with a file each, rules for some of them, and links between them."""
    folders = [str(root)]
    for number in range(25):
        folders.append(f"{dice.choice(folders)}/{dice.choice(['a', 'ab', 'b', 'd d', 'é', '.h'])}{number % 4}")
    folders = sorted(set(folders))
    for folder in folders:
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / "file").write_bytes(bytes(4096))
    rules = {f"tier {number}": path for number, path in enumerate(dice.sample(folders[1:], 6))}
    links = []
    for number in range(8):
        target, link = dice.choice(folders), f"{dice.choice(folders)}/link{number}"
        relative = "/".join([*[".."] * (link.count("/") - 1), target[1:]])
        Path(link).symlink_to(dice.choice([target, relative]))
        links.append((link, target))
    return rules, links


@pytest.mark.parametrize("seed", range(5))
def test_the_tier_of_an_open_file_is_that_of_its_real_path(seed: int, tmp_path: Path) -> None:
    dice = random.Random(seed)
    root = tmp_path / "tree"
    rules, links = random_tree(root, dice)
    files = sorted(str(path) for path in root.rglob("file"))
    asked = []
    for _ in range(600):
        folder = str(Path(dice.choice(files)).parent)
        path = spelled(dice.choice(files), dice, links)
        if dice.random() < 0.4:
            up = "/".join([".."] * (folder.count("/") + dice.randrange(3)))
            path = dice.choice(["", "./"]) + up + path
        asked.append((folder, path))
    (tmp_path / "list").write_bytes(b"".join(f"{folder}\0{path}\0".encode() for folder, path in asked))
    program = programs.compiled("opener", tmp_path)
    recorded = programs.run_recorded([program, tmp_path / "list"], tmp_path / "record", rules, state.OPTION_OPS)
    assert recorded.ended.code == 0
    rows = np.frombuffer(b"".join(recorded.rows), OP_ROW)
    found = {int(row["bytes"]) - 1: list(rules)[row["tier"]] for row in rows[rows["kind"] == READ]}
    for number, (folder, path) in enumerate(asked):
        real = str((Path(folder) / path).resolve())
        assert found.get(number) == tier_of(real, rules), f"{path} in {folder} is {real}"


def test_a_file_that_is_a_tier_by_itself(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    plant(root)
    program = programs.compiled("plain", tmp_path)
    rules = {**tiers_below(root), "file": root / "one/data.bin"}
    recorded = programs.run_recorded([program, root], tmp_path / "record", rules)
    assert recorded.totals["file", "read"][0] > 30
    assert recorded.totals["file", "stat"][0] > 5
