"""Peak memory of decoder-only transformers on torch, as `arch/decoder_memory.py` describes it: a part of measure_h200.py."""

import itertools
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from tierscope.arch.decoder import Decoder
from validation.decoders import SHAPES


class _Block(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: Decoder, flash: bool) -> None:
        super().__init__()
        self._shape, self._flash = shape, flash
        hidden, bias = shape.hidden, shape.biases
        norm = nn.RMSNorm if shape.gated else nn.LayerNorm
        self.norm1, self.norm2 = norm(hidden), norm(hidden)
        self.qkv = nn.Linear(hidden, hidden + 2 * shape.kv_width, bias=bias)
        self.out = nn.Linear(hidden, hidden, bias=bias)
        self.up = nn.Linear(hidden, shape.inner * (2 if shape.gated else 1), bias=bias)
        self.down = nn.Linear(shape.inner, hidden, bias=bias)

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        value = value + self.out(self._attend(self.qkv(self.norm1(value))))
        return value + self.down(self._activate(self.up(self.norm2(value))))

    def _activate(self, value: torch.Tensor) -> torch.Tensor:
        if not self._shape.gated:
            return functional.gelu(value)
        gate, up = value.chunk(2, -1)
        return functional.silu(gate) * up

    def _attend(self, joined: torch.Tensor) -> torch.Tensor:
        shape, (batch, length, _) = self._shape, joined.shape
        parts = joined.split((shape.hidden, shape.kv_width, shape.kv_width), -1)
        query, key, values = (part.view(batch, length, -1, shape.head_width).transpose(1, 2) for part in parts)
        if self._flash:
            mixed = functional.scaled_dot_product_attention(
                query, key, values, is_causal=True, enable_gqa=shape.kv_heads != shape.heads
            )
        else:
            repeat = shape.heads // shape.kv_heads
            if repeat > 1:
                key, values = key.repeat_interleave(repeat, 1), values.repeat_interleave(repeat, 1)
            scores = query @ key.transpose(2, 3) * shape.head_width**-0.5
            hidden_part = torch.ones(length, length, dtype=torch.bool, device=joined.device).triu(1)
            mixed = scores.masked_fill(hidden_part, float("-inf")).softmax(-1).to(values.dtype) @ values
        return mixed.transpose(1, 2).reshape(batch, length, shape.hidden)


class DecoderModule(nn.Module):  # type: ignore[misc]
    def __init__(self, shape: Decoder, flash: bool, recompute: bool) -> None:
        super().__init__()
        self._recompute = recompute
        self.tokens = nn.Embedding(shape.vocabulary, shape.hidden)
        self.places = nn.Embedding(shape.positions, shape.hidden) if shape.positions else None
        self.blocks = nn.ModuleList([_Block(shape, flash) for _ in range(shape.layers)])
        self.norm = (nn.RMSNorm if shape.gated else nn.LayerNorm)(shape.hidden)
        self.head = nn.Linear(shape.hidden, shape.vocabulary, bias=False)
        if shape.tied:
            self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        value = self.tokens(tokens)
        if self.places is not None:
            value = value + self.places.weight[: tokens.shape[1]]
        for block in self.blocks:
            value = checkpoint(block, value, use_reentrant=False) if self._recompute else block(value)
        return self.head(self.norm(value))


def measure_decoder(
    shape: Decoder, batch: int, length: int, narrow: bool, flash: bool, recompute: bool, device: torch.device
) -> dict[str, float]:
    """Bytes of torch's allocator over one whole step with Adam, and the step's seconds."""
    torch.manual_seed(0)
    module = DecoderModule(shape, flash, recompute).to(device)
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-4)
    tokens = torch.randint(0, shape.vocabulary, (batch, length + 1), device=device)
    inputs, targets = tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    def forward() -> torch.Tensor:
        with torch.autocast(device.type, torch.bfloat16, enabled=narrow):
            logits = module(inputs)
            return functional.cross_entropy(logits.view(-1, shape.vocabulary), targets.view(-1))

    for _ in range(3):
        forward().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    if device.type != "cuda":
        return {"parameters": float(sum(parameter.numel() for parameter in module.parameters()))}
    torch.cuda.synchronize(device)
    start_event, end_event = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.reset_peak_memory_stats(device)
    start = torch.cuda.memory_allocated(device)
    start_event.record()
    loss = forward()
    kept = torch.cuda.memory_allocated(device) - start
    after_forward = torch.cuda.max_memory_allocated(device)
    loss.backward()
    after_backward = torch.cuda.max_memory_allocated(device)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    end_event.record()
    torch.cuda.synchronize(device)
    return {
        "parameters": float(sum(parameter.numel() for parameter in module.parameters())),
        "start_bytes": start,
        "kept_bytes": kept,
        "forward_peak_bytes": after_forward,
        "backward_peak_bytes": after_backward,
        "peak_bytes": torch.cuda.max_memory_allocated(device),
        "seconds": float(start_event.elapsed_time(end_event)) / 1e3,
    }


def decoder_wishes() -> list[dict[str, Any]]:
    """Every shape and size, in both precisions, with both kinds of attention, with and without recomputation."""
    return [
        {
            "model": name,
            "batch": batch,
            "length": length,
            "precision": precision,
            "flash": flash,
            "recompute": recompute,
        }
        for name, (_, sizes) in SHAPES.items()
        for batch, length in sizes
        for precision, flash, recompute in itertools.product(("amp", "fp32"), (True, False), (False, True))
    ]


def measure_wish(wish: Mapping[str, Any], device: torch.device) -> dict[str, float]:
    torch.cuda.empty_cache()
    shape, _ = SHAPES[wish["model"]]
    narrow = wish["precision"] == "amp"
    return measure_decoder(shape, wish["batch"], wish["length"], narrow, wish["flash"], wish["recompute"], device)
