"""One program, run bare under strace and under the shim: both runs end alike, and the shim counts what strace counts.

Known differences, not compared: seeks and stats that the C library makes inside of its streams, or when it lists directories
(`INSIDE`). Of the child of a vfork, what it does before its exec is left out on both sides.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import native_programs as programs
from tests.strace_log import run_traced

INSIDE = ("seek", "stat")  # made inside of the C library, where no wrapper sees them


def tiers_below(root: Path) -> dict[str, Path]:
    return {"one": root / "one", "two": root / "two", "inner": root / "two" / "inner"}


def plant(root: Path) -> None:
    """The same small tree for both runs."""
    for folder in ("one/sub/deep", "two/inner", "outside"):
        (root / folder).mkdir(parents=True)
    content = bytes(range(256)) * 1200
    (root / "one/data.bin").write_bytes(content[:300_000])
    (root / "one/text.csv").write_text("a,b,c\n" + "".join(f"{i},{i * i},x{i}\n" for i in range(12_000)))
    (root / "one/sub/deep/file.bin").write_bytes(content[:50_000])
    (root / "two/x").write_bytes(content[:10_000])
    (root / "two/inner/x").write_bytes(content[:20_000])
    (root / "outside/x").write_bytes(content[:5_000])
    for link, target in {
        "outside/to_file": root / "one/data.bin",
        "outside/to_folder": Path("../one/sub"),
        "outside/chain": Path("to_folder"),
        "outside/to_inner": root / "two/inner",
        "one/into_two": Path("../two/x"),
        "two/out": Path("../outside/x"),
        "two/nowhere": Path("missing"),
    }.items():
        (root / link).symlink_to(target)


@dataclass(frozen=True, slots=True)
class Case:
    """A program; it gets the root of the tree."""

    command: Callable[[Path], Sequence[str]]
    ignore: tuple[str, ...] = ()
    stdin: str | None = None


def python(program: str, ignore: tuple[str, ...] = (), stdin: str | None = None) -> Case:
    return Case(lambda root: programs.python(f"import os, sys\nroot = sys.argv[1]\n{program}", root), ignore, stdin)


def shell(program: str, ignore: tuple[str, ...] = (), stdin: str | None = None) -> Case:
    return Case(lambda root: ["/bin/sh", "-c", f"cd {root} && {program}"], ignore, stdin)


def compare(case: Case, tmp_path: Path) -> programs.Totals:
    """Both runs end alike, and what they did is the same."""
    outcomes = []
    for name in ("bare", "shim"):
        root = tmp_path / name / "tree"  # names of equal length: programs print and write them
        plant(root)
        (root / "two/short").write_text("a\nb\nc\n")
        stdin = root / case.stdin if case.stdin else None
        record = tmp_path / name / "record"
        if name == "bare":
            outcomes.append(run_traced(case.command(root), record, tiers_below(root), stdin=stdin))
        else:
            recorded = programs.run_recorded(case.command(root), record, tiers_below(root), stdin=stdin)
            assert not recorded.problems, recorded.problems
            assert recorded.lost_ops == 0, recorded.lost_ops
            outcomes.append((recorded.ended, recorded.totals))
    (bare, truth), (shimmed, counted) = outcomes
    assert shimmed == bare, f"bare: {bare}\nshim: {shimmed}"
    assert bare.code == 0, bare.err.decode()
    truth, counted = programs.without(truth, case.ignore), programs.without(counted, case.ignore)
    wrong = {key: (counted.get(key), truth.get(key)) for key in counted | truth if counted.get(key) != truth.get(key)}
    assert not wrong, f"(tier, kind): (shim, strace) = {wrong}"
    return truth
