"""The model against a real parallel file system: calibrated on one object server it predicts four, and the reverse.

MooseFS with servers behind 100 Mbit/s, four nodes of two ranks, jobs of Slurm (`tools/cluster.py`). Only the number of servers is told
to the model, not which files lie on which: MooseFS deals them out at random, so that chance makes epochs longer or shorter, less so the more files
there are.
"""

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from tierscope.analysis.breakdown import SweepPoint, sweep_text
from tierscope.commands.analyze import analyze
from tools import cluster_study
from tools.cluster import Cluster, Wish, lacking
from validation.by_command import Simulated, calibrated, simulated
from validation.emulated import Compared
from validation.measuring import leader_is_clear, median, scratch
from validation.table import Row

OSTS = (1, 4)
DATASETS = {
    "1 MiB": "num_files_train: 256, record_length_bytes: 1 MiB",
    "128 KiB": "num_files_train: 1024, record_length_bytes: 128 KiB",
}
_GOAL = 5.0  # percent
_KNOWN = "which files lie on which server is chance, and not told to the model"
_RATES, _SHORT_RATES = "0%, 25%, 50%, 75%", "0%, 50%"  # at 100 % there is nothing but memory
_STUDY = """
study: cluster
workload:
  dataset: {{format: raw, {dataset}}}
  reader: {{batch_size: 1, read_threads: 1, prefetch_size: 1}}
  train: {{epochs: 3}}
system:
  nodes: 4
  ranks_per_node: 2
  tiers:
    lfs: {{path: "{lfs}", visible_to: node}}
    gfs: {{path: "{gfs}", servers: {osts}}}
sweep:
  placement.cache_rate: [{rates}]
"""


def rows(short: bool, keep: str | None = None) -> list[Row]:
    """`keep`: a folder where measured results stay, and are gone on with."""
    if reasons := [*lacking(), *filter(None, [cluster_study.without_mpi()])]:
        return [Row("cluster", "not measured", "; ".join(reasons))]
    with scratch() if keep is None else nullcontext(keep) as folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        outs = {osts: _outs(Path(folder), osts) for osts in OSTS}
        if any(not out.exists() for runs in outs.values() for out in runs):
            _measure(outs, _SHORT_RATES if short else _RATES)
        single, four = OSTS
        both = _predict(Path(folder), outs[single], outs[four], single, four)
        return [*both, *_predict(Path(folder), outs[four], outs[single], four, single)]


def _outs(folder: Path, osts: int) -> list[Path]:
    return [folder / f"{osts}-osts-{name.replace(' ', '-')}" for name in DATASETS]


def _measure(outs: dict[int, list[Path]], rates: str) -> None:
    with Cluster(Wish(osts=max(OSTS), ost_mbit=100, nodes=4, lfs_mib=512, ost_mib=1024)) as cluster:
        for osts, runs in outs.items():
            gfs = cluster.gfs / str(osts)
            cluster.run("login", ["mkdir", str(gfs)])
            if osts == 1:
                cluster.place(gfs, 1)
            for out, dataset in zip(runs, DATASETS.values(), strict=True):
                text = _STUDY.format(
                    dataset=dataset, lfs=cluster.lfs / "data", gfs=gfs / out.name, osts=osts, rates=rates
                )
                study = out.with_name(f"{out.name}.yaml")
                study.write_text(text)
                print(f"cluster: {out.name} …", file=sys.stderr, flush=True)
                cluster_study.run(cluster, study, out, timeout_seconds=600)
                for node in cluster.nodes:
                    cluster.run(node, ["rm", "-rf", str(cluster.lfs / "data")])


def _predict(folder: Path, known: Sequence[Path], wanted: Sequence[Path], fitted: int, predicted: int) -> list[Row]:
    system = calibrated(folder / f"{fitted}-osts.yaml", [str(out) for out in known])
    section = f"cluster, {fitted} → {predicted} OSTs"
    table_rows: list[Row] = []
    everything: list[Compared] = []
    for name, out in zip(DATASETS, wanted, strict=True):
        points = simulated(str(out.with_name(f"{out.name}.yaml")), system, f"gfs.servers={predicted}")
        measured = {point.sweep["cache_rate"]: point for point in analyze(str(out)).breakdown.summary}
        for point in points:
            compared = _compared(measured[point.rate], point)
            everything.append(compared)
            told = f"; not identified: {point.told}" if point.told else ""
            table_rows.append(
                Row(
                    section,
                    f"files of {name}, {compared.where}",
                    f"{compared.error:.1f} %",
                    note=_note(compared) + told,
                )
            )
    return [*table_rows, *_summary(section, everything, predicted > fitted)]


def _compared(measured: SweepPoint, point: Simulated) -> Compared:
    right = point.bottleneck == measured.bottleneck if leader_is_clear(measured) else None
    where = sweep_text(measured.sweep)
    return Compared(where, measured.io.median, point.seconds, point.low, point.high, right)


def _note(compared: Compared) -> str:
    inside = "within" if compared.low <= compared.measured <= compared.high else "outside"
    ends = f"{compared.low:.3f}–{compared.high:.3f}"
    return f"measured {compared.measured:.3f} s, predicted {compared.predicted:.3f} s, {inside} its interval {ends}"


def _summary(section: str, compared: Sequence[Compared], has_goal: bool) -> list[Row]:
    clear = [point for point in compared if point.leader_right is not None]
    right = sum(bool(point.leader_right) for point in clear)
    error, held = (
        median([point.error for point in compared]),
        sum(point.low <= point.measured <= point.high for point in compared),
    )
    goals = (f"≤ {_GOAL:g} %", "80–97 %; of so few points at least 80 %") if has_goal else ("", "")
    met = (error <= _GOAL, held / len(compared) >= 0.8) if has_goal else (None, None)
    note = f"bottleneck right at {right} of {len(clear)} where it is clear"
    what = f"slowest I/O time, median error of {len(compared)} points"
    return [
        Row(section, what, f"{error:.1f} %", goals[0], met[0], note, _KNOWN),
        Row(section, "90 % intervals that hold", f"{held} of {len(compared)}", goals[1], met[1], known=_KNOWN),
    ]
