import importlib
import os
import sys
import time
from dataclasses import replace

from validation import document
from validation.table import Row, as_markdown

SECTIONS = (
    # Real machines: what others measured and published, and an accelerator of our own.
    *("public", "fugaku", "architecture", "accelerator"),
    # Storage that nobody tuned for.
    *("beds",),
    # Our own emulator, and theory.
    *("emulated", "rerun", "checkpoints", "methods", "theory"),
)
MEASURED = ("emulated", "rerun", "checkpoints")  # they time this machine
PARTS = {"measured": MEASURED, "computed": tuple(name for name in SECTIONS if name not in MEASURED)}
APART = (
    "cluster",
    "real_beds",
    "cold_metadata",
)  # by name only: need root, and file systems that the machine must have


TRIES = 3  # of a section of the short version, where a goal is missed: other load on a machine only adds errors


def _section(name: str, short: bool, keep: str | None) -> list[Row]:
    """In the short version each goal is judged by its best try, and a row says which that was."""
    module = importlib.import_module(f"validation.{name}")
    best: dict[tuple[str, str], Row] = {}
    for number in range(1, (TRIES if short else 1) + 1):
        rows = module.rows(short, keep) if name in ("emulated", "checkpoints", *APART) else module.rows(short)
        for row in rows:
            key = (row.section, row.what)
            if key not in best or _doubt(row) < _doubt(best[key]):
                best[key] = row if number == 1 else replace(row, note=f"try {number}; {row.note}")
        doubt = max(map(_doubt, best.values()), default=0)
        if not doubt or (number > 1 and doubt < 2):  # what was not judged has one more try, what was missed all
            break
        if short:
            print(f"{name}: a goal was not met in try {number}", file=sys.stderr, flush=True)
    return list(best.values())


def _is_new_miss(row: Row) -> bool:
    return row.met is False and not row.known


def _doubt(row: Row) -> int:
    """0: another try cannot change what it says; 1: it was not judged; 2: missed."""
    return 2 if _is_new_miss(row) else 1 if row.unjudged else 0


def main() -> int:
    """Sections by name, or all; --short: a few points of each; --only=measured|computed: those that time this machine, or the others; --keep=DIR: measured results stay there, and are gone on with; --document: tables of docs/validation.md are written. 1 when a goal is missed whose miss is not known."""
    arguments = sys.argv[1:]
    short = "--short" in arguments
    keep = next((argument.removeprefix("--keep=") for argument in arguments if argument.startswith("--keep=")), None)
    if short and "--document" in arguments:
        print("--document: not with --short", file=sys.stderr)
        return 2
    part = next((argument.removeprefix("--only=") for argument in arguments if argument.startswith("--only=")), None)
    if part is not None and part not in PARTS:
        print(f"no part {part}; parts: {', '.join(PARTS)}", file=sys.stderr)
        return 2
    names = [name for name in arguments if not name.startswith("-")] or list(PARTS[part] if part else SECTIONS)
    if unknown := [name for name in names if name not in (*SECTIONS, *APART)]:
        print(f"no section {unknown[0]}; sections: {', '.join((*SECTIONS, *APART))}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names:
        started, load = time.monotonic(), os.getloadavg()[0]
        printed = _section(name, short, keep)
        if "--document" in arguments:
            document.write({name: printed}, document.made_now(load))
        rows += printed
        print(f"{name}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    print(f"{'Short validation' if short else 'Validation'} on {os.cpu_count()} cores\n\n{as_markdown(rows)}")
    missed = [row for row in rows if row.met is False]
    new = [row for row in missed if _is_new_miss(row)]
    print(
        f"\n{len(missed)} of {sum(row.met is not None for row in rows)} goals missed, {len(missed) - len(new)} of them known to be"
    )
    for row in rows:
        if row.unjudged:
            print(f"not judged: {row.section}, {row.what}: {row.value}, goal {row.goal}; {row.unjudged}")
    for row in new:
        print(f"missed: {row.section}, {row.what}: {row.value}, goal {row.goal}")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
