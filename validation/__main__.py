import importlib
import os
import sys

from validation.table import Row, as_markdown

SECTIONS = ("theory", "fugaku", "public", "architecture", "accelerator", "emulated", "rerun")
APART = ("cluster",)  # by name only: needs root, MooseFS and Slurm


TRIES = 3  # of a section of the short version: other load on a machine only adds errors


def _section(name: str, short: bool, keep: str | None) -> list[Row]:
    module = importlib.import_module(f"validation.{name}")
    found: list[Row] = []
    for number in range(1, TRIES + 1):
        found = module.rows(short, keep) if name in ("emulated", "cluster") else module.rows(short)
        missed = any(row.met is False and not row.known for row in found)
        if not short or not missed:
            return (
                found if number == 1 else [*found, Row(name, "tries until all goals were met", f"{number} of {TRIES}")]
            )
        print(f"{name}: a goal was missed in try {number}", file=sys.stderr, flush=True)
    return found


def main() -> int:
    """Sections by name, or all; --short: a few points of each; --keep=DIR: measured results stay there, and are gone on with. 1 when a goal is missed whose miss is not known."""
    arguments = sys.argv[1:]
    short = "--short" in arguments
    keep = next((each.removeprefix("--keep=") for each in arguments if each.startswith("--keep=")), None)
    names = [name for name in arguments if not name.startswith("-")] or list(SECTIONS)
    if unknown := [name for name in names if name not in (*SECTIONS, *APART)]:
        print(f"no section {unknown[0]}; sections: {', '.join((*SECTIONS, *APART))}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += _section(name, short, keep)
    print(f"{'Short validation' if short else 'Validation'} on {os.cpu_count()} cores\n\n{as_markdown(rows)}")
    missed = [row for row in rows if row.met is False]
    new = [row for row in missed if not row.known]
    print(
        f"\n{len(missed)} of {sum(row.met is not None for row in rows)} goals missed, {len(missed) - len(new)} of them known to be"
    )
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
