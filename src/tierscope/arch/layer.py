"""One layer of a network: its shapes, and what follows from them for one sample.

Operations are 2 for each multiply-add of convolutions and linear layers, as GEMMs; all others count as none (they move bytes, and
that is what they cost). A backward pass computes the gradients of weights and of the input, each as many operations as forward; the first
layer needs no gradient of its input, for a sample is not trained.
"""

import math
from dataclasses import dataclass

Shape = tuple[int, ...]

CONVOLUTIONS = frozenset({"Conv1d", "Conv2d", "Conv3d"})
TRANSPOSED = frozenset({"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"})
ACTIVATIONS = frozenset(
    {"ReLU", "LeakyReLU", "Tanh", "Sigmoid", "GELU", "SiLU", "ELU", "Hardtanh", "ReLU6", "Softmax", "Exp"}
)
NORMALISATIONS = frozenset(
    {f"{kind}Norm{dims}d" for kind in ("Batch", "Instance") for dims in (1, 2, 3)}
    | {"LayerNorm", "GroupNorm", "RMSNorm", "TrainableAffine"}
)
POOLS = frozenset({f"{kind}Pool{dims}d" for kind in ("Max", "Avg", "AdaptiveAvg", "AdaptiveMax") for dims in (1, 2, 3)})
JOINS = frozenset({"Add", "Mul", "Concat", "Resize"})  # of several inputs or none of a module: functions between layers
VIEWS = frozenset({"Flatten", "Identity", "View"})  # the same bytes under another shape

INPUT = -1  # as an input of a layer: the sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """`inputs`: indices of the layers that it reads, or INPUT. Shapes are of one sample, channels first."""

    name: str
    kind: str
    inputs: tuple[int, ...]
    in_shape: Shape
    out_shape: Shape
    kernel: Shape = ()
    stride: Shape = ()
    padding: Shape = ()
    dilation: Shape = ()
    output_padding: Shape = ()
    groups: int = 1
    bias: bool = False
    parameters: int = 0
    inplace: bool = False  # writes its output over its input
    slope: float = 0.0  # of LeakyReLU; of Dropout: its probability
    gemm: tuple[int, int, int] | None = None  # of a matrix product that is no convolution: rows, columns, inner
    gradients: int | None = None  # of its two operands, how many need one; None: by what it reads

    @property
    def elements(self) -> int:
        """Of its output."""
        return math.prod(self.out_shape)

    @property
    def in_elements(self) -> int:
        return math.prod(self.in_shape)

    @property
    def bias_elements(self) -> int:
        if not self.bias:
            return 0
        if self.kind in NORMALISATIONS:
            return self.parameters // 2
        return self.out_shape[-1 if self.kind == "Linear" else 0]

    @property
    def multiplies(self) -> bool:
        """Whether it is a matrix product."""
        return self.macs > 0

    @property
    def macs(self) -> int:
        """Multiply-adds forward."""
        if self.kind in CONVOLUTIONS:
            return self.elements * (self.in_shape[0] // self.groups) * math.prod(self.kernel)
        if self.kind in TRANSPOSED:
            return self.in_elements * (self.out_shape[0] // self.groups) * math.prod(self.kernel)
        return math.prod(self.gemm) if self.gemm else 0

    @property
    def forward_flops(self) -> int:
        return 2 * self.macs

    @property
    def backward_flops(self) -> int:
        if self.gradients is not None:
            return self.gradients * self.forward_flops
        first = self.inputs == (INPUT,)
        if self.gemm and not self.parameters:
            return 2 * self.forward_flops  # two operands that are both computed, as in attention
        return self.forward_flops * (1 if first else 2)
