"""Peak memory of one device in a training step of a decoder-only transformer with Adam, in closed formulas. Pure.

Bytes of one step of a plain torch module, T tokens, E = sequences · heads · length²; a: bytes of an activation (4; 2 in amp), r: of the residual stream (4; 2 where weights are 16-bit):

    state         fp32 and amp without ZeRO: 4 of a weight, 8 of Adam's moments, 4 of a gradient; amp also a 16-bit copy of each product's weights, kept until its backward.
                  amp with ZeRO: 2 + 2 + 12 (Rajbhandari et al., 2020): state divided by stage 1, gradients by 2, weights by 3; whole of one layer, or of the embedding, at a time.
    layer         inputs of two norms (r·d each) and of products (a each): normed ones 2d, joined queries, keys and values d + 2kv, mixed values d, feed-forward 2f, gated 4f
    flash         4 bytes for each head and token; there is no such kernel for grouped queries in fp32: torch then takes plain attention
    plain         softmax in 32 bits (4E) and in amp its 16-bit copy (2E); keys and values repeated to all heads; the mask (length²); backward three more of 4E at once
    recompute     only the first norm's input of each layer is kept; one layer at a time is computed again
    loss          of T·V logits: 8 bytes at most forward, kept 4 (amp 6: log-softmax in 16 bits, and its 32-bit copy), backward 12 (amp 10)
    optimizer     one more of 4 bytes for each parameter while it steps (torch's grouped Adam)
    libraries     what `arch/step_memory.py` has fitted on other networks

Peak: the most of the forward's end, the loss's backward, the last and the first layer's backward, and the optimizer. Tensor parallelism divides all but streams and what norms give
(no sequence parallelism: Korthikanti et al., 2022). In a pipeline (one forward, one backward), stage s of P keeps the activations of P − s batches and gradients all the time.
No fragmentation, no communication buffers. Measured: one device, fp32 and amp, no ZeRO (validation/h200/decoder.json); the rest follows from the papers named.
"""

from dataclasses import dataclass

from tierscope.arch.decoder import WHOLE, Decoder, Split, held, share
from tierscope.arch.step_memory import CUDNN

FLASH, PLAIN = "flash", "plain"
ATTENTIONS = (FLASH, PLAIN)
RECOMPUTES = ("none", "full")


@dataclass(frozen=True, slots=True)
class DecoderWork:
    """A step of one device: `batch` sequences of `length` tokens."""

    batch: int
    length: int
    narrow: bool  # amp
    flash: bool = True
    recompute: bool = False

    @property
    def tokens(self) -> int:
        return self.batch * self.length


@dataclass(frozen=True, slots=True)
class DecoderMemory:
    """Of the device of one stage, in bytes. `copies`: of weights, in 16 bits; `activations`: kept for backward. `peak`: the most at any moment, `moment` which."""

    stage: int
    parameters: int
    weights: int
    gradients: int
    optimizer: int
    copies: int
    activations: int
    peak: int
    moment: str


