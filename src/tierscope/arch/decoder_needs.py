"""What training a decoder-only transformer demands of devices and of storage, all in one. Modelled; nothing is run.

operations    6 for each token and weight of a product, and 12 · layers · hidden · length of attention (Chowdhery et al., 2022, appendix B; recomputation is not counted)
tokens/s      peak of the device · efficiency (the share of the peak that goes into these operations, with all waiting) / operations, times devices
token bytes   2 where the vocabulary fits 16 bits, else 4
checkpoint    `plan/shards.py`, as DLIO and MLPerf Storage lay it out: 16-bit weights (fp32: 32-bit), 32-bit ones beside them and Adam's two moments. A transformer that is
              not like Llama (tied, biases) is written in equal parts.
goodput       Daly's (`analysis/checkpoint_costs.py`): training stands still while one is written, and it is read back at the same rate
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tierscope.arch.decoder import MOST_DEVICES, Decoder, Split
from tierscope.arch.decoder_memory import DecoderMemory, DecoderWork, decoder_memory
from tierscope.arch.machine import Machine
from tierscope.arch.precision import PRECISIONS
from tierscope.arch.requirements import NO, UNCLEAR, YES
from tierscope.jsonable import JsonObject
from tierscope.plan.shards import shards_of
from tierscope.spec.study import Checkpoint, Transformer

if TYPE_CHECKING:
    from tierscope.analysis.checkpoint_costs import SaveInterval

_WIDE = 1 << 16
HALF_HOUR = 1800.0
LITTLE = 0.05  # of the time, that training may stand still
_SURE = 0.95  # of a device's memory: the driver, communication and fragments need some too
ONE_DISK = 100e6  # bytes per second: what a single hard disk gives


@dataclass(frozen=True, slots=True)
class SaveWish:
    """Bytes per second of the whole job, and seconds between failures; None: unknown."""

    bandwidth: float | None = None
    failures: float | None = None


UNKNOWN = SaveWish()


@dataclass(frozen=True, slots=True)
class DecoderNeeds:
    """`rank_bytes`: of a checkpoint, for every rank."""

    shape: Decoder
    work: DecoderWork
    split: Split
    machine: Machine
    efficiency: float
    memory: DecoderMemory
    flops_per_token: int
    tokens_per_second: float
    token_bytes_per_second: float
    rank_bytes: tuple[int, ...]
    save: SaveWish

    @property
    def verdict(self) -> str:
        """Whether it fits a device: yes, no, or unclear where hardly anything is left."""
        if self.memory.peak > self.machine.memory:
            return NO
        return YES if self.memory.peak <= _SURE * self.machine.memory else UNCLEAR

    @property
    def fitting(self) -> "DecoderNeeds | None":
        """The same on the fewest devices a replica that it surely fits; None: on no number that is tried."""
        for split, work in _ways(self):
            needs = replace(self, split=split, work=work, memory=decoder_memory(self.shape, work, split))
            if needs.verdict == YES:
                return needs
        return None

    @property
    def checkpoint_bytes(self) -> int:
        return sum(self.rank_bytes)

    @property
    def tokens_matter(self) -> bool:
        """Whether the whole job reads more than a single disk gives."""
        return self.token_bytes_per_second > ONE_DISK

    @property
    def half_hourly_bandwidth(self) -> float:
        """Bytes per second, so that a checkpoint every half hour takes little of the time."""
        return self.checkpoint_bytes / (HALF_HOUR * LITTLE)

    @property
    def checkpoints_matter(self) -> bool:
        return self.half_hourly_bandwidth > ONE_DISK

    @property
    def save_seconds(self) -> float | None:
        return None if self.save.bandwidth is None else self.checkpoint_bytes / self.save.bandwidth

    @property
    def best(self) -> "SaveInterval | None":
        """How often to write one, and the share of the time that stays done."""
        seconds, failures = self.save_seconds, self.save.failures
        if seconds is None or failures is None:
            return None
        from tierscope.analysis.checkpoint_costs import SaveInterval, best_interval, goodput  # noqa: PLC0415  (tables)

        interval = max(best_interval(seconds, failures), 1e-9)
        return SaveInterval(interval, goodput(interval, seconds, failures, seconds))


def decoder_needs(
    shape: Decoder, work: DecoderWork, split: Split, machine: Machine, efficiency: float, save: SaveWish = UNKNOWN
) -> DecoderNeeds:
    flops = flops_per_token(shape, work.length)
    peak = machine.device.peak(PRECISIONS["amp" if work.narrow else "fp32"], tensor_cores=work.narrow)
    tokens = split.devices * peak * efficiency / flops
    return DecoderNeeds(
        shape=shape,
        work=work,
        split=split,
        machine=machine,
        efficiency=efficiency,
        memory=decoder_memory(shape, work, split),
        flops_per_token=flops,
        tokens_per_second=tokens,
        token_bytes_per_second=tokens * (2 if shape.vocabulary <= _WIDE else 4),
        rank_bytes=rank_bytes(shape, split, work.narrow),
        save=save,
    )


def _ways(needs: DecoderNeeds) -> Iterator[tuple[Split, DecoderWork]]:
    """Of splitting a replica over powers of two, fewest devices first; recomputed only where that is not enough."""
    shape = needs.shape
    powers = [1 << place for place in range(17)]
    tensors = [ways for ways in powers[:4] if shape.kv_heads % ways == shape.heads % ways == 0]
    splits = [(tensor, stages) for stages in powers if stages <= shape.layers for tensor in tensors]
    for tensor, stages in sorted(splits, key=lambda ways: (ways[0] * ways[1], ways[1])):
        for recompute in sorted({needs.work.recompute, True}):
            split = replace(needs.split, tensor=tensor, pipeline=stages)
            if split.devices <= MOST_DEVICES:
                yield split, replace(needs.work, recompute=recompute)


def flops_per_token(shape: Decoder, length: int) -> int:
    """Forward and backward."""
    products = shape.layers * shape.layer_products + shape.table
    return 6 * products + 12 * shape.layers * shape.hidden * length


def rank_bytes(shape: Decoder, split: Split, narrow: bool) -> tuple[int, ...]:
    """Of a checkpoint."""
    checkpoint = checkpoint_of(shape, split, narrow)
    ranks = split.devices
    return tuple(sum(shard.nbytes for shard in shards_of(checkpoint, rank, ranks)) for rank in range(ranks))


def checkpoint_of(shape: Decoder, split: Split, narrow: bool) -> Checkpoint:
    """As a study would say it."""
    like_llama = shape.gated and not (shape.tied or shape.biases or shape.positions)
    transformer = Transformer(
        num_layers=shape.layers,
        hidden_size=shape.hidden,
        ffn_hidden_size=shape.inner,
        vocab_size=shape.vocabulary,
        num_attention_heads=shape.heads,
        num_kv_heads=shape.kv_heads,
    )
    return Checkpoint(
        mode="all_ranks",
        model_parameters=None if like_llama else shape.parameters,
        precision="bf16" if narrow else "fp32",
        optimizer="adam",
        zero_stage=split.zero,
        tensor_parallel=split.tensor,
        pipeline_parallel=split.pipeline,
        data_parallel=split.data,
        transformer=transformer if like_llama else Transformer(),
    )


def needs_json(needs: DecoderNeeds) -> JsonObject:
    shape, work, split, memory, best = needs.shape, needs.work, needs.split, needs.memory, needs.best
    return {
        "schema_version": 1,
        "kind": "decoder_requirements",
        "model": shape.name,
        "system": needs.machine.name,
        "parameters": shape.parameters,
        "sequence": work.length,
        "batch": work.batch,
        "precision": "amp" if work.narrow else "fp32",
        "attention": "flash" if work.flash else "plain",
        "recompute": "full" if work.recompute else "none",
        "split": {
            "tensor_parallel": split.tensor,
            "pipeline_parallel": split.pipeline,
            "data_parallel": split.data,
            "zero": split.zero,
            "devices": split.devices,
        },
        "device_memory_bytes": needs.machine.memory,
        "fits": needs.verdict,
        "memory_bytes": {
            "weights": memory.weights,
            "gradients": memory.gradients,
            "optimizer": memory.optimizer,
            "weight_copies": memory.copies,
            "activations": memory.activations,
            "peak": memory.peak,
        },
        "peak_at": {"stage": memory.stage, "moment": memory.moment},
        "efficiency": needs.efficiency,
        "flops_per_token": needs.flops_per_token,
        "tokens_per_second": needs.tokens_per_second,
        "token_bytes_per_second": needs.token_bytes_per_second,
        "tokens_matter": needs.tokens_matter,
        "checkpoints_matter": needs.checkpoints_matter,
        "half_hourly_checkpoint_bandwidth": needs.half_hourly_bandwidth,
        "checkpoint_bytes": {"all": needs.checkpoint_bytes, "largest_rank": max(needs.rank_bytes)},
        "checkpoint_seconds": needs.save_seconds,
        "best": None if best is None else {"interval_seconds": best.seconds, "goodput": best.goodput},
    }
