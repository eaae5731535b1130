"""Two statements of the Architecture study about nodes that train together: what a rank that reads slowly costs the others (A-F7-5), and what staging does to the shuffle (A-F5-6)."""

from tierscope.papers.architecture_model import cori, data_of, judge
from tierscope.papers.architecture_printed import PRINTED
from tierscope.papers.section import Section
from tierscope.papers.verdict import Verdict
from tierscope.plan.order import Order
from tierscope.predict.simulation import Simulation
from tierscope.spec.load import parse_study

NODES, EPOCHS, SEED = 4, 3, 7
BATCH, STEPS = 2, 16
_STUDY = """
study: waits
seed: 1
workload:
  dataset: {format: raw, num_files_train: 4096, num_samples_per_file: 1, record_length_bytes: 4 KiB}
  reader: {batch_size: 2, read_threads: 4, prefetch_size: 2, transfer_size: 16 MiB}
  train: {epochs: 3}
system:
  nodes: 1
  ranks_per_node: 8
  tiers:
    gfs: {path: "{out}/tiers/gfs", visible_to: global}
"""
_SLOW = ("servers=248", "bandwidth=2.82 GB/s", "node_bandwidth=1.6 GB/s", "latency=1 ms", "metadata_ops=30000/s", "metadata_latency=0.5 ms")  # fmt: skip


def make(short: bool) -> Section:
    del short  # nothing here takes long
    return Section((_waits(), _staged_shuffle()))


def _waits() -> Verdict:
    """Seconds that ranks wait for one another after a step, with samples in memory and from Lustre: with a ring they are part of the all-reduce."""
    step = BATCH * PRINTED["deepcam"].step_seconds
    ranks = cori().accelerators
    job = (
        f"num_files_train={BATCH * STEPS * ranks}",
        f"record_length_bytes={data_of('deepcam').file_bytes:.0f}",
        f"computation_time={step:.4f} s",
        "sync=step",
    )
    shares = {}
    for place, settings in (("memory", job), ("Lustre", (*job, *_SLOW))):
        outcome = Simulation.of(parse_study(_STUDY, "a study of tierscope reproduce", settings)).epoch(
            1, "events", SEED
        )
        waited = (outcome.seconds - outcome.stall - outcome.compute).mean()
        shares[place] = max(0.0, float(waited / outcome.seconds.max()))
    return judge(
        "A-F7-5",
        f"ranks wait for one another {shares['memory']:.2%} of an epoch in memory, {shares['Lustre']:.1%} from Lustre",
        shares["Lustre"] > 2 * shares["memory"],
        "simulated",
        f"{ranks} ranks of one node, {STEPS} steps of batch {BATCH} as long as Table II implies (A-X-3), node's share of Lustre as in cori-gpu; waiting after a step, which a ring's all-reduce contains",
    )


def _staged_shuffle() -> Verdict:
    """Which samples the first node reads in three epochs, when it may read only what it holds, and when it may read all."""
    seen = {}
    for shuffle in ("local", "global"):
        study = parse_study(_STUDY, "a study of tierscope reproduce", (f"nodes={NODES}", f"shuffle={shuffle}"))
        order, ranks = Order.of(study), study.system.ranks_per_node
        samples = {
            int(sample)
            for epoch in range(1, EPOCHS + 1)
            for rank in range(ranks)
            for part in order.indices(rank, epoch)
            for sample in part
        }
        seen[shuffle] = len(samples) / study.workload.dataset.samples
    return judge(
        "A-F5-6",
        f"in {EPOCHS} epochs a node of {NODES} reads {seen['local']:.0%} of the samples when staged, {seen['global']:.0%} with a global shuffle",
        seen["local"] == 1 / NODES < seen["global"],
        "arithmetic",
        "from the plan (`shuffle: local` and `global`); what that costs in accuracy: H-D-9",
    )