def decoder_memory(shape: Decoder, work: DecoderWork, split: Split = WHOLE) -> DecoderMemory:
    """Of the stage that needs most."""
    return max((_stage(shape, work, split, stage) for stage in range(split.pipeline)), key=lambda memory: memory.peak)


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Bytes of an element by what it is."""

    activation: int
    stream: int
    weight: int
    gradient: int
    state: int
    copies: bool  # of weights, in 16 bits


def _sizes(work: DecoderWork, split: Split) -> _Sizes:
    if not work.narrow:
        return _Sizes(4, 4, 4, 4, 8, False)
    return _Sizes(2, 2, 2, 2, 12, False) if split.zero else _Sizes(2, 4, 4, 4, 8, True)


def _stage(shape: Decoder, work: DecoderWork, split: Split, stage: int) -> DecoderMemory:
    sizes, ways, tokens = _sizes(work, split), split.tensor, work.tokens
    parameters = held(shape, split, stage).parameters
    over = [split.data if split.zero >= least else 1 for least in (1, 2, 3)]
    layer_parameters = share(shape.layer_parameters, ways, 0)
    unit = max(layer_parameters, share(shape.table, ways, 0) if stage in {0, split.pipeline - 1} else 0)
    weights = sizes.weight * (share(parameters, over[2], 0) + (unit if over[2] > 1 else 0))
    optimizer = sizes.state * share(parameters, over[0], 0)
    layers, last = share(shape.layers, split.pipeline, stage), stage == split.pipeline - 1
    copy = 2 * shape.layer_products // ways if sizes.copies else 0
    table = share(shape.table, ways, 0) if last else 0
    head_copy = 2 * table if sizes.copies else 0
    attention, feed = _attention(shape, work, sizes, ways), _feed(shape, work, sizes, ways)
    whole = attention + feed + _streams(shape, work, sizes)
    kept = sizes.stream * shape.hidden * tokens if work.recompute else whole
    final = tokens * (sizes.stream + sizes.activation) * shape.hidden if last else 0
    logits = tokens * share(shape.vocabulary, ways, 0) if last else 0
    standing = weights + optimizer + CUDNN.library_bytes + 16 * tokens
    waiting = (split.pipeline - stage - 1) * (layers * kept + final)  # of the batches behind this one
    kept_copies = head_copy + (0 if work.recompute else layers * copy)
    narrow = work.narrow

    def gradients(count: int) -> int:
        """Of so many parameters; a pipeline has them all, all the time."""
        present = parameters if split.pipeline > 1 else count
        return sizes.gradient * (share(present, over[1], 0) + (unit if over[1] > 1 else 0))

    def backward(before: int) -> int:
        """Of the layer with so many before it."""
        done = table + (layers - before - 1) * layer_parameters
        others = before * (kept + (0 if work.recompute else copy))
        return others + whole + copy + gradients(done) + _transient(shape, work, sizes, ways, feed)

    before = gradients(0) if split.pipeline > 1 else 0
    moments = {
        "end of forward": before + layers * kept + final + layers * copy + head_copy + 8 * logits,
        "backward of the loss": before + layers * kept + final + kept_copies + (10 if narrow else 12) * logits,
        "backward of the last layer": backward(layers - 1),
        "backward of the first layer": backward(0),
        "optimizer": gradients(parameters) + 4 * share(parameters, over[0], 0),
    }
    moment = max(moments, key=lambda name: moments[name] + (waiting if name != "optimizer" else 0))
    peak = standing + moments[moment] + (waiting if moment != "optimizer" else 0)
    activations = waiting + layers * kept + final + (6 if narrow else 4) * logits
    return DecoderMemory(
        stage, parameters, weights, gradients(parameters), optimizer, kept_copies, activations, peak, moment
    )


def _streams(shape: Decoder, work: DecoderWork, sizes: _Sizes) -> int:
    """Inputs of two norms, what these need of each token, and what they give."""
    statistics = 4 if shape.gated else 8
    return 2 * work.tokens * ((sizes.stream + sizes.activation) * shape.hidden + statistics)


def _feed(shape: Decoder, work: DecoderWork, sizes: _Sizes, ways: int) -> int:
    return work.tokens * sizes.activation * (4 if shape.gated else 2) * shape.inner // ways


def is_flash(shape: Decoder, work: DecoderWork) -> bool:
    """Whether attention is: not where that was asked for grouped queries in 32 bits."""
    return work.flash and (work.narrow or shape.kv_heads == shape.heads)


def _scores(shape: Decoder, work: DecoderWork, ways: int) -> int:
    """Elements of one matrix of scores for every head."""
    return work.batch * shape.heads * work.length**2 // ways


def _attention(shape: Decoder, work: DecoderWork, sizes: _Sizes, ways: int) -> int:
    """Kept by attention, with what enters its last product."""
    hidden, tokens = shape.hidden, work.tokens
    joined = hidden + 2 * shape.kv_width
    if is_flash(shape, work):
        return tokens * (sizes.activation * (joined + hidden) + 4 * shape.heads) // ways
    alone = work.batch == 1 and not work.flash  # queries stay a part of what is joined
    queries = joined if alone else hidden
    repeated = 0 if alone and shape.kv_heads == shape.heads else 2 * hidden
    scores = _scores(shape, work, ways) * (6 if work.narrow else 4)
    mask = 0 if work.flash else work.length**2
    return tokens * sizes.activation * (queries + repeated + hidden) // ways + scores + mask


def _transient(shape: Decoder, work: DecoderWork, sizes: _Sizes, ways: int, feed: int) -> int:
    """The most that a layer's backward needs beside what was kept: in its feed-forward part, or in attention, when that is done."""
    gradient_stream = work.tokens * sizes.stream * shape.hidden
    if is_flash(shape, work):
        attention = work.tokens * sizes.activation * (shape.hidden + 2 * shape.kv_width) // ways - feed
    else:
        attention = _scores(shape, work, ways) * (10 if work.narrow else 12) - feed
    return gradient_stream + max(feed, attention)
