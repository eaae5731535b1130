"""A small study, run for real on this machine, with every operation recorded: for statements about what a benchmark does."""

import os
from collections import Counter
from dataclasses import dataclass

import polars as pl

from tierscope.measure.crews import Crews
from tierscope.measure.run import generate_data, run_study
from tierscope.papers.work_folder import work_folder
from tierscope.spec.load import parse_study
from tierscope.trace.description import Measured
from tierscope.watch import Silent


@dataclass(frozen=True, slots=True)
class SmallRun:
    """`ops`: epoch, kind and file of every operation on the dataset. `changed`: files that are not as before the run. `compute`: what passed its time."""

    ops: pl.DataFrame
    changed: int
    files: int
    compute: str

    @property
    def kinds(self) -> Counter[str]:
        return Counter(map(str, self.ops["kind"]))


def run_small(text: str, suffix: str) -> SmallRun:
    """`text`: a study of one point, whose tiers are in {out}/tiers; `suffix`: of its files."""
    study, crews = parse_study(text, "a study of tierscope reproduce"), Crews()
    with work_folder() as folder:
        out = os.path.join(folder, "out")
        tiers, ops = os.path.join(out, "tiers"), os.path.join(out, "ops")
        try:
            generate_data(study, out, crews, Silent())
            before = _states(tiers, suffix)
            store = run_study(study, out, crews, Silent(), ops=True)
        finally:
            crews.close()
        after = _states(tiers, suffix)
        names = [name for name in sorted(os.listdir(ops)) if "-r" in name]
        table = pl.concat(
            [pl.read_parquet(os.path.join(ops, name), columns=["epoch", "kind", "file"]) for name in names]
        )
        about = store.describe(next(iter(store.finished())))
        compute = (about.compute or "none") if isinstance(about, Measured) else "none"
    return SmallRun(table, sum(after.get(path) != state for path, state in before.items()), len(before), compute)


def _states(folder: str, suffix: str) -> dict[str, tuple[int, bytes]]:
    """Of all samples' files: when they were changed, and what they hold."""
    states = {}
    for parent, _, names in os.walk(folder):
        for name in (name for name in names if name.endswith(suffix)):
            path = os.path.join(parent, name)
            with open(path, "rb") as source:
                states[path] = os.stat(path).st_mtime_ns, source.read()
    return states
