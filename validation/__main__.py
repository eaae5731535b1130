import importlib
import os
import sys

from validation.table import Row, as_markdown

SECTIONS = ("theory", "fugaku", "public", "emulated", "rerun")


def main() -> int:
    """Sections by name, or all; --short: a few points of each. 1 when a goal is missed."""
    arguments = sys.argv[1:]
    short = "--short" in arguments
    names = [name for name in arguments if not name.startswith("-")] or list(SECTIONS)
    if unknown := [name for name in names if name not in SECTIONS]:
        print(f"no section {unknown[0]}; sections: {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    rows: list[Row] = []
    for name in names:
        print(f"{name} …", file=sys.stderr, flush=True)
        rows += importlib.import_module(f"validation.{name}").rows(short)
    print(f"{'Short validation' if short else 'Validation'} on {os.cpu_count()} cores\n\n{as_markdown(rows)}")
    missed = [row for row in rows if row.met is False]
    print(f"\n{len(missed)} of {sum(row.met is not None for row in rows)} goals missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
