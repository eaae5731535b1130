"""What all ranks read in an epoch, as arrays: the plan, laid out for engines that look at everything at once."""

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tierscope.errors import UserError
from tierscope.formats import FORMATS
from tierscope.plan.order import Order
from tierscope.plan.permutation import IndexArray
from tierscope.plan.placement import Pinned
from tierscope.plan.plan import Plan
from tierscope.plan.policies import Caches, Flags, files_of
from tierscope.plan.reading import part_starts
from tierscope.predict.client import relative_sizes, whole_batches
from tierscope.spec.study import Study

MOST_SAMPLES = 60_000_000  # of an epoch that is laid out; about 4 GB


@dataclass(frozen=True, slots=True)
class Schedule:
    """Rows are ranks, columns their samples in order."""

    files: IndexArray
    tiers: npt.NDArray[np.int8]
    opens: npt.NDArray[np.bool_]  # whether the file must be opened for the sample
    fills: Flags | None = None  # the file is copied to the near tier behind the reader's back; None: never
    fetched: Flags | None = None  # it is fetched ahead, and read from the near tier if in time; None: never
    window: IndexArray | None = None  # by rank: files fetched ahead at most
    inside: IndexArray | None = None  # the sample's number in its file; None: each has one only
    sizes: npt.NDArray[np.float64] | None = None  # of the sample, of the mean's; None: all have the mean

    @property
    def shape(self) -> tuple[int, int]:
        return self.files.shape[0], self.files.shape[1]

    @property
    def copied(self) -> Flags | None:
        """Samples whose file is written to the near tier, then or ahead; None: no such."""
        if self.fills is None or self.fetched is None:
            return self.fetched if self.fills is None else self.fills
        return self.fills | self.fetched

    @property
    def copies(self) -> npt.NDArray[np.int64] | None:
        """How many of each rank."""
        return None if self.copied is None else self.copied.sum(axis=1)

    def some(self, first: int, end: int) -> "Schedule":
        """Of every rank these samples in turn, in memory of their own: for views the engine would be compiled a second time."""
        names = ("files", "tiers", "opens", "fills", "fetched", "inside", "sizes")
        short = {name: all_[:, first:end].copy() for name in names if (all_ := getattr(self, name)) is not None}
        return replace(self, **short)

    def hit_rate(self, tiers: int) -> float:
        """The share of samples for which nobody has to go to the last tier."""
        hits = self.tiers < tiers - 1
        return float((hits if self.fetched is None else hits & ~self.fetched).mean())


def lay_out(study: Study, plan: Plan, epoch: int, caches: Caches | None = None) -> Schedule:
    """`caches`: those of policies that keep what they read; they must be the study's."""
    if plan.ranks * plan.order.samples_per_rank > MOST_SAMPLES:
        raise UserError(
            f"workload.dataset has {plan.order.samples:,} samples; more than {MOST_SAMPLES:,} are not supported with this policy: use fewer files, "
            "or policy: pinned or partition, which can be sampled"
        )
    files, priorities = _files(plan.order, plan.placement.seed, epoch)
    reader = study.workload.reader
    striped = plan.order.samples_per_file > 1 and any(tier.stripe_count > 1 for tier in study.system.tiers)
    inside = plan.order.whole_epoch(epoch) % plan.order.samples_per_file if striped else None
    threads = 1 if whole_batches(study) else reader.read_threads
    opens = first_of_file(files, plan.order, reader.batch_size, threads, stay_open(study))
    sizes = relative_sizes(study, files, lambda: plan.order.whole_epoch(epoch))
    if caches is None and study.placement.policy != "pinned":
        raise UserError(f"placement.policy = {study.placement.policy}; only pinned is supported here: set pinned")
    if caches is None:
        return Schedule(files, plan.placement.tiers_at(priorities).astype(np.int8), opens, inside=inside, sizes=sizes)
    cached = caches.epoch(epoch)
    near = cached.hits | cached.fetched
    opens[:, 1:] |= near[:, 1:] != near[:, :-1]  # the copy on the other tier is another file
    fills = cached.fills if cached.fills.any() else None
    tiers = np.where(near, 0, len(study.system.tiers) - 1).astype(np.int8)
    if not cached.fetched.any():
        return Schedule(files, tiers, opens, fills, inside=inside, sizes=sizes)
    return Schedule(files, tiers, opens, fills, cached.fetched, cached.window, sizes=sizes)


@lru_cache(maxsize=3)
def _files(order: Order, seed: int, epoch: int) -> tuple[IndexArray, IndexArray]:
    """Files and their priorities: the same at every cache rate."""
    files = files_of(order, epoch)
    placement = Pinned(order.samples // order.samples_per_file, seed, ())
    return files, placement.priorities(files.reshape(-1)).reshape(files.shape)


def stay_open(study: Study) -> bool:
    """Whether a thread keeps its file open until it needs another one: files that libraries read (loaders/library.py)."""
    return FORMATS[study.workload.dataset.format].library and study.workload.reader.file_access != "collective"


def first_of_file(
    files: IndexArray, order: Order, batch: int, threads: int, kept: bool = False
) -> npt.NDArray[np.bool_]:
    """Neighbours in one file share an open, but only within what one thread reads of a batch; `kept`: over all batches, once for each thread."""
    if order.samples_per_file == 1:
        return np.ones(files.shape, np.bool_)
    first = np.ones(files.shape, np.bool_)
    first[:, 1:] = files[:, 1:] != files[:, :-1]
    starts = part_starts(files.shape[1], batch, max(1, threads))
    first[:, starts[: max(1, threads)] if kept else starts] = True
    return first
