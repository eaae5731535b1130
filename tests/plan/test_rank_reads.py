"""Ranks that each read everything, and more ranks than files: who reads what."""

from itertools import pairwise

import numpy as np
import pytest

from tests.small_study import small_study
from tierscope.errors import UserError
from tierscope.plan.order import Order
from tierscope.plan.reading import is_buffered
from tierscope.predict.sampled_schedule import drawn_positions

ALL = ("rank_reads=all", "ranks_per_node=4", "num_samples_per_file=3", "num_files_train=5")


def read(order: Order, rank: int, epoch: int = 1) -> list[int]:
    return [int(sample) for block in order.indices(rank, epoch) for sample in block]


@pytest.mark.parametrize("more", [(), ("sample_shuffle=off",), ("file_shuffle=off",), ("shuffle=off",)])
def test_every_rank_reads_all_samples_in_an_order_of_its_own(more: tuple[str, ...]) -> None:
    order = Order.of(small_study(*ALL, *more))
    rows = [read(order, rank) for rank in range(4)]
    assert all(sorted(row) == list(range(15)) for row in rows)
    assert len({tuple(row) for row in rows}) == 4
    assert np.array_equal(order.whole_epoch(1), rows)
    assert order.undivided == order.trimmed == 0


def test_in_file_order_each_begins_at_its_share() -> None:
    order = Order.of(small_study(*ALL, "shuffle=off"))
    assert [read(order, rank)[:2] for rank in range(4)] == [[0, 1], [3, 4], [7, 8], [11, 12]]
    assert read(order, 3) == [*range(11, 15), *range(11)]


@pytest.mark.parametrize(
    ("more", "one_behind_the_other"), [((), False), (("shuffle=off",), True), (("sample_shuffle=off",), True)]
)
def test_everything_in_file_order_is_cut_from_a_buffer(more: tuple[str, ...], one_behind_the_other: bool) -> None:
    study = small_study(*ALL, "format=csv", *more)
    assert Order.of(study).is_consecutive is is_buffered(study) is one_behind_the_other


def test_steps_end_it_earlier() -> None:
    order = Order.of(small_study(*ALL, "total_training_steps=2", "batch_size=3"))
    assert [len(read(order, rank)) for rank in range(4)] == [6] * 4


def test_part_of_an_epoch_is_drawn_from_everything() -> None:
    for more in ((), ("shuffle=off",), ("sample_shuffle=off",)):
        order = Order.of(small_study(*ALL, *more))
        drawn = drawn_positions(order, 1, np.arange(4), np.arange(15))
        assert all(sorted(row) == list(range(15)) for row in drawn.tolist())


@pytest.mark.parametrize(
    ("key", "value"),
    [("file_access", "multi"), ("shuffle", "local"), ("shuffle", "chunked"), ("sample_shuffle", "offset")],
)
def test_not_with_what_divides_samples(key: str, value: str) -> None:
    with pytest.raises(UserError, match=f"rank_reads = all, but {key} = {value} divides the samples among ranks"):
        small_study(*ALL, f"{key}={value}")


@pytest.mark.parametrize(("files", "ranks"), [(2, 6), (5, 4), (4, 4), (3, 7)])
@pytest.mark.parametrize("shuffle", ["seed", "off"])
def test_more_ranks_than_files_share_them_by_samples(files: int, ranks: int, shuffle: str) -> None:
    study = small_study(
        "file_access=multi", f"num_files_train={files}", "num_samples_per_file=12", f"ranks_per_node={ranks}",
        f"file_shuffle={shuffle}", "sample_shuffle=off",
    )  # fmt: skip
    order = Order.of(study)
    rows = [read(order, rank) for rank in range(ranks)]
    everything = [sample for row in rows for sample in row]
    assert len(set(everything)) == len(everything) == files * 12 // ranks * ranks
    for row in rows:  # in order inside a file, and no more files than a run of samples can touch
        touched = [sample // 12 for sample in row]
        assert len(set(touched)) <= -(-len(row) // 12) + 1
        assert all(b == a + 1 for a, b in pairwise(row) if a // 12 == b // 12)


def test_more_ranks_than_samples_are_refused() -> None:
    with pytest.raises(
        UserError, match=r"num_files_train = 2 makes 4 samples for 5 ranks .*every rank needs at least one"
    ):
        small_study("file_access=multi", "num_files_train=2", "num_samples_per_file=2", "ranks_per_node=5")
