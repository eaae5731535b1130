"""DLIO's workloads: published, simulated whole on Theta's rates, and run small on an emulated tier. `python -m validation.measured_workloads` writes
`validation/measured/workloads.json` and, from it, the table of docs/workloads.md; with --document only the latter. On an idle machine: an emulated tier keeps
no times on a busy one.
"""

import argparse
import datetime
import json
import os
import re
from pathlib import Path

from tierscope.papers.dlio_workloads import PUBLISHED_GBS, PUBLISHED_SHARES
from tierscope.papers.workload_runs import run_workload
from tierscope.papers.workload_studies import READING, TITLES, simulate_run, study_of

FILE = Path(__file__).parent / "measured" / "workloads.json"
DOCUMENT = Path(__file__).parents[1] / "docs" / "workloads.md"
PUBLISHED_HIDDEN = {"cosmic-tagger": 10, "dffn": 0, "cosmoflow": 100, "candle": 0, "frnn": 0, "imagenet": 100}
Row = dict[str, float]


def measure(names: tuple[str, ...] = READING) -> dict[str, Row]:
    rows = {}
    for name in names:
        run, whole = run_workload(name), simulate_run(study_of(name))
        metrics = run.character.metrics
        rows[name] = {
            "published_share": float(PUBLISHED_SHARES[name]),
            "simulated_share": 100 * whole.io_share,
            "emulated_share": 100 * (run.io_share or 0.0),
            "published_hidden": float(PUBLISHED_HIDDEN[name]),
            "simulated_hidden": 100 * (whole.hidden or 0.0),
            "emulated_hidden": 100 * (run.hidden or 0.0),
            "published_gbs": PUBLISHED_GBS[name],
            "simulated_gbs": whole.bandwidth / 1e9,
            "emulated_median_bytes": metrics["transfer_median"].value or 0.0,
            "emulated_smallest_bytes": metrics["transfer_min"].value or 0.0,
            "emulated_largest_bytes": metrics["transfer_max"].value or 0.0,
            "emulated_sequential": metrics["sequential_percent"].value or 0.0,
            "emulated_ranks": float(run.study.system.ranks),
        }
    return rows


def table(rows: dict[str, Row]) -> str:
    """As docs/workloads.md has it."""
    lines = [
        "| workload | I/O share: published | simulated | emulated | hidden: published | simulated | emulated | GB/s of 512: published | simulated | requests, emulated: median (largest) | sequential |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        cells = [f"{row[f'{how}_share']:.0f} %" for how in ("published", "simulated", "emulated")]
        cells += [f"{row[f'{how}_hidden']:.0f} %" for how in ("published", "simulated", "emulated")]
        cells += [f"{row['published_gbs']:.3g}", f"{row['simulated_gbs']:.3g}"]
        cells += [f"{row['emulated_median_bytes']:,.0f} B ({row['emulated_largest_bytes']:,.0f} B)"]
        lines.append(f"| {TITLES[name]} | {' | '.join(cells)} | {row['emulated_sequential']:.0f} % |")
    return "\n".join(lines)


def documented(text: str, made: str, rows: dict[str, Row]) -> str:
    """The document with the file's date and table instead of those that it has."""
    text, dates = re.subn(r"(?<=Printed by it on )\d{4}-\d\d-\d\d", made, text)
    first = re.escape(table({}).splitlines()[0])
    text, tables = re.subn(rf"^{first}\n(?:\|.*\n)+", lambda _: f"{table(rows)}\n", text, flags=re.MULTILINE)
    if (dates, tables) != (1, 1):
        raise ValueError(
            f"{DOCUMENT} has {dates} dates and {tables} tables of measured workloads; one of each is replaced"
        )
    return text


def document() -> None:
    known = json.loads(FILE.read_bytes())
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(documented(text, known["made"], known["rows"]), encoding="utf-8")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--document", action="store_true", help="write the table from the file; measure nothing")
    if not options.parse_args().document:
        made = {"made": datetime.date.today().isoformat(), "cores": os.cpu_count(), "rows": measure()}
        FILE.parent.mkdir(exist_ok=True)
        FILE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    document()
    print(table(json.loads(FILE.read_bytes())["rows"]))


if __name__ == "__main__":
    main()
