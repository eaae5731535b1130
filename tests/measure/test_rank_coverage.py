"""What ranks' recorders saw beside what the kernel counted of them."""

from typing import Any

import pytest

from tests.traces import OP_BYTES, TIERS, lane_of, rank_epoch
from tierscope.measure.coverage import coverage_of_ranks
from tierscope.trace.description import DescribedTier
from tierscope.trace.kernel_io import KernelIo
from tierscope.trace.rank_trace import RankEpoch, RankTrace

DESCRIBED = [DescribedTier(name=TIERS[0], emulated=True), DescribedTier(name=TIERS[1])]
COUNTED = KernelIo(2 * OP_BYTES + 7, 5, 50, 0)


def epoch(number: int, kernel: KernelIo | None = COUNTED) -> RankEpoch:
    cells = {("lfs", "read"): 1.0, ("gfs", "read"): 2.0, ("gfs", "write"): 3.0}
    return rank_epoch(number, lanes=(lane_of(cells),), kernel=kernel)


def covered(*epochs: RankEpoch, ranks: int = 2, trained: bool = False) -> Any:
    return coverage_of_ranks([RankTrace(rank, 0, epochs) for rank in range(ranks)], DESCRIBED, trained)


def test_all_ranks_count_and_the_first_of_several_epochs_does_not() -> None:
    found = covered(epoch(1, KernelIo(10**9, 0, 0, 0)), epoch(2))
    assert (found.seen_read_bytes, found.kernel_read_bytes) == (4 * OP_BYTES, 4 * OP_BYTES + 14)
    assert (found.real_read_bytes, found.real_read_ops, found.real_read_seconds) == (2 * OP_BYTES, 2, 4.0)
    assert (found.processes, found.device_read_bytes) == (2, 100)
    assert found.kernel_written_bytes is None  # they write beside their loop


def test_an_only_epoch_counts() -> None:
    assert covered(epoch(1)).kernel_read_bytes == 4 * OP_BYTES + 14


@pytest.mark.parametrize(
    ("epochs", "trained"), [([epoch(1, None)], False), ([epoch(1), epoch(2, None)], False), ([epoch(1)], True)]
)
def test_what_cannot_be_compared_is_none(epochs: list[RankEpoch], trained: bool) -> None:
    assert covered(*epochs, trained=trained) is None
