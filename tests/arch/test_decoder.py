"""Decoder-only transformers: parameters, splits, memory and what is demanded of storage."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.arch.machines import named
from tierscope.arch.decoder import DECODERS, Decoder, Split, held, share
from tierscope.arch.decoder_config import load_decoder, parse_decoder
from tierscope.arch.decoder_memory import DecoderWork, decoder_memory
from tierscope.arch.decoder_needs import SaveWish, checkpoint_of, decoder_needs, flops_per_token, rank_bytes
from tierscope.errors import UserError
from tierscope.plan.shards import parameters_of, shards_of
from tierscope.spec.load import load_study

PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
}
LLAMA = DECODERS["llama3-8b"]
WORK = DecoderWork(1, 8192, narrow=True)
DLIO = """
model:
  name: llama
  type: transformer
  num_layers: 32
  model_datatype: fp16
  optimizer_datatype: fp32
  parallelism: {{tensor: {tensor}, pipeline: {pipeline}, zero_stage: {zero}, data: {data}}}
  transformer: {{vocab_size: 128256, hidden_size: 4096, ffn_hidden_size: 14336, num_attention_heads: 32, num_kv_heads: 8}}
framework: pytorch
workflow: {{generate_data: False, train: False, checkpoint: True}}
checkpoint: {{checkpoint_folder: checkpoints, num_checkpoints_write: 2}}
"""


def test_parameters_are_the_published_ones() -> None:
    assert {name: shape.parameters for name, shape in DECODERS.items()} == PUBLISHED


@st.composite
def shapes(draw: st.DrawFn) -> Decoder:
    kv_heads, group, width = draw(st.integers(1, 4)), draw(st.integers(1, 3)), draw(st.integers(1, 8))
    heads, odd = kv_heads * group, draw(st.booleans())
    layers, inner, vocabulary = draw(st.integers(1, 9)), draw(st.integers(1, 99)), draw(st.integers(1, 999))
    return Decoder(
        *("any", layers, heads * width, heads, kv_heads, inner, vocabulary, 64, 64 if odd else 0, not odd, odd),
        tied=draw(st.booleans()),
    )


@given(shapes(), st.integers(1, 5), st.integers(1, 9), st.integers(1, 7))
def test_what_devices_hold_adds_up_to_the_whole(shape: Decoder, tensor: int, pipeline: int, data: int) -> None:
    split = Split(tensor, min(pipeline, shape.layers), data, 3)
    parts = [held(shape, split, stage, part) for stage in range(split.pipeline) for part in range(tensor)]
    assert sum(part.own for part in parts) == shape.parameters
    for part in parts:
        replicas = [share(part.parameters, data, replica) for replica in range(data)]
        assert sum(replicas) == part.parameters
        assert max(replicas) - min(replicas) <= 1
    if split.devices == data:
        assert parts[0].copied == 0


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize(("tensor", "pipeline", "data"), [(1, 1, 1), (8, 1, 2), (4, 3, 2)])
def test_a_checkpoint_is_that_of_the_same_transformer_in_a_dlio_file(
    tmp_path: Path, tensor: int, pipeline: int, data: int, zero: int
) -> None:
    path = tmp_path / "llama.yaml"
    path.write_text(DLIO.format(tensor=tensor, pipeline=pipeline, data=data, zero=zero))
    checkpoint = load_study(str(path)).workload.checkpoint
    assert parameters_of(checkpoint.transformer) == LLAMA.parameters
    split = Split(tensor, pipeline, data, zero)
    ranks = split.devices
    theirs = [sum(shard.nbytes for shard in shards_of(checkpoint, rank, ranks)) for rank in range(ranks)]
    assert list(rank_bytes(LLAMA, split, narrow=True)) == theirs
    assert sum(theirs) == pytest.approx(14 * LLAMA.parameters, rel=1e-3)  # norms are copied, and small tensors


@pytest.mark.parametrize("row", json.loads((Path(__file__).parent / "dlio_shards.json").read_text())["rows"], ids=lambda row: f"{row['model']}-{row['tensor']}-{row['pipeline']}-{row['data']}-zero{row['zero']}")  # fmt: skip
def test_every_rank_writes_what_dlio_itself_writes(row: dict[str, Any]) -> None:
    """To the byte: what DLIO's own code gave for the same shape and split, weights and optimizer apart."""
    split = Split(row["tensor"], row["pipeline"], row["data"], row["zero"])
    checkpoint = checkpoint_of(DECODERS[row["model"]], split, narrow=True)
    theirs = [sizes for count, *sizes in row["ranks"] for _ in range(count)]
    assert len(theirs) == split.devices
    for rank, sizes in enumerate(theirs):
        shards = shards_of(checkpoint, rank, split.devices)
        ours = [sum(shard.nbytes for shard in shards if shard.name == name) for name in ("weights", "optimizer")]
        assert ours == sizes, rank


