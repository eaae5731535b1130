"""DLIO's equations and the definition of its benchmark: what Tierscope's own benchmark does for each, computed from its plan or seen in a small run.

Formulas are written out here once more and compared with what `compare`, the plan and the formats give.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from tierscope.analysis.character_metrics import METRICS, Fact, WriteUse
from tierscope.analysis.similarity import similarity
from tierscope.errors import UserError
from tierscope.formats import FORMATS
from tierscope.papers.section import Section
from tierscope.papers.small_run import run_small
from tierscope.papers.verdict import Verdict
from tierscope.plan.checkpoints import parts_of
from tierscope.plan.order import Order
from tierscope.plan.reading import reading_of
from tierscope.predict.saves import when
from tierscope.spec.load import parse_study
from tierscope.spec.study import FILE_ACCESSES, READ_AHEADS, Study

KIB, MIB = 2**10, 2**20
CHECKPOINT = (KIB, KIB, 4 * KIB, 64 * KIB, 4 * MIB)
EVERY = 3  # steps
PAPER_FORMATS = ("tfrecord", "hdf5", "csv", "npz")
OTHERS = ("hdf5", "csv", "npz")
BASE = """
study: basics
workload:
  dataset: {format: raw, num_files_train: 8, num_samples_per_file: 12, record_length_bytes: 4 KiB}
  reader: {batch_size: 4, read_threads: 1}
  train: {epochs: 2, computation_time: 2 ms}
system:
  nodes: 1
  ranks_per_node: 1
  tiers:
    gfs: {path: "{out}/tiers/gfs"}
