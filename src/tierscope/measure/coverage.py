"""What the kernel counted of ranks while they read, beside what their recorders saw.

Compared is what was read between the start and the end of each epoch's loop; what ranks write is not: lists of operations and checkpoints in the
background go beside it. Where there are several epochs the first does not count, because libraries load the rest of themselves in it.
"""

from collections.abc import Sequence

from tierscope.trace.coverage import Coverage, RealReads, coverage
from tierscope.trace.description import DescribedTier
from tierscope.trace.kernel_io import KernelIo
from tierscope.trace.ops import KINDS, MMAP, READ, WRITE
from tierscope.trace.rank_trace import RankEpoch, RankTrace


def coverage_of_ranks(ranks: Sequence[RankTrace], tiers: Sequence[DescribedTier], trained: bool) -> Coverage | None:
    """None: the kernel did not count, or what was counted cannot be compared."""
    epochs = [epoch for rank in ranks for epoch in (rank.epochs[1:] or rank.epochs)]
    if trained and any(len(rank.epochs) < 2 for rank in ranks):
        return None  # of a framework's only epoch nobody knows what it loaded
    kernel = _summed(epochs)
    if kernel is None:
        return None
    real = [number for number, tier in enumerate(tiers) if not tier.emulated]
    every = range(len(tiers))
    return coverage(
        kernel,
        (_sum(epochs, "nbytes", READ, every), _sum(epochs, "nbytes", WRITE, every)),
        RealReads(
            _sum(epochs, "nbytes", READ, real),
            _sum(epochs, "ops", READ, real),
            _sum(epochs, "busy_ns", READ, real) / 1e9,
        ),
        processes=len(ranks),
        mapped_bytes=_sum(epochs, "nbytes", MMAP, every),
        writes=False,
    )


def _summed(epochs: Sequence[RankEpoch]) -> KernelIo | None:
    counts = [epoch.kernel for epoch in epochs if epoch.kernel is not None]
    if not counts or len(counts) < len(epochs):
        return None
    return KernelIo(
        sum(count.read_bytes for count in counts),
        sum(count.written_bytes for count in counts),
        sum(count.device_read_bytes for count in counts),
        sum(count.faults for count in counts),
    )


def _sum(epochs: Sequence[RankEpoch], column: str, kind: int, tiers: Sequence[int]) -> int:
    cells = [tier * len(KINDS) + kind for tier in tiers]
    return sum(int(getattr(lane, column)[cells].sum()) for epoch in epochs for lane in epoch.lanes)
