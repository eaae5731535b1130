"""Small studies with capacities, at random: what plans are made of."""

from typing import Any

from hypothesis import strategies as st

from tests.small_study import plan_of
from tierscope.plan.file_format import make_format
from tierscope.spec.load import Loaded, parse_study
from tierscope.spec.study import Study

TEXT = """
study: planned
seed: {seed}
workload:
  dataset: {{format: tfrecord, num_files_train: {files}, record_length_bytes: {record}}}
  reader: {{batch_size: 2, shuffle: {shuffle}, shuffle_nodes: {chunk}}}
  train: {{epochs: 2, computation_time: {compute}}}
system:
  nodes: {nodes}
  ranks_per_node: {ranks}
  tiers:
    lfs: {{path: "{{out}}/lfs/{{node}}", visible_to: {visible}, capacity: {capacity}, bandwidth: 400 MB/s, read_ops: 20000/s}}
    gfs: {{path: "{{out}}/gfs", metadata_ops: 2000/s, servers: 2, bandwidth: 100 MB/s, latency: 100 us}}
placement: {{policy: {policy}}}
sweep:
  placement.cache_rate: [{rates}]
"""


PLAIN: dict[str, Any] = {
    "seed": 3,
    "files": 64,
    "record": "100 kB",
    "shuffle": "global",
    "chunk": 1,
    "compute": "0 s",
    "nodes": 4,
    "ranks": 2,
    "visible": "node",
    "capacity": "null",
    "policy": "pinned",
    "rates": "0%, 25%, 50%, 100%",
}


def loaded(vary: tuple[str, ...] = (), **changes: Any) -> Loaded:
    values = PLAIN | changes
    text = TEXT.format(**values)
    if values["visible"] == "global":
        text = text.replace('/lfs/{node}", ', '/lfs", metadata_ops: unlimited, ')
    swept = [f"sweep.{key}=[{some}]" for key, _, some in (each.partition("=") for each in vary)]
    return Loaded(parse_study(text, "test", swept))


FILE_BYTES = make_format(loaded().study).file_bytes


def held_on_worst_node(study: Study) -> int:
    """Bytes that a node (or all of them, where they share it) keeps on the near tier, counted file by file."""
    plan, each = plan_of(study), make_format(study).file_bytes
    nodes: list[int | None] = [None]
    if study.system.tiers[0].visible_to == "node":
        nodes = list(range(study.system.nodes))
    return max(sum(len(block) for block in plan.files_on(0, node)) for node in nodes) * each


@st.composite
def systems(draw: st.DrawFn) -> dict[str, Any]:
    """Keys of `loaded`."""
    nodes = draw(st.integers(1, 4))
    shuffle = draw(st.sampled_from(["global", "local", "chunked"]))
    policies = ["pinned", "first-touch", "lru"] + (["partition"] if shuffle == "local" else [])
    return {
        "seed": draw(st.integers(0, 3)),
        "files": draw(st.integers(16, 80)),
        "shuffle": shuffle,
        "chunk": draw(st.integers(1, nodes)),
        "nodes": nodes,
        "ranks": draw(st.integers(1, 2)),
        "visible": draw(st.sampled_from(["node", "global"])),
        "capacity": draw(st.sampled_from(["null", "0 B", "500 kB", "2 MB", "4 MB", "20 MB"])),
        "policy": draw(st.sampled_from(policies)),
        "compute": draw(st.sampled_from(["0 s", "2 ms"])),
    }
