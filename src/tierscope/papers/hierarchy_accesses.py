"""What a training run does to its dataset (H-D-8): a small study is run for real, and every operation recorded."""

from tierscope.papers.section import Section
from tierscope.papers.small_run import SmallRun, run_small
from tierscope.papers.verdict import Verdict

STUDY = """
study: accesses
workload:
  dataset: {format: tfrecord, num_files_train: 24, num_samples_per_file: 1, record_length_bytes: 4 KiB}
  reader: {batch_size: 4, read_threads: 1, prefetch_size: 2, shuffle: global}
  train: {epochs: 3}
system:
  nodes: 2
  ranks_per_node: 1
  tiers:
    lfs: {path: "{out}/tiers/lfs/{node}", visible_to: node}
    gfs: {path: "{out}/tiers/gfs"}
placement: {cache_rate: 50%}
"""
ALLOWED = {"open", "read", "close"}


def make(short: bool) -> Section:
    del short  # it is small
    return Section((judged(run_small(STUDY, ".tfrecord")),))


def judged(run: SmallRun) -> Verdict:
    kinds = run.kinds
    counts = ", ".join(f"{count} × {kind}" for kind, count in sorted(kinds.items()))
    holds = bool(kinds) and set(kinds) <= ALLOWED and not run.changed
    return Verdict(
        "H-D-8",
        f"{counts}; {run.changed} of {run.files} files changed",
        "holds" if holds else "does not hold",
        "measured",
        "a small study run here, 2 processes, 3 epochs; content and time of change of all files compared",
    )
