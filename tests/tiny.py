"""A small study on plain directories: 24 files of 1 KiB, 2 ranks on 2 nodes, 3 cache rates."""

from functools import cache

from tierscope.spec.load import parse_study
from tierscope.spec.study import Study

TINY = """
study: tiny
seed: 7
workload:
  dataset: {format: raw, num_files_train: 24, num_samples_per_file: 1, record_length_bytes: 1 KiB}
  reader: {batch_size: 4, read_threads: 1, prefetch_size: 2}
  train: {epochs: 2}
system:
  nodes: 2
  ranks_per_node: 1
  tiers:
    lfs: {path: "{out}/tiers/lfs/{node}", visible_to: node, capacity: 1 MiB}
    gfs: {path: "{out}/tiers/gfs"}
sweep:
  placement.cache_rate: [0%, 50%, 100%]
"""


@cache
def tiny(*settings: str) -> Study:
    """The study with some keys set, as by `--set`; nobody can change it, so each is made once."""
    return parse_study(TINY, "tiny.yaml", settings)
