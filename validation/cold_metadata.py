"""META warm against cold: the same study with `reader.evict: true` and `metadata`, in turns, on this machine's file system and on MooseFS.

Nobody opens a file before its timed open in either; with `metadata` names and inodes are dropped before every epoch. MooseFS is mounted as usual, where the
client asks for a name at every open, and with names and attributes cached for a minute. Caches of its servers are as they are.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import polars as pl

from tierscope.mounts import IN_MEMORY, filesystem_of
from tierscope.output.store import RunStore
from tierscope.trace.trace import Trace
from tools.cluster import Cluster, Wish, lacking
from validation.measuring import median, scratch
from validation.table import Row

SECTION = "cold metadata"
MOUNTS = {
    "MooseFS, mounted as usual": "",
    "MooseFS, names cached for 60 s": "mfsentrycacheto=60,mfsattrcacheto=60,mfsdirentrycacheto=60",
}
_DROP = "/proc/sys/vm/drop_caches"
_SECONDS = 300
_STUDY = """
study: cold-metadata
workload:
  dataset: {{format: raw, num_files_train: {files}, record_length_bytes: 4 KiB}}
  reader: {{batch_size: 10, read_threads: 0}}
  train: {{epochs: 3}}
system:
  nodes: 1
  ranks_per_node: 1
  tiers:
    gfs: {{path: "{gfs}"}}
sweep:
  workload.reader.evict: [true, metadata]
repetitions: {repetitions}
"""


def rows(short: bool, keep: str | None = None) -> list[Row]:
    """`keep`: a folder where measured results stay, and are gone on with."""
    with scratch() if keep is None else nullcontext(keep) as folder:
        place = Path(folder) / "cold-metadata"
        place.mkdir(parents=True, exist_ok=True)
        return [*_on_this_machine(place, short), *_on_moosefs(place, short)]


def _on_this_machine(place: Path, short: bool) -> Iterator[Row]:
    kind = filesystem_of(str(place))
    if kind in IN_MEMORY or not Path(_DROP).exists():
        yield Row(SECTION, f"{kind}: not measured", "needs a file system on a disk, and Linux")
        return
    out = _measure(place / kind, place / kind / "data", short, _here)
    yield from _compared(out, f"{kind} of this machine")


def _on_moosefs(place: Path, short: bool) -> Iterator[Row]:
    if reasons := lacking():
        yield Row(SECTION, "MooseFS: not measured", "; ".join(reasons))
        return
    for number, (name, options) in enumerate(MOUNTS.items()):
        with Cluster(Wish(osts=2, ost_mbit=None, nodes=1, lfs_mib=64, ost_mib=256, mount_options=options)) as cluster:

            def on_node(words: Sequence[str], cluster: Cluster = cluster) -> None:
                cluster.run("n1", words, timeout_seconds=_SECONDS)

            out = _measure(place / f"moosefs-{number}", cluster.gfs / "data", short, on_node)
        yield from _compared(out, name)


def _here(words: Sequence[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())


def _measure(folder: Path, gfs: Path, short: bool, run: Callable[[Sequence[str]], None]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    study, out = folder / "study.yaml", folder / "out"
    study.write_text(_STUDY.format(files=200 if short else 1000, gfs=gfs, repetitions=3 if short else 5))
    print(f"cold metadata: {folder.name} …", file=sys.stderr, flush=True)
    run([sys.executable, "-m", "tierscope.cli.main", "run", str(study), "--out", str(out), "--ops", "--quiet"])
    return out


def _compared(out: Path, where: str) -> Iterator[Row]:
    """Of epochs after the first. Other load on the machine makes some opens long: medians hardly see it, sums do."""
    runs = [_Run(out, trace) for trace in RunStore(str(out)).load_all()]
    warm, cold = ([run for run in runs if run.evict == evict] for evict in ("true", "metadata"))
    for what, values in (("an open's median", "opens"), ("META of an epoch, per file", "meta")):
        before, after = ([value for run in some for value in getattr(run, values)] for some in (warm, cold))
        note = f"warm {_micro(before)}, cold {_micro(after)}; median (range) of n={len(before)} and {len(after)} epochs"
        factor = median(after) / median(before)
        yield Row(SECTION, f"{where}: {what}, cold ÷ warm", f"{factor:.2f}×", note=note)
    costs, shares = ([value for run in runs for value in run.evicting[number]] for number in (0, 1))
    note = f"{100 * median(shares):.1f} % of an epoch that reads 4 KiB per file and computes nothing; in no READ or META; n={len(costs)} epochs"
    yield Row(SECTION, f"{where}: evicting and looking, per file", _micro(costs), note=note)


class _Run:
    """What one run has to say of each epoch but the first, in seconds."""

    def __init__(self, out: Path, trace: Trace) -> None:
        self.evict = str(trace.about.sweep["evict"])
        later = pl.col("epoch") > 1
        path = out / "ops" / f"{trace.key.point:04d}-r{trace.key.repetition}-node0.parquet"
        opens = pl.read_parquet(path).filter(later, pl.col("kind") == "open")
        self.opens: list[float] = opens.group_by("epoch").agg(pl.col("seconds").median())["seconds"].to_list()
        meta = trace.io.filter(later, pl.col("kind").is_in(["open", "close"]))
        sums = meta.group_by("epoch").agg(pl.col("busy_seconds").sum(), files=pl.col("ops").sum() / 2)
        self.meta: list[float] = (sums["busy_seconds"] / sums["files"]).to_list()
        cold = trace.cold.filter(later).select("epoch", "evict_seconds")
        each = cold.join(trace.ranks.select("epoch", "epoch_seconds", "samples"), on="epoch")
        costs, shares = (each["evict_seconds"] / each[name] for name in ("samples", "epoch_seconds"))
        self.evicting: tuple[list[float], list[float]] = costs.to_list(), shares.to_list()


def _micro(seconds: Sequence[float]) -> str:
    low, middle, high = (1e6 * value for value in (min(seconds), median(list(seconds)), max(seconds)))
    return f"{middle:.1f} µs ({low:.1f}–{high:.1f})"
