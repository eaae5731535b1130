"""A model that is split over ranks: what each of them keeps of it, as DLIO and MLPerf Storage lay it out. Pure.

METHOD, for T ways of tensor parallelism, P of pipeline and D of data parallelism: shard s of T·P·D is part s mod T of stage (s/T) mod P of replica s/(T·P).

    stages       layers in order, the first stages with one more where they do not divide; the embedding is in the first, the output in the last
    tensors      divided by T, but for norms, of which every part has its own
    ZeRO 0       the first replica writes its weights, and the optimizer's state, a T·P-th of it each
    ZeRO 1, 2    the first replica writes the weights; every shard its part of the optimizer's state
    ZeRO 3       every shard writes its part of both

With a pipeline, weights of stages 1 and 2 are a file for each layer. Rank r of R has the shard r·T·P·D/R: fewer ranks than there are shards write a subset, of more ranks the
first that has a shard writes it. Without a transformer's shape all stages are alike. A model made smaller (`model_parameters` below what the shape has) has all its files smaller by that.
"""

from dataclasses import dataclass
from functools import lru_cache

from tierscope.spec.study import Checkpoint, Transformer

_WEIGHT_BYTES = {"fp32": 4, "bf16": 2}
_MOMENTS = {"sgd": 1, "adam": 2}
_FP32 = 4
_SMALL_TENSORS = 5  # of the hidden size, beside each of the optimizer's states


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of one rank; `name` without its number."""

    name: str
    nbytes: int


def is_split(checkpoint: Checkpoint) -> bool:
    """Whether the model is laid out here; else every rank has the whole of it."""
    return checkpoint.model_parallel > 1 or checkpoint.data_parallel is not None


def shard_count(checkpoint: Checkpoint, ranks: int) -> int:
    """Of the whole job; more than ranks: a subset is written."""
    replicas = checkpoint.data_parallel or max(1, ranks // checkpoint.model_parallel)
    return replicas * checkpoint.model_parallel


def shards_of(checkpoint: Checkpoint, rank: int, ranks: int) -> tuple[Shard, ...]:
    """Of one rank; as many of every rank, some of them empty."""
    count = shard_count(checkpoint, ranks)
    shard = rank * count // ranks
    shards = _shards(checkpoint, shard, count)
    if rank and (rank - 1) * count // ranks == shard:  # the one before writes it
        return tuple(Shard(empty.name, 0) for empty in shards)
    return shards


def parameters_of(shape: Transformer) -> int:
    """Of the whole model, as DLIO counts them: embedding and output apart, two norms in a layer, one at the end."""
    hidden = shape.hidden_size
    return shape.num_layers * sum(_layer(shape, 1)) + 2 * shape.vocab_size * hidden + hidden


def weight_bytes(checkpoint: Checkpoint) -> int:
    """Of a parameter."""
    return _WEIGHT_BYTES[checkpoint.precision]


def optimizer_bytes(checkpoint: Checkpoint) -> int:
    """Of a parameter's state: its moments, and an fp32 copy of what is not fp32 itself."""
    if checkpoint.optimizer == "none":
        return 0
    return (_MOMENTS[checkpoint.optimizer] + (checkpoint.precision != "fp32")) * _FP32


@lru_cache(maxsize=100_000)
def _shards(checkpoint: Checkpoint, shard: int, count: int) -> tuple[Shard, ...]:
    replicas, stage = count // checkpoint.model_parallel, checkpoint.zero_stage
    tensor, pipeline = checkpoint.tensor_parallel, checkpoint.pipeline_parallel
    place, replica = shard // tensor % pipeline, shard // checkpoint.model_parallel
    over = replicas if stage == 3 else 1
    layers = [number * weight_bytes(checkpoint) for number in _stage(checkpoint, place, over)]
    if replica and stage < 3:
        layers = [0] * len(layers)
    apart = pipeline > 1 and stage in (1, 2)
    kept = [Shard("weights", nbytes) for nbytes in (layers if apart else [sum(layers)])]
    if checkpoint.optimizer != "none":
        state = _optimizer(checkpoint, count if stage else checkpoint.model_parallel)
        kept.append(Shard("optimizer", 0 if replica and not stage else state))
    return tuple(Shard(unscaled.name, _scaled(checkpoint, unscaled.nbytes)) for unscaled in kept)


def _optimizer(checkpoint: Checkpoint, over: int) -> int:
    shape = checkpoint.transformer
    beside = _SMALL_TENSORS * shape.hidden_size if shape.given else 0
    return (_whole(checkpoint) // over + beside) * optimizer_bytes(checkpoint)


def _whole(checkpoint: Checkpoint) -> int:
    shape = checkpoint.transformer
    return parameters_of(shape) if shape.given else checkpoint.model_parameters or 0


def _scaled(checkpoint: Checkpoint, nbytes: int) -> int:
    """Of a model that was made smaller than its shape; never nothing of something."""
    if not checkpoint.transformer.given or checkpoint.model_parameters is None or not nbytes:
        return nbytes
    return max(1, nbytes * checkpoint.model_parameters // parameters_of(checkpoint.transformer))


def _stage(checkpoint: Checkpoint, place: int, over: int) -> list[int]:
    """Parameters of each layer of a stage, of one tensor part and one of `over` replicas; of the same length for every stage."""
    shape, stages, ways = checkpoint.transformer, checkpoint.pipeline_parallel, checkpoint.tensor_parallel
    if not shape.given:
        return [_whole(checkpoint) // (ways * stages * over)]
    fewest, more = divmod(shape.num_layers, stages)
    hidden = shape.hidden_size
    layers = [sum(size // over for size in _layer(shape, ways))] * (fewest + (place < more))
    outside = hidden * shape.vocab_size // ways // over
    first = [outside] if place == 0 else []
    last = [outside, hidden // over] if place == stages - 1 else []
    whole = [*first, *layers, *last]
    return whole + [0] * (fewest + (more > 0) + 3 - len(whole))


def _layer(shape: Transformer, ways: int) -> list[int]:
    """Norm, queries with keys and values, output of attention, norm, the two halves of the feed-forward part with its gate."""
    hidden, inner = shape.hidden_size, shape.ffn_hidden_size
    shared = hidden // shape.num_attention_heads * shape.num_kv_heads
    return [
        hidden,
        hidden * (hidden + 2 * shared) // ways,
        hidden * hidden // ways,
        hidden,
        2 * hidden * inner // ways,
        hidden * inner // ways,
    ]
