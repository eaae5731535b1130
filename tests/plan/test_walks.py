"""Every way through the files of a dataset: what each of them promises, for any numbers."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.plan.planning import make_study, sequence
from tierscope.plan.order import BLOCK, Order
from tierscope.plan.permutation import Permutations
from tierscope.spec.check import find_problem
from tierscope.spec.study import FILE_SHUFFLES, SAMPLE_SHUFFLES, SHUFFLES, Study


def with_keys(study: Study, train: dict[str, Any] | None = None, **reader: Any) -> Study:
    workload = study.workload
    workload = replace(
        workload, reader=replace(workload.reader, **reader), train=replace(workload.train, **train or {})
    )
    return replace(study, workload=workload)


def order_of(train: dict[str, Any] | None = None, repetition: int = 1, **keys: Any) -> Order:
    """Keys of `make_study`, or of a reader."""
    walk = {name: keys.pop(name) for name in ("file_shuffle", "sample_shuffle", "file_access") if name in keys}
    return Order.of(with_keys(make_study(**keys), train, **walk), repetition)


@st.composite
def studies(draw: st.DrawFn, /, **fixed: str) -> Study:
    nodes, ranks_per_node = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    per_file, ranks = draw(st.integers(1, 9)), nodes * ranks_per_node
    choices = {
        "shuffle": SHUFFLES,
        "file_shuffle": FILE_SHUFFLES,
        "sample_shuffle": SAMPLE_SHUFFLES,
        "file_access": ("shared", "multi"),
    }
    keys = {name: fixed.get(name) or draw(st.sampled_from(values)) for name, values in choices.items()}
    files = draw(st.integers(-(-ranks // per_file), 60))
    study = make_study(
        files=-(-files // ranks) * ranks if keys["file_access"] == "multi" else files,
        per_file=per_file,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        shuffle=keys.pop("shuffle"),
        shuffle_nodes=draw(st.integers(1, 3)),
        seed=draw(st.integers(0, 2**63 - 1)),
        batch_size=draw(st.integers(1, 9)),
    )
    steps = draw(st.none() | st.integers(1, 12))
    study = with_keys(study, {"total_training_steps": steps, "seed_change_epoch": draw(st.booleans())}, **keys)
    assume(find_problem(study) is None)
    return study


def rows(order: Order, epoch: int) -> list[list[int]]:
    return [sequence(order, rank, epoch).tolist() for rank in range(order.ranks)]


@given(studies(), st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=examples(250))
def test_no_sample_twice_and_none_beyond_what_is_trimmed(study: Study, epoch: int, repetition: int) -> None:
    order = Order.of(study, repetition)
    read = [sample for row in rows(order, epoch) for sample in row]
    assert len(set(read)) == len(read) == order.samples - order.trimmed
    assert set(read) <= set(range(order.samples))
    assert order.whole_epoch(epoch).tolist() == rows(order, epoch)
    steps = study.workload.train.total_training_steps
    whole = order.samples // order.ranks
    assert {len(row) for row in rows(order, epoch)} == {
        whole if steps is None else min(whole, steps * study.workload.reader.batch_size)
    }


@given(studies(), st.integers(1, 3))
@settings(max_examples=examples(60))
def test_a_rank_reads_only_what_it_can_reach(study: Study, epoch: int) -> None:
    order = Order.of(study)
    for rank in range(order.ranks):
        assert set(sequence(order, rank, epoch).tolist()) <= set(order.reachable(rank).tolist())


@given(studies(file_access="multi"), st.integers(1, 3))
@settings(max_examples=examples(100))
def test_multi_a_file_is_read_by_one_rank(study: Study, epoch: int) -> None:
    order, owners = Order.of(study), dict[int, int]()
    for rank, row in enumerate(rows(order, epoch)):
        assert {owners.setdefault(sample // order.samples_per_file, rank) for sample in row} <= {rank}


@given(studies(file_access="multi"), st.integers(1, 3))
@settings(max_examples=examples(60))
def test_multi_a_file_is_read_to_its_end_before_the_next(study: Study, epoch: int) -> None:
    order = Order.of(study)
    for row in rows(order, epoch):
        assert_one_visit([sample // order.samples_per_file for sample in row])


def assert_one_visit(files: list[int]) -> None:
    """Once left, a file is not opened again."""
    visits = [file for at, file in enumerate(files) if not at or files[at - 1] != file]
    assert len(set(visits)) == len(visits)


@given(studies(sample_shuffle="off"), st.integers(1, 3))
@settings(max_examples=examples(100))
def test_samples_off_each_file_from_begin_to_end(study: Study, epoch: int) -> None:
    assume(study.workload.reader.shuffle != "off")
    order = Order.of(study)
    for row in rows(order, epoch):
        files = [sample // order.samples_per_file for sample in row]
        assert_one_visit(files)
        for before, after in itertools.pairwise(row):
            assert after == before + 1 or before // order.samples_per_file != after // order.samples_per_file


@given(studies(file_shuffle="off", sample_shuffle="seed"), st.integers(1, 3))
@settings(max_examples=examples(60))
def test_files_off_they_come_in_order_and_their_samples_do_not(study: Study, epoch: int) -> None:
    assume(study.workload.reader.shuffle != "off")
    order = Order.of(study)
    for row in rows(order, epoch):
        files = [sample // order.samples_per_file for sample in row]
        assert files == sorted(files)


def test_files_off_samples_are_permuted_anew_in_every_file_and_epoch() -> None:
    order = order_of(files=50, per_file=8, file_shuffle="off")
    patterns = {
        tuple(sample % 8 for sample in sequence(order, 0, epoch).tolist()[start : start + 8])
        for epoch in (1, 2)
        for start in range(0, 400, 8)
    }
    assert len(patterns) > 95
    assert {sorted(pattern) == list(range(8)) for pattern in patterns} == {True}


def test_neither_is_file_order() -> None:
    order = order_of(files=6, per_file=4, nodes=2, file_shuffle="off", sample_shuffle="off")
    assert rows(order, 2) == [list(range(12)), list(range(12, 24))]


@given(studies(sample_shuffle="offset"), st.integers(1, 3))
@settings(max_examples=examples(100))
def test_offset_grows_by_batches_of_neighbours(study: Study, epoch: int) -> None:
    order, batch = Order.of(study), study.workload.reader.batch_size
    for row in rows(order, epoch):
        assert row == sorted(set(row))
        for start in range(0, len(row), batch):
            part = row[start : start + batch]
            assert part == list(range(part[0], part[0] + len(part)))


def test_offset_jumps_differ_between_epochs_and_ranks_share_every_stretch() -> None:
    order = order_of(files=400, nodes=4, batch_size=5, sample_shuffle="offset")
    first, second = rows(order, 1), rows(order, 2)
    assert first != second
    assert sorted(sum(row[0] for row in rows(order, epoch)) for epoch in range(1, 5)) == [30] * 4  # 0, 5, 10, 15
    gaps = {after - before for row in first for before, after in zip(row[4::5], row[5::5], strict=False)}
    assert len(gaps) > 3


@given(studies(), st.integers(1, 3))
@settings(max_examples=examples(40))
def test_the_same_seed_gives_the_same_order(study: Study, epoch: int) -> None:
    assert rows(Order.of(study), epoch) == rows(Order.of(study), epoch)


WALKS = [
    {},
    {"sample_shuffle": "off"},
    {"file_shuffle": "off"},
    {"file_access": "multi"},
    {"sample_shuffle": "offset", "batch_size": 2},
]


@pytest.mark.parametrize("walk", WALKS, ids=str)
@pytest.mark.parametrize("shuffle", ["global", "chunked", "local"])
def test_other_seeds_and_epochs_give_other_orders(walk: dict[str, Any], shuffle: str) -> None:
    if shuffle == "local" and walk.get("sample_shuffle") == "offset":
        pytest.skip("one rank alone has nobody to jump over")
    keys = {"files": 80, "per_file": 3, "nodes": 2, "ranks_per_node": 2, "shuffle": shuffle, **walk}
    found = {tuple(map(tuple, rows(order_of(seed=seed, **keys), epoch))) for seed in (1, 2, 3) for epoch in (1, 2, 3)}
    assert len(found) == 9


@pytest.mark.parametrize("walk", WALKS, ids=str)
def test_one_order_for_all_epochs_where_the_seed_does_not_change(walk: dict[str, Any]) -> None:
    keys = {"files": 80, "per_file": 3, "nodes": 2, **walk}
    fixed, changing = (order_of({"seed_change_epoch": changes}, **keys) for changes in (False, True))
    assert rows(fixed, 1) == rows(fixed, 2) == rows(fixed, 7) == rows(changing, 1)
    assert rows(changing, 1) != rows(changing, 2)


@pytest.mark.parametrize("walk", [{}, {"sample_shuffle": "offset"}, {"sample_shuffle": "off"}, {"shuffle": "local"}])
def test_collective_reads_are_those_of_shared_files(walk: dict[str, Any]) -> None:
    keys = {"files": 1, "per_file": 50, "nodes": 4, "batch_size": 3, **walk}
    shared, together = (order_of(file_access=access, **keys) for access in ("shared", "collective"))
    assert rows(shared, 2) == rows(together, 2)
    assert {len(row) for row in rows(together, 2)} == {12}  # all ranks read in as many turns


@pytest.mark.parametrize("key", ["file_shuffle", "sample_shuffle"])
@pytest.mark.parametrize("walk", [{}, {"file_access": "multi"}])
def test_random_is_another_order_in_every_repetition(key: str, walk: dict[str, Any]) -> None:
    keys = {"files": 40, "per_file": 3, "nodes": 2, **walk}
    seeded = {str(rows(order_of(repetition=number, **keys), 1)) for number in (1, 2, 3)}
    random = {str(rows(order_of(repetition=number, **{**keys, key: "random"}), 1)) for number in (1, 2, 3)}
    assert (len(seeded), len(random)) == (1, 3)
    again = order_of(repetition=2, **{**keys, key: "random"})
    assert str(rows(again, 1)) in random  # and the same one when it is run again


@pytest.mark.parametrize("walk", WALKS, ids=str)
def test_steps_cut_an_epoch_and_leave_its_begin_as_it_was(walk: dict[str, Any]) -> None:
    keys = {"files": 80, "per_file": 3, "nodes": 4, **walk, "batch_size": 7}
    whole, cut = order_of(**keys), order_of({"total_training_steps": 2}, **keys)
    assert (cut.samples_per_rank, cut.trimmed) == (14, 240 - 4 * 14)
    assert rows(cut, 2) == [row[:14] for row in rows(whole, 2)]
    assert order_of({"total_training_steps": 1000}, **keys).trimmed == whole.trimmed == 0


@pytest.mark.parametrize("walk", WALKS, ids=str)
def test_beyond_a_block(walk: dict[str, Any]) -> None:
    order = order_of(files=2 * (BLOCK + 6), per_file=3, nodes=2, **walk)
    assert order.samples_per_rank > 2 * BLOCK
    assert len(set(order.whole_epoch(1).ravel().tolist())) == order.samples
    assert order.whole_epoch(1).tolist() == rows(order, 1)


@given(st.integers(1, 400), st.integers(0, 2**32), st.binary(min_size=1, max_size=8))
@settings(max_examples=examples(60))
def test_every_label_has_a_permutation_of_its_own(n: int, label: int, key: bytes) -> None:
    indices, permutations = np.arange(n), Permutations(n, key)
    for number in (label, label + 1):
        assert sorted(permutations(np.full(n, number), indices).tolist()) == list(range(n))
    mixed = np.concatenate([permutations(np.full(n, number), indices) for number in (label, label + 1)])
    together = permutations(np.repeat([label, label + 1], n), np.tile(indices, 2))
    assert together.tolist() == mixed.tolist()  # whatever else is asked for at the same time


def test_labels_permutations_are_uniform() -> None:
    """Of three things there are six orders: each of them equally often."""
    permutations, labels = Permutations(3, b"k"), np.arange(6000)
    columns = [permutations(labels, np.full(6000, place)) for place in range(3)]
    counts = np.bincount(columns[0] * 9 + columns[1] * 3 + columns[2])
    assert sorted(counts[counts > 0].tolist()) == pytest.approx([1000] * 6, abs=4 * np.sqrt(6000 * (1 / 6) * (5 / 6)))