def test_a_checkpoint_of_a_tied_network_has_all_its_parameters() -> None:
    for split in (Split(), Split(2, 3, 2, 1), Split(4, 1, 2, 3)):
        shape = DECODERS["gpt2"]
        assert sum(rank_bytes(shape, split, narrow=True)) == pytest.approx(14 * shape.parameters, rel=1e-5)
        assert sum(rank_bytes(shape, split, narrow=False)) == pytest.approx(12 * shape.parameters, rel=1e-5)


def test_more_splitting_never_needs_more_memory_of_a_device() -> None:
    peaks = [decoder_memory(LLAMA, WORK, Split(data=8, zero=zero)).peak for zero in (1, 2, 3)]
    assert peaks == sorted(peaks, reverse=True)
    assert decoder_memory(LLAMA, WORK, Split(2)).peak < decoder_memory(LLAMA, WORK).peak
    by_data = [decoder_memory(LLAMA, WORK, Split(data=data, zero=3)).peak for data in (1, 2, 4)]
    assert by_data == sorted(by_data, reverse=True)


def test_state_is_as_published_for_zero() -> None:
    """2 + 2 + 12 bytes of a parameter, each divided from its stage on (Rajbhandari et al., 2020)."""
    count, unit = LLAMA.parameters, LLAMA.table  # larger than a layer
    parts = [decoder_memory(LLAMA, WORK, Split(data=8, zero=zero)) for zero in (1, 2, 3)]
    assert [part.optimizer for part in parts] == [12 * count // 8] * 3
    assert [part.gradients for part in parts] == [2 * count, 2 * (count // 8 + unit), 2 * (count // 8 + unit)]
    assert [part.weights for part in parts] == [2 * count, 2 * count, 2 * (count // 8 + unit)]


def test_recomputing_and_flash_save_what_they_should() -> None:
    plain = DecoderWork(1, 8192, narrow=True, flash=False)
    scores = 6 * LLAMA.heads * 8192**2 * LLAMA.layers
    more = decoder_memory(LLAMA, plain).activations - decoder_memory(LLAMA, WORK).activations
    assert more == pytest.approx(scores, rel=0.05)
    recomputed = DecoderWork(1, 8192, narrow=True, recompute=True)
    kept = decoder_memory(LLAMA, recomputed).activations - 6 * 8192 * LLAMA.vocabulary
    assert kept == 8192 * 4096 * (4 * 32 + 6)


def test_nearly_full_is_not_called_fitting() -> None:
    """The driver, communication and fragments need memory too."""
    device = named("h200-node")
    peak = decoder_memory(LLAMA, WORK).peak
    verdicts = [
        decoder_needs(LLAMA, WORK, Split(), replace(device, memory=memory), 0.4).verdict
        for memory in (peak - 1, peak, int(peak / 0.96), int(peak / 0.94))
    ]
    assert verdicts == ["no", "unclear", "unclear", "yes"]


def test_what_would_fit_is_the_fewest_devices_that_do() -> None:
    device = named("h200-node")
    alone = decoder_needs(LLAMA, WORK, Split(), device, 0.4).fitting
    assert alone is not None
    assert (alone.split, alone.work.recompute) == (Split(2), False)
    recomputed = DecoderWork(1, 8192, narrow=True, recompute=True)
    assert decoder_needs(LLAMA, recomputed, Split(), device, 0.4).verdict == "no", (
        "20 bytes of a parameter are too many"
    )
    large = decoder_needs(DECODERS["llama3-70b"], WORK, Split(), device, 0.4).fitting
    assert large is not None
    assert large.verdict == "yes"
    assert large.split.devices == 16
    for tensor, pipeline in ((8, 1), (4, 2), (2, 4), (1, 8)):
        fewer = Split(tensor, pipeline)
        assert decoder_needs(DECODERS["llama3-70b"], recomputed, fewer, device, 0.4).verdict != "yes"


def test_operations_of_a_token_are_six_for_a_weight_and_attention() -> None:
    assert flops_per_token(LLAMA, 8192) == 6 * (LLAMA.parameters - LLAMA.table - 65 * 4096) + 12 * 32 * 4096 * 8192


def test_tokens_per_second_follow_the_peak_and_goodput_the_bandwidth() -> None:
    device = named("h200-node")
    goodputs = []
    for bandwidth in (1e9, 10e9, 100e9):
        needs = decoder_needs(LLAMA, WORK, Split(8), device, 0.5, SaveWish(bandwidth, 3600.0))
        assert needs.best is not None
        goodputs.append(needs.best.goodput)
        assert needs.save_seconds == pytest.approx(needs.checkpoint_bytes / bandwidth)
    assert goodputs == sorted(goodputs)
    assert 0 < goodputs[0] < goodputs[-1] < 1
    assert needs.tokens_per_second * needs.flops_per_token == pytest.approx(8 * 0.5 * (device.device.tensor or 0))
    assert needs.token_bytes_per_second == 4 * needs.tokens_per_second
    assert not needs.tokens_matter
    assert needs.checkpoints_matter


def test_tokens_of_a_tiny_network_on_many_devices_do_matter() -> None:
    tiny = Decoder("tiny", 1, 8, 1, 1, 8, 100, 16)
    needs = decoder_needs(tiny, DecoderWork(1, 16, narrow=True), Split(data=64), named("h200-node"), 0.4)
    assert needs.tokens_matter
    assert not needs.checkpoints_matter


HUGGING_FACE = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": False,
    "rope_theta": 500000.0,
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
}


def test_a_config_of_hugging_face_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(HUGGING_FACE))
    assert load_decoder(str(path)).parameters == LLAMA.parameters
    text = (
        "{model_type: gpt2, n_layer: 12, n_embd: 768, n_head: 12, n_inner: null, vocab_size: 50257, n_positions: 1024}"
    )
    assert parse_decoder(text, "gpt2.yaml").parameters == PUBLISHED["gpt2"]


OWN = "layers: 2\nhidden: 64\nheads: 4\nkv_heads: 2\nffn: 128\nvocabulary: 100\nsequence: 32\n"


def test_a_config_of_ours_is_read() -> None:
    shape = parse_decoder(OWN, "own.yaml")
    assert (shape.layers, shape.kv_heads, shape.inner, shape.tied, shape.gated) == (2, 2, 128, False, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OWN.replace("layers: 2\n", ""), "bad.yaml: layers is missing"),
        (OWN.replace("layers: 2", "layers: many"), "bad.yaml:1: layers: 'many' is not a whole number"),
        (OWN.replace("hidden: 64", "hidden: -64"), "bad.yaml:2: hidden: '-64' is not a whole number"),
        (OWN.replace("hidden: 64", "hidden: 1e9"), "hidden: '1e9' is not a whole number"),
        (OWN.replace("heads: 4", "heads: 3"), "hidden: 64 is not a multiple of heads, 3"),
        (OWN.replace("kv_heads: 2", "kv_heads: 3"), "kv_heads: 3 does not divide heads, 4"),
        (OWN.replace("kv_heads: 2", "kv_head: 2"), "kv_head: unknown key; did you mean kv_heads?"),
        (OWN + "num_layers: 3\n", "layers and num_layers are the same thing"),
        (OWN + "tied: maybe\n", "tied: 'maybe' is neither true nor false"),
        (OWN + "model_type: mamba\n", "model_type: mamba is not supported"),
        (OWN + "model_type: llama\nnum_local_experts: 8\n", "num_local_experts: only dense layers"),
        (OWN + "head_dim: 32\n", "head_dim: 32 is not hidden / heads, 16"),
        (OWN + "head_dim: [16]\n", "head_dim: a list is not hidden / heads, 16"),
        (OWN + "model_type: [llama]\n", "model_type: a list is not supported"),
        (OWN + "model_type: {a: b}\n", "model_type: a mapping is not supported"),
        (OWN + "attention_bias: {a: b}\n", "attention_bias: only dense layers"),
        (OWN.replace("layers: 2", "layers: [2]"), "layers: 'a list' is not a whole number"),
        ("[1, 2]", "bad.yaml: must be a mapping"),
        ("", "bad.yaml: hidden is missing"),
    ],
)
def test_a_config_that_does_not_fit_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        parse_decoder(text, "bad.yaml")
    assert said in str(error.value)
    assert "\n" not in str(error.value)
