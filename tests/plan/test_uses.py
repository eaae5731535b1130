"""Who reads a file first and last on a node: exactly one rank each, at its own first and last read."""

import pytest

from tests.small_study import plan_of, small_study
from tierscope.loaders.cold_reads import CountedUses
from tierscope.plan.uses import COUNT, FIRST, LAST, FileUses, file_uses

SETTINGS = [
    ("shuffle=global",),
    ("shuffle=local",),
    ("shuffle=off",),
    ("sample_shuffle=off",),
    ("file_access=multi",),
    ("num_samples_per_file=1", "num_files_train=48"),
]


@pytest.mark.parametrize("settings", SETTINGS, ids=" ".join)
@pytest.mark.parametrize("epoch", [1, 2])
def test_of_a_node_s_ranks_one_begins_with_a_file_and_one_ends(settings: tuple[str, ...], epoch: int) -> None:
    packed = ("num_samples_per_file=6", "num_files_train=8", "nodes=2", "ranks_per_node=2", *settings)
    study = small_study(*packed)
    plan, files = plan_of(study), study.workload.dataset.num_files_train
    for node in ([0, 1], [2, 3]):
        uses = {rank: file_uses(lambda other: plan.reads(other, epoch), rank, node, files) for rank in node}
        reads = {rank: [int(file) for block in plan.reads(rank, epoch) for file in block.files] for rank in node}
        for file in range(files):
            owners = [sum(bool(uses[rank][file] & flag) for rank in node) for flag in (FIRST, LAST)]
            assert owners == ([1, 1] if any(file in reads[rank] for rank in node) else [0, 0])
            for rank in node:
                assert uses[rank][file] & COUNT == reads[rank].count(file)
        _at_the_right_reads(node, uses, reads)


def _at_the_right_reads(node: list[int], uses: dict[int, FileUses], reads: dict[int, list[int]]) -> None:
    """As loaders count: an open before each read and a close behind it, ranks in step. Nobody of the node was there before, nor comes after."""
    counted = {rank: CountedUses(uses[rank].copy()) for rank in node}
    begun, ended = set[int](), set[int]()
    for at in range(max(map(len, reads.values()))):
        for rank in node:
            if at >= len(reads[rank]):
                continue
            file = reads[rank][at]
            if counted[rank].opened(file):
                assert file not in begun
                begun.add(file)
            assert file in begun
            assert file not in ended
            if counted[rank].closing(file, 1):
                ended.add(file)
    assert begun == ended == {file for own in reads.values() for file in own}
