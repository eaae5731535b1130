"""A model that is split over ranks: what each of them writes, beside sums done by hand and what must hold of any split."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tierscope.plan.checkpoints import checkpoint_bytes, parts_of
from tierscope.plan.shards import parameters_of, shard_count
from tierscope.spec.study import Checkpoint, Transformer

LLAMA = Transformer(  # 405B, as MLPerf Storage has it
    num_layers=126, hidden_size=16384, ffn_hidden_size=53248, vocab_size=128256, num_attention_heads=128, num_kv_heads=8
)
PARAMETERS = 405_853_388_800


def llama(**keys: object) -> Checkpoint:
    known = {"mode": "all_ranks", "model_parameters": PARAMETERS, "precision": "bf16", "optimizer": "adam", "transformer": LLAMA,
             "tensor_parallel": 8, "pipeline_parallel": 32, "data_parallel": 2, "zero_stage": 1}  # fmt: skip
    return Checkpoint(**{**known, **keys})  # type: ignore[arg-type]


def sizes(checkpoint: Checkpoint, rank: int, ranks: int, kind: str) -> list[int]:
    return [part.nbytes for part in parts_of(checkpoint, rank, ranks) if part.name.startswith(kind)]


def test_llama_405b_by_hand() -> None:
    """512 shards. A layer of an eighth: two norms, (16384 + 2 × 1024) × 16384 of queries, keys and values, 16384² of output, 3 × 16384 × 53248 inside."""
    assert parameters_of(LLAMA) == PARAMETERS
    layer = 2 * (2 * 16384 + (16384 * (16384 + 2048) + 16384**2 + 3 * 16384 * 53248) // 8)
    outside = 2 * 16384 * 128256 // 8
    optimizer = 12 * (PARAMETERS // 512 + 5 * 16384)
    checkpoint = llama()
    assert shard_count(checkpoint, 512) == 512
    # 126 layers over 32 stages: four each in the first 30, three in the last two
    assert sizes(checkpoint, 0, 512, "weights") == [outside, layer, layer, layer, layer]
    assert sizes(checkpoint, 8, 512, "weights") == [layer] * 4
    assert sizes(checkpoint, 31 * 8, 512, "weights") == [layer, layer, layer, outside, 2 * 16384]
    assert sizes(checkpoint, 256, 512, "weights") == []  # the second replica
    assert all(sizes(checkpoint, rank, 512, "optimizer") == [optimizer] for rank in (0, 8, 255, 256, 511))
    whole = checkpoint_bytes(checkpoint, range(512), 512)
    assert whole == pytest.approx(14 * PARAMETERS, rel=1e-4)


def test_fewer_ranks_write_a_subset_and_more_ranks_no_more() -> None:
    checkpoint = llama()
    for ranks in (1, 8, 100):
        for rank in range(ranks):
            mine, theirs = parts_of(checkpoint, rank, ranks), parts_of(checkpoint, rank * 512 // ranks, 512)
            assert [part.nbytes for part in mine] == [part.nbytes for part in theirs]
    assert checkpoint_bytes(checkpoint, range(2240), 2240) == checkpoint_bytes(checkpoint, range(512), 512)


@pytest.mark.parametrize(
    ("stage", "expected"),
    [
        (0, {0: (70, 420), 1: (70, 420), 2: (0, 0)}),
        (1, {0: (70, 210), 1: (70, 210), 2: (0, 210)}),
        (2, {0: (70, 210), 1: (70, 210), 2: (0, 210)}),
        (3, {0: (34, 210), 1: (34, 210), 2: (34, 210)}),  # 35 parameters do not divide by two
    ],
)
def test_stages_of_zero(stage: int, expected: dict[int, tuple[int, int]]) -> None:
    """70 parameters over two tensor parts and two replicas, without a shape."""
    checkpoint = Checkpoint(mode="all_ranks", model_parameters=70, tensor_parallel=2, zero_stage=stage)
    for rank, (weights, optimizer) in expected.items():
        found = [sum(sizes(checkpoint, rank, 4, kind)) for kind in ("weights", "optimizer")]
        assert found == [weights, 12 * (70 // (4 if stage else 2)) if optimizer else 0]


def test_a_smaller_model_has_all_its_files_smaller() -> None:
    whole, small = llama(), llama(model_parameters=PARAMETERS // 1000)
    for rank in (0, 8, 300):
        for large, part in zip(parts_of(whole, rank, 512), parts_of(small, rank, 512), strict=True):
            assert part.nbytes == pytest.approx(large.nbytes / 1000, rel=0.01, abs=1)


@given(
    tensor=st.integers(1, 4),
    pipeline=st.integers(1, 5),
    data=st.integers(1, 3),
    stage=st.integers(0, 3),
    layers=st.integers(5, 9),
    shaped=st.booleans(),
)
def test_no_part_is_lost_or_written_twice(
    tensor: int, pipeline: int, data: int, stage: int, layers: int, shaped: bool
) -> None:
    """Up to what does not divide, norms that every tensor part has, and small tensors beside the optimizer's state."""
    shape = Transformer(num_layers=layers, hidden_size=480, ffn_hidden_size=960, vocab_size=7200, num_attention_heads=8, num_kv_heads=2)  # fmt: skip
    parameters = parameters_of(shape)
    checkpoint = Checkpoint(
        mode="all_ranks",
        model_parameters=parameters,
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        data_parallel=data,
        zero_stage=stage,
        transformer=shape if shaped else Transformer(),
    )
    ranks = tensor * pipeline * data
    parts = [part for rank in range(ranks) for part in parts_of(checkpoint, rank, ranks)]
    assert len({part.number for part in parts}) == len({part.name for part in parts}) == len(parts)
    norms = (tensor - 1) * (2 * layers + 1) * 480 if shaped else 0
    rest = 6 * (2 * layers + 3) * tensor * pipeline * data
    weights = sum(part.nbytes for part in parts if part.name.startswith("weights")) / 2
    assert parameters - rest <= weights <= parameters + norms
    optimizer = sum(part.nbytes for part in parts if part.name.startswith("optimizer")) / 12
    small = 5 * 480 * ranks if shaped else 0
    assert parameters - ranks <= optimizer <= parameters + small
