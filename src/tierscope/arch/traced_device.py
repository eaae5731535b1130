"""The CPU's operations as accelerators run them, so that a trace on any machine keeps what training on a device keeps.

Dropout keeps a mask of bytes, and does not keep attention from being fused; autocast leaves pools alone and runs softmax and
normalisations in 32 bits. Recurrent layers run step by step, in products that can be counted.
"""

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_map

# What CUDA's autocast does otherwise than the CPU's (torch's "CUDA Op-Specific Behavior"); of losses nothing, for none is traced.
_LEFT_ALONE = ("max_pool3d", "avg_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d")
_WIDENED = (
    "softmax.int",
    "log_softmax.int",
    "layer_norm",
    "group_norm",
    "exp",
    "log",
    "pow.Tensor_Scalar",
    "reciprocal",
    "rsqrt",
    "softplus",
)


@contextlib.contextmanager
def as_on_a_device() -> Iterator[None]:
    library = torch.library.Library("aten", "IMPL")
    onednn = torch._C._get_mkldnn_enabled()
    try:
        library.impl("dropout", _dropout, "AutogradCPU")
        library.impl("scaled_dot_product_attention", _attention, "AutogradCPU")
        torch._C._set_mkldnn_enabled(False)
        yield
    finally:
        torch._C._set_mkldnn_enabled(onednn)
        library._destroy()


@contextlib.contextmanager
def autocast(enabled: bool) -> Iterator[None]:
    """To bfloat16."""
    if not enabled:
        yield
        return
    library = torch.library.Library("aten", "IMPL")
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="(?s).*[Oo]verrid")  # which is what we are here for
            for name in _LEFT_ALONE:
                library.impl(name, torch.library.fallthrough_kernel, "AutocastCPU")
            for name in _WIDENED:
                library.impl(name, _widened(name), "AutocastCPU")
        with torch.autocast("cpu", torch.bfloat16):
            yield
    finally:
        library._destroy()


def _dropout(value: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    return torch.native_dropout(value, p, True)[0] if train and p else torch.ops.aten.alias(value)


def _attention(
    query: Any, key: Any, value: Any, mask: Any = None, _dropped: float = 0.0, *more: Any, **named: Any
) -> Any:
    return torch.ops.aten.scaled_dot_product_attention.default.decompose(query, key, value, mask, 0.0, *more, **named)


def _widened(name: str) -> Callable[..., Any]:
    packet, _, overload = name.partition(".")
    operation = getattr(getattr(torch.ops.aten, packet), overload or "default")

    @functools.wraps(operation)
    def run(*args: Any, **named: Any) -> Any:
        wide_args, wide_named = tree_map(_wide, (args, named))
        with torch.autocast("cpu", enabled=False):
            return operation(*wide_args, **wide_named)

    return run


def _wide(value: Any) -> Any:
    floats = isinstance(value, torch.Tensor) and value.dtype in (torch.bfloat16, torch.float16)
    return value.float() if floats else value
