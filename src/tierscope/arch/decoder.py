"""Decoder-only transformers: their shapes, what they have of parameters, and how these are split over devices. Pure.

`gpt2` and its sizes: learned positions, layer norm, GELU, biases, output tied to the embedding (Radford et al., 2019). `llama3`: rotary positions, RMS norm,
gated SiLU, grouped queries, no biases, output apart (Grattafiori et al., 2024). Each is a config that a user could write.

Split (Shoeybi et al., 2019; Narayanan et al., 2021): tensor parallelism divides every matrix, with its bias where the output is divided, and the embedding by
vocabulary; norms, positions and biases of what is summed up are copied. Pipeline stages have layers in order, the first ones with one more where they do not divide; the
embedding is in the first, the final norm and the output in the last, which has a copy of a tied embedding.
"""

from dataclasses import dataclass

from tierscope.errors import UserError
from tierscope.units import closest, counted


@dataclass(frozen=True, slots=True)
class Decoder:
    """`inner`: width of the feed-forward part; `positions`: learned ones, 0: rotary; `gated`: SiLU with a gate and RMS norm, else GELU and layer norm;
    `sequence`: tokens of a sample where nothing else is asked.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    inner: int
    vocabulary: int
    sequence: int
    positions: int = 0
    gated: bool = True
    biases: bool = False
    tied: bool = False

    @property
    def head_width(self) -> int:
        return self.hidden // self.heads

    @property
    def kv_width(self) -> int:
        return self.head_width * self.kv_heads

    @property
    def layer_products(self) -> int:
        """Weights of a layer's matrix products."""
        products = 2 * self.hidden + 2 * self.kv_width + (3 if self.gated else 2) * self.inner
        return self.hidden * products

    @property
    def table(self) -> int:
        """Parameters of the embedding, and of the output."""
        return self.vocabulary * self.hidden

    @property
    def layer_parameters(self) -> int:
        return sum(size for size, _ in layer_tensors(self))

    @property
    def parameters(self) -> int:
        outside = self.table * (1 if self.tied else 2) + self.positions * self.hidden
        return self.layers * self.layer_parameters + outside + self.hidden * (1 if self.gated else 2)


MOST_DEVICES = 1 << 16


@dataclass(frozen=True, slots=True)
class Split:
    """Ways of tensor, pipeline and data parallelism, and the stage of ZeRO."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    zero: int = 0

    @property
    def devices(self) -> int:
        return self.tensor * self.pipeline * self.data


WHOLE = Split()  # on one device


@dataclass(frozen=True, slots=True)
class Held:
    """Parameters on one device: `own` are counted there and nowhere else, `copied` are on another device too."""

    own: int
    copied: int

    @property
    def parameters(self) -> int:
        return self.own + self.copied


def layer_tensors(shape: Decoder) -> tuple[tuple[int, bool], ...]:
    """(parameters, whether tensor parallelism divides them)."""
    hidden, inner = shape.hidden, shape.inner
    norms = 2 * hidden * (1 if shape.gated else 2)
    tensors = [(norms, False), (shape.layer_products, True)]
    if shape.biases:
        tensors += [(hidden + 2 * shape.kv_width + inner, True), (2 * hidden, False)]
    return tuple(tensors)


def share(size: int, ways: int, part: int) -> int:
    """Of `size` things, as evenly as whole ones go: all parts add up to it."""
    return size // ways + (part < size % ways)


def held(shape: Decoder, split: Split, stage: int, part: int = 0) -> Held:
    """By tensor part `part` of stage `stage`, before ZeRO."""
    tensors = list(layer_tensors(shape)) * share(shape.layers, split.pipeline, stage)
    last = stage == split.pipeline - 1
    own = copied = 0
    if stage == 0:
        tensors += [(shape.table, True), (shape.positions * shape.hidden, False)]
    if last:
        tensors.append((shape.hidden * (1 if shape.gated else 2), False))
        if not shape.tied:
            tensors.append((shape.table, True))
        elif split.pipeline > 1:
            copied += share(shape.table, split.tensor, part)
    for size, divided in tensors:
        if divided:
            own += share(size, split.tensor, part)
        elif part == 0:
            own += size
        else:
            copied += size
    return Held(own, copied)


def refuse_split(shape: Decoder, split: Split) -> None:
    """One that leaves somebody without a whole head or a layer."""
    for count, noun in ((shape.heads, "attention heads"), (shape.kv_heads, "key-value heads")):
        if count % split.tensor:
            raise UserError(
                f"--tensor-parallel {split.tensor}: does not divide the {count} {noun} of {shape.name}; use a divisor of {shape.kv_heads}"
            )
    if split.pipeline > shape.layers:
        raise UserError(
            f"--pipeline-parallel {split.pipeline}: {shape.name} has {counted(shape.layers, 'layer')}; use at most that many stages"
        )


def _gpt2(name: str, layers: int, hidden: int, heads: int) -> Decoder:
    return Decoder(
        name, layers, hidden, heads, heads, 4 * hidden, 50257, 1024, positions=1024, gated=False, biases=True, tied=True
    )


def _llama3(name: str, layers: int, hidden: int, heads: int, inner: int) -> Decoder:
    return Decoder(name, layers, hidden, heads, 8, inner, 128256, 8192)


DECODERS = {
    shape.name: shape
    for shape in (
        _gpt2("gpt2", 12, 768, 12),
        _gpt2("gpt2-medium", 24, 1024, 16),
        _gpt2("gpt2-large", 36, 1280, 20),
        _gpt2("gpt2-xl", 48, 1600, 25),
        _llama3("llama3-8b", 32, 4096, 32, 14336),
        _llama3("llama3-70b", 80, 8192, 64, 28672),
        _llama3("llama3-405b", 126, 16384, 128, 53248),
    )
}


def find_decoder(name: str) -> Decoder:
    if name in DECODERS:
        return DECODERS[name]
    guess = closest(name, DECODERS)
    raise UserError(
        f"{name}: no such transformer; {f'did you mean {guess}?' if guess else 'choose from ' + ', '.join(DECODERS)}"
    )
