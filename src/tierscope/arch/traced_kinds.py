"""Which kind of layer an operation of torch (aten) is, as `arch/kept_activations.py` and `arch/traffic.py` know kinds.

Operations that are not in the table: `Elementwise` for functions of one value (their input is kept), `Other` for all else (nothing is kept).
That is what autograd keeps for most of them, not for all: `saved_bytes_per_sample` asks autograd itself.
"""

from tierscope.arch.layer import NORMALISATIONS, POOLS

CONVOLUTION = frozenset({"convolution", "convolution_overrideable"})
PRODUCTS = {  # where their two operands stand
    "mm": (0, 1),
    "bmm": (0, 1),
    "mv": (0, 1),
    "dot": (0, 1),
    "addmm": (1, 2),
    "baddbmm": (1, 2),
    "addbmm": (1, 2),
    "addmv": (1, 2),
}
ATTENTION = "_scaled_dot_product"  # how they begin
FACTORIES = frozenset({"empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like"})
SAME = frozenset({"detach", "alias", "lift_fresh"})  # another name for the same tensor

_KINDS = {
    **dict.fromkeys(("relu", "threshold"), "ReLU"),
    **dict.fromkeys(("_softmax", "_safe_softmax", "_log_softmax"), "Softmax"),
    "leaky_relu": "LeakyReLU",
    "tanh": "Tanh",
    "sigmoid": "Sigmoid",
    "gelu": "GELU",
    "silu": "SiLU",
    "elu": "ELU",
    "hardtanh": "Hardtanh",
    **dict.fromkeys(("exp", "expm1", "sqrt", "rsqrt", "reciprocal"), "Exp"),
    "native_dropout": "Dropout",
    "native_layer_norm": "LayerNorm",
    "native_group_norm": "GroupNorm",
    "_fused_rms_norm": "RMSNorm",
    "max_pool2d_with_indices": "MaxPool2d",
    "max_pool3d_with_indices": "MaxPool3d",
    "avg_pool1d": "AvgPool1d",
    "avg_pool2d": "AvgPool2d",
    "avg_pool3d": "AvgPool3d",
    "_adaptive_avg_pool2d": "AdaptiveAvgPool2d",
    "_adaptive_avg_pool3d": "AdaptiveAvgPool3d",
    "adaptive_max_pool2d": "AdaptiveMaxPool2d",
    "adaptive_max_pool3d": "AdaptiveMaxPool3d",
    **dict.fromkeys(("add", "sub", "rsub"), "Add"),
    **dict.fromkeys(("mul", "div"), "Mul"),
    **dict.fromkeys(("cat", "stack"), "Concat"),
    "embedding": "Embedding",
    **dict.fromkeys(("clone", "copy", "_to_copy"), "Copy"),
    **dict.fromkeys(("mean", "sum", "amax", "amin", "max", "min", "argmax", "argmin"), "Reduce"),
    **dict.fromkeys(("neg", "masked_fill", "where"), "Scale"),
}
_OF_MODULES = NORMALISATIONS | POOLS


def kind_of(operation: str, dims: int, operands: int, pointwise: bool, module: str) -> str:
    """`dims`: of its input, with those of batch and channels; `operands`: of those that it needs for a gradient; `module`: its class."""
    kind = _KINDS.get(operation) or ("Elementwise" if pointwise else "Other")
    if "batch_norm" in operation:
        kind = f"BatchNorm{max(1, dims - 2)}d"
    if operation.startswith("upsample_"):
        kind = "Resize"
    if kind in ("Add", "Mul") and operands < 2:
        return "Scale"  # by a number
    if (module in _OF_MODULES and kind in _OF_MODULES) or (module in POOLS and kind == "Reduce"):
        return module  # AdaptiveAvgPool2d(1) is a mean, InstanceNorm2d a BatchNorm of other shapes
    return kind
