"""Steps out of blocks, and memory for a batch."""

import mmap
import resource
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.loaders.base import Slots, StepSamples, split_steps
from tierscope.plan.plan import Block


def block(start: int, count: int) -> Block:
    numbers = np.arange(start, start + count)
    return Block(numbers, numbers + 1000, numbers + 2000, numbers % 2)


@given(st.integers(1, 20), st.lists(st.integers(1, 5), max_size=5), st.integers(0, 19))
def test_steps_keep_every_sample_in_order(batch_size: int, batches: list[int], rest: int) -> None:
    """Blocks hold whole batches, but for the last one."""
    counts = [count * batch_size for count in batches] + ([rest] if rest else [])

    def blocks() -> Iterator[Block]:
        start = 0
        for count in counts:
            yield block(start, count)
            start += count

    works = list(split_steps(blocks(), batch_size))
    total = sum(counts)
    assert [work.step for work in works] == list(range(len(works)))
    assert [sample for work in works for sample in work.samples] == list(range(total))
    assert all(len(work.samples) == batch_size for work in works[: total // batch_size])
    for work in works:
        assert work.files == [sample + 1000 for sample in work.samples]
        assert work.inside == [sample + 2000 for sample in work.samples]
        assert work.tiers == [sample % 2 for sample in work.samples]
        assert all(type(file) is int for file in work.files)  # NumPy's own would slow the reading loop


def test_a_part_of_the_work_is_cut_alike_in_every_column() -> None:
    work = StepSamples(3, [1, 2, 3, 4], [11, 12, 13, 14], [21, 22, 23, 24], [0, 1, 0, 1])
    assert work.part(1, 3) == StepSamples(3, [2, 3], [12, 13], [22, 23], [1, 0])
    assert work.part(3, 99) == StepSamples(3, [4], [14], [24], [1])
    assert replace(work, fills=[True, False, True, True]).part(1, 3).fills == [False, True]


def test_what_fills_is_cut_like_all_else_and_nothing_where_nothing_does() -> None:
    filling = replace(block(0, 7), fills=np.arange(7) % 3 == 0)
    works = list(split_steps(iter([filling, block(7, 2), replace(block(9, 2), fills=np.zeros(2, np.bool_))]), 4))
    assert [list(work.fills) for work in works] == [[True, False, False, True], [False, False, True], [], []]
    assert all(type(fills) is bool for work in works for fills in work.fills)


@pytest.mark.parametrize("slot_bytes", [1, 1016, 4096, 4097, 100_000])
def test_slots_are_aligned_pieces_that_do_not_overlap(slot_bytes: int) -> None:
    memory = Slots(3, slot_bytes, slice(slot_bytes // 4, slot_bytes))
    starts = [np.frombuffer(slot, np.uint8).ctypes.data for slot in memory.slots]
    assert [start % mmap.PAGESIZE for start in starts] == [0, 0, 0]
    assert min(np.diff(starts)) >= slot_bytes
    for number, slot in enumerate(memory.slots):
        assert slot.nbytes == slot_bytes
        slot[:] = bytes([number]) * slot_bytes
    assert [set(slot) for slot in memory.slots] == [{0}, {1}, {2}]
    memory.slots[1][-1] = 77
    assert memory.payloads[1][-1] == 77  # a view, not a copy
    assert memory.payloads[1].nbytes == slot_bytes - slot_bytes // 4


def test_pages_are_there_before_the_first_read() -> None:
    """Otherwise the first reads into them would be charged for making them."""
    size = 64 * mmap.PAGESIZE
    slots = Slots(4, size, slice(0, size)).slots
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    for slot in slots:
        slot[:: mmap.PAGESIZE] = bytes(64)
    assert resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before < 64  # of 256 pages