"""


def make(short: bool) -> Section:
    del short  # nothing here takes long
    return Section((*_equations(), _diagram(), *_benchmark(), *_left_open()))


def _study(*settings: str) -> Study:
    return parse_study(BASE, "a study of tierscope reproduce", settings)


def _verdict(row_id: str, ours: str, holds: bool, why: str = "", measured: bool = False) -> Verdict:
    return Verdict(row_id, ours, "holds" if holds else "does not hold", "measured" if measured else "arithmetic", why)


# Equations


@dataclass(frozen=True, slots=True)
class _OnlyMetrics:
    """Two runs that only read."""

    metrics: dict[str, Fact]
    writes: WriteUse = WriteUse(0, 0, 0.0, Fact(None), Fact(None), Fact(None))
    ranks: tuple[int, ...] = ()
    epochs: int = 1


def _equations() -> list[Verdict]:
    random = np.random.default_rng(8)
    first, second = (dict(zip(METRICS, random.uniform(1.0, 9.0, len(METRICS)).tolist(), strict=True)) for _ in range(2))
    sides = [_OnlyMetrics({name: Fact(value) for name, value in side.items()}) for side in (first, second)]
    ours = similarity(*sides)
    scaled = [(first[name] / max(first[name], second[name]), second[name] / max(first[name], second[name])) for name in METRICS]  # fmt: skip
    dot = sum(a * b for a, b in scaled)
    by_hand = dot / math.sqrt(sum(a * a for a, _ in scaled)) / math.sqrt(sum(b * b for _, b in scaled))
    off = max(
        abs(
            metric.difference
            - (first[metric.name] - second[metric.name]) / max(first[metric.name], second[metric.name])
        )
        for metric in ours.metrics
    )
    assert ours.cosine is not None
    return [
        _verdict("D-E-1", f"{ours.cosine:.6f}, by hand {by_hand:.6f}", math.isclose(ours.cosine, by_hand), f"{len(METRICS)} metrics of two made-up runs; both vectors are normalised (D-C-3)"),
        _verdict("D-E-2", f"largest difference from the formula by hand {off:.1g}", off < 1e-12, "signed: positive where the second has less"),
        _buffers(),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _LargestReads:
    """Of a batch, by format, against record × batch."""

    sizes: dict[str, int]
    wanted: int

    @classmethod
    def seen(cls) -> "_LargestReads":
        studies = {name: _study(f"format={name}", "transfer_size=1 MiB") for name in OTHERS}
        return cls({name: max(nbytes for _, nbytes in reading_of(study).pieces) for name, study in studies.items()}, 4 * KIB * 4)  # fmt: skip

    @property
    def hold(self) -> bool:
        return all(size >= self.wanted for size in self.sizes.values())

    @property
    def text(self) -> str:
        return ", ".join(f"{name}: reads of at most {size:,} B" for name, size in self.sizes.items()) + f"; record × batch is {self.wanted:,} B"  # fmt: skip


_OWN_READS = "shuffled samples: a format reads what it must for one (a record, a chunk or a file), not a buffer of a batch; in order, CSV is read transfer_size at a time"  # fmt: skip


def _buffers() -> Verdict:
    others = _LargestReads.seen()
    return _verdict("D-E-3", others.text, others.hold, _OWN_READS)


def _diagram() -> Verdict:
    return Verdict(
        "D-F7", "docs/architecture.md", "listed", why="a diagram of the benchmark's design: nothing to compute"
    )


# The benchmark


def _benchmark() -> list[Verdict]:
    return [_checkpoint(), _transfer(), _steps(), _offsets(), _refused(), _formats()]


def _checkpoint() -> Verdict:
    study = _study(f"steps_between_checkpoints={EVERY}")
    sizes = tuple(part.nbytes for part in parts_of(study.workload.checkpoint, 0, 1))
    steps = when(study, 1, 24).steps
    expected = tuple(range(EVERY, 25, EVERY))
    return _verdict("D-G-1", f"{len(sizes)} files of {', '.join(f'{size:,}' for size in sizes)} B, after steps {', '.join(map(str, steps[:3]))}, …", sizes == CHECKPOINT and tuple(steps) == expected)  # fmt: skip


def _transfer() -> Verdict:
    """A sample of 1 MiB, with nothing set; and the other formats, which are half of the statement."""
    study, others = _study("format=tfrecord", "record_length_bytes=1 MiB"), _LargestReads.seen()
    largest = max(nbytes for _, nbytes in reading_of(study).pieces)
    usual = study.workload.reader.transfer_size
    holds = largest == usual == 256 * KIB
    ours = f"transfer size {usual:,} B unless set, TFRecord reads of at most {largest:,} B; {others.text}"
    return _verdict("D-G-2", ours, holds and others.hold, f"TFRecord's half {'holds' if holds else 'does not hold'}; {_OWN_READS}")  # fmt: skip


def _steps() -> Verdict:
    """Every sample once in an epoch, by the recorded reads; and a core that is busy between steps."""
    study = _study()
    samples, epochs = study.workload.dataset.samples, study.workload.train.epochs
    run = run_small(BASE, ".raw")
    reads = {epoch: run.ops.filter((run.ops["epoch"] == epoch) & (run.ops["kind"] == "read")).height for epoch in range(1, epochs + 1)}  # fmt: skip
    order = Order.of(study)
    once = all(sorted(order.whole_epoch(epoch).ravel().tolist()) == list(range(samples)) for epoch in reads)
    steps = samples // study.workload.reader.batch_size
    ours = f"{epochs} epochs of {' and '.join(map(str, reads.values()))} reads in {steps} steps, each of {samples} samples once; compute: {run.compute}"  # fmt: skip
    if run.compute == "sleep":
        return Verdict("D-G-3", ours, "not available here", "measured", "compute slept: a busy wait needs a core beside the one that reads")  # fmt: skip
    holds = once and all(count == samples for count in reads.values()) and run.compute == "busy"
    return _verdict("D-G-3", ours, holds, "a small study run here, one process", measured=True)


def _offsets() -> Verdict:
    """`sample_shuffle: offset`: of every rank, batches one behind the other and growing offsets, which differ with the seed."""
    study = _study("sample_shuffle=offset", "ranks_per_node=4")
    batch = study.workload.reader.batch_size
    grows, whole, starts = True, True, []
    for seed in (study.seed, study.seed + 1):
        order = Order.of(replace(study, seed=seed))
        for rank in range(4):
            samples = np.concatenate(list(order.indices(rank, 1))).reshape(-1, batch)
            grows &= bool((np.diff(samples[:, 0]) > 0).all())
            whole &= bool((np.diff(samples, axis=1) == 1).all())
        starts.append(samples[:, 0].tolist())
    random = starts[0] != starts[1]
    return _verdict("D-G-4", f"offsets of a rank's batches: {', '.join(map(str, starts[0][:6]))}, …", grows and whole and random, "sample_shuffle: offset; 4 ranks, 2 seeds")  # fmt: skip


def _refused() -> Verdict:
    wrong = ("batch_size=0", "format=tfrecrod", "epochs=-1", "record_length_bytes=0", "cache_rate=120%")
    refused = 0
    for setting in wrong:
        try:
            _study(setting)
        except UserError:
            refused += 1
    return _verdict("D-G-5", f"{refused} of {len(wrong)} invalid settings refused before a run", refused == len(wrong), "operations are recorded from before the first read on and saved after the run: H-D-8")  # fmt: skip


def _formats() -> Verdict:
    known = [name for name in PAPER_FORMATS if name in FORMATS]
    accesses = {"shared", "multi", "collective"} <= set(FILE_ACCESSES)
    return _verdict("D-G-6", f"formats {', '.join(known)}; access {', '.join(FILE_ACCESSES)}; read ahead {', '.join(READ_AHEADS)}", len(known) == len(PAPER_FORMATS) and accesses and "all" in READ_AHEADS)  # fmt: skip


def _left_open() -> list[Verdict]:
    texts = {
        "D-W-1": "none: Tierscope explains and plans, it does not accelerate formats",
        "D-W-2": "`tierscope simulate` at any number of nodes: D-F14, D-F15",
        "D-W-3": "`tierscope tune` tries read and compute threads together",
        "D-W-4": "`tierscope tune` over compression levels of HDF5",
    }
    return [Verdict(row_id, text, "listed") for row_id, text in texts.items()]
